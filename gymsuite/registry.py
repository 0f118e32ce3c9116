"""registry.yaml -> Environment. An index of data; nothing registers itself."""

import difflib
import importlib.metadata
import importlib.util
import re
import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError

from gymsuite.complaints import complaints
from gymsuite.definition import read_definition
from gymsuite.environment import Environment
from gymsuite.errors import DefinitionError, UsageError
from gymsuite.suite import recipes_folder, suite_root
from gymsuite.types import Limits, Model, SandboxSpec

ENTRY_POINTS = "gymsuite.registries"
_ID = re.compile(r"^[a-z0-9][a-z0-9-]*/[a-z0-9][a-z0-9-]*-v\d+$")


class OptionSpec(Model):
    """A parameter of an environment, such as whose rows it is to play."""

    description: str = Field(min_length=1)
    required: bool = False


class EnvironmentSpec(Model):
    """One entry of registry.yaml. `path` is a folder with an environment.py, beside the file."""

    path: str
    description: str = Field(min_length=1)
    options: Mapping[str, OptionSpec] = {}
    sandbox: SandboxSpec | None = None
    limits: Limits = Limits()
    tags: tuple[str, ...] = ()


class _RegistryFile(Model):
    environments: Mapping[str, EnvironmentSpec]


@dataclass(frozen=True)
class _Entry:
    spec: EnvironmentSpec
    file: Path

    @property
    def root(self) -> Path:
        return self.file.parent


class Registry:
    """The environments of one or more registry.yaml files, by id. The code behind them is lazy."""

    def __init__(self, *paths: Path) -> None:
        self._entries: dict[str, _Entry] = {}
        self._roots: tuple[Path, ...] = ()
        self._options: Mapping[str, str] = {}
        for path in paths:
            self._add(path)

    @staticmethod
    def default() -> "Registry":
        """The suite's own environments, and those of installed third parties.

        A third party names its registry.yaml by an entry point of the group
        `gymsuite.registries`, as in `mine = "my_package:registry.yaml"`. One that cannot be read,
        or repeats an id, is left out with a warning.
        """
        registry = Registry(suite_root() / "registry.yaml")
        for entry_point in importlib.metadata.entry_points(group=ENTRY_POINTS):
            try:
                registry._add(_locate(entry_point))
            except DefinitionError as error:
                warnings.warn(
                    f"environments of {entry_point.name!r} left out: {error}", stacklevel=2
                )
        return registry

    @property
    def image_roots(self) -> tuple[Path, ...]:
        """Where images are looked for: beside each registry.yaml, at last among the suite's own.

        Behind them lie the recipes that environments write for a user's data.
        """
        roots = dict.fromkeys((*self._roots, suite_root()))
        return (*(root / "sandboxes" for root in roots), recipes_folder())

    @property
    def specs(self) -> Mapping[str, EnvironmentSpec]:
        """What registry.yaml says of each id, sorted by id."""
        return {name: entry.spec for name, entry in sorted(self._entries.items())}

    def spec(self, name: str) -> EnvironmentSpec:
        """The entry of one id; raises `UsageError` with the nearest one for an unknown id."""
        return self._entry(name).spec

    def file_of(self, name: str) -> Path:
        """The registry.yaml that has this id; raises `UsageError` as `spec` does."""
        return self._entry(name).file

    @property
    def complete(self) -> tuple[str, ...]:
        """The ids that can be loaded with the options that are given: none that they need lacks."""
        return tuple(name for name in self.specs if not self._lacking(name))

    def with_options(self, options: Mapping[str, str]) -> "Registry":
        """The same environments, with options for those that declare them.

        Raises `UsageError` for an option that none declares.
        """
        known = sorted({option for spec in self.specs.values() for option in spec.options})
        for option in options:
            if option not in known:
                raise UsageError(
                    f"no environment has an option {option!r}; there are: {', '.join(known)}"
                )
        registry = Registry()
        registry._entries, registry._roots = self._entries, self._roots
        registry._options = {**self._options, **options}
        return registry

    def load(self, name: str) -> Environment:
        """Build an environment; this is the first moment that its code is imported.

        Raises `UsageError` for an unknown id, or an option that is needed and not given, and
        `DefinitionError` for a broken definition.
        """
        entry = self._entry(name)
        if lacking := self._lacking(name):
            says = entry.spec.options[lacking].description
            raise UsageError(f"{name} needs `--set {lacking}=...`: {says}")
        given = {key: value for key, value in self._options.items() if key in entry.spec.options}
        definition = read_definition(entry.root / entry.spec.path, name, given)
        environment = Environment(
            id=name,
            sandbox=entry.spec.sandbox,
            limits=entry.spec.limits,
            description=entry.spec.description,
            **definition._asdict(),
        )
        _ = environment.toolbox  # a tool without a schema is found now
        return environment

    def _entry(self, name: str) -> _Entry:
        entry = self._entries.get(name)
        if entry is None:
            near = difflib.get_close_matches(name, self._entries, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else "; `gymsuite list` shows them all"
            raise UsageError(f"no environment {name!r}{hint}")
        return entry

    def _lacking(self, name: str) -> str:
        """The first option that an environment needs and was not given, or ""."""
        options = self._entry(name).spec.options
        lacking = (key for key, option in options.items() if option.required)
        return next((key for key in lacking if key not in self._options), "")

    def _add(self, path: Path) -> None:
        specs = _read(path)
        if both := specs.keys() & self._entries.keys():
            raise DefinitionError(f"{path}: {min(both)!r} is already registered; choose another id")
        file = path.resolve()
        self._entries.update({name: _Entry(spec, file) for name, spec in specs.items()})
        self._roots = (*self._roots, file.parent)


def _read(path: Path) -> Mapping[str, EnvironmentSpec]:
    try:
        with path.open(encoding="utf-8") as file:
            raw = yaml.load(file, Loader=_UniqueKeys)  # noqa: S506 - a SafeLoader
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise DefinitionError(f"{path}: not a readable YAML file: {error}") from error
    if not isinstance(raw, dict):
        raise DefinitionError(f"{path}: it would begin with `environments:`, ids below it")
    try:
        specs = _RegistryFile.model_validate(raw).environments
    except ValidationError as error:
        raise DefinitionError(f"{path}: {complaints(error)}") from error
    for name in specs:
        if not _ID.match(name):
            raise DefinitionError(
                f"{path}: {name!r} is no id; it would be family/name-vN in lower case, "
                "such as coding/pybugs-v1"
            )
    return specs


class _UniqueKeys(yaml.SafeLoader):
    """A safe loader that refuses a key given twice; YAML's own takes the last silently."""

    def construct_mapping(
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002 - overridden
    ) -> dict[Hashable, Any]:
        keys = [key.value for key, _ in node.value]
        if twice := {key for key in keys if isinstance(key, str) and keys.count(key) > 1}:
            raise yaml.constructor.ConstructorError(
                "while reading a mapping", node.start_mark, f"{min(twice)!r} is given twice"
            )
        return super().construct_mapping(node, deep=deep)


def _locate(entry_point: importlib.metadata.EntryPoint) -> Path:
    """Where a third party's registry.yaml lies, found without importing its code."""
    package = entry_point.module
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError) as error:
        raise DefinitionError(f"{entry_point.value!r}: {error}") from error
    if spec is None or not spec.submodule_search_locations:
        raise DefinitionError(f"{entry_point.value!r}: there is no package {package!r}")
    return Path(next(iter(spec.submodule_search_locations))) / (entry_point.attr or "registry.yaml")
