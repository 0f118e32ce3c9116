"""A player that does what is asked in the plainest way, and never reads the rules."""

from gymsuite.rollout import Agent
from gymsuite.types import Task
from gymsuite.worlds.baselines import PlanAgent

from .tasks import plan, scene_of


def greedy(task: Task) -> Agent:
    """The player for a task."""
    made = scene_of(task)
    return PlanAgent(plan(made, [job.naive for job in made.jobs]))
