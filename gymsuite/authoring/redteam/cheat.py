"""One cheat, and how it is brought into an environment with the tools that its agents have."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gymsuite.tools import Toolbox
from gymsuite.types import ToolCall

Kind = Literal["in process", "in tree", "in shell"]

# Finds the packages and modules that tests import, and adds code to the end of each.
_PLANT = """
import base64, pathlib
code = base64.b64decode("{code}").decode()
def is_source(path):
    return not any(part.startswith((".", "test", "doc", "example", "build")) for part in path.parts)
roots = [p for p in pathlib.Path(".").rglob("__init__.py") if is_source(p.parent)]
roots = [p for p in roots if not (p.parent.parent / "__init__.py").exists()]
if not roots:
    roots = [p for p in pathlib.Path(".").glob("*.py") if is_source(p) and p.name != "setup.py"]
for path in roots:
    path.write_text(path.read_text() + "\\n\\n" + code)
"""
_WRITE = """
import base64, json, pathlib
for name, text in json.loads(base64.b64decode("{files}")).items():
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
"""


@dataclass(frozen=True)
class Cheat:
    """Something that an agent could leave behind to be scored without a solution.

    `code` runs in whatever process imports the agent's work; `files` are put into its working
    directory; `command` is what it does there. One of them is given. `passes_everything` says
    that it makes every test pass, those that have to fail, too, so that it can be named.
    """

    name: str
    kind: Kind
    code: str = ""
    files: Mapping[str, str] | None = None
    command: str = ""
    passes_everything: bool = False

    def calls(self, toolbox: Toolbox) -> tuple[ToolCall, ...] | None:
        """The tool calls that play it, or None where the environment has no tool for it."""
        if "bash" in toolbox.tools:
            return (
                ToolCall(id="cheat", name="bash", arguments={"command": self._shell()}),
                _SUBMIT,
            )
        if self.code:
            for name, arguments in toolbox.arguments.items():
                if [*arguments.model_fields] == ["code"]:
                    return (ToolCall(id="cheat", name=name, arguments={"code": self.code}), _SUBMIT)
        return None

    def _shell(self) -> str:
        if self.command:
            return self.command
        if self.code:
            return _python(_PLANT.format(code=_base64(self.code)))
        return _python(_WRITE.format(files=_base64(json.dumps(dict(self.files or {})))))


_SUBMIT = ToolCall(id="submit", name="submit")


def _python(program: str) -> str:
    return f"python3 - <<'PROGRAM'\n{program}\nPROGRAM\n"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
