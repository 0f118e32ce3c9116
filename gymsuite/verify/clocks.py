"""Finds tests that judge by how long something took, which a busy machine can fail."""

import ast

_WORDS = ("perf_counter", "monotonic", "process_time", "timeit", "linear")


def clocked(source: bytes) -> frozenset[str]:
    """Name the test functions in whose bodies something is named after a clock or a growth rate.

    A helper that takes the time mostly says so in its name: `assert_near_linear`.
    """
    return frozenset(
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and any(word in name for name in _names(node) for word in _WORDS)
    )


def _names(function: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(function) if isinstance(node, ast.Name)} | {
        node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)
    }
