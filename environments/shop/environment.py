"""A retail and travel desk: customers with wishes, a policy that decides, and books to keep."""

from collections.abc import Mapping
from types import SimpleNamespace

from gymsuite import Task, submit
from gymsuite.worlds.llm_user import LlmUser, settings_of, worded_replies, worded_tools
from gymsuite.worlds.procedural import Procedural
from gymsuite.worlds.reward import verifier
from gymsuite.worlds.server import in_process, toolset
from gymsuite.worlds.speech import replies_of
from gymsuite.worlds.splits import SPLITS
from gymsuite.worlds.user import Script

from .desk import LEAD, WORLD, tell_customer
from .gate import GATE
from .schema import SCHEMA
from .tasks import OPENING, make

system_prompt = (
    "You work at the desk of a shop that also sells flights. Serve the customer by the policy: use "
    "the tools to look things up and to carry out, decline or hand off what is asked. Talk to the "
    "customer with tell_customer, or in plain text. Call submit if nothing is left to do and the "
    "customer is still there."
)
tools = (*toolset(WORLD.tools, in_process(WORLD)), submit)
tasks = Procedural(make, SPLITS)
verify = verifier(SCHEMA)
gate = GATE
respond = replies_of(tell_customer, in_process(WORLD))


def configure(options: Mapping[str, str]) -> object:
    """The desk with its scripted customers, or with a model that words what they mean."""
    model = settings_of(options)
    parts = {
        "verify": verify,
        "tasks": tasks,
        "tools": tools,
        "system_prompt": system_prompt,
        "respond": respond,
        "gate": gate,
    }
    if model is not None:
        settings, key = model
        user = LlmUser(settings, tell_customer.__name__, LEAD, _script, _opening, key)
        parts["tools"] = worded_tools(user, tools)
        parts["respond"] = worded_replies(user, respond)
        parts["gate"] = None  # a model says things differently each time
    return SimpleNamespace(**parts)


def _script(task: Task) -> Script:
    return Script.model_validate(task.hidden["user"])


def _opening(task: Task) -> str:
    return task.prompt.rpartition(OPENING)[2]
