"""A user whose words are a model's: the automaton decides what is meant, and when it is over.

The model sees the user's wishes, what the user knows, and the conversation: nothing of the world.
What it says is audited against that, and a fault is a failure, so the rollout has no score.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gymsuite.chat import ChatSettings, open_chat
from gymsuite.complaints import complaints
from gymsuite.environment import Respond
from gymsuite.errors import Truncated, UsageError, UserFault
from gymsuite.tools import Context, Tool
from gymsuite.types import Action, Message, Task
from gymsuite.worlds.audit import unfounded
from gymsuite.worlds.user import Script

URL, MODEL, KEY_FILE = "user_url", "user_model", "user_key_file"
"""The options by which a model is named as the user of an environment."""

_TURNS = "llm_user"
_ATTEMPTS = 2
_MOST_CHARACTERS = 800
_BEGIN = "(The conversation begins. Write your first message.)"
_ROLE = """\
You play a customer who writes to a service desk. You are not the desk: never offer help, and \
never say that you have done anything in its books. Stay in the role whatever you are told.

What you want, in this order:
{wishes}

What you know, and give when you are asked for it:
{known}

You know no other name, number, address or date: if you are asked for one, say that you do not \
have it. Do not say good-bye; you leave by yourself when you have what you want.

What you mean to say now, unless you were asked for something that you know:
{meant}

Answer with your next message alone: one to three sentences of plain text, in your own words."""


@dataclass(frozen=True)
class LlmUser:
    """Which model plays the user, and how an environment's user is told apart from its tools.

    `talk` is the tool through which the agent speaks to the user, `lead` what stands before the
    user's words in its reply, and `opening` takes from a task what the user wrote at first.
    """

    settings: ChatSettings
    talk: str
    lead: str
    script: Callable[[Task], Script]
    opening: Callable[[Task], str]
    api_key: str | None = field(default=None, repr=False)


def settings_of(options: Mapping[str, str]) -> tuple[ChatSettings, str | None] | None:
    """The model that an environment's options name as its user, with its key; None for none.

    Raises `UsageError` for options that name none completely.
    """
    if not options.keys() & {URL, MODEL, KEY_FILE}:
        return None
    for name in (URL, MODEL):
        if not options.get(name):
            raise UsageError(f"a model as user needs `--set {name}=...` as well")
    try:
        settings = ChatSettings(base_url=options[URL], model=options[MODEL])
    except ValidationError as error:
        # The text of the error would repeat an address that may hold a password.
        raise UsageError(f"--set {URL}: {complaints(error)}") from None
    return settings, _key(options.get(KEY_FILE, ""))


def _key(path: str) -> str | None:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8").strip() if path else None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--set {KEY_FILE}: {error}") from error


def worded_tools(user: LlmUser, tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """The same tools, but the model words what the user answers."""
    return tuple(_worded(user, tool) if tool.__name__ == user.talk else tool for tool in tools)


def worded_replies(user: LlmUser, respond: Respond) -> Respond:
    """The same answers to plain text, but in the model's words."""

    async def reply(context: Context, action: Action) -> tuple[Message, ...] | None:
        said = await respond(context, action)
        if said is None or context.submitted:
            return said
        return tuple([await in_words(context, action, message) for message in said])

    async def in_words(context: Context, action: Action, message: Message) -> Message:
        if not message.text.startswith(user.lead):
            return message
        words = await _words(user, context, action.text, message.text)
        return message.model_copy(update={"content": words})

    return reply


def _worded(user: LlmUser, tool: Tool) -> Tool:
    async def call(context: Context, **arguments: Any) -> str:  # noqa: ANN401 - the tool's own
        meant = await tool(context, **arguments)
        if context.submitted or not meant.startswith(user.lead):
            return meant
        return await _words(user, context, " ".join(map(str, arguments.values())), meant)

    call.__name__ = call.__qualname__ = tool.__name__
    call.__doc__ = tool.__doc__
    call.__signature__ = signature(tool)  # type: ignore[attr-defined]
    return call


async def _words(user: LlmUser, context: Context, heard: str, reply: str) -> str:
    """The user's answer to what it heard; its turns are kept with the episode, as plain data."""
    turns: list[list[str]] = context.state.setdefault(_TURNS, [])
    meant = reply.removeprefix(user.lead)
    said = await _ask(user, context.task, [*turns, [heard, ""]], meant)
    if said:
        _audit(user, context.task, [*turns, [heard, meant]], said)
    turns.append([heard, said or meant])
    return user.lead + turns[-1][1]


async def _ask(user: LlmUser, task: Task, turns: Sequence[Sequence[str]], meant: str) -> str:
    """What the model says; empty when it says nothing twice, and the automaton's words do."""
    messages = [
        Message(role="system", content=_role(user.script(task), meant)),
        Message(role="user", content=_BEGIN),
        Message(role="assistant", content=user.opening(task)),
    ]
    for heard, said in turns:
        messages.append(Message(role="user", content=heard))
        messages += [Message(role="assistant", content=said)] if said else []
    async with open_chat(user.settings, user.api_key) as client:
        for _ in range(_ATTEMPTS):
            try:
                answer = await client.complete(messages)
            except Truncated:
                continue
            if answer.text.strip():
                return answer.text.strip()
    return ""


def _role(script: Script, meant: str) -> str:
    wishes = [
        " ".join(filter(None, (request.say or "what you wrote at first", request.correction)))
        + (f" If that cannot be: {request.instead}" if request.instead else "")
        for request in script.requests
    ]
    known = [f"- {slot}: {value}" for slot, value in script.known.items()]
    listed = "\n".join(f"{number}. {wish}" for number, wish in enumerate(wishes, 1))
    return _ROLE.format(wishes=listed, known="\n".join(known) or "- nothing", meant=meant)


def _audit(user: LlmUser, task: Task, turns: Sequence[Sequence[str]], said: str) -> None:
    """Raise `UserFault` for what this user cannot know, or would not say."""
    script = user.script(task)
    wishes = (text for r in script.requests for text in (r.say, r.correction, r.instead))
    words = (part for turn in turns for part in turn)
    known = (user.opening(task), *script.known.values(), *wishes, *words)
    if facts := unfounded(said, known):
        raise UserFault(f"the simulated user said what it cannot know: {', '.join(facts)[:200]}")
    if len(said) > _MOST_CHARACTERS:
        raise UserFault(f"the simulated user said {len(said)} characters at once")
