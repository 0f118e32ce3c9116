"""Patches made on this side: they survive everything that can be in a file or in its name."""

import asyncio
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from gymsuite.sandbox.protocol import FileState
from gymsuite.verify.patch import make_patch

FILE, PROGRAM, LINK = 0o100644, 0o100755, 0o120000
Files = Mapping[str, FileState]


def states(mode: int = FILE, /, **files: bytes) -> dict[str, FileState]:
    return {name: FileState(mode, data) for name, data in files.items()}


def patch(before: Files, after: Files) -> bytes:
    return asyncio.run(make_patch(before, after))


def write(root: Path, files: Files) -> None:
    for name, state in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if state.mode == LINK:
            path.symlink_to(os.fsdecode(state.data))
        else:
            path.write_bytes(state.data)
            path.chmod(state.mode & 0o777)


def read(root: Path) -> dict[str, FileState]:
    found = {}
    for folder, folders, names in os.walk(root):
        for name in [*names, *folders]:
            path = Path(folder, name)
            key = str(path.relative_to(root))
            if path.is_symlink():
                found[key] = FileState(LINK, os.fsencode(path.readlink()))
            elif path.is_file():
                found[key] = FileState(FILE | (path.stat().st_mode & 0o111), path.read_bytes())
    return found


def apply(root: Path, data: bytes) -> None:
    environment = {"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": "/"}
    environment |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    command = ["git", "apply", "--whitespace=nowarn", "-"]
    done = subprocess.run(command, cwd=root, input=data, env=environment, capture_output=True)  # noqa: PLW1510
    assert done.returncode == 0, done.stderr


TEXT = b"".join(b"line %d\n" % n for n in range(30))
ROUND_TRIPS: dict[str, tuple[Files, Files]] = {
    "an edit": (states(a=TEXT), states(a=TEXT.replace(b"line 7\n", b"LINE 7\n"))),
    "a new file": ({}, states(a=b"new\n")),
    "a deleted file": (states(a=TEXT, b=b"b\n"), states(b=b"b\n")),
    "a renamed file": (states(a=TEXT), states(b=TEXT)),
    "a renamed and edited file": (states(a=TEXT), states(b=TEXT + b"more\n")),
    "two names that change places": (states(a=TEXT, b=b"b\n"), states(a=b"b\n", b=TEXT)),
    "a binary file": (states(a=bytes(range(256))), states(a=bytes(range(255, -1, -1)))),
    "a new binary file": ({}, states(a=b"\0\1\2" * 5000)),
    "a mode": (states(FILE, a=TEXT), states(PROGRAM, a=TEXT)),
    "a mode and an edit": (states(PROGRAM, a=TEXT), states(FILE, a=TEXT + b"more\n")),
    "lines that end in CR LF": (states(a=b"a\r\nb\r\n"), states(a=b"a\r\nB\r\n")),
    "mixed line ends": (states(a=b"a\nb\r\nc\r"), states(a=b"a\r\nb\nc\r")),
    "no newline at the end": (states(a=b"a\nb"), states(a=b"a\nc")),
    "a newline that goes": (states(a=b"a\n"), states(a=b"a")),
    "an empty file": ({}, states(a=b"")),
    "an emptied file": (states(a=TEXT), states(a=b"")),
    "text that is no UTF-8": (states(a=b"caf\xe9\n"), states(a=b"caf\xe8\n")),
    "trailing blanks": (states(a=b"a \n"), states(a=b"a  \t\n\n\n")),
    "a link": ({}, states(LINK, a=b"/etc/passwd")),
    "a link that moves": (states(LINK, a=b"one"), states(LINK, a=b"two")),
    "a file that becomes a link": (states(a=TEXT), states(LINK, a=b"b")),
    "a link that becomes a file": (states(LINK, a=b"b"), states(a=TEXT)),
    "a name with blanks": ({}, {" a  b ": FileState(FILE, b"x\n")}),
    "a name with quotes": ({}, {"a\"b'c\\d": FileState(FILE, b"x\n")}),
    "a name with a newline and a tab": ({}, {"a\nb\tc": FileState(FILE, b"x\n")}),
    "a name that is no UTF-8": ({}, {"d/\udcff\udcfe": FileState(FILE, b"x\n")}),
    "a name of other letters": ({}, {"d/Grüße": FileState(FILE, b"x\n")}),
    "a name like an option": ({}, {"--version": FileState(FILE, b"x\n")}),
    "a name like a diff": ({}, {"b/a b/c": FileState(FILE, b"x\n")}),
    "a file that becomes a folder": (states(a=b"x\n"), {"a/b": FileState(FILE, b"y\n")}),
    "text that looks like a patch": ({}, states(a=b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n")),
    "attributes": (
        {".gitattributes": FileState(FILE, b"* -diff\n"), "a": FileState(FILE, TEXT)},
        {
            ".gitattributes": FileState(FILE, b"* text eol=crlf\n* filter=evil\n* ident\n"),
            "a": FileState(FILE, TEXT + b"$Id$\n"),
        },
    ),
}


@pytest.mark.parametrize("case", ROUND_TRIPS)
def test_a_patch_carries(case: str, tmp_path: Path) -> None:
    before, after = ROUND_TRIPS[case]
    write(tmp_path, before)

    apply(tmp_path, patch(before, after))

    assert read(tmp_path) == after


def test_nothing_changed_is_an_empty_patch() -> None:
    assert patch(states(a=TEXT), states(a=TEXT)) == b""


def test_the_same_change_is_the_same_patch() -> None:
    before, after = states(a=TEXT, b=b"x"), states(b=TEXT, c=b"y")

    assert patch(before, after) == patch(before, after)


def test_a_rename_is_told_as_one() -> None:
    assert b"rename from a\nrename to b\n" in patch(states(a=TEXT), states(b=TEXT))


def test_a_patch_names_whole_blobs() -> None:
    assert b"index 0000000000000000000000000000000000000000.." in patch({}, states(a=b"x\n"))


def test_the_callers_git_has_no_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = patch(states(a=TEXT), states(a=TEXT + b"more\n"))
    (tmp_path / "config").write_text(
        "[diff]\nnoprefix = true\nexternal = false\ncontext = 0\nmnemonicPrefix = true\n"
        f"[core]\nattributesFile = {tmp_path}/attributes\nhooksPath = {tmp_path}\n"
        "[color]\nui = always\n[init]\ntemplateDir = /nonexistent\n"
    )
    (tmp_path / "attributes").write_text("* -diff\n")
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, str(tmp_path / "config"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "diff.noprefix")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    monkeypatch.setenv("GIT_DIFF_OPTS", "--unified=0")

    assert patch(states(a=TEXT), states(a=TEXT + b"more\n")) == honest


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    patch({}, states(a=b"x\n"))

    assert list(tmp_path.iterdir()) == []


def test_a_flood_of_files_is_not_searched_for_renames() -> None:
    """Every deleted file would be compared with every new one."""
    old = {f"old{n}": FileState(FILE, TEXT + b"%d" % n) for n in range(500)}
    new = {f"new{n}": FileState(FILE, TEXT + b"more %d" % n) for n in range(500)}

    assert b"rename from" not in patch(old, new)
