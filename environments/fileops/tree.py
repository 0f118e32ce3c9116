"""A tree of files as a value: made for a task, packed for a sandbox, read back from outside."""

import io
import json
import os
import stat
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

READ_MODE = 0o755
"""The rights that are looked at: others' right to write does not survive the way out."""

_STORED_BYTES = 0xFFFF
_JSON_BYTES = 1 << 16
_BY_LINES = ("report.csv", "removed.tsv", "lost.txt")
_GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"


class Node(NamedTuple):
    """What lies at a path. The data of a link is its target; a directory has none."""

    kind: Literal["file", "link", "directory"]
    mode: int
    data: bytes = b""


Tree = dict[str, Node]
"""Nodes by path; directories are listed where their rights are not the usual ones."""


def text(data: str, mode: int = 0o644) -> Node:
    """A file with these words."""
    return Node("file", mode, data.encode())


def link(target: str) -> Node:
    """A symbolic link."""
    return Node("link", 0o777, target.encode())


def below(folder: str, path: str) -> bool:
    """Whether a path lies in a folder, at any depth."""
    return path.startswith(f"{folder}/")


def whole(tree: Mapping[str, Node]) -> Tree:
    """The tree with all of its directories."""
    full = dict(tree)
    for path in tree:
        while path := path.rpartition("/")[0]:
            full.setdefault(path, Node("directory", 0o755))
    return full


def packed(tree: Mapping[str, Node]) -> bytes:
    """The tree as a tar archive: the same bytes for the same tree."""
    entries = sorted(whole(tree).items(), key=lambda entry: entry[0].encode())
    return tar((path if node.kind != "directory" else f"{path}/", node) for path, node in entries)


def tar(entries: Iterator[tuple[str, Node]]) -> bytes:
    """An archive with these members, in this order."""
    buffer = io.BytesIO()
    kinds = {"file": tarfile.REGTYPE, "link": tarfile.SYMTYPE, "directory": tarfile.DIRTYPE}
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path, node in entries:
            info = tarfile.TarInfo(path)
            info.type, info.mode = kinds[node.kind], node.mode
            if node.kind == "link":
                info.linkname = node.data.decode()
                archive.addfile(info)
            else:
                info.size = len(node.data)
                archive.addfile(info, io.BytesIO(node.data))
    return buffer.getvalue()


def gzipped(data: bytes) -> bytes:
    """A gzip file that holds the data as it is: compressors differ from machine to machine."""
    blocks = [data[at : at + _STORED_BYTES] for at in range(0, len(data), _STORED_BYTES)] or [b""]
    body = b"".join(
        bytes([number == len(blocks)])
        + len(block).to_bytes(2, "little")
        + (len(block) ^ _STORED_BYTES).to_bytes(2, "little")
        + block
        for number, block in enumerate(blocks, 1)
    )
    end = zlib.crc32(data).to_bytes(4, "little") + len(data).to_bytes(4, "little")
    return _GZIP_HEAD + body + end


def read_tree(root: Path) -> Tree:
    """What lies below a directory of this machine that came from a sandbox; follows no link."""
    tree: Tree = {}
    waiting = [root]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                path = _printable(str(Path(entry.path).relative_to(root)))
                status = entry.stat(follow_symlinks=False)
                mode = stat.S_IMODE(status.st_mode)
                if stat.S_ISLNK(status.st_mode):
                    target = os.readlink(os.fsencode(entry.path))  # noqa: PTH115 - a Path has no bytes
                    tree[path] = Node("link", 0o777, target)
                elif stat.S_ISDIR(status.st_mode):
                    waiting.append(Path(entry.path))
                    tree[path] = Node("directory", mode)
                else:
                    tree[path] = Node("file", mode, Path(entry.path).read_bytes())
    return tree


def _printable(path: str) -> str:
    """A name that JSON can carry; what is no UTF-8 is spelt out."""
    return os.fsencode(path).decode(errors="backslashreplace")


def meaning(path: str, data: bytes) -> bytes:
    """What has to be equal for two files to be alike: JSON by value, reports by their lines."""
    if path.endswith(".json") and len(data) <= _JSON_BYTES:
        try:
            value = json.loads(
                data.decode(),
                parse_int=_number,
                parse_float=_number,
                parse_constant=_no_constant,
                object_pairs_hook=_sorted,
            )
            return repr(value).encode()
        except (ValueError, RecursionError):
            return data
    if path.rpartition("/")[2] in _BY_LINES:
        return data.replace(b"\r\n", b"\n").rstrip(b"\n")
    return data


def _number(literal: str) -> tuple[str, int]:
    """A number as digits and exponent: 10, 10.0 and 1e1 are one, exactly and however long."""
    mantissa, _, exponent = literal.lower().partition("e")
    whole_part, _, fraction = mantissa.partition(".")
    minus, digits = whole_part[:1] == "-", f"{whole_part.lstrip('-')}{fraction}".lstrip("0")
    short = digits.rstrip("0")
    if not short:
        return "0", 0
    scale = int(exponent or 0) - len(fraction) + len(digits) - len(short)
    return f"-{short}" if minus else short, scale


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _sorted(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object whatever the order of its keys. Raises `ValueError` for a key that comes twice."""
    found = dict(sorted(pairs, key=lambda pair: pair[0]))
    if len(found) < len(pairs):
        raise ValueError("a key comes twice")
    return found
