"""Agents: scripted ones, any OpenAI-compatible model, and a user's own."""

from gymsuite.agents.names import BUILT_IN, open_agent
from gymsuite.agents.source import AgentOptions, AgentSource, Recorded, Seat

__all__ = ["BUILT_IN", "AgentOptions", "AgentSource", "Recorded", "Seat", "open_agent"]
