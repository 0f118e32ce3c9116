"""Our reading of the Berkeley leaderboard against its data and against verdicts of its own checker.

    python benchmarks/bfcl.py FOLDER [VERDICTS]

FOLDER holds the unpacked wheel (`pip download --no-deps bfcl-eval==2026.3.23`, then unzip; the
conversations also need `pip install mpmath`). VERDICTS is a JSONL file with the keys id, category,
decoded, valid and error_type.
"""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gymsuite.formats.bfcl import RULES, judge, read_bfcl
from gymsuite.formats.bfcl_checker import check
from gymsuite.formats.bfcl_multi_turn import check_turns
from gymsuite.formats.bfcl_talk import read_bfcl_multi_turn

CATEGORIES = (
    "simple_python", "multiple", "parallel", "parallel_multiple", "irrelevance", "live_simple",
    "live_multiple", "live_parallel", "live_parallel_multiple", "live_irrelevance",
    "live_relevance",
)  # fmt: skip
CONVERSATIONS = ("base", "miss_func", "miss_param", "long_context")


def main() -> None:
    """Print a line for each category, and one for the verdicts."""
    folder = Path(sys.argv[1])
    sys.path.insert(0, str(folder))
    data = folder / "bfcl_eval" / "data"
    rows: dict[str, Mapping[str, Any]] = {}
    for category in CATEGORIES:
        answers = data / "possible_answer" / f"BFCL_v4_{category}.json"
        questions = data / f"BFCL_v4_{category}.json"
        tasks = read_bfcl(questions, answers if answers.exists() else None, category=category)
        rows |= {task.id: task.hidden for task in tasks}
        for rule in RULES:
            gold = sum(
                judge(rule, task.hidden, task.solution[0].arguments["answer"]).valid
                for task in tasks
            )
            empty = sum(judge(rule, task.hidden, "").valid for task in tasks)
            print(f"{category}, {rule}: gold {gold}/{len(tasks)}, empty {empty}/{len(tasks)}")
    started = time.process_time()
    for category in CONVERSATIONS:
        _conversations(data, f"multi_turn_{category}")
    print(f"conversations: {time.process_time() - started:.1f} CPU-s")
    if len(sys.argv) > 2:  # noqa: PLR2004 - the second argument is there
        verdicts = [json.loads(line) for line in Path(sys.argv[2]).read_text().splitlines()]
        equal = 0
        for row in verdicts:
            known = rows[row["id"]]
            ours = check(known["functions"], row["decoded"], known["answers"], row["category"])
            equal += ours == (row["valid"], row["error_type"])
        print(f"verdicts: {equal}/{len(verdicts)} equal, the names of the errors included")


def _conversations(data: Path, category: str) -> None:
    tasks = read_bfcl_multi_turn(data, category)
    gold = empty = 0
    for task in tasks:
        expected = task.hidden["expected"]
        said = [[list(calls)] if calls else [] for calls in expected]
        gold += check_turns(said, expected, task.hidden).valid
        empty += check_turns([[] for _ in expected], expected, task.hidden).valid
    print(f"{category}: gold {gold}/{len(tasks)}, empty {empty}/{len(tasks)}")


if __name__ == "__main__":
    main()
