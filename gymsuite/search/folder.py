"""Any folder of Markdown, reStructuredText, HTML or plain text as a corpus of one's own."""

import codecs
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path

from gymsuite.errors import DefinitionError
from gymsuite.search.corpus import Corpus
from gymsuite.search.documents import Document, read_documents
from gymsuite.search.library import Library
from gymsuite.search.progress import Progress, silent

SUFFIXES = (".md", ".markdown", ".rst", ".txt", ".html", ".htm")
CORPUS_SUFFIXES = (".jsonl", ".parquet")
MOST_BYTES = 16 << 20
_HEADING = re.compile(r"^#+\s+(.+?)\s*#*\s*$", re.MULTILINE)
_UNDERLINED = re.compile(r"^(\S[^\n]*)\n([=\-~^\"*#+])\2{2,}\s*$", re.MULTILINE)
_LONGEST_TITLE = 200
_UNSEEN = ("script", "style", "template", "noscript", "svg")
_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "br",
        "dd",
        "div",
        "dl",
        "dt",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "table",
        "td",
        "th",
        "tr",
        "ul",
    ]
)


def open_folder(path: Path, cache: Callable[[], Path], progress: Progress = silent) -> Library:
    """A library over a folder of documents, or over a corpus file (JSONL or Parquet).

    The index is built when it is first opened, and again only after a document has changed. Raises
    `DefinitionError` where there is nothing to read.
    """
    if path.is_file() and path.suffix in CORPUS_SUFFIXES:
        return Library(Corpus(str(path), lambda: read_documents(path)), cache, progress=progress)
    if not path.is_dir():
        raise DefinitionError(
            f"{path}: neither a folder nor a corpus file ({', '.join(CORPUS_SUFFIXES)})"
        )
    return Library(Corpus(str(path), lambda: folder_documents(path)), cache, progress=progress)


def folder_documents(folder: Path) -> Iterator[Document]:
    """The documents below a folder, by their paths.

    Hidden and unreadable files, links, binary files and files larger than `MOST_BYTES` are left
    out.
    """
    found = False
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.suffix.lower() not in SUFFIXES or any(part[0] == "." for part in inside.parts):
            continue
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_BYTES:
            continue
        text = _text(path)
        if text is None:
            continue
        found = True
        yield _document(inside, text)
    if not found:
        raise DefinitionError(f"{folder}: no documents in it ({', '.join(SUFFIXES)})")


def _text(path: Path) -> str | None:
    """What a file says, or None for one that is binary or may not be read."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace")
    return None if b"\0" in data else data.decode("utf-8-sig", errors="replace")


def _document(inside: Path, text: str) -> Document:
    title = ""
    if inside.suffix.lower() in {".html", ".htm"}:
        title, text = html_text(text)
    else:
        heading = _HEADING.search(text) or _UNDERLINED.search(text)
        title = heading[1] if heading else ""
    title = " ".join(title.split())[:_LONGEST_TITLE]
    # A name may hold bytes that are no UTF-8; they come as lone surrogates.
    name, stem = (
        part.encode(errors="backslashreplace").decode() for part in (inside.as_posix(), inside.stem)
    )
    return Document(id=name, title=title or stem, text=text)


def html_text(source: str) -> tuple[str, str]:
    """The title and the visible text of a page, however badly formed."""
    reader = _Reader()
    reader.feed(source)
    reader.close()
    lines = ("".join(reader.pieces)).split("\n")
    text = "\n".join(" ".join(line.split()) for line in lines)
    return " ".join("".join(reader.title).split()), re.sub(r"\n{3,}", "\n\n", text).strip()


class _Reader(HTMLParser):
    """Collects the title and what is visible."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self.pieces: list[str] = []
        self._unseen = 0
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Enter an element."""
        del attrs
        self._unseen += tag in _UNSEEN
        self._in_title = tag == "title"
        if tag in _BLOCKS:
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        """Leave an element."""
        if tag in _UNSEEN and self._unseen:
            self._unseen -= 1
        if tag == "title":
            self._in_title = False
        if tag in _BLOCKS:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        """Keep what is seen."""
        if self._in_title:
            self.title.append(data)
        elif not self._unseen:
            self.pieces.append(data)
