"""What a Dockerfile says, as values: a base, and the steps on top of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gymsuite.errors import DefinitionError


@dataclass(frozen=True)
class Copy:
    """Copies files from the image's folder, with modes of their own or all with one.

    `owner` is who the recipe says that they belong to: a name or number, or name:group.
    """

    line: int
    sources: tuple[str, ...]
    target: str
    mode: int | None = None
    owner: str = "root"


@dataclass(frozen=True)
class Run:
    """Runs a command in the image made so far: a line for the shell, or words for no shell."""

    line: int
    command: str | tuple[str, ...]

    @property
    def text(self) -> str:
        """The command as a person would read it."""
        return self.command if isinstance(self.command, str) else " ".join(self.command)


@dataclass(frozen=True)
class Env:
    """Sets environment variables. The values may refer to earlier ones."""

    line: int
    variables: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Arg:
    """Declares a variable of the build alone. `given` is final; `default` may refer to others."""

    line: int
    name: str
    given: str | None
    default: str | None


@dataclass(frozen=True)
class Workdir:
    """Sets, and makes, the directory that commands start in."""

    line: int
    path: str


@dataclass(frozen=True)
class User:
    """Sets whom commands run as."""

    line: int
    name: str


Step = Copy | Run | Env | Arg | Workdir | User


@dataclass(frozen=True)
class Recipe:
    """A parsed Dockerfile. `base` is what FROM names, with the arguments filled in.

    `declared` are the names of all its ARGs.
    """

    path: Path
    base: str
    base_line: int
    steps: tuple[Step, ...]
    declared: frozenset[str] = field(default_factory=frozenset)

    def last_user(self, inherited: str) -> str:
        """Whom commands run as at the end, as it is written; or else what FROM brings along."""
        users = [step.name for step in self.steps if isinstance(step, User)]
        return users[-1] if users else inherited

    def error(self, line: int, text: str) -> DefinitionError:
        """Make the error that points at a line of this file."""
        return error_at(self.path, line, text)


def error_at(path: Path, line: int, text: str) -> DefinitionError:
    """Make the error that points at a line of a file."""
    return DefinitionError(f"{path}:{line}: {text}")


Arguments = Mapping[str, str]
"""Values for ARGs, by name."""
