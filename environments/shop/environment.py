"""A retail and travel desk: customers with wishes, a policy that decides, and books to keep."""

from gymsuite import Score, Submission, Task, submit
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.worlds.gold import Gold, Left
from gymsuite.worlds.procedural import Procedural
from gymsuite.worlds.reward import judge
from gymsuite.worlds.server import in_process, toolset
from gymsuite.worlds.speech import replies_of
from gymsuite.worlds.splits import SPLITS

from .desk import WORLD, tell_customer
from .gate import GATE
from .schema import SCHEMA
from .tasks import make

system_prompt = (
    "You work at the desk of a shop that also sells flights. Serve the customer by the policy: use "
    "the tools to look things up and to carry out, decline or hand off what is asked. Talk to the "
    "customer with tell_customer, or in plain text. Call submit if nothing is left to do and the "
    "customer is still there."
)
tools = (*toolset(WORLD.tools, in_process(WORLD)), submit)
tasks = Procedural(make, SPLITS)
gate = GATE
respond = replies_of(tell_customer, in_process(WORLD))


async def verify(task: Task, submission: Submission, _: OpenSandbox) -> Score:
    """Judge the rows that changed, the rows that were read and the words that were said."""
    gold = Gold.model_validate(task.hidden["gold"])
    return judge(SCHEMA, gold, Left.model_validate(submission.state))
