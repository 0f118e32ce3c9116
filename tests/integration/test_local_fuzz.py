"""The exec server's C code under sanitizers, against a generator of honest and spoilt frames."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from gymsuite import SandboxSpec
from gymsuite.sandbox import binary
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.local import LocalHost, open_local
from tests.providers import missing

pytestmark = pytest.mark.local

FUZZER = Path(__file__).parents[1] / "fuzz/frames.c"
SERVER = Path(binary.__file__).parent / "exec_server"
SECONDS = 5
PATIENCE = 120.0
SANITIZED = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
STRICT = ("-Wall", "-Wextra", "-Werror")
# The fuzzer has stand-ins for these, since they would kill it or lock it in.
REPLACED = {"filter.c", "tree.c"}
RENAMED = (
    "-Dmain=server_main",
    "-D_exit=round_over",
    "-Dgetpid=first_process",
    "-Dkill=gentle_kill",
)
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:exitcode=99:log_path=/workspace/report:quarantine_size_mb=16",
    "UBSAN_OPTIONS": "print_stacktrace=1:log_path=/workspace/report",
}


def compile_c(target: Path, *arguments: str) -> None:
    done = subprocess.run(
        [os.environ.get("CC", "cc"), "-o", str(target), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]


def sources() -> list[str]:
    return sorted(str(path) for path in SERVER.glob("*.c") if path.name not in REPLACED)


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "empty.c").write_text("int main(void) { return 0; }\n")
    try:
        compile_c(folder / "empty", *SANITIZED, str(folder / "empty.c"))
    except AssertionError as error:
        missing("a compiler with AddressSanitizer", str(error))
    compile_c(folder / "server.o", *SANITIZED, *STRICT, *RENAMED, "-r", *sources())
    compile_c(folder / "fuzz", *SANITIZED, *STRICT, str(FUZZER), str(folder / "server.o"))
    return folder / "fuzz"


def test_the_exec_server_compiles_without_a_warning(tmp_path: Path) -> None:
    every = sorted(map(str, SERVER.glob("*.c")))
    compile_c(tmp_path / "exec-server", "-O2", "-static", *STRICT, *every)


def test_no_frame_makes_the_server_touch_what_is_not_its_own(
    fuzzer: Path, local_host: LocalHost, local_image: Image
) -> None:
    program = fuzzer.read_bytes()

    async def main() -> tuple[str, str]:
        async with open_local(local_host, local_image, SandboxSpec(image="fixture")) as sandbox:
            await sandbox.write("/workspace/fuzz", program, mode=0o755)
            command = f"./fuzz 1 {SECONDS} 2>/dev/null; cat /workspace/report*"
            result = await sandbox.exec(command, timeout=PATIENCE, env=OPTIONS)
            lines = result.stdout.decode(errors="replace").splitlines()
            return lines[0] if lines else "", result.output

    verdict, output = asyncio.run(main())
    assert verdict.endswith(" rounds"), output[:8000]
    assert int(verdict.split()[0]) >= 200
