"""The house's own rules: imports point down, and heavy packages have one door."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("docker", "gymnasium", "httpx", "git", "numpy", "rich", "typer", "aiohttp", "requests")


def test_import_contracts_hold() -> None:
    pytest.importorskip("importlinter")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command as c; c()",
            "--no-cache",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_import_gymsuite_imports_no_heavy_module() -> None:
    code = f"import sys, gymsuite; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_environments_import_public_names_only() -> None:
    for path in (ROOT / "environments").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gymsuite"):
                private = [n.name for n in node.names if n.name.startswith("_")]
                assert not private, f"{path}:{node.lineno} imports {private}"
