"""A client that answers from a script, and says so when a conversation goes another way."""

import difflib
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from mcp import ClientSession
from mcp.client.session import ClientRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_REQUEST,
    CallToolResult,
    ElicitRequest,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    InputRequest,
    InputRequiredResult,
    InputResponse,
    SamplingCapability,
    SamplingToolsCapability,
    TextContent,
)

from askback.exchange.answer import Answer, Defer
from askback.exchange.question import Question, question_of
from askback.exchange.response import content_of, response_to
from askback.exchange.transcript import Conversation, ConversationError, Exchange, ToolCall
from askback.testing.generations import GenerationClient
from askback.testing.scripts import (
    RESULTS,
    Answers,
    NotScriptedError,
    Script,
    check_used,
    reply_of,
    script_of,
    unanswered,
)
from askback.transports import NEVER_CALLED, SessionTransport

current_call: ContextVar[ToolCall | None] = ContextVar("askback_scripted_call", default=None)
"""The call that is under way where a question arrives; not every connection carries it there."""


class ScriptedClient(GenerationClient):
    """A `fastmcp.Client` whose person, model and directories are in a script.

        async with ScriptedClient(mcp, {"Order anyway": {"confirm": True}}) as client:
            result = await client.call_tool("order_book", {"title": "Neuromancer"})

    The script is a mapping, whose keys are regular expressions for messages, models that forms ask for, or `Elicit`,
    `Sample` and `ListRoots` for any question of that kind; or a list of answers in order; or a policy, which is given
    None for the run; or a `Conversation` to repeat. An answer is `Accept`, `Decline` or `Cancel`, what to accept with,
    or a whole result of the protocol, which is sent unchecked.

    A question that the script does not answer and one asked twice are a `ConversationError`, raised by the call and,
    should somebody catch it there, again when the connection is closed. So is an answer that was never used, unless the
    connection is closed by an error.
    """

    def __init__(self, server: Any, answers: Answers = None, **options: Any) -> None:
        self.conversation = Conversation()
        self.script: Script = script_of(answers)
        self._failures: list[ConversationError] = []
        self._under_way: list[ToolCall] = []
        super().__init__(
            server,
            elicitation_handler=self._answer_task,
            sampling_handler=NEVER_CALLED,
            sampling_capabilities=SamplingCapability(tools=SamplingToolsCapability()),
            roots=NEVER_CALLED,
            **options,
        )
        self.transport = SessionTransport(self.transport, type("Session", (_ScriptedSession,), {"client": self}))

    @property
    def asked(self) -> list[Question]:
        """What the server has asked, in order; on 2026-07-28 with the round and the key of the resolver."""
        return [exchange.question for exchange in self.conversation.exchanges]

    @property
    def messages(self) -> list[str]:
        """What the server has asked, in words."""
        return [question.message for question in self.asked]

    async def call_tool_mcp(self, name: str, arguments: dict[str, Any], *args: Any, **options: Any) -> CallToolResult:
        """Call a tool, as FastMCP's client does, and keep what was said.

        Raises:
            ConversationError: If the server asked what the script does not answer, or has no such tool.
        """
        call = ToolCall(tool=name, arguments=arguments)
        self.conversation.calls.append(call)
        self._under_way.append(call)
        known = len(self._failures)
        self.script.begin(call)
        token = current_call.set(call)
        try:
            result = await super().call_tool_mcp(name, arguments, *args, **options)
        except Exception as error:
            call.result, call.failed = str(error), True
            self._fail_if_more_than(known)
            raise
        finally:
            current_call.reset(token)
            self._under_way = [each for each in self._under_way if each is not call]
        call.result = "\n".join(each.text for each in result.content if isinstance(each, TextContent))
        call.failed = bool(result.is_error)
        self._fail_if_more_than(known)
        if call.failed:
            await self._check_exists(name)
        return result

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect.

        Raises:
            ConversationError: If something in the script was never used.
        """
        await super().__aexit__(kind, error, trace)  # pyright: ignore[reportUnknownMemberType]
        if error is None:
            self._fail_if_more_than(0)
            check_used(self.script, self.conversation)

    async def answer(self, request: InputRequest, key: str | None = None, number: int = 1) -> InputResponse | ErrorData:
        """What the script says to a question. Where it says nothing, the call is going to fail."""
        call = self._call_that_asks()
        question = question_of(request, tool=call.tool, arguments=call.arguments, key=key, round=number)
        exchange = Exchange(question=question)
        call.exchanges.append(exchange)
        try:
            answer, said_by = await reply_of(self.script, call, question)
            response = _response(question, answer)
        except Exception as error:
            reason = str(error) if isinstance(error, NotScriptedError) else f"The script failed: {error!r}"
            self._failures.append(unanswered(self.conversation, question, reason))
            return ErrorData(code=INVALID_REQUEST, message="The test has no answer to this")
        exchange.answered_by = said_by
        if isinstance(response, ErrorData):
            exchange.action = "decline"
        else:
            exchange.action = response.action if isinstance(response, ElicitResult) else "accept"
            exchange.content = content_of(response)
        return response

    async def _answer_task(self, message: str, response_type: Any, params: ElicitRequestParams, context: Any) -> Any:
        """What a background task asks has its own way to the client."""
        response = await self.answer(ElicitRequest(params=params))
        if isinstance(response, ErrorData):
            raise MCPError.from_error_data(response)
        return response

    def _call_that_asks(self) -> ToolCall:
        call = current_call.get()
        if call is not None and any(each is call for each in self._under_way):
            return call
        if self._under_way:
            return self._under_way[-1]
        self.conversation.calls.append(ToolCall(tool="", arguments={}))
        return self.conversation.calls[-1]

    def _fail_if_more_than(self, known: int) -> None:
        """Fail with the first question without an answer after those that are known already."""
        if len(self._failures) > known:
            raise self._failures[known] from None

    async def _check_exists(self, name: str) -> None:
        tools = [tool.name for tool in await self.list_tools()]
        if name not in tools:
            near = difflib.get_close_matches(name, tools, 1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            there = ", ".join(tools) or "none"
            raise ConversationError(f"There is no tool {name!r}: {hint}The server has {there}", self.conversation)


class _ScriptedSession(ClientSession):
    """A session that takes each question to the client's script, with the call and the round it belongs to."""

    client: ScriptedClient

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._rounds: dict[int, int] = {}
        self._asked: dict[int, tuple[str, int]] = {}

    async def call_tool(self, *args: Any, **options: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Call a tool, and note which round asks what."""
        call = id(current_call.get())
        # Otherwise it goes on, with a state or answers.
        if options.get("request_state") is None and options.get("input_responses") is None:
            self._rounds[call] = 0
        result: Any = await super().call_tool(*args, **options)
        if isinstance(result, InputRequiredResult):
            self._rounds[call] = self._rounds.get(call, 0) + 1
            for key, request in (result.input_requests or {}).items():
                self._asked[id(request)] = (key, self._rounds[call])
        return result

    async def dispatch_input_request(
        self, ctx: ClientRequestContext, request: InputRequest
    ) -> InputResponse | ErrorData:
        """Answer a question, whichever way it has come."""
        key, number = self._asked.pop(id(request), (None, 1))
        return await self.client.answer(request, key, number)


def _response(question: Question, answer: Answer | InputResponse) -> InputResponse | ErrorData:
    """An answer of a script, as it is sent.

    Raises:
        NotScriptedError: If it cannot be.
    """
    if isinstance(answer, RESULTS):
        return answer
    if isinstance(answer, Defer):
        raise NotScriptedError("The script defers it, which only an agent can: a client answers, declines or cancels")
    declined = ErrorData(code=INVALID_REQUEST, message=f"The {question.kind} request was declined")
    return response_to(question, answer, "script") or declined
