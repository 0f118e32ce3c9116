"""A retrieval server over a corpus, for the load test of `search.py`; it ends when told to."""

import asyncio
import sys
from pathlib import Path

from gymsuite.search import Corpus, Library, read_documents
from gymsuite.serve.listening import open_server
from gymsuite.serve.retrieval import retrieval_app


async def serve(corpus: Path, folder: Path) -> None:
    """Say the address on standard output, then serve."""
    library = Library(Corpus("benchmark", lambda: read_documents(corpus)), lambda: folder)
    async with open_server(retrieval_app(await library.open())) as address:
        print(address, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), Path(sys.argv[2])))
