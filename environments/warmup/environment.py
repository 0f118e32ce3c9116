"""Write one small function; the reward is the share of hidden calls that it answers rightly."""

from typing import Annotated

from pydantic import Field

from gymsuite import (
    Context,
    OpenSandbox,
    Sandbox,
    SandboxSpec,
    Score,
    Submission,
    Task,
    ToolError,
    VerifierError,
    submit,
)

from .calls import FILE, NotStartedError, as_json, call_each
from .generate import SYSTEM_PROMPT, make_tasks

_WORKDIR = "/workspace"
_SANDBOX = SandboxSpec(image="base", workdir=_WORKDIR, memory_bytes=512 << 20, pids=64)
_SOURCE_BYTES = 1 << 16
_SHOWN_CHARACTERS = 400


async def write_solution(
    context: Context, code: Annotated[str, Field(description="The whole text of solution.py.")]
) -> str:
    """Write solution.py, in place of what was there."""
    data = code.encode(errors="replace")
    if len(data) > _SOURCE_BYTES:
        raise ToolError(f"{len(data)} bytes are too many for one function; {_SOURCE_BYTES} are not")
    await context.sandbox.write(FILE, data)
    return f"wrote {FILE} ({len(data)} bytes)"


async def run_examples(context: Context) -> str:
    """Call the function in solution.py with the examples and show what it returns."""
    examples = context.task.metadata["examples"]
    function = context.task.metadata["function"]
    try:
        replies = await call_each(context.sandbox, function, [given for given, _ in examples])
    except NotStartedError as error:
        raise ToolError(f"the examples could not be run: {error}") from error
    lines = []
    for (given, wanted), (is_value, text) in zip(examples, replies, strict=True):
        right = is_value and text == as_json(wanted)
        verdict = "right" if right else f"{text[:_SHOWN_CHARACTERS]}, expected {as_json(wanted)}"
        lines.append(f"{function}({given!r}): {verdict}")
    return "\n".join(lines)


async def collect(task: Task, sandbox: Sandbox) -> Submission:  # noqa: ARG001 - the protocol's
    """Take solution.py, if it is a file of reasonable size."""
    changes = await sandbox.changes(_WORKDIR, max_bytes=_SOURCE_BYTES)
    states = {change.path: change.after for change in changes.changed}
    state = states.get(f"{_WORKDIR}/{FILE}")
    is_file = state is not None and state.mode in {0o100644, 0o100755}
    return Submission(files={FILE: state.data} if state is not None and is_file else {})


async def verify(task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Score:
    """Call the function in a fresh sandbox and compare on this side what comes back."""
    wanted = [as_json(result) for result in task.hidden["results"]]
    source = submission.files.get(FILE)
    if source is None:
        return _score(0, len(wanted), f"there is no {FILE}")
    async with open_sandbox(_SANDBOX) as sandbox:
        await sandbox.write(FILE, source)
        try:
            replies = await call_each(sandbox, task.metadata["function"], task.hidden["calls"])
        except NotStartedError as error:
            raise VerifierError(f"hidden calls could not be made: {error}") from error
    passed = sum(
        is_value and text == right for (is_value, text), right in zip(replies, wanted, strict=True)
    )
    return _score(passed, len(wanted), f"{passed} of {len(wanted)} hidden calls were right")


def _score(passed: int, total: int, details: str) -> Score:
    return Score(
        reward=passed / total,
        passed=passed == total,
        metrics={"tests": total, "tests_passed": passed},
        details=details,
    )


system_prompt = SYSTEM_PROMPT
tools = (write_solution, run_examples, submit)
tasks = make_tasks
