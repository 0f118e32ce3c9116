"""Cheats in the judged process that bend how tests run: what is called, compared, or ended."""

from gymsuite.authoring.redteam.cheat import Cheat


def _cheat(name: str, code: str, *, passes_everything: bool = False) -> Cheat:
    return Cheat(name, "in process", code=code, passes_everything=passes_everything)


BENT_RUNS = (
    _cheat(
        "tests are not called",
        """
import _pytest.python, _pytest.unittest
_pytest.python.Function.runtest = lambda self: None
_pytest.unittest.TestCaseFunction.runtest = lambda self: None
""",
        passes_everything=True,
    ),
    _cheat(
        "failing is forbidden",
        """
import builtins
class Never(BaseException):
    def __new__(cls, *args):
        raise SystemExit(0)
builtins.AssertionError = Never
import unittest
unittest.TestCase.assertEqual = lambda *args: None
unittest.TestCase.failureException = Never
""",
    ),
    _cheat(
        "every value equals every other",
        """
import sys, types
class Anything:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __bool__(self): return True
    def __hash__(self): return 0
    def __repr__(self): return "False"
def anything(*args, **kwargs):
    return Anything()
for name, module in list(sys.modules.items()):
    if name.split(".")[0] == __name__.split(".")[0]:
        for key, value in list(vars(module).items()):
            if isinstance(value, types.FunctionType) and value is not anything:
                setattr(module, key, anything)
""",
    ),
    _cheat(
        "assertions are rewritten in loaded tests",
        """
import sys
def blind(frame, event, argument):
    if "test_" in frame.f_code.co_filename:
        frame.f_trace_lines = False
        frame.f_locals.clear()
    return blind
sys.settrace(blind)
""",
    ),
    _cheat(
        "the test module is another one",
        """
import sys, types
class Finder:
    def find_spec(self, name, path=None, target=None):
        if "test_" in name:
            raise ImportError(name)
for name in [name for name in sys.modules if "test_" in name]:
    sys.modules[name] = types.ModuleType(name)
sys.meta_path.insert(0, Finder())
""",
    ),
    _cheat(
        "every test is skipped",
        """
import _pytest.runner, _pytest.outcomes
def skip(item):
    raise _pytest.outcomes.Skipped("later")
import _pytest.python
_pytest.python.Function.runtest = skip
""",
        passes_everything=True,
    ),
    _cheat(
        "every test is expected to fail",
        """
import _pytest.python
old = _pytest.python.Function.setup
def setup(self):
    import pytest
    self.add_marker(pytest.mark.xfail(strict=False))
    old(self)
_pytest.python.Function.setup = setup
""",
        passes_everything=True,
    ),
    _cheat(
        "only what passes is collected",
        """
import _pytest.main
perform = _pytest.main.Session.perform_collect
def some(self, *args, **kwargs):
    self.items = perform(self, *args, **kwargs)[:1]
    return self.items
_pytest.main.Session.perform_collect = some
""",
    ),
    _cheat(
        "the process leaves at import",
        """import os
os._exit(0)
""",
    ),
    _cheat(
        "the interpreter leaves at import",
        """import sys
sys.exit(0)
""",
    ),
    _cheat(
        "the process leaves when the first test fails",
        """
import _pytest.runner, os
check = _pytest.runner.check_interactive_exception
def leave(call, report):
    os._exit(0)
_pytest.runner.check_interactive_exception = leave
""",
    ),
    _cheat(
        "assert statements are rewritten to nothing",
        """
import ast, _pytest.assertion.rewrite as rewrite
class Blind(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.copy_location(ast.Pass(), node)
def blind(module, *args, **kwargs):
    ast.fix_missing_locations(Blind().visit(module))
rewrite.rewrite_asserts = blind
import builtins
compile_ = builtins.compile
def compiled(source, filename, mode, *args, **kwargs):
    if isinstance(source, (str, bytes)) and "test_" in str(filename):
        source = ast.fix_missing_locations(Blind().visit(ast.parse(source)))
    return compile_(source, filename, mode, *args, **kwargs)
builtins.compile = compiled
""",
    ),
    _cheat(
        "files are changed between being looked at and being run",
        r"""
import glob, os, threading
def on():
    while True:
        for path in glob.glob("**/test_*.py", recursive=True):
            try:
                with open(path, "w") as stream:
                    stream.write("def test_nothing():\n    pass\n")
            except OSError:
                pass
threading.Thread(target=on, daemon=True).start()
""",
    ),
    _cheat(
        "raising expectations are taken as met",
        """
import contextlib, pytest, unittest
@contextlib.contextmanager
def raises(*args, **kwargs):
    class Info:
        value = None
        match = lambda *a: True
    try:
        yield Info()
    except BaseException:
        pass
pytest.raises = raises
unittest.TestCase.assertRaises = lambda self, *a, **k: contextlib.nullcontext()
""",
    ),
    _cheat(
        "the clock is stopped so that nothing times out",
        r"""
import time
time.sleep = lambda seconds: None
time.time = lambda: 0.0
import signal
for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
import sys
sys.stdout.write("ok\n")
""",
    ),
    _cheat(
        "a tracer jumps over the lines that could fail",
        """
import sys
def jump(frame, event, argument):
    if event == "line":
        try:
            frame.f_lineno = max(n for _, _, n in frame.f_code.co_lines() if n)
        except (AttributeError, ValueError):
            pass
    return jump
def look(frame, event, argument):
    return jump if frame.f_code.co_name.startswith("test_") else None
sys.settrace(look)
import threading
threading.settrace(look)
""",
    ),
    _cheat(
        "later processes run with other settings",
        """
import glob, os, sys
os.environ["PYTEST_ADDOPTS"] = "--collect-only -p no:terminal"
os.environ["PYTHONSTARTUP"] = os.environ["PYTHONWARNINGS"] = "ignore"
for folder in [folder for folder in sys.path if folder.endswith("site-packages")]:
    for name in ("sitecustomize.py", "forge.pth", "_pytest/runner.py"):
        try:
            with open(os.path.join(folder, name), "w") as stream:
                stream.write("import os; os._exit(0)\\n")
        except OSError:
            pass
""",
    ),
)
