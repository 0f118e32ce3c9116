"""The `mcpServers` file that MCP clients share: which servers there are, and how to reach them."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from gymsuite.complaints import complaints
from gymsuite.errors import DefinitionError, UsageError

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_ADDRESS_TYPES = ("http", "streamable-http", "streamableHttp", "streamable_http")


class _Entry(BaseModel):
    """Base of entries: frozen; what only concerns a client's user interface may be there."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class CommandServer(_Entry):
    """A server that is started, and spoken to over its stdin and stdout."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str | None = None

    @property
    def settings(self) -> Mapping[str, str]:
        """What it is told by name, secrets among it."""
        return self.env


class AddressServer(_Entry):
    """A server that runs somewhere, and is spoken to over streamable HTTP."""

    url: str
    headers: Mapping[str, str] = {}

    @property
    def settings(self) -> Mapping[str, str]:
        """What it is told by name, secrets among it."""
        return self.headers


ServerEntry = CommandServer | AddressServer


def read_manifest(path: Path, variables: Mapping[str, str] = {}) -> dict[str, ServerEntry]:
    """Read the servers by name; `${NAME}` and `${NAME:-default}` stand for `variables`.

    Raises `DefinitionError` for a file that says something else, and `UsageError` for a variable
    that is not there.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DefinitionError(f"{path}: not a readable JSON file: {error}") from error
    servers = found.get("mcpServers") if isinstance(found, dict) else None
    if not isinstance(servers, dict):
        raise DefinitionError(f'{path}: it would hold {{"mcpServers": {{NAME: {{...}}}}}}')
    return {
        name: _entry(path, name, entry, variables)
        for name, entry in servers.items()
        if not (isinstance(entry, dict) and entry.get("disabled") is True)
    }


def _entry(path: Path, name: str, entry: object, variables: Mapping[str, str]) -> ServerEntry:
    where = f"{path}: server {name!r}"
    if not isinstance(entry, dict) or ("command" in entry) == ("url" in entry):
        raise DefinitionError(f"{where}: it would have a `command` or a `url`")
    said = entry.get("type", entry.get("transport", ""))
    if "url" in entry and said and said not in _ADDRESS_TYPES:
        raise DefinitionError(f"{where}: {said!r} is not offered; streamable HTTP is")
    kind = AddressServer if "url" in entry else CommandServer
    try:
        return kind.model_validate(_filled(entry, variables, where))
    except ValidationError as error:
        raise DefinitionError(f"{where}: {complaints(error)}") from error


def _filled(value: Any, variables: Mapping[str, str], where: str) -> Any:  # noqa: ANN401 - any JSON
    """The same value with variables in place of their names."""
    if isinstance(value, dict):
        return {key: _filled(part, variables, where) for key, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, variables, where) for part in value]
    if not isinstance(value, str):
        return value

    def fill(match: re.Match[str]) -> str:
        name, default = match.groups()
        if name not in variables and default is None:
            raise UsageError(f"{where}: the variable {name!r} is not set")
        return variables.get(name, default or "")

    return _VARIABLE.sub(fill, value)
