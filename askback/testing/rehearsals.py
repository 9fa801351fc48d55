"""A rehearsal: servers and agents tested on one protocol generation, over one kind of connection."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fastmcp.client.transports import ClientTransport
from mcp.shared.exceptions import MCPError

from askback.exchange.transcript import Conversation, ToolCall
from askback.testing.clients import ScriptedClient
from askback.testing.generations import GENERATIONS, Generation, Mode, mode_of
from askback.testing.hosting import Over, transport_to
from askback.testing.scripts import ScriptLike, script_of

if TYPE_CHECKING:
    from pydantic_ai import Agent
    from pydantic_ai.models import Model

    from askback.testing.plays import Play

OutputT = TypeVar("OutputT")


@dataclass(frozen=True)
class Rehearsal:
    """Tests servers that ask and agents that answer.

    The fixture `askback` is one of these, for each protocol generation. Outside pytest, create one yourself.
    """

    generation: Generation = "2026-07-28"
    over: Over = "memory"
    conversations: list[Conversation] = field(default_factory=list[Conversation], init=False, repr=False, compare=False)
    """The conversations of its clients and runs. The pytest plugin prints them when a test fails."""

    def __post_init__(self) -> None:
        """Reject unknown generations.

        Raises:
            ValueError: If there is no such generation.
        """
        if self.generation not in GENERATIONS:
            raise ValueError(f"The generations are {' and '.join(GENERATIONS)}, not {self.generation!r}")

    @property
    def mode(self) -> Mode:
        """The `mode` of a `fastmcp.Client` for this generation."""
        return mode_of(self.generation)

    def transport(self, server: Any) -> ClientTransport:
        """A transport to `server` over this kind of connection, for a `fastmcp.Client` of your own.

        Over HTTP the server runs, on a free port, for as long as a client is connected. Over stdio another process
        imports it, so it must be a global of a module.

        Raises:
            ValueError: If the server cannot be reached over such a connection.
        """
        return transport_to(server, self.over)

    def connect(self, server: Any, answers: ScriptLike = None, **options: Any) -> ScriptedClient:
        """A client of `server` that answers from a script; enter it with `async with`.

        The options are those of `fastmcp.Client`; see `ScriptedClient` for scripts.

        Raises:
            ValueError: If the server cannot be reached over this kind of connection.
        """
        client = ScriptedClient(self.transport(server), answers, generation=self.generation, **options)
        self.conversations.append(client.conversation)
        return client

    async def call(
        self, server: Any, tool: str, arguments: Mapping[str, Any] | None = None, answers: ScriptLike = None
    ) -> ToolCall:
        """Connect, call one tool, and return what it asked and how it ended; a failing tool does not raise.

        Raises:
            ConversationError: If the script does not answer what the tool asked, or there is no such tool.
        """
        async with self.connect(server, answers) as client:
            with suppress(MCPError):
                await client.call_tool(tool, dict(arguments or {}), raise_on_error=False)
        return client.conversation.calls[-1]

    async def replay(self, server: Any, recording: Conversation | str | Path) -> Conversation:
        """Make the calls of a recorded conversation again, with the answers given then.

        The results of the tools are not compared; they are in the returned conversation.

        Raises:
            ValueError: If the file does not hold a conversation, or the recording has no calls.
            ConversationError: If a question, its order or its form has changed; the message shows the difference.
        """
        recorded = recording if isinstance(recording, Conversation) else Conversation.load(recording)
        if not recorded.calls:
            raise ValueError("The recording has no calls to replay")
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
        answers: ScriptLike = None,
        *,
        prompt: str | None = "Go on",
        **options: Any,
    ) -> "Play[OutputT]":
        """Run an agent, and return what it was asked and what was answered.

        Args:
            agent: The agent, with its real toolsets and policies.
            model: The model to run it with, such as `calls("refund", order="ORD-1")`; by default, its own.
            server: The server that its toolset connects to; for several toolsets, a mapping of their ids to servers.
                By default, they connect to their own.
            answers: A script that answers instead of the policies; see `ScriptedClient`.
            prompt: The user prompt of the run.
            **options: Options of `Agent.run`: `deps`, `usage_limits`, `message_history` and so on.

        Raises:
            ConversationError: If the script does not answer what was asked, or a resolver changed its question.
        """
        from askback.testing.plays import Stage

        script = script_of(answers) if answers is not None else None
        stage = Stage(self.generation, self.over, agent, model, server, options, self.conversations)
        return await stage.run(prompt, script)
