import asyncio
import os
from pathlib import Path

import pytest

from gymsuite import DefinitionError
from gymsuite.search import Library, open_folder
from gymsuite.search.folder import folder_documents, html_text

PAGE = """<!doctype html><html><head><title>The  Heron &amp; others</title>
<style>p { color: grey }</style></head><body><h1>Birds</h1><p>The grey <b>heron</b>s nest.</p>
<script>var zebra = "<p>zebra</p>";</script><p>By the weir<p>unclosed &lt;tag&gt;</body>"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    (root / "sub" / ".hidden").mkdir(parents=True)
    (root / "birds.html").write_text(PAGE)
    (root / "weir.md").write_text("intro\n\n## The *Weir* ##\nBuilt in 1821.\n")
    (root / "sub" / "mill.rst").write_text("The Mill\n========\nIt grinds corn.\n")
    (root / "sub" / "plain.TXT").write_bytes(b"caf\xe9 notes")
    (root / "sub" / ".hidden" / "no.md").write_text("secret zebra")
    (root / "binary.txt").write_bytes(b"zebra\0")
    (root / "code.py").write_text("zebra = 1")
    (root / "link.md").symlink_to(root / "weir.md")
    return root


def search(library: Library, query: str) -> list[str]:
    async def run() -> list[str]:
        return [hit.document.id for hit in await (await library.open()).search(query, 5)]

    return asyncio.run(run())


def test_a_folder_is_searchable_as_it_is(folder: Path, tmp_path: Path) -> None:
    library = open_folder(folder, lambda: tmp_path / "cache")
    assert search(library, "heron nests")[0] == "birds.html"
    assert search(library, "1821") == ["weir.md"]
    assert search(library, "zebra") == []


def test_documents_have_titles_and_paths(folder: Path) -> None:
    found = {document.id: document for document in folder_documents(folder)}
    assert list(found) == ["birds.html", "sub/mill.rst", "sub/plain.TXT", "weir.md"]
    titles = {key: document.title for key, document in found.items()}
    assert titles == {
        "birds.html": "The Heron & others",
        "sub/mill.rst": "The Mill",
        "sub/plain.TXT": "plain",
        "weir.md": "The *Weir*",
    }


def test_files_of_every_encoding_and_name_are_found(tmp_path: Path) -> None:
    (tmp_path / "bom.md").write_bytes(b"\xef\xbb\xbf# Marked\n")
    (tmp_path / "wide.txt").write_bytes("a giraffe".encode("utf-16"))
    (tmp_path / os.fsdecode(b"na\xefve.md")).write_text("text")
    (tmp_path / "gone.md").mkdir()
    found = [(d.id, d.title, d.text) for d in folder_documents(tmp_path)]
    assert found == [
        ("bom.md", "Marked", "# Marked\n"),
        ("na\\udcefve.md", "na\\udcefve", "text"),
        ("wide.txt", "wide", "a giraffe"),
    ]


def test_html_becomes_the_text_that_one_sees() -> None:
    title, text = html_text(PAGE)
    assert title == "The Heron & others"
    assert text == "Birds\n\nThe grey herons nest.\n\nBy the weir\nunclosed <tag>"
    assert html_text("<<<>&#xd800;</p") is not None


def test_a_changed_document_is_found_anew(folder: Path, tmp_path: Path) -> None:
    assert search(open_folder(folder, lambda: tmp_path / "cache"), "yak") == []
    (folder / "new.md").write_text("a yak")
    assert search(open_folder(folder, lambda: tmp_path / "cache"), "yak") == ["new.md"]


def test_a_corpus_file_is_as_good_as_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"id": "a", "text": "a yak"}\n')
    assert search(open_folder(path, lambda: tmp_path / "cache"), "yak") == ["a"]


def test_where_there_is_nothing_to_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="neither a folder nor a corpus file"):
        open_folder(tmp_path / "none", lambda: tmp_path)
    (tmp_path / "empty").mkdir()
    library = open_folder(tmp_path / "empty", lambda: tmp_path / "cache")
    with pytest.raises(DefinitionError, match="no documents in it"):
        asyncio.run(library.open())
