"""What a task row holds: a bug as data, and what the tests do without it."""

from collections.abc import Mapping

from gymsuite.errors import DefinitionError
from gymsuite.types import Model, SandboxSpec, Task
from gymsuite.verify.judging import Expectations

from .cutting import cut
from .mutate import Bug, mutate

IMAGE = "pybugs"
PYTHON = "/opt/venv/bin/python"


class Row(Model):
    """The hidden part of a task.

    `also` are the other interpreters under which all that is expected was measured to be the same.
    """

    library: str
    version: str
    bugs: tuple[Bug, ...]
    expected: Expectations
    also: tuple[str, ...] = ()

    @staticmethod
    def workspace(library: str) -> SandboxSpec:
        """The sandbox with a library's checkout as its workdir."""
        return SandboxSpec(image=IMAGE, workdir=f"/workspace/{library}")

    @property
    def spec(self) -> SandboxSpec:
        """The sandbox to work in."""
        return self.workspace(self.library)

    @property
    def workdir(self) -> str:
        """Where the library's checkout lies in the image."""
        return self.spec.workdir

    def holds_under(self, python: object) -> bool:
        """Whether the expectations were measured under this interpreter."""
        return python in (self.expected.python, *self.also)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that differ between the image and what the agent gets."""
        return tuple(dict.fromkeys([*(bug.file for bug in self.bugs), *self.hidden_tests]))

    @property
    def hidden_tests(self) -> Mapping[str, tuple[str, ...]]:
        """The test functions that the agent does not see, by file."""
        hidden: dict[str, dict[str, None]] = {}
        for test in self.expected.fail_to_pass:
            file, _, function = test.partition("::")
            hidden.setdefault(file, {})[function.rpartition("[")[0]] = None
        return {file: tuple(functions) for file, functions in hidden.items()}

    def prepared(self, pristine: Mapping[str, bytes]) -> dict[str, bytes | None]:
        """What the agent gets in place of `paths`; None for a file that it does not get.

        A pure function of the row and of the pinned files.
        """
        changed: dict[str, bytes | None] = dict(mutate(pristine, self.bugs))
        for file, tests in self.hidden_tests.items():
            changed[file] = cut(pristine[file], tests)
        return changed


def row_of(task: Task) -> Row:
    """Read a task's row; raises `DefinitionError` if it has none."""
    try:
        return Row.model_validate(task.hidden)
    except ValueError as error:
        raise DefinitionError(f"task {task.id!r}: {error}") from error
