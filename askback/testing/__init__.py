"""In-process testing of servers that ask, and of agents that answer.

In pytest, the fixture `askback` is a `Rehearsal` on each protocol generation. Testing servers needs the extra
`testing`. Testing agents also needs the extra `agent`, which is imported on first use.
"""

from typing import TYPE_CHECKING

from askback.exchange.transcript import Conversation, ConversationError, Exchange, ToolCall
from askback.extras import from_extra
from askback.testing.clients import ScriptedClient
from askback.testing.generations import Generation
from askback.testing.rehearsals import Rehearsal

if TYPE_CHECKING:
    from askback.testing.models import ScriptedModel, calls
    from askback.testing.plays import Play

__all__ = [
    "Conversation",
    "ConversationError",
    "Exchange",
    "Generation",
    "Play",
    "Rehearsal",
    "ScriptedClient",
    "ScriptedModel",
    "ToolCall",
    "calls",
]

__getattr__ = from_extra(
    "agent", "Pydantic AI", __name__, {"Play": "plays", "ScriptedModel": "models", "calls": "models"}
)
