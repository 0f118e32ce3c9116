"""Three real GRPO steps on real sandboxes, and what they did."""

import dataclasses
import gc
import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from transformers.utils import get_json_schema
from trl import GRPOConfig, GRPOTrainer

from gymsuite import Environment, Sandbox, SandboxDead, Task
from gymsuite.adapters.trl import environment_class, rows
from gymsuite.suite import default_cache

from .tiny_policy import Lessons, TinyPolicy

pytestmark = pytest.mark.filterwarnings(
    "default::FutureWarning"  # TRL still says what transformers has deprecated
)

GROUP = 8
GROUPS = 2
STEPS = 3
FAILING_ROLLOUT = GROUP * GROUPS + 3
"""The one whose sandbox is lost: counted over all that use one, it is in the second step."""


class RecordingTrainer(GRPOTrainer):  # type: ignore[misc]  # TRL is not typed
    """Keeps what TRL computes from each batch of rollouts."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.batches: list[dict[str, Any]] = []
        self.completions: list[list[dict[str, Any]]] = []
        self.rewards: list[torch.Tensor] = []
        super().__init__(*args, **kwargs)

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        output = super()._generate_and_score_completions(inputs)
        self.batches.append(output)
        return output

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, ids: Any) -> Any:
        rewards = super()._calculate_rewards(inputs, prompts, completions, ids)
        self.completions += completions
        self.rewards.append(rewards)
        return rewards


@dataclasses.dataclass
class Training:
    """What is left of a training. Rewards and advantages are by step, group and rollout."""

    trainer: RecordingTrainer
    moved: float
    processes_left: dict[int, str]
    directories_left: list[Path]

    @property
    def rewards(self) -> torch.Tensor:
        return torch.stack(self.trainer.rewards).view(STEPS, GROUPS, GROUP)

    @property
    def advantages(self) -> torch.Tensor:
        batches = self.trainer.batches
        return torch.stack([b["advantages"] for b in batches]).view(STEPS, GROUPS, GROUP)

    @property
    def logs(self) -> list[dict[str, float]]:
        return [entry for entry in self.trainer.state.log_history if "grad_norm" in entry]


def losing_one_sandbox(environment: Environment) -> Environment:
    """The same environment, but one of the agents' sandboxes is lost while it is prepared."""
    count = 0

    async def prepare(task: Task, sandbox: Sandbox) -> None:
        nonlocal count
        count += 1
        if count == FAILING_ROLLOUT:
            raise SandboxDead("lost, on purpose")

    return dataclasses.replace(environment, prepare=prepare)


def live_directories() -> list[Path]:
    """What this process's sandboxes have on disk."""
    return list((default_cache() / "live").glob(f"{os.getpid()}-*/*"))


def descendants() -> dict[int, str]:
    """The processes below this one, with their names."""
    found: dict[int, str] = {}
    waiting = [os.getpid()]
    while waiting:
        for path in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            with suppress(OSError):
                for pid in map(int, path.read_text().split()):
                    found[pid] = Path(f"/proc/{pid}/comm").read_text().strip()
                    waiting.append(pid)
    return found


def sandboxes() -> dict[int, str]:
    """Those that are not what keeps the sandboxes of a process and ends with their provider."""
    keeping = {"gymsuite-keeper", "gymsuite-spare"}
    return {pid: name for pid, name in descendants().items() if name not in keeping}


def left(processes: Callable[[], dict[int, str]]) -> dict[int, str]:
    """What is still there once those that are ending have had time to."""
    deadline = time.monotonic() + 30
    while (found := processes()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


@pytest.fixture(scope="module")
def training(
    policy: TinyPolicy, lessons: Lessons, environment: Environment, tmp_path_factory: Any
) -> Training:
    made: Any = environment_class(losing_one_sandbox(environment))
    model = policy.fresh_model()
    arguments = GRPOConfig(
        output_dir=str(tmp_path_factory.mktemp("run")),
        use_cpu=True,
        bf16=False,
        per_device_train_batch_size=GROUP * GROUPS,
        num_generations=GROUP,
        max_completion_length=192,
        max_steps=STEPS,
        learning_rate=5e-4,
        logging_steps=1,
        report_to=[],
        save_strategy="no",
        activation_checkpointing=False,
        seed=0,
    )
    before = model.model.embed_tokens.weight.detach().clone()
    trainer = RecordingTrainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_list(list(lessons.rows)),
        processing_class=policy.tokenizer,
        environment_factory=made,
    )
    trainer.train()
    moved = (model.model.embed_tokens.weight.detach() - before).abs().max().item()
    return Training(trainer, moved, left(sandboxes), live_directories())


def test_trl_reads_the_tools_as_the_model_was_taught(environment: Environment) -> None:
    instance = environment_class(environment)()
    for schema in environment.toolbox.schemas:
        shown = get_json_schema(getattr(instance, schema.name))["function"]
        assert shown["name"] == schema.name
        assert shown["description"] == schema.description
        assert "return" not in shown
        wanted = schema.parameters.get("properties", {})
        assert shown["parameters"]["properties"].keys() == wanted.keys()
        assert shown["parameters"].get("required", []) == schema.parameters.get("required", [])


def test_the_policy_calls_tools_and_trl_counts_no_tool_error(training: Training) -> None:
    assert all(log["tools/call_frequency"] > 1 for log in training.logs)
    assert training.logs[0]["tools/failure_frequency"] < 0.2


def test_rewards_differ_within_each_group_at_the_first_step(training: Training) -> None:
    assert all(group.std() > 0 for group in training.rewards[0])


def test_some_answers_get_partial_credit(training: Training) -> None:
    rewards = training.rewards[~training.rewards.isnan()]
    assert ((rewards > 0) & (rewards < 1)).any()
    assert (rewards == 1).any()


def test_gradients_flow_and_weights_move(training: Training) -> None:
    assert len(training.logs) == STEPS
    assert all(math.isfinite(log["grad_norm"]) and log["grad_norm"] > 0 for log in training.logs)
    assert training.moved > 0


def test_a_lost_sandbox_is_masked_and_not_a_reward_of_zero(training: Training) -> None:
    lost = training.rewards.isnan()
    assert lost.sum() == 1
    assert lost[1].any()
    assert (training.advantages[lost] == 0).all()
    assert training.logs[1]["reward"] == pytest.approx(training.rewards[1].nanmean().item())
    (group,) = [g for g in range(GROUPS) if lost[1, g].any()]
    rewards, advantages = training.rewards[1, group], training.advantages[1, group]
    kept = ~lost[1, group]
    centred = rewards[kept] - rewards[kept].mean()
    assert torch.allclose(advantages[kept], centred / (rewards[kept].std() + 1e-4), atol=1e-3)


def test_the_mask_covers_what_the_model_said_and_nothing_else(
    training: Training, policy: TinyPolicy
) -> None:
    """Recomputed from the texts of the tools' replies, which TRL put between."""
    masked = 0
    for step, batch in enumerate(training.trainer.batches):
        for row in range(GROUP * GROUPS):
            length = int(batch["completion_mask"][row].sum())
            ids = batch["completion_ids"][row][:length].tolist()
            mask = batch["tool_mask"][row][:length].tolist()
            messages = training.trainer.completions[step * GROUP * GROUPS + row]
            replies = policy.replies_as_tokens(messages)
            assert [i for i, said in zip(ids, mask, strict=True) if not said] == replies
            masked += len(replies)
            said = policy.tokenizer.decode([i for i, s in zip(ids, mask, strict=True) if s])
            assert "<tool_response>" not in said
    assert masked > 100


def test_no_sandbox_is_left_after_training(training: Training) -> None:
    assert training.processes_left == {}
    assert training.directories_left == []


def test_nothing_at_all_is_left_once_the_class_is_gone(
    environment: Environment, lessons: Lessons
) -> None:
    made: Any = environment_class(environment)
    instance = made()
    instance.reset(**lessons.rows[0])
    instance.write_solution(code="pass")
    assert sandboxes()
    del made, instance
    gc.collect()
    assert live_directories() == []
    assert left(sandboxes) == {}


def test_rows_are_a_data_set(environment: Environment) -> None:
    data = Dataset.from_list(rows(environment, split="val", seeds=range(2)))
    assert data.column_names == ["prompt", "task_id", "seed"]
    assert {row["seed"] for row in data} == {0, 1}
