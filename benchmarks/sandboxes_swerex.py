"""Measures SWE-ReX's server and its client, in an environment where they are installed.

Without a container: what its server and its protocol take comes on top of what Docker takes.
"""

# mypy: ignore-errors

import asyncio
import json
import secrets
import socket
import subprocess
import sys
import time
from pathlib import Path

from swerex.runtime.abstract import BashAction, Command, CreateBashSessionRequest
from swerex.runtime.remote import RemoteRuntime

_PATIENCE = 60.0


async def main(rounds: int) -> dict[str, object]:
    """Start a server, and ask it for the same as the others."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    token = secrets.token_hex(8)
    program = str(Path(sys.executable).with_name("swerex-remote"))
    started = time.perf_counter()
    server = subprocess.Popen(  # noqa: ASYNC220 - there is nothing else to do meanwhile
        [program, "--port", str(port), "--auth-token", token],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        runtime = RemoteRuntime(host="http://127.0.0.1", port=port, auth_token=token, timeout=30)
        while not await _answers(runtime):
            if time.perf_counter() - started > _PATIENCE:
                raise TimeoutError
            await asyncio.sleep(0.02)
        await runtime.create_session(CreateBashSessionRequest())
        ready = time.perf_counter() - started
        session, execute = [], []
        for _ in range(rounds):
            began = time.perf_counter()
            await runtime.run_in_session(BashAction(command="true"))
            session.append(time.perf_counter() - began)
            began = time.perf_counter()
            await runtime.execute(Command(command=["true"]))
            execute.append(time.perf_counter() - began)
        pss = _pss_bytes(server.pid)
        await runtime.close()
    finally:
        server.kill()
        server.wait()
    return {"ready": ready, "session": session, "execute": execute, "pss_bytes": pss}


def _pss_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


async def _answers(runtime: RemoteRuntime) -> bool:
    try:
        return bool(await runtime.is_alive(timeout=1))
    except Exception:  # noqa: BLE001 - whatever a client raises whose server is not there yet
        return False


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(int(sys.argv[1])))))
