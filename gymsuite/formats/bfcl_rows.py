"""Rows of the Berkeley function-calling files, as they are on disk."""

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, Field

from gymsuite.formats.rows import Row, RowId


class Turn(Row):
    """One message of the question."""

    role: str
    content: str


class FunctionDocument(Row):
    """What a model is told of a function: all that the file says."""

    model_config = ConfigDict(extra="allow")

    name: str
    description: str = ""
    parameters: Mapping[str, Any]


class BfclQuestion(Row):
    """One row of a question file."""

    id: RowId
    question: tuple[tuple[Turn, ...], ...]
    function: tuple[FunctionDocument, ...] = ()


class BfclAnswer(Row):
    """One row of an answer file: calls with the allowed values of each argument."""

    id: RowId
    ground_truth: tuple[Mapping[str, Mapping[str, tuple[Any, ...]]], ...]


class MultiTurnQuestion(Row):
    """One row of a multi-turn question file."""

    id: RowId
    question: tuple[tuple[Turn, ...], ...] = Field(min_length=1)
    initial_config: Mapping[str, Any]
    involved_classes: tuple[str, ...]
    excluded_function: tuple[str, ...] = ()
    missed_function: Mapping[str, tuple[str, ...]] = {}


class MultiTurnAnswer(Row):
    """For each turn the expected calls."""

    id: RowId
    ground_truth: tuple[tuple[str, ...], ...]


class WorldFunction(Row):
    """What a model is told of a world's function."""

    name: str
    description: str
    parameters: Mapping[str, Any]
