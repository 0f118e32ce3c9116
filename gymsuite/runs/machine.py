"""What a run was made on, so that its times can be compared."""

import os
import platform
from collections.abc import Mapping


def describe_machine() -> Mapping[str, str | int]:
    """The operating system, the processor and the interpreter; nothing that names the host."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "cpus": os.cpu_count() or 0,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }
