"""A player without a model that understands every wish, falls for no mail, and heeds no rule."""

from gymsuite.rollout import Agent
from gymsuite.types import Task
from gymsuite.worlds.baselines import PlanAgent

from .tasks import naive_plan


def greedy(task: Task) -> Agent:
    """The player for a task."""
    return PlanAgent(naive_plan(task.split, int(task.id.rsplit("-", 1)[1])))
