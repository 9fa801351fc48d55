"""A rehearsal: servers and agents tried out on one protocol generation, over one kind of connection."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fastmcp.client.transports import ClientTransport
from mcp.shared.exceptions import MCPError

from askback.exchange.transcript import Conversation, ToolCall
from askback.testing.clients import ScriptedClient
from askback.testing.generations import GENERATIONS, Generation, Mode, mode_of
from askback.testing.hosting import Over, transport_to
from askback.testing.scripts import Answers, script_of

if TYPE_CHECKING:
    from pydantic_ai import Agent
    from pydantic_ai.models import Model

    from askback.testing.plays import Play

OutputT = TypeVar("OutputT")


@dataclass(frozen=True)
class Rehearsal:
    """Tries out servers that ask and agents that answer.

    The fixture `askback` is one of these, for each protocol generation. Elsewhere, make one.
    """

    generation: Generation = "2026-07-28"
    over: Over = "memory"

    def __post_init__(self) -> None:
        """Refuse to try out what there is not.

        Raises:
            ValueError: If there is no such generation.
        """
        if self.generation not in GENERATIONS:
            raise ValueError(f"The generations are {' and '.join(GENERATIONS)}, not {self.generation!r}")

    @property
    def mode(self) -> Mode:
        """The generation, as `fastmcp.Client` takes it."""
        return mode_of(self.generation)

    def transport(self, server: Any) -> ClientTransport:
        """A way to reach `server` over this kind of connection, for a `fastmcp.Client` of your own.

        Over HTTP the server is up, on a port of its own, for as long as somebody is connected. Over stdio another
        process imports it, so it has to be a global of a module.

        Raises:
            ValueError: If the server cannot be reached that way.
        """
        return transport_to(server, self.over)

    def connect(self, server: Any, answers: Answers = None, **options: Any) -> ScriptedClient:
        """A client of `server` whose answers are scripted, to be entered with `async with`.

        The options are those of `fastmcp.Client`; `ScriptedClient` says what a script is.

        Raises:
            ValueError: If the server cannot be reached over this kind of connection.
        """
        return ScriptedClient(self.transport(server), answers, generation=self.generation, **options)

    async def call(
        self, server: Any, tool: str, arguments: Mapping[str, Any] | None = None, answers: Answers = None
    ) -> ToolCall:
        """Connect, call one tool, and see what it asked, and what it said or failed with: a failing tool is no error.

        Raises:
            ConversationError: If it asked something else than the script has answers for, or there is no such tool.
        """
        async with self.connect(server, answers) as client:
            with suppress(MCPError):
                await client.call_tool(tool, dict(arguments or {}), raise_on_error=False)
        return client.conversation.calls[-1]

    async def replay(self, server: Any, recording: Conversation | str | Path) -> Conversation:
        """Make the calls of a recorded conversation again, and answer as was answered then.

        What the tools say is not compared: it is in the conversation that is returned.

        Raises:
            ValueError: If the file holds no conversation, or there is no call in it.
            ConversationError: If a question, its order or its form has changed; the message shows the difference.
        """
        recorded = recording if isinstance(recording, Conversation) else Conversation.load(recording)
        if not recorded.calls:
            raise ValueError("The recording has no calls to make again")
        async with self.connect(server, recorded) as client:
            for call in (each for each in recorded.calls if each.tool):
                with suppress(MCPError):
                    await client.call_tool(call.tool, call.arguments, raise_on_error=False)
        return client.conversation

    async def play(
        self,
        agent: "Agent[Any, OutputT]",
        model: "Model | None" = None,
        server: Any | Mapping[str, Any] = None,
        answers: Answers = None,
        *,
        prompt: str | None = "Go on",
        **options: Any,
    ) -> "Play[OutputT]":
        """Run an agent, and see what it was asked and what was answered.

        Args:
            agent: The agent, with its real toolsets and policies.
            model: What to run it with, such as `calls("refund", order="ORD-1")`; its own model without.
            server: What its toolset is to connect to. Several toolsets take a mapping of their ids; without, they
                connect to what they always do.
            answers: A script that answers instead of the policies, in the form `ScriptedClient` takes.
            prompt: What the run is started with.
            **options: Those of `Agent.run`: `deps`, `usage_limits`, `message_history` and so on.

        Raises:
            ConversationError: If a script was given and the questions were not those it has answers for.
        """
        from askback.testing.plays import Stage

        script = script_of(answers) if answers is not None else None
        return await Stage(self, agent, model, server, options).run(prompt, script)
