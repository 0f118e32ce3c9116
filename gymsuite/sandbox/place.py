"""What one `local` sandbox is to be, and how the keeper is told of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gymsuite.sandbox.accounts import ROOT, Account
from gymsuite.sandbox.bubblewrap import Mounts, Wish
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.limits import Enforcement, Quota
from gymsuite.sandbox.localhost import LocalHost
from gymsuite.sandbox.stage import Stage
from gymsuite.sandbox.workdirs import directory


@dataclass(frozen=True)
class Place:
    """What one sandbox is to be.

    Its `scratch` is a directory of this machine for what it writes; without one, that lies in
    memory. `sockets` of this machine appear below /dev. With `one_owner` a change of
    a file's owner succeeds without effect, as in a build, whose files are all its image's user's.
    """

    image: Image
    env: Mapping[str, str]
    workdir: str
    quota: Quota
    account: Account = ROOT
    network: bool = False
    extra_binds: tuple[tuple[Path, str], ...] = ()
    sockets: tuple[tuple[Path, str], ...] = ()
    scratch: Path | None = None
    lifetime_seconds: float | None = None
    one_owner: bool = False

    @property
    def binds(self) -> tuple[tuple[Path, str], ...]:
        """Read-only host paths, and where they appear."""
        own = tuple((path, str(path)) for path in self.image.binds)
        return own + tuple(bind for bind in self.extra_binds if not self._covered(bind[1]))

    @property
    def mount_points(self) -> tuple[str, ...]:
        """Where something is mounted over the image."""
        return ("/dev", "/proc", *(target for _, target in self.binds))

    def _covered(self, target: str) -> bool:
        return any(Path(target).is_relative_to(path) for path in self.image.binds)

    @property
    def in_memory(self) -> bool:
        """Whether what it writes lies in memory."""
        return self.scratch is None


def words(host: LocalHost, place: Place) -> list[str]:
    """Write what the keeper is told of a sandbox's start."""
    stage, enforcement = Stage(), Enforcement(place.quota, host.cgroups)
    layers = [stage.host(layer) for layer in place.image.layers]
    layers += [stage.kept(f"{frozen.key}/upper") for frozen in place.image.frozen]
    room = place.quota.room(place.image.frozen)
    scratch = stage.host(place.scratch) if place.scratch else stage.upper(*room)
    for bind in place.image.binds:
        for hidden in place.image.hides:
            if hidden.is_relative_to(bind):
                stage.cover(f"{stage.host(bind)}/{hidden.relative_to(bind)}", f"{scratch}/empty")
    mounts = Mounts(
        server=stage.program(),
        layers=tuple(layers),
        scratch=scratch,
        binds=tuple((stage.host(path), target) for path, target in place.binds),
        # What commands left may stand in its place above what was frozen.
        workdir="" if place.image.frozen else directory(place.image, place.workdir),
        shm=stage.shared(place.quota.shm_bytes, place.quota.shm_inodes),
        sockets=tuple((stage.host(path), target) for path, target in place.sockets),
    )
    # Who can become others needs to be root, and files of others would be no user's of the image.
    users = host.users and place.in_memory and place.account == ROOT
    serve = (*enforcement.server(), *(("--owners", "1") if place.one_owner else ()))
    wish = Wish(place.network, serve, place.account, users)
    run = host.run(stage, mounts, wish)
    return [*enforcement.settings(), "--", *enforcement.own(), *run]
