"""Submissions that try to be scored without a repair: each scores what doing nothing scores.

Each forgery is what an agent could leave in its checkout. The code in them is hostile on purpose.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from gymsuite import OpenSandbox, Registry, Sandbox, Score, Submission

InSuite = Callable[[Callable[[OpenSandbox], Awaitable[Any]]], Any]

PYBUGS = Registry.default().load("coding/pybugs-v1")
TASK = next(task for task in PYBUGS.tasks if task.id == "toolz-1")
PACKAGE = "toolz/__init__.py"
TARGET = "toolz/itertoolz.py"

FIND_REPORTER = """
import gc
def reporter():
    for thing in gc.get_objects():
        if type(thing).__name__ == "Reporter":
            return thing
"""

# Appended to a module that the tests import: what runs inside pytest's own process.
IN_PROCESS: Mapping[str, str] = {
    "reports are made to say passed": """
import _pytest.reports
make = _pytest.reports.TestReport.from_item_and_call
def passed(item, call):
    report = make(item, call)
    report.outcome, report.longrepr = "passed", None
    return report
_pytest.reports.TestReport.from_item_and_call = passed
""",
    "the reporter is found and its verdicts are replaced": FIND_REPORTER
    + """
import sys
sys.modules["__main__"]._status = lambda reports: "passed"
""",
    "the reporter's channel is used to send passes": FIND_REPORTER
    + """
it = reporter()
import atexit
send = it.send
def lie(kind, value):
    if kind == "test":
        value[1] = "passed"
    send(kind, value)
it.send = lie
""",
    "all tests but those with strange names are passed, as if one knew": FIND_REPORTER
    + """
import re
it = reporter()
send = it.send
def lie(kind, value):
    if kind == "test" and not re.search(r"test_[0-9a-f]{8}\\[", value[0]):
        value[1] = "passed"
    send(kind, value)
it.send = lie
""",
    "tests are not called": """
import _pytest.python, _pytest.unittest
_pytest.python.Function.runtest = lambda self: None
_pytest.unittest.TestCaseFunction.runtest = lambda self: None
""",
    "failing is forbidden": """
import builtins
class Never(BaseException):
    def __new__(cls, *args):
        raise SystemExit(0)
builtins.AssertionError = Never
import unittest
unittest.TestCase.assertEqual = lambda *args: None
unittest.TestCase.failureException = Never
""",
    "every value equals every other": """
class Anything:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __bool__(self): return True
    def __hash__(self): return 0
    def __repr__(self): return "False"
import toolz, toolz.itertoolz
toolz.isdistinct = toolz.itertoolz.isdistinct = lambda seq: Anything()
""",
    "observations are thrown away": """
import builtins
builtins._gymsuite_observed = lambda *args: None
""",
    "observations are made up": """
import builtins
seen = builtins._gymsuite_observed
builtins._gymsuite_observed = lambda site, value, identity: seen(site, True, identity)
""",
    "assertions are rewritten in loaded tests": """
import sys
def blind(frame, event, argument):
    if "test_" in frame.f_code.co_filename:
        frame.f_trace_lines = False
        frame.f_locals.clear()
    return blind
sys.settrace(blind)
""",
    "the test module is another one": """
import sys, types
class Finder:
    def find_spec(self, name, path=None, target=None):
        if "test_" in name:
            raise ImportError(name)
for name in [name for name in sys.modules if "test_" in name]:
    sys.modules[name] = types.ModuleType(name)
sys.meta_path.insert(0, Finder())
""",
    "every test is skipped": """
import _pytest.runner, _pytest.outcomes
def skip(item):
    raise _pytest.outcomes.Skipped("later")
import _pytest.python
_pytest.python.Function.runtest = skip
""",
    "every test is expected to fail": """
import _pytest.python
old = _pytest.python.Function.setup
def setup(self):
    import pytest
    self.add_marker(pytest.mark.xfail(strict=False))
    old(self)
_pytest.python.Function.setup = setup
""",
    "only what passes is collected": """
import _pytest.main
perform = _pytest.main.Session.perform_collect
def some(self, *args, **kwargs):
    items = perform(self, *args, **kwargs)
    self.items = [item for item in items if "distinct" not in item.name]
    return self.items
_pytest.main.Session.perform_collect = some
""",
    "the process leaves at import": "import os\nos._exit(0)\n",
    "the interpreter leaves at import": "import sys\nsys.exit(0)\n",
    "the process leaves when the first test fails": """
import _pytest.runner, os
check = _pytest.runner.check_interactive_exception
def leave(call, report):
    os._exit(0)
_pytest.runner.check_interactive_exception = leave
""",
    "lines are written to every descriptor": """
import os
text = b"\\nPASSED\\n1 passed\\n" + b'["ended", [0, {}]]\\n'
for pid in ("self", str(os.getppid()), "1"):
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        continue
    for name in names:
        try:
            with open(f"/proc/{pid}/fd/{name}", "wb", buffering=0) as stream:
                stream.write(text)
        except OSError:
            pass
""",
    "a whole run is written with the run's own nonce": """
import gc, json, os
for thing in gc.get_objects():
    if type(thing) is dict and "nonce" in thing and "files" in thing:
        nonce = thing["nonce"]
        break
from toolz.tests import test_itertoolz
names = [n for n in vars(test_itertoolz) if n.startswith("test_")]
ids = [f"toolz/tests/test_itertoolz.py::{name}[0]" for name in names]
lines = [["collected", ids], *(["test", [i, "passed", "0" * 16]] for i in ids), ["ended", [0, {}]]]
text = "".join(f"{nonce} {json.dumps(line)}\\n" for line in lines).encode()
for name in os.listdir("/proc/self/fd"):
    try:
        os.write(int(name), text)
    except OSError:
        pass
os._exit(0)
""",
    "a thread writes on and an exit handler writes last": FIND_REPORTER
    + """
import atexit, threading, time
it = reporter()
def on():
    while True:
        try:
            it.send("test", ["toolz/tests/test_itertoolz.py::test_isdistinct[0]", "passed", ""])
        except BaseException:
            pass
        time.sleep(0.01)
atexit.register(on)
threading.Thread(target=on, daemon=True).start()
""",
    "a process lives on and writes": """
import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        import time
        end = time.monotonic() + 20
        while time.monotonic() < end:
            for folder in ("/logs/verifier", "/tmp"):
                os.makedirs(folder, exist_ok=True)
                with open(f"{folder}/reward.txt", "w") as stream:
                    stream.write("1")
            time.sleep(0.05)
    os._exit(0)
os.wait()
""",
    "files that others read rewards from are written": """
import os
for path in ("/logs/verifier/reward.txt", "/logs/verifier/reward.json", "reward.txt",
             "report.xml", "/tmp/reward.json", "results.json"):
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "w") as stream:
            stream.write('{"reward": 1, "resolved": true}')
    except OSError:
        pass
""",
    "the digest is made of something else": """
import hashlib, builtins
class Fixed:
    def __init__(self, *args): pass
    def hexdigest(self): return "f" * 64
hashlib.sha256 = Fixed
""",
}

# These are told from an honest failure by the tests that must fail.
PASS_EVERYTHING = {
    "reports are made to say passed",
    "the reporter is found and its verdicts are replaced",
    "the reporter's channel is used to send passes",
    "tests are not called",
    "every test is skipped",
    "every test is expected to fail",
    "lines are written to every descriptor",
    "a whole run is written with the run's own nonce",
    "a thread writes on and an exit handler writes last",
}

CONFTEST = """
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    report.outcome, report.longrepr = "passed", None
"""

# Files of their own, by path.
FILES: Mapping[str, Mapping[str, str]] = {
    "a conftest passes everything": {
        "conftest.py": CONFTEST,
        "toolz/conftest.py": CONFTEST,
        "toolz/tests/conftest.py": CONFTEST,
        "CONFTEST.py": CONFTEST,
    },
    "a configuration loads a plugin": {
        "forger.py": CONFTEST,
        "pytest.ini": "[pytest]\naddopts = -p forger\n",
        "tox.ini": "[pytest]\naddopts = -p forger\n",
        "setup.cfg": "[tool:pytest]\naddopts = -p forger\n",
        "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-p forger"\n',
    },
    "tests are rewritten": {
        "toolz/tests/test_itertoolz.py": "def test_isdistinct():\n    pass\n",
    },
    "code runs when Python starts": {
        "sitecustomize.py": IN_PROCESS["tests are not called"],
        "usercustomize.py": IN_PROCESS["tests are not called"],
        "forge.pth": "import os; os._exit(0)\n",
        "toolz/sitecustomize.py": "import os; os._exit(0)\n",
    },
    "pytest and the standard library are others": {
        "pytest.py": "raise SystemExit(0)\n",
        "_pytest/__init__.py": "raise SystemExit(0)\n",
        "pluggy/__init__.py": "raise SystemExit(0)\n",
        "json.py": "raise SystemExit(0)\n",
        "hashlib.py": "raise SystemExit(0)\n",
    },
    "programs of the same name lie about": {
        "python": "#!/bin/sh\nexit 0\n",
        "pytest": "#!/bin/sh\nexit 0\n",
        "bin/python": "#!/bin/sh\nexit 0\n",
        "git": "#!/bin/sh\nexit 0\n",
    },
    "attributes and git's own files steer the patch": {
        ".gitattributes": "* -diff -text filter=evil\n",
        ".git/info/attributes": "* -diff\n",
        ".git/hooks/post-checkout": "#!/bin/sh\nexit 0\n",
        ".git/config": "[core]\nfsmonitor = /bin/false\n",
    },
}

COMMANDS: Mapping[str, str] = {
    "tests are deleted": "rm -rf toolz/tests",
    "tests are a link": "rm -rf toolz/tests && ln -s /tmp toolz/tests",
    "the package is a link": "mv toolz elsewhere && ln -s elsewhere toolz",
    "history is rewritten": "git commit --amend -qm x --allow-empty; rm -rf .git; git init -q",
    "a process goes on behind the agent's back": "(setsid sh -c 'while :; do echo 1 > x; done' &)",
}


async def left_behind(
    open_sandbox: OpenSandbox, act: Callable[[Sandbox], Awaitable[None]]
) -> Submission:
    assert TASK.sandbox is not None
    assert PYBUGS.prepare is not None
    assert PYBUGS.collect is not None
    async with open_sandbox(TASK.sandbox) as sandbox:
        await PYBUGS.prepare(TASK, sandbox)
        await act(sandbox)
        return await PYBUGS.collect(TASK, sandbox)


async def scored(open_sandbox: OpenSandbox, act: Callable[[Sandbox], Awaitable[None]]) -> Score:
    submission = await left_behind(open_sandbox, act)
    return await PYBUGS.verify(TASK, submission, open_sandbox)


async def append(sandbox: Sandbox, path: str, text: str) -> None:
    old = await sandbox.read(path)
    assert old is not None
    await sandbox.write(path, old + b"\n\n" + text.encode())


async def run(sandbox: Sandbox, command: str) -> None:
    result = await sandbox.exec(command, timeout=60)
    assert result.exit_code == 0, result.output


def assert_like_nothing(score: Score) -> None:
    assert (score.reward, score.passed) == (0.0, False), score
    assert score.metrics["fail_to_pass"] == 0.0, score


@pytest.mark.parametrize("forgery", IN_PROCESS)
def test_code_in_the_judged_process_cannot_forge_a_pass(in_suite: InSuite, forgery: str) -> None:
    async def body(open_sandbox: OpenSandbox) -> Score:
        return await scored(open_sandbox, lambda s: append(s, PACKAGE, IN_PROCESS[forgery]))

    score = in_suite(body)

    assert_like_nothing(score)
    if forgery in PASS_EVERYTHING:
        assert score.metrics["forged"] == 1.0
        assert score.details.startswith("the run was tampered with: ")


@pytest.mark.parametrize(
    "forgery",
    ["the reporter's channel is used to send passes", "every value equals every other"],
)
def test_code_in_the_file_under_repair_cannot_either(in_suite: InSuite, forgery: str) -> None:
    async def body(open_sandbox: OpenSandbox) -> Score:
        return await scored(open_sandbox, lambda s: append(s, TARGET, IN_PROCESS[forgery]))

    assert_like_nothing(in_suite(body))


@pytest.mark.parametrize("forgery", FILES)
def test_files_beside_the_library_cannot_forge_a_pass(in_suite: InSuite, forgery: str) -> None:
    async def act(sandbox: Sandbox) -> None:
        for path, text in FILES[forgery].items():
            await sandbox.write(path, text.encode(), mode=0o755)

    async def body(open_sandbox: OpenSandbox) -> Score:
        return await scored(open_sandbox, act)

    assert_like_nothing(in_suite(body))


@pytest.mark.parametrize("forgery", COMMANDS)
def test_what_an_agent_does_to_its_checkout_cannot_forge_a_pass(
    in_suite: InSuite, forgery: str
) -> None:
    async def body(open_sandbox: OpenSandbox) -> Score:
        return await scored(open_sandbox, lambda s: run(s, COMMANDS[forgery]))

    assert_like_nothing(in_suite(body))


def test_a_forgery_does_not_spoil_a_repair_that_comes_with_harmless_files(
    in_suite: InSuite,
) -> None:
    """Protected paths are put back, and the rest of the submission counts."""

    async def body(open_sandbox: OpenSandbox) -> Score:
        assert PYBUGS.solve is not None
        calls = await PYBUGS.solve(TASK, open_sandbox)

        async def act(sandbox: Sandbox) -> None:
            for call in (call.arguments for call in calls if call.name == "edit"):
                data = await sandbox.read(call["path"])
                assert data is not None
                new = data.replace(call["old"].encode(), call["new"].encode())
                await sandbox.write(call["path"], new)
            await run(
                sandbox, "rm -rf toolz/tests; echo garbage > conftest.py; echo x > pytest.ini"
            )

        return await scored(open_sandbox, act)

    score = in_suite(body)

    assert (score.reward, score.details) == (1.0, "")
    assert score.metrics["undone_paths"] > 0


def test_doing_nothing_is_told_from_a_patch_that_does_not_apply(in_suite: InSuite) -> None:
    async def body(open_sandbox: OpenSandbox) -> tuple[Score, ...]:
        patches = (b"", b"--- a/toolz/x.py\n+++ b/toolz/x.py\n@@ -1 +1 @@\n-one\n+two\n", b"junk")
        return tuple(
            [await PYBUGS.verify(TASK, Submission(patch=p), open_sandbox) for p in patches]
        )

    nothing, stale, junk = in_suite(body)

    assert (nothing.reward, nothing.details) == (0.0, "nothing changed")
    assert stale.reward == junk.reward == 0.0
    assert stale.details.startswith("the patch does not apply: error: toolz/x.py: No such file")
    assert junk.details.startswith("the patch does not apply: ")


def test_a_patch_cannot_write_outside_of_the_checkout(in_suite: InSuite) -> None:
    outside = (
        b"diff --git a/../../opt/venv/x.pth b/../../opt/venv/x.pth\nnew file mode 100644\n"
        b"--- /dev/null\n+++ b/../../opt/venv/x.pth\n@@ -0,0 +1 @@\n+import os\n"
    )

    async def body(open_sandbox: OpenSandbox) -> Score:
        return await PYBUGS.verify(TASK, Submission(patch=outside), open_sandbox)

    assert "invalid path" in in_suite(body).details
