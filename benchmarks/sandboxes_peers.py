"""The same operations by `docker` as others use it, and by SWE-ReX in an environment of its own."""

import io
import json
import os
import subprocess
import tarfile
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import docker
from docker.models.containers import Container
from sandboxes_processes import pss_bytes

_IMAGE = "gymsuite/base"
_SWEREX = ("swe-rex==1.4.0", "aiohttp")  # which it needs, and does not ask for


def timed(count: int, work: Callable[[], object]) -> list[float]:
    """Time some work, again and again."""
    times = []
    for _ in range(count):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return times


class DockerPeer:
    """Docker, by its Python client, with an image that the provider brought there."""

    def __init__(self) -> None:
        self._client = docker.from_env()
        self._image: Any = self._client.images.list(name=_IMAGE)[0]

    @contextmanager
    def container(self, **more: Any) -> Iterator[Container]:  # noqa: ANN401 - docker's own
        """Run a container that sleeps, without a network."""
        wanted = {"detach": True, "network_mode": "none", **more}
        container = self._client.containers.run(self._image, ["sleep", "1000"], **wanted)
        try:
            yield container
        finally:
            container.remove(force=True, v=True)

    def create(self, count: int) -> list[float]:
        """`docker run`, and a first `docker exec`; the removal is not timed."""
        times = []
        for _ in range(count):
            started = time.perf_counter()
            with self.container() as container:
                container.exec_run(["true"])
                times.append(time.perf_counter() - started)
        return times

    def execs(self, count: int) -> list[float]:
        """`docker exec true`."""
        with self.container() as container:
            return timed(count, lambda: container.exec_run(["true"]))

    def writes(self, count: int) -> list[float]:
        """`put_archive` with a file of 100 KB."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            member = tarfile.TarInfo("written")
            member.size = 100_000
            archive.addfile(member, io.BytesIO(os.urandom(100_000)))
        with self.container() as container:
            return timed(count, lambda: container.put_archive("/tmp", packed.getvalue()))  # noqa: S108

    def forks(self, count: int) -> tuple[list[float], list[float]]:
        """`docker commit` after 200 MB of changes, and `docker run` of what came of it."""
        commits, runs = [], []
        with self.container() as container:
            container.exec_run(["dd", "if=/dev/zero", "of=/big", "bs=1M", "count=200"])
            for _ in range(count):
                started = time.perf_counter()
                image = container.commit()
                commits.append(time.perf_counter() - started)
                started = time.perf_counter()
                child = self._client.containers.run(
                    image, ["sleep", "1000"], detach=True, network_mode="none"
                )
                child.exec_run(["true"])
                runs.append(time.perf_counter() - started)
                child.remove(force=True, v=True)
                self._client.images.remove(str(image.id), force=True)
        return commits, runs

    def per_second(self, at_once: int, count: int) -> float:
        """Containers run and removed a second."""
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only here

        def one(_: int) -> None:
            with self.container():
                pass

        started = time.perf_counter()
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(one, range(count)))
        return count / (time.perf_counter() - started)

    def idle_bytes(self, count: int) -> float:
        """What an idle container takes, of so many: its process and its shim."""
        with ExitStack() as stack:
            containers = [stack.enter_context(self.container()) for _ in range(count)]
            numbers = [str(container.id).encode() for container in containers]
            pids = {
                int(self._client.api.inspect_container(str(container.id))["State"]["Pid"])
                for container in containers
            }
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    line = path.read_bytes()
                except OSError:
                    continue
                if any(number in line for number in numbers):
                    pids.add(int(path.parent.name))
            return pss_bytes(pids) / count


def swerex(rounds: int) -> dict[str, Any]:
    """Measure SWE-ReX in a virtual environment that is thrown away; says why where it cannot."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            venv.create(folder, with_pip=True)
            python = str(Path(folder) / "bin/python")
            install = [python, "-m", "pip", "install", "--quiet", *_SWEREX]
            subprocess.run(install, check=True, capture_output=True, text=True, timeout=300)
            script = str(Path(__file__).with_name("sandboxes_swerex.py"))
            done = subprocess.run(
                [python, script, str(rounds)],
                check=True, capture_output=True, text=True, timeout=300,
            )  # fmt: skip
            found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            said = str(getattr(error, "stderr", "") or error).strip().splitlines()
            causes = [line for line in said if "Error" in line or "Timeout" in line]
            return {"skipped": (causes or said or [type(error).__name__])[-1]}
        return found
