"""Questions over dirty star schemas, answered by value or by a view that holds on other data."""

from contextlib import suppress
from dataclasses import replace

from gymsuite import Score, Submission, Task, submit
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.tools import ToolError
from gymsuite.worlds.gold import Gold, Left
from gymsuite.worlds.procedural import Procedural
from gymsuite.worlds.reward import PROGRESS_WEIGHT, judge
from gymsuite.worlds.server import in_process, toolset
from gymsuite.worlds.splits import SPLITS

from .desk import SCHEMA, WORLD, shown_by_view
from .gate import GATE
from .stars import Place
from .tasks import VIEW, equal, known_results, make

system_prompt = (
    "You are a data analyst with read-only SQL over a small database. Look at the data, heed the "
    "notes, do what is asked, then call submit."
)
tools = (*toolset(WORLD.tools, in_process(WORLD)), submit)
tasks = Procedural(make, SPLITS)
gate = GATE


async def verify(task: Task, submission: Submission, _: OpenSandbox) -> Score:
    """Judge the answer, or the view on the visible and on the hidden databases."""
    left = Left.model_validate(submission.state)
    score = judge(SCHEMA, Gold.model_validate(task.hidden["gold"]), left)
    if not task.hidden["query"]:
        return score
    share = await _share_of_databases(task, left)
    passed = score.passed and share == 1
    progress = score.metrics["progress"] * share
    return Score(
        reward=1.0 if passed else PROGRESS_WEIGHT * progress,
        passed=passed,
        metrics={
            **score.metrics,
            "databases": share,
            "progress": progress,
            "success": float(passed),
        },
        details=score.details or ("" if passed else f"right on {share:.0%} of the databases"),
    )


async def _share_of_databases(task: Task, left: Left) -> float:
    """On how many of the databases the submitted view gives what it should."""
    views = [c.after for c in left.changes if c.table == "views" and c.op == "insert"]
    text = next((str(row["query"]) for row in views if row["name"] == VIEW), "")
    if not text:
        return 0.0
    place = Place(**task.hidden["place"])
    wanted = known_results(task.hidden["query"], place)
    right = 0
    for copy, result in enumerate(wanted):
        with suppress(ToolError):
            given = await shown_by_view(replace(place, copy=copy), VIEW, text)
            right += equal(given, result, ordered=False)
    return right / len(wanted)
