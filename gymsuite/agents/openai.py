"""An agent that is a model behind an OpenAI-compatible endpoint, with the whole history."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from pydantic import ValidationError

from gymsuite.agents.source import AgentOptions, AgentSource
from gymsuite.chat import ChatClient, ChatSettings, open_chat
from gymsuite.complaints import complaints
from gymsuite.errors import Truncated, UsageError
from gymsuite.types import Action, Message, Observation, ToolSchema


@asynccontextmanager
async def openai(options: AgentOptions) -> AsyncIterator[AgentSource]:
    """Share one client among all rollouts of a run, and close it in the end."""
    settings = _settings(options)
    async with open_chat(settings, options.api_key) as client:
        config = settings.model_dump(mode="json")
        yield AgentSource("openai", config, lambda _: lambda _: OpenAIAgent(client))


class OpenAIAgent:
    """Plays one rollout: what it observed and said so far is what the model is shown."""

    def __init__(self, client: ChatClient) -> None:
        self._client = client
        self._history: list[Message] = []
        self._tools: Sequence[ToolSchema] = ()

    async def act(self, observation: Observation) -> Action:
        """Ask the model; raises what `ChatClient.complete` raises.

        Raises `Truncated` for text that a limit cut off, too: half an answer is not an answer.
        """
        self._tools = observation.tools or self._tools
        self._history.extend(observation.messages)
        action = await self._client.complete(self._history, self._tools)
        if action.extra["finish_reason"] == "length" and not action.tool_calls:
            raise Truncated("the model's answer was cut off by its limit of tokens", action=action)
        self._history.append(action)
        return action


def _settings(options: AgentOptions) -> ChatSettings:
    for name, value in (("--model", options.model), ("--base-url", options.base_url)):
        if not value:
            raise UsageError(
                f"agent 'openai' needs {name}, for example: --agent openai "
                "--base-url http://localhost:8000/v1 --model my-model"
            )
    try:
        return ChatSettings.model_validate(
            {
                "base_url": options.base_url,
                "model": options.model,
                "temperature": options.temperature,
                "max_tokens": options.max_tokens,
                "timeout_seconds": options.timeout_seconds,
                "body": options.body,
            }
        )
    except ValidationError as error:
        # pydantic's own text would repeat the value, and a base URL may hold a password
        raise UsageError(f"agent 'openai': {complaints(error)}") from None
