"""A row's repository, found in a folder of clones or bundles, and cut off at its base commit.

git reads the clones on this machine, with its own and the caller's configuration shut out. What is
made of them is a bundle of the base commit and what came before it: nothing later leaves here.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from gymsuite.errors import DefinitionError

_SECONDS = 600.0
_BRANCH = "main"
_PART_BYTES = 240
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    # A clone may be owned by someone else than the caller.
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
}


def find_repository(folder: Path, repo: str) -> Path:
    """Find the clone or bundle of `owner/name`; raises `DefinitionError` that says where it looked.

    It lies in `folder` as `owner/name`, `owner__name` or `name`, also with `.git` or `.bundle`
    behind it; or `folder` is itself the one clone or bundle.
    """
    if leads_elsewhere(repo):
        raise DefinitionError(f"{repo[:80]!r} is no repository's name: owner/name")
    owner, _, name = repo.partition("/")
    stems = (f"{owner}/{name}", f"{owner}__{name}", name)
    names = [f"{stem}{end}" for stem in stems for end in ("", ".git", ".bundle")]
    for path in (*(folder / name for name in names), folder):
        if path.is_file() or _is_clone(path):
            return path.resolve()
    shown = ", ".join(f"{owner}__{name}{end}" for end in ("", ".git", ".bundle"))
    raise DefinitionError(f"no clone of {repo} in {folder}; it would be called {shown}")


def leads_elsewhere(name: str) -> bool:
    """Whether what a data set calls something names, as a path, nothing inside its folder."""
    path = PurePath(name)
    long = any(len(os.fsencode(part)) > _PART_BYTES for part in path.parts)
    return long or not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name


def _is_clone(path: Path) -> bool:
    return (path / ".git").exists() or (path / "objects").is_dir()


def write_bundle(repository: Path, commit: str, bundle: Path) -> str:
    """Write the history that ends in a commit, and return the commit's whole id.

    Raises `DefinitionError` where it is not there.
    """
    with tempfile.TemporaryDirectory(prefix="gymsuite-bundle-") as folder:
        bare = Path(folder)
        _git(bare, ["init", "--quiet", "--bare", "--template=", "."])
        if repository.is_file():
            _git(bare, ["fetch", "--quiet", "--no-tags", str(repository), "refs/*:refs/given/*"])
        else:
            found = _git(repository, ["rev-parse", "--path-format=absolute", "--git-common-dir"])
            objects = Path(os.fsdecode(found).strip()) / "objects"
            (bare / "objects/info").mkdir(exist_ok=True)
            (bare / "objects/info/alternates").write_text(f"{objects}\n", encoding="utf-8")
        try:
            found = _git(bare, ["rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"])
        except DefinitionError as error:
            raise DefinitionError(f"{repository} has no commit {commit}") from error
        commit = found.decode().strip()
        refs = [f"refs/heads/{_BRANCH}"]
        _git(bare, ["update-ref", refs[0], commit])
        source = bare if repository.is_file() else repository
        for name, tag in _earlier_tags(source, commit):
            refs.append(f"refs/tags/{name}")
            _git(bare, ["update-ref", refs[-1], tag])
        bundle.parent.mkdir(parents=True, exist_ok=True)
        partial = bundle.with_name(f".{bundle.name}.{os.getpid()}")
        # One thread: the same history makes the same bundle, and so the same image.
        threads = ["-c", "pack.threads=1"]
        _git(bare, [*threads, "bundle", "create", "--quiet", str(partial), *refs])
        partial.replace(bundle)
        return commit


def _earlier_tags(repository: Path, commit: str) -> Iterator[tuple[str, str]]:
    """Tags of the history that were there when the commit was made: versions come from them."""
    made = int(_git(repository, ["log", "-1", "--format=%ct", commit]))
    form = "--format=%(creatordate:unix) %(objectname) %(refname)"
    listed = _git(repository, ["for-each-ref", f"--merged={commit}", form])
    for line in listed.decode(errors="surrogateescape").splitlines():
        date, tag, name = line.split(" ", 2)
        _, is_tag, short = name.partition("/tags/")
        if is_tag and date and int(date) <= made:
            yield short, tag


def _git(folder: Path, arguments: Sequence[str]) -> bytes:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - the git that is on the PATH
            env=_shut_out(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DefinitionError(f"git cannot be run on {folder}: {error}") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()[-500:]
        raise DefinitionError(f"git {arguments[0]} failed on {folder}: {said}")
    return done.stdout


def _shut_out(environment: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
    return {**kept, **_ENVIRONMENT}
