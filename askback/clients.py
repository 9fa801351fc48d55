"""A FastMCP client that takes every question to one function, and records the conversation."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

import fastmcp
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

from askback.exchange.answer import Accept, Cancel, Decline
from askback.exchange.question import Question, question_of
from askback.exchange.response import content_of, response_to
from askback.exchange.transcript import Conversation, Exchange, ToolCall
from askback.transports import NEVER_CALLED, SessionTransport

UNANSWERED = ErrorData(code=INVALID_REQUEST, message="The client has no answer to this question")

current_call: ContextVar[ToolCall | None] = ContextVar("askback_client_call", default=None)
"""The call whose question arrives in this context; some connections do not carry it there."""


@dataclass(frozen=True)
class Reply:
    """What the server is sent for a question, and who gave it."""

    response: InputResponse | ErrorData
    by: str


Respond = Callable[[ToolCall, Question], Awaitable[Reply | None]]
"""Answers a question that a call caused; None leaves it unanswered, which the server gets as an error."""


def reply_with(question: Question, answer: Accept | Decline | Cancel, by: str) -> Reply:
    """The reply that carries an answer.

    Raises:
        ContentError: If the accepted content does not fit the question.
    """
    # The protocol has no way to decline sampling and roots.
    declined = ErrorData(code=INVALID_REQUEST, message=f"The {question.kind} request was declined")
    return Reply(response_to(question, answer, by) or declined, by)


class ConversationClient(fastmcp.Client[Any]):
    """A `fastmcp.Client` that answers every question, of any kind and generation, through one function.

    The function gets the call that caused the question. What was called, asked and answered is in `conversation`.
    """

    def __init__(self, server: Any, respond: Respond, **options: Any) -> None:
        self.conversation = Conversation()
        self._respond = respond
        self._under_way: list[ToolCall] = []
        super().__init__(
            server,
            elicitation_handler=self._answer_task,
            sampling_handler=NEVER_CALLED,
            sampling_capabilities=SamplingCapability(tools=SamplingToolsCapability()),
            roots=NEVER_CALLED,
            **options,
        )
        self.transport = SessionTransport(self.transport, partial(_ConversationSession, self))

    async def call_tool_mcp(self, name: str, arguments: dict[str, Any], *args: Any, **options: Any) -> CallToolResult:
        """Call a tool, as FastMCP's client does, and record the call."""
        call = ToolCall(tool=name, arguments=arguments)
        self.conversation.calls.append(call)
        self._under_way.append(call)
        self.begin(call)
        token = current_call.set(call)
        try:
            result = await super().call_tool_mcp(name, arguments, *args, **options)
        except Exception as error:
            call.result, call.failed = str(error), True
            raise
        finally:
            current_call.reset(token)
            self._under_way = [each for each in self._under_way if each is not call]
        call.result = "\n".join(each.text for each in result.content if isinstance(each, TextContent))
        call.failed = bool(result.is_error)
        return result

    def begin(self, call: ToolCall) -> None:
        """Called before each call, whether or not it will ask."""

    async def answer(self, request: InputRequest, key: str | None = None, number: int = 1) -> InputResponse | ErrorData:
        """Answer a question, and record it."""
        call = self._call_that_asks()
        question = question_of(request, tool=call.tool, arguments=call.arguments, key=key, round=number)
        exchange = Exchange(question=question)
        call.exchanges.append(exchange)
        reply = await self._respond(call, question)
        if reply is None:
            return UNANSWERED
        response, exchange.answered_by = reply.response, reply.by
        if isinstance(response, ErrorData):
            exchange.action = "decline"
        else:
            exchange.action = response.action if isinstance(response, ElicitResult) else "accept"
            exchange.content = content_of(response)
        return response

    async def _answer_task(self, message: str, response_type: Any, params: ElicitRequestParams, context: Any) -> Any:
        """Answer a question of a background task, which does not come through the session."""
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


class _ConversationSession(ClientSession):
    """A session that takes each question to its client, with the key and the round that it belongs to."""

    def __init__(self, client: ConversationClient, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._client = client
        self._rounds: dict[int, int] = {}
        self._asked: dict[int, tuple[str, int]] = {}

    async def call_tool(self, *args: Any, **options: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Call a tool, and remember which round asks what."""
        call = id(current_call.get())
        # A later round carries a state or responses.
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
        """Answer a question, from a round or from a request of the server's own."""
        key, number = self._asked.pop(id(request), (None, 1))
        return await self._client.answer(request, key, number)
