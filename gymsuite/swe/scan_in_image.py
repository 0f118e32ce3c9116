"""Looks for the future in an image. Its text is sent into a sandbox: no gymsuite imports.

Standard input is `{"workdir", "base", "wanted"}`, `wanted` being for each file name what the
solution makes of its places. Standard output is `{"problems": [...], "looked": N}`.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from typing import Iterator  # noqa: UP035 - any Python from 3.6 on runs this

_SKIPPED = ("/proc", "/sys", "/dev", "/usr/share/man", "/usr/share/doc", "/usr/share/info")
_ARCHIVES = (".whl", ".zip", ".egg", ".tar", ".tgz", ".tar.gz", ".bz2", ".tar.xz", ".body")
_NO_ARCHIVE = (
    OSError, EOFError, ValueError, RuntimeError, NotImplementedError, tarfile.TarError,
    zipfile.BadZipFile,
)  # fmt: skip
_TEXTS = (".orig", ".rej", ".patch", ".diff", ".bak", "~")
_MOST_BYTES = 64 << 20
_DEEPEST = 3


def git(*arguments: str) -> str:
    """What git says; raises where it fails, so that nothing passes unseen."""
    done = subprocess.run(  # noqa: UP022 - 3.6 has no capture_output
        ["git", "-c", "safe.directory=*", *arguments],  # noqa: S607 - the image's own
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"git {arguments[0]}: {done.stderr[-300:]!r}")
    return done.stdout.decode("utf-8", "replace")


def repository(base: str) -> "Iterator[str]":
    """What the repository holds besides the base commit and its history."""
    ahead = git("rev-list", base + "..HEAD").split()
    if git("rev-list", "HEAD.." + base).split() or len(ahead) > 1:
        yield f"HEAD is neither {base} nor one commit on top of it"
    for commit in git("rev-list", "--all", "--reflog", "--not", "HEAD").split():
        yield "a ref or a reflog leads to commit " + commit
    for remote in git("remote").split():
        yield "there is a remote, " + remote
    reachable = git("rev-list", "--objects", "--all", "HEAD").splitlines()
    known = {line.split(" ", 1)[0] for line in reachable}
    listed = git("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
    for line in listed.splitlines():
        name, kind = line.split()
        if name not in known:
            yield f"{kind} {name} is in the object store, and no part of the history"
    folder = git("rev-parse", "--git-dir").strip()
    for name in ("objects/info/alternates", "worktrees", "modules", "FETCH_HEAD", "shallow.lock"):
        if os.path.exists(os.path.join(folder, name)):  # noqa: PTH110, PTH118
            yield "there is .git/" + name
    for line in git("status", "--porcelain", "--untracked-files=no").splitlines():
        yield "not as committed: " + line[3:]


class Looker:
    """Opens files that could be copies of what the solution writes, and archives of such."""

    def __init__(self, wanted: "dict[str, list[str]]") -> None:
        self.wanted = wanted
        self.looked = 0
        self.found: list[str] = []

    def interesting(self, name: str) -> bool:
        """Whether a file of this name is to be opened."""
        last = os.path.basename(name)  # noqa: PTH119
        return last in self.wanted or last.endswith(_ARCHIVES) or last.endswith(_TEXTS)

    def look(self, where: str, data: bytes, depth: int = 0) -> None:
        """Look at a file's content, and into it where it is an archive."""
        self.looked += 1
        text = data.decode("utf-8", "replace")
        if not data.startswith((b"PK", b"\x1f\x8b", b"BZh", b"\xfd7z")):
            lines = text.splitlines()
            # What a patch removes is not there where a patch lies about, either.
            after = [line for line in lines if not line.startswith("-")]
            texts = ["\n" + squeezed(some) + "\n" for some in (lines, after)]
            for name, blocks in self.wanted.items():
                if any(all("\n" + block + "\n" in some for block in blocks) for some in texts):
                    self.found.append(f"{where} holds what the solution makes of {name}")
        if depth < _DEEPEST:
            with contextlib.suppress(*_NO_ARCHIVE):
                self.unpack(where, data, depth + 1)

    def unpack(self, where: str, data: bytes, depth: int) -> None:
        """Look at what is in an archive."""
        stream = io.BytesIO(data)
        if data[:2] == b"PK":
            with zipfile.ZipFile(stream) as box:
                for name in filter(self.interesting, box.namelist()):
                    self.look(where + "!" + name, box.read(name), depth)
        elif data[:3] in (b"\x1f\x8b\x08", b"BZh", b"\xfd7z") or data[257:262] == b"ustar":
            with tarfile.open(fileobj=stream) as box:
                for member in box:
                    if member.isfile() and self.interesting(member.name):
                        content = box.extractfile(member)
                        self.look(
                            where + "!" + member.name, content.read() if content else b"", depth
                        )


def squeezed(lines: "list[str]") -> str:
    """The lines that say something, without the white space and the signs of a patch."""
    thin = (" ".join(line.lstrip("+- ").split()) for line in lines)
    return "\n".join(line for line in thin if line)


def files(workdir: str, looker: Looker) -> "Iterator[str]":
    """Go through all files but those of the base commit itself; yields further git objects."""
    tracked = {os.path.join(workdir, name) for name in git("ls-files", "-z").split("\0") if name}  # noqa: PTH118
    own = os.path.join(workdir, ".git")  # noqa: PTH118
    for top, folders, names in os.walk("/"):
        folders[:] = [f for f in folders if os.path.join(top, f) not in (*_SKIPPED, own)]  # noqa: PTH118
        if ".git" in folders:
            yield "another repository in " + top
        for name in names:
            path = os.path.join(top, name)  # noqa: PTH118
            if path in tracked or os.path.islink(path):  # noqa: PTH114
                continue
            if name.endswith((".bundle", ".pack")) and is_git(path):
                yield "git objects in " + path
            elif looker.interesting(name) and os.path.getsize(path) <= _MOST_BYTES:  # noqa: PTH202
                with open(path, "rb") as stream:  # noqa: PTH123
                    looker.look(path, stream.read())


def is_git(path: str) -> bool:
    """Whether a file is a pack or a bundle."""
    with open(path, "rb") as stream:  # noqa: PTH123
        return stream.read(16).startswith((b"PACK", b"# v2 git bundle", b"# v3 git bundle"))


def main() -> None:
    """Look, and say what was found."""
    asked = json.load(sys.stdin)
    os.chdir(asked["workdir"])
    looker = Looker(asked["wanted"])
    problems = [*repository(asked["base"]), *files(asked["workdir"], looker), *looker.found]
    json.dump({"problems": problems, "looked": looker.looked}, sys.stdout)


main()
