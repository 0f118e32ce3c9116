import subprocess
import sys


def test_search_environments_load_without_the_search_engine() -> None:
    script = (
        "import sys; sys.modules['tantivy'] = None\n"
        "import asyncio\n"
        "from gymsuite import Registry, UsageError\n"
        "environment = Registry.default().load('search/hoptrail-v1')\n"
        "library = sys.modules[environment.verifier.__module__].library\n"
        "try:\n"
        "    asyncio.run(library.open())\n"
        "except UsageError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert (
        done.stdout.strip() == "searching needs the extra `search`: pip install 'gymsuite[search]'"
    )


def test_nothing_heavy_is_imported_by_the_search_package() -> None:
    script = (
        "import sys, gymsuite.search, gymsuite.formats.beir, gymsuite.formats.search_r1\n"
        "print(*sorted({m.partition('.')[0] for m in sys.modules} & "
        "{'tantivy', 'pyarrow', 'numpy', 'starlette', 'uvicorn', 'msgpack', 'httpx'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
