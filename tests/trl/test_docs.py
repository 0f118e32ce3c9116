"""The code blocks of docs/train-with-trl.md run, with a tiny model in place of a real one."""

import re
from pathlib import Path
from typing import Any

import pytest

from .tiny_policy import TinyPolicy

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default::FutureWarning"),  # of TRL about its dependencies
]

PAGE = Path(__file__).parents[2] / "docs/train-with-trl.md"
BLOCKS = re.findall(r"(?ms)^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"))


def test_the_page_is_one_screen() -> None:
    assert len(PAGE.read_text(encoding="utf-8").splitlines()) <= 50


def changed(block: str, changes: dict[str, str]) -> str:
    for old, new in changes.items():
        assert block.count(old) == 1, old
        block = block.replace(old, new)
    return block


def test_the_grpo_block_trains(policy: TinyPolicy, tmp_path: Path) -> None:
    policy.fresh_model().save_pretrained(tmp_path / "model")
    policy.tokenizer.save_pretrained(tmp_path / "model")
    (block,) = [block for block in BLOCKS if "GRPOTrainer" in block]
    names: dict[str, Any] = {}
    code = changed(
        block,
        {
            "Qwen/Qwen3-0.6B": str(tmp_path / "model"),
            '"run", max_steps=100': f'"{tmp_path / "run"}", max_steps=1, use_cpu=True, bf16=False, '
            "save_strategy='no', report_to=[]",
            "max_completion_length=1024": "max_completion_length=160",
        },
    )
    exec(code, names)  # noqa: S102 - the page's own code
    (log,) = [log for log in names["trainer"].state.log_history if "reward" in log]
    assert log["rewards/CodingWarmupV1/mean"] == log["reward"]


def test_the_ppo_block_learns() -> None:
    (block,) = [block for block in BLOCKS if "PPO" in block]
    exec(changed(block, {"learn(10_000)": "learn(512)"}), {})  # noqa: S102 - as above
