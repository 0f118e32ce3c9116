"""The build hook: compiles the exec server, and tags the wheel with the platform that it is for."""

import importlib.util
import platform
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_BINARIES = "gymsuite/sandbox/bin"


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]  # hatchling leaves it open
    """Builds the binary in place; a wheel takes it along."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, unless this is a source distribution, which carries the C itself."""
        if self.target_name != "wheel":
            return
        binary = _load_builder(Path(self.root)).build()
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-linux_{platform.machine()}"
        if version != "editable":
            build_data["artifacts"].append(f"/{_BINARIES}/{binary.name}")


def _load_builder(root: Path) -> Any:  # noqa: ANN401 - a module, loaded by its path
    """Load the module that compiles, without its package: its dependencies are not there yet."""
    spec = importlib.util.spec_from_file_location("binary", root / "gymsuite/sandbox/binary.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"no gymsuite/sandbox/binary.py below {root}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
