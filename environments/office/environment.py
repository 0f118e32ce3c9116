"""An assistant's office: mail, calendars in many time zones, contacts, tasks and deals."""

from gymsuite import submit
from gymsuite.worlds.procedural import Procedural
from gymsuite.worlds.reward import verifier
from gymsuite.worlds.server import in_process, toolset
from gymsuite.worlds.speech import replies_of
from gymsuite.worlds.splits import SPLITS

from .desk import WORLD, tell_employer
from .gate import GATE
from .schema import SCHEMA
from .tasks import make

system_prompt = (
    "You are the assistant of somebody with mail, a calendar, contacts, tasks and deals. Do what "
    "your employer asks by the house rules: use the tools to look things up and to carry out, "
    "decline or hand over what is asked. Talk to your employer with tell_employer, or in plain "
    "text. Call submit if nothing is left to do and your employer is still there."
)
tools = (*toolset(WORLD.tools, in_process(WORLD)), submit)
tasks = Procedural(make, SPLITS)
verify = verifier(SCHEMA)
gate = GATE
respond = replies_of(tell_employer, in_process(WORLD))
