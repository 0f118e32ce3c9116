"""What the Docker Engine of this machine is, and what it can limit."""

from collections.abc import Iterator, Mapping

from gymsuite.diagnosis.finding import Finding
from gymsuite.errors import SandboxError

_AREA = "engine"
_SECONDS = 5.0
_LIMITS = {"MemoryLimit": "memory", "SwapLimit": "swap", "CpuCfsQuota": "cpu", "PidsLimit": "pids"}


async def engine() -> list[Finding]:
    """Ask the Engine, if one answers."""
    # docker-py costs a tenth of a second, and only this needs it.
    from gymsuite.sandbox import docker  # noqa: PLC0415 - see above

    try:
        async with docker.connect(within=_SECONDS) as connection:
            info = await connection.ask("say what it is", lambda client: dict(client.info()))
            networks = await connection.ask(
                "list networks", lambda client: client.networks(names=["bridge"])
            )
    except SandboxError as error:
        text, _, fix = str(error).partition("; ")
        return [Finding(_AREA, "Docker Engine", "gap", text, fix)]
    return [*_findings(info, bridge=bool(networks))]


def _findings(info: Mapping[str, object], *, bridge: bool) -> Iterator[Finding]:
    parts = (
        f"{info.get('ServerVersion')}",
        f"storage {info.get('Driver')}",
        f"cgroup v{info.get('CgroupVersion', '1')} by {info.get('CgroupDriver')}",
    )
    yield Finding(_AREA, "Docker Engine", "ok", ", ".join(parts))
    have = [name for key, name in _LIMITS.items() if info.get(key)]
    missing = [name for key, name in _LIMITS.items() if not info.get(key)]
    detail = f"limits of {', '.join(have) or 'nothing'}"
    if missing:
        fix = (
            "boot the kernel with cgroup_enable=memory swapaccount=1; a rootless Engine needs"
            " cgroup v2 and systemd's delegation"
        )
        yield Finding(_AREA, "its limits", "gap", f"{detail}; none of {', '.join(missing)}", fix)
    else:
        yield Finding(_AREA, "its limits", "ok", detail)
    runtimes = info.get("Runtimes")
    names = sorted(runtimes) if isinstance(runtimes, Mapping) else []
    strong = [name for name in names if name in {"runsc", "kata", "kata-runtime"}]
    detail = f"{', '.join(names)}; default {info.get('DefaultRuntime')}"
    detail += "" if strong else "; none with a kernel of its own (runsc, kata), for hostile tenants"
    yield Finding(_AREA, "its runtimes", "note", detail)
    detail = "a default bridge" if bridge else "no default bridge: RUN steps use the machine's"
    yield Finding(_AREA, "its network", "note", f"{detail}; sandboxes have none")
