"""A BM25 index over a corpus: the only door to tantivy.

Words are indexed as they are and, with less weight, by their English stem. Documents go in by the
order of their ids into one segment, so that equal scores have an order too.
"""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from pydantic_core import from_json

from gymsuite.errors import UsageError
from gymsuite.search.corpus import Store, write_store
from gymsuite.search.documents import Document
from gymsuite.search.progress import Progress
from gymsuite.search.retriever import Hit

try:
    import tantivy
except ImportError as error:
    raise UsageError(
        "searching needs the extra `search`: pip install 'gymsuite[search]'"
    ) from error

LAYOUT = f"1-tantivy-{version('tantivy')}"
"""Names what an index folder looks like; another layout is another folder."""

MOST_QUERY_CHARACTERS = 512
_MOST_QUERY_WORDS = 64
_LONGEST_WORD_BYTES = 60
_SMALLEST_HEAP_BYTES, _LARGEST_HEAP_BYTES = 64 << 20, 4000 << 20
_HEAP_PER_BYTE = 6
_STEM_WEIGHT = 0.4
_REPORT_EVERY = 1000
_COMMON = frozenset(("a", "an", "the", "of", "and", "to", "in"))


class Index:
    """Searches an index folder, memory-mapped and read-only; shared by all episodes."""

    def __init__(self, folder: Path) -> None:
        self._store = Store(folder)
        self._words, self._stems = _analyzers()
        self._schema = _schema()
        index = _register(tantivy.Index.open(str(folder / "index")))
        self._searcher = index.searcher()

    def __len__(self) -> int:
        return len(self._store)

    async def search(self, query: str, limit: int) -> Sequence[Hit]:
        """See `Retriever.search`; what is longer than the limits of a query is cut."""
        return [Hit(self._store[n], score) for n, score in self.rank(query, limit)]

    async def document(self, document_id: str) -> Document | None:
        """See `Retriever.document`."""
        number = self._store.number(document_id)
        return None if number is None else self._store[number]

    def rank(self, query: str, limit: int) -> list[tuple[int, float]]:
        """The numbers of the best documents with their scores."""
        # JSON lets clients send lone surrogates, which UTF-8 cannot carry.
        asked = query[:MOST_QUERY_CHARACTERS].encode(errors="replace").decode()
        words = _wanted(self._words.analyze(asked))
        if not words or limit < 1:
            return []
        stems = dict.fromkeys(self._stems.analyze(" ".join(words)))
        clauses = [(tantivy.Occur.Should, self._term("words", word)) for word in words]
        clauses += [
            (
                tantivy.Occur.Should,
                tantivy.Query.boost_query(self._term("stems", stem), _STEM_WEIGHT),
            )
            for stem in stems
        ]
        found = self._searcher.search(tantivy.Query.boolean_query(clauses), limit, count=False)
        # In one segment a document's address is its number.
        hits = [(address.doc, score) for score, address in found.hits]
        return sorted(hits, key=lambda hit: (-hit[1], hit[0]))

    def _term(self, field: str, text: str) -> tantivy.Query:
        return tantivy.Query.term_query(self._schema, field, text, index_option="freq")


def build_index(folder: Path, lines: Sequence[bytes], progress: Progress) -> None:
    """Fill an empty folder from the canonical lines of a corpus."""
    write_store(folder, lines)
    path = folder / "index"
    path.mkdir()
    index = _register(tantivy.Index(_schema(), path=str(path)))
    # One segment needs all of the index in memory at once, and one thread to keep the order.
    heap = _HEAP_PER_BYTE * sum(map(len, lines))
    writer = index.writer(min(max(heap, _SMALLEST_HEAP_BYTES), _LARGEST_HEAP_BYTES), 1)
    for number, line in enumerate(lines):
        row = from_json(line)
        text = f"{row.get('title', '')}\n{row['text']}"
        writer.add_document(tantivy.Document(words=text, stems=text))
        if number % _REPORT_EVERY == 0:
            progress(number, len(lines))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    if index.searcher().num_segments != 1:
        raise UsageError(
            f"{len(lines)} documents do not fit into one segment of the index; split the corpus"
        )
    progress(len(lines), len(lines))


def _wanted(words: Sequence[str]) -> list[str]:
    """The distinct words of a query without the most common ones, unless there are no others."""
    distinct = dict.fromkeys(words)
    return [word for word in distinct if word not in _COMMON][:_MOST_QUERY_WORDS] or list(distinct)


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    for field in ("words", "stems"):
        builder.add_text_field(field, tokenizer_name=field, index_option="freq")
    return builder.build()


def _analyzers() -> tuple[tantivy.TextAnalyzer, tantivy.TextAnalyzer]:
    def plain() -> tantivy.TextAnalyzerBuilder:
        return (
            tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
            .filter(tantivy.Filter.remove_long(_LONGEST_WORD_BYTES))
            .filter(tantivy.Filter.lowercase())
            .filter(tantivy.Filter.ascii_fold())
        )

    return plain().build(), plain().filter(tantivy.Filter.stemmer("english")).build()


def _register(index: tantivy.Index) -> tantivy.Index:
    words, stems = _analyzers()
    index.register_tokenizer("words", words)
    index.register_tokenizer("stems", stems)
    return index
