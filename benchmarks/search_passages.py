"""Real passages: the documentation packages of this Debian or Ubuntu, cut into 100 words each.

python benchmarks/search_passages.py FOLDER OUT.jsonl
"""

import gzip
import html
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

WORDS, FEWEST = 100, 25
PACKAGES = (
    r"python3\.[0-9]+-doc", "perl-doc", r"linux-doc-[0-9].*", r"postgresql-doc-[0-9]+",
    "python-django-doc", "apache2-doc", "git-doc", "sqlite3-doc", "manpages", "manpages-dev",
    "dict-gcide", "dict-foldoc", "debian-policy", "nodejs-doc",
)  # fmt: skip
_DROPPED = re.compile(r"(?is)<(script|style|head|nav)\b.*?</\1>")
_TAG = re.compile(r"(?s)<[^>]+>")
_TITLE = re.compile(r"(?is)<title>(.*?)</title>")
_ROFF = re.compile(r'(?m)^\.\\".*$|^\.[A-Z]{1,2} ?|\\f[A-Z]|\\&')


def passages(folder: Path) -> Iterator[dict[str, str]]:
    """Download, unpack and cut; packages that this system does not offer are left out."""
    for pattern in PACKAGES:
        listed = _run(folder, "apt-cache", "search", "--names-only", f"^{pattern}$")
        names = sorted(line.split()[0] for line in listed.splitlines())
        for name in names[-1:]:
            _run(folder, "apt-get", "download", "--quiet", name)
            archive = next(folder.glob(f"{name}_*.deb"))
            unpacked = folder / "unpacked" / name
            unpacked.mkdir(parents=True, exist_ok=True)
            _run(folder, "dpkg-deb", "-x", str(archive), str(unpacked))
            yield from _cut(name, unpacked)


def _run(folder: Path, *command: str) -> str:
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def _cut(package: str, root: Path) -> Iterator[dict[str, str]]:
    number = 0
    for path in sorted(root.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        for title, text in _texts(path):
            words = text.split()
            for start in range(0, len(words), WORDS):
                chunk = words[start : start + WORDS]
                if len(chunk) >= FEWEST:
                    yield {"id": f"{package}-{number}", "title": title, "text": " ".join(chunk)}
                    number += 1


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    name = path.name.removesuffix(".gz").removesuffix(".dz")
    if name.endswith((".html", ".htm")) and not name.startswith("genindex"):
        source = _content(path)
        title = _TITLE.search(source)
        shown = html.unescape(_TAG.sub("", title[1])).strip() if title else name
        yield shown[:120], html.unescape(_TAG.sub(" ", _DROPPED.sub(" ", source)))
    elif name.endswith(".dict"):
        for entry in re.split(r"\n(?=\S)", _content(path)):
            yield entry.split("\n")[0].strip()[:60], entry
    elif "/man/man" in str(path):
        yield name, _ROFF.sub("", _content(path))


def _content(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix in {".gz", ".dz"}:
        data = gzip.decompress(data)
    return data.decode(errors="replace")


def main() -> None:
    """Write all passages."""
    with Path(sys.argv[2]).open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(row) + "\n" for row in passages(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
