"""A client that answers from a script, and fails the test when the conversation goes another way."""

import difflib
from types import TracebackType
from typing import Any

from mcp_types import CallToolResult

from askback.clients import ConversationClient, Reply, reply_with
from askback.exchange.answer import Answer, Defer
from askback.exchange.question import Question
from askback.exchange.transcript import ConversationError, ToolCall
from askback.testing.generations import GenerationClient
from askback.testing.scripts import (
    RESULTS,
    NotScriptedError,
    Script,
    ScriptLike,
    check_used,
    reply_of,
    script_of,
    unanswered,
)


class ScriptedClient(GenerationClient, ConversationClient):
    """A `fastmcp.Client` whose person, model and directories are in a script.

        async with ScriptedClient(mcp, {"Order anyway": {"confirm": True}}) as client:
            result = await client.call_tool("order_book", {"title": "Neuromancer"})

    The script is one of:

    - a mapping whose keys are regular expressions for messages, models that forms ask for, or `Elicit`, `Sample` and
      `ListRoots` for any question of that kind;
    - a list of answers in order;
    - a policy, which gets None for the run;
    - a `Conversation` to replay.

    An answer is `Accept`, `Decline` or `Cancel`, the content to accept with, or a whole result of the protocol, which
    is sent unchecked.

    A question that the script does not answer, that is asked twice in a call, or that a resolver words differently when
    it runs again is a `ConversationError`; a list may have an answer for either. The call raises it; if that is caught,
    closing the connection raises it again. An answer that was never used is one too, unless an error closes the
    connection.
    """

    def __init__(self, server: Any, answers: ScriptLike = None, **options: Any) -> None:
        self.script: Script = script_of(answers)
        self._failures: list[ConversationError] = []
        super().__init__(server, respond=self._from_script, **options)

    @property
    def asked(self) -> list[Question]:
        """What the server has asked, in order; on 2026-07-28 with the round and the key of the resolver."""
        return [exchange.question for exchange in self.conversation.exchanges]

    @property
    def messages(self) -> list[str]:
        """The messages of what the server has asked."""
        return [question.message for question in self.asked]

    async def call_tool_mcp(self, name: str, arguments: dict[str, Any], *args: Any, **options: Any) -> CallToolResult:
        """Call a tool, as FastMCP's client does, and record the call.

        Raises:
            ConversationError: If the server asked something that the script does not answer, or has no such tool.
        """
        known = len(self._failures)
        try:
            result = await super().call_tool_mcp(name, arguments, *args, **options)
        except Exception:
            self._raise_failure_after(known)
            raise
        self._raise_failure_after(known)
        if result.is_error:
            await self._check_exists(name)
        return result

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect.

        Raises:
            ConversationError: If part of the script was never used.
        """
        await super().__aexit__(kind, error, trace)  # pyright: ignore[reportUnknownMemberType]
        if error is None:
            self._raise_failure_after(0)
            check_used(self.script, self.conversation)

    def begin(self, call: ToolCall) -> None:
        """Tell the script that a call is made."""
        self.script.begin(call)

    async def _from_script(self, call: ToolCall, question: Question) -> Reply | None:
        try:
            answer, by = await reply_of(self.script, call, question)
            return _reply(question, answer, by)
        except Exception as error:
            reason = str(error) if isinstance(error, NotScriptedError) else f"The script failed: {error!r}"
            self._failures.append(unanswered(self.conversation, question, reason))
            return None

    def _raise_failure_after(self, known: int) -> None:
        """Raise the first failure after those that are already known."""
        if len(self._failures) > known:
            raise self._failures[known] from None

    async def _check_exists(self, name: str) -> None:
        tools = [tool.name for tool in await self.list_tools()]
        if name not in tools:
            similar = difflib.get_close_matches(name, tools, 1)
            hint = f"did you mean {similar[0]!r}? " if similar else ""
            there = f"The server has {', '.join(tools)}" if tools else "The server has no tools"
            raise ConversationError(f"There is no tool {name!r}: {hint}{there}", self.conversation)


def _reply(question: Question, answer: Any, by: str) -> Reply:
    """The reply for an answer of a script.

    Raises:
        NotScriptedError: If a client cannot give such an answer.
    """
    if isinstance(answer, RESULTS):
        return Reply(answer, by)
    given: Answer = answer
    if isinstance(given, Defer):
        raise NotScriptedError("The script defers it, but only an agent can: a client accepts, declines or cancels")
    return reply_with(question, given, by)
