"""What one `local` sandbox is to be, and how the keeper is told of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gymsuite.sandbox.accounts import ROOT, Account
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.limits import Enforcement, Quota
from gymsuite.sandbox.localhost import LocalHost
from gymsuite.sandbox.scene import Scene
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
    enforcement, image = Enforcement(place.quota, host.cgroups), place.image
    scene = Scene(
        layers=image.layers,
        upper=place.quota.room(image.frozen),
        shared=(place.quota.shm_bytes, place.quota.shm_inodes),
        serve=(*enforcement.server(), *(("--owners", "1") if place.one_owner else ())),
        masks=host.masks,
        kept=[f"{frozen.key}/upper" for frozen in image.frozen],
        scratch=place.scratch,
        binds=(*place.binds, *place.sockets),
        hidden=image.hides,
        # What commands left may stand in its place above what was frozen.
        workdir="" if image.frozen else directory(image, place.workdir),
        network=place.network,
        account=place.account,
        # Who can become others needs to be root; files of others would be no user's of an image.
        users=host.users and place.in_memory and place.account == ROOT,
    )
    return [*enforcement.settings(), "--", *enforcement.own(), *scene.words()]
