"""Carries out written calls on the multi-turn worlds of bfcl-eval, without `eval`.

The worlds are classes of the installed package (`pip install --no-deps bfcl-eval==2026.3.23` and
`pip install mpmath`); they run in this process, as calls on plain objects.
"""

import ast
import copy
import importlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gymsuite.errors import DefinitionError

MakeWorld = Callable[[str], object]
"""Makes a fresh world by the name of its class."""

_PACKAGE = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"
_MODULES: Mapping[str, str] = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
_FORBIDDEN = frozenset({"kill", "exit", "quit", "remove", "unlink", "popen", "Popen", "run"})
_MOST_CHARACTERS = 20_000
_LARGEST_NUMBER = 10**15
_HEAVY: Mapping[str, str] = {"power": "exponent", "logarithm": "precision"}
"""Functions that take the longer the larger this number is, without bound."""
_HEAVIEST = 1000


def reference_world(name: str) -> object:
    """A world of the installed package; raises `DefinitionError` where there is none."""
    if name not in _MODULES:
        raise DefinitionError(f"no world {name!r}; there are: {', '.join(_MODULES)}")
    try:
        module = importlib.import_module(f"{_PACKAGE}.{_MODULES[name]}")
    except ImportError as error:
        raise DefinitionError(
            f"world {name!r} needs `pip install --no-deps bfcl-eval==2026.3.23` and "
            f"`pip install mpmath`: {error}"
        ) from error
    return getattr(module, name)()


class Worlds:
    """The worlds of one conversation, and the names that may be called in them."""

    def __init__(
        self,
        names: Sequence[str],
        config: Mapping[str, Any],
        make: MakeWorld = reference_world,
        *,
        long_context: bool = False,
    ) -> None:
        self.worlds = {name: make(name) for name in names}
        self._methods: dict[str, Callable[..., object]] = {}
        for name, world in self.worlds.items():
            load = getattr(world, "_load_scenario", None)
            if load is not None:
                load(copy.deepcopy(config.get(name, {})), long_context=long_context)
            members = inspect.getmembers(world, predicate=inspect.ismethod)
            self._methods |= {key: of for key, of in members if not key.startswith("_")}

    def run(self, text: str) -> str:
        """Carry out one call such as `cd(folder='x')`; what goes wrong is its result, too."""
        try:
            return _shown(self._value(_parsed(text)))
        except Exception as error:  # noqa: BLE001 - the worlds raise anything, and that is a result
            return f"Error during execution: {error}"

    @property
    def state(self) -> dict[str, dict[str, object]]:
        """The public attributes of each world."""
        return {
            name: {key: value for key, value in vars(world).items() if not key.startswith("_")}
            for name, world in self.worlds.items()
        }

    def _value(self, node: ast.expr) -> Any:  # noqa: ANN401 - whatever a literal or a call gives
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.List):
            return [self._value(item) for item in node.elts]
        if isinstance(node, ast.Tuple):
            return tuple(self._value(item) for item in node.elts)
        if isinstance(node, ast.Dict):
            keys = [self._value(key) for key in node.keys if key is not None]
            return dict(zip(keys, map(self._value, node.values), strict=True))
        value = ast.literal_eval(node)
        if isinstance(value, int | float) and abs(value) > _LARGEST_NUMBER:
            raise ValueError(f"{value} is too large a number")
        return value

    def _call(self, node: ast.Call) -> object:
        if not isinstance(node.func, ast.Name):
            raise TypeError(f"{ast.unparse(node.func)} is not a function's name")
        name = node.func.id
        if name in _FORBIDDEN:
            raise ValueError(f"Function call {name} is not allowed.")
        if name not in self._methods:
            raise NameError(f"name '{name}' is not defined")
        method, values = self._methods[name], [*map(self._value, node.args)]
        keywords = {word.arg: self._value(word.value) for word in node.keywords if word.arg}
        named = {
            **dict(zip(inspect.signature(method).parameters, values, strict=False)),
            **keywords,
        }
        weight = named.get(_HEAVY.get(name, ""))
        if isinstance(weight, int | float) and abs(weight) > _HEAVIEST:
            raise ValueError(f"{weight} is too large for {name}")
        return method(*values, **keywords)


def _parsed(text: str) -> ast.expr:
    if len(text) > _MOST_CHARACTERS:
        raise ValueError(f"more than {_MOST_CHARACTERS} characters")
    return ast.parse(text.strip(), mode="eval").body


def _shown(result: object) -> str:
    if isinstance(result, str):
        return result
    if isinstance(result, dict):
        try:
            return json.dumps(result)
        except (TypeError, ValueError):
            return str(result)
    return str(result)
