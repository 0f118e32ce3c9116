"""One search engine over one corpus, measured in a process of its own; `search.py` starts it.

    python benchmarks/search_engines.py ENGINE CORPUS.jsonl QUERIES.jsonl [FOLDER DIGEST]

ENGINE is gymsuite (its index in FOLDER), bm25s, bm25s-numba or rank_bm25. Prints one JSON object.
"""

import asyncio
import gc
import importlib
import json
import re
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

RESULTS = 10
WARM_UP = 20
SLOW_QUERIES = 40
WORD = re.compile(r"\w+")

Search = Callable[[str], Sequence[str]]


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a JSONL file."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def resident_bytes() -> int:
    """What this process holds in memory now, mapped files included."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def gymsuite(corpus: Path, folder: Path, pinned: str) -> Search:
    """Ours: build the index if `folder` has none, then open it as an environment would."""
    from gymsuite.search import Corpus, Library, read_documents  # noqa: PLC0415 - one engine each

    library = Library(Corpus("benchmark", lambda: read_documents(corpus), pinned), lambda: folder)
    retriever = asyncio.run(library.open())

    def search(query: str) -> list[str]:
        coroutine = retriever.search(query, RESULTS)
        try:
            coroutine.send(None)
        except StopIteration as done:
            return [hit.document.id for hit in done.value]
        raise RuntimeError("the index waited for something")

    return search


def bm25s(corpus: Path, backend: str) -> Search:
    """The fastest peer, with its own English stop words."""
    engine = importlib.import_module("bm25s")
    ids, texts = zip(*_texts(corpus), strict=True)
    tokens = engine.tokenize(list(texts), stopwords="en", show_progress=False)
    index = engine.BM25(backend=backend)
    index.index(tokens, show_progress=False)
    if backend == "numba":
        index.activate_numba_scorer()

    def search(query: str) -> list[str]:
        asked = engine.tokenize([query], stopwords="en", show_progress=False)
        if not asked.vocab:
            return []
        found, _ = index.retrieve(asked, k=RESULTS, show_progress=False, n_threads=0)
        return [ids[number] for number in found[0]]

    return search


def rank_bm25(corpus: Path) -> Search:
    """The peer that most code bases use."""
    numpy: Any = importlib.import_module("numpy")
    engine = importlib.import_module("rank_bm25")
    ids, texts = zip(*_texts(corpus), strict=True)
    index = engine.BM25Okapi([WORD.findall(text.lower()) for text in texts])

    def search(query: str) -> list[str]:
        scores = index.get_scores(WORD.findall(query.lower()))
        best = numpy.argpartition(-scores, RESULTS)[:RESULTS]
        return [ids[number] for number in best[numpy.argsort(-scores[best])]]

    return search


def _texts(corpus: Path) -> Iterator[tuple[str, str]]:
    for row in rows(corpus):
        yield row["id"], f"{row['title']} {row['text']}"


def measure(
    make: Callable[[], Search], queries: Sequence[dict[str, str]]
) -> dict[str, float | int]:
    """Build, then ask one query after the other."""
    gc.collect()
    before, started = resident_bytes(), time.process_time()
    search = make()
    build_seconds = time.process_time() - started
    gc.collect()
    for query in queries[:WARM_UP]:
        search(query["query"])
    times: list[float] = []
    hits = 0
    for query in queries:
        begin = time.process_time()
        found = search(query["query"])
        times.append(time.process_time() - begin)
        hits += query["id"] in found
    times.sort()
    return {
        "queries": len(queries),
        "build_cpu_seconds": round(build_seconds, 2),
        "resident_mb": round((resident_bytes() - before) / 1e6, 1),
        "queries_per_cpu_second": round(len(times) / sum(times), 1),
        "p50_cpu_ms": round(times[len(times) // 2] * 1e3, 2),
        "p95_cpu_ms": round(times[int(len(times) * 0.95)] * 1e3, 2),
        "recall_at_10": round(hits / len(times), 3),
    }


def main() -> None:
    """Measure one engine."""
    engine, corpus, queries = sys.argv[1], Path(sys.argv[2]), rows(Path(sys.argv[3]))
    makers: dict[str, Callable[[], Search]] = {
        "gymsuite": lambda: gymsuite(corpus, Path(sys.argv[4]), sys.argv[5]),
        "bm25s": lambda: bm25s(corpus, "numpy"),
        "bm25s-numba": lambda: bm25s(corpus, "numba"),
        "rank_bm25": lambda: rank_bm25(corpus),
    }
    asked = queries[:SLOW_QUERIES] if engine == "rank_bm25" else queries
    print(json.dumps(measure(makers[engine], asked)))


if __name__ == "__main__":
    main()
