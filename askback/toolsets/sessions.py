"""A client session that answers, and a transport that opens one."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, ClassVar, TypeVar, Unpack, cast

import anyio
from fastmcp.client.transports import ClientTransport, FastMCPTransport, StreamableHttpTransport
from fastmcp.client.transports.base import SessionKwargs, TransportOptions
from fastmcp.exceptions import ToolError
from mcp import ClientSession
from mcp.client.session import ClientRequestContext
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_REQUEST,
    CallToolResult,
    ErrorData,
    InputRequest,
    InputRequiredResult,
    InputResponse,
    InputResponses,
    RequestParamsMeta,
    Result,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from opentelemetry import context as otel
from pydantic import ValidationError
from pydantic_ai import ApprovalRequired, UserError

from askback.agents.suspension import Suspension
from askback.toolsets.answering import MOST_QUESTIONS, Answering, DeferredError
from askback.toolsets.calls import Call, current_call, current_run_call
from askback.transports import SessionTransport

ResultT = TypeVar("ResultT")

OTHER_ARGUMENTS = "was stopped with other arguments than it is resumed with: the answers are not for this call"
PATIENCE_WITH_SERVERS = 5.0
"""How long a server may take to withdraw a question whose call was given up."""
WAIT_BETWEEN_ROUNDS = 0.05
"""How long to wait before calling again a server that asks for patience only: it sent a state, and no question."""


class AnsweringTransport(SessionTransport):
    """A transport whose sessions answer what the server asks."""

    def __init__(self, transport: ClientTransport, answering: Answering) -> None:
        session_class = type(
            "AnsweringSession",
            (AnsweringSession,),
            {"answering": answering, "tells_calls_apart": isinstance(transport, TELLS_CALLS_APART)},
        )
        super().__init__(transport, session_class)

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session_kwargs: Unpack[SessionKwargs]
    ) -> AsyncGenerator[ClientSession]:
        """Connect, as nobody: what the connection does by itself is no part of the run that happened to open it."""
        current_call.set(None)
        current_run_call.set(None)
        async with super().connect_session(transport_options=transport_options, **session_kwargs) as session:
            yield session


TELLS_CALLS_APART = (FastMCPTransport, StreamableHttpTransport)
"""On these, what the server asks during a call arrives in the context of that call, also before 2026-07-28."""


class AnsweringSession(ClientSession):
    """A session that takes each question to the run whose call made the server ask it.

    Since 2026-07-28 questions come as the result of a call, and the session drives the rounds. Before, they come as
    requests of their own, which nothing on the wire ties to a call: the context they arrive in does. Where it does not,
    calls are made one at a time.
    """

    answering: ClassVar[Answering]
    tells_calls_apart: ClassVar[bool]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._under_way: list[Call] = []
        self._one_at_a_time = anyio.Lock()

    async def call_tool(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        read_timeout_seconds: float | None = None,
        progress_callback: ProgressFnT | None = None,
        *,
        input_responses: InputResponses | None = None,
        request_state: str | None = None,
        meta: RequestParamsMeta | None = None,
        allow_input_required: bool = False,
        allow_claimed: bool = False,
    ) -> CallToolResult | InputRequiredResult | Result:
        """Call a tool, and go through as many rounds as it takes."""

        async def send(
            responses: InputResponses | None, state: str | None
        ) -> CallToolResult | InputRequiredResult | Result:
            try:
                return await super(AnsweringSession, self).call_tool(
                    name,
                    arguments,
                    read_timeout_seconds,
                    progress_callback,
                    input_responses=responses,
                    request_state=state,
                    meta=meta,
                    allow_input_required=True,
                    allow_claimed=allow_claimed,
                )
            except ValidationError as error:
                raise ToolError(f"The server's response to {name!r} is not one of the protocol's") from error

        call = Call(name, arguments or {}, current_run_call.get())
        if call.run is not None and call.run.failure is not None:
            # The run is over: a hook that caught that must not go on in its name.
            raise call.run.failure
        resumption = self._resumption(call)
        if resumption is not None:
            await self.answering.note_later_answers(call, resumption)
        if not self._goes_in_rounds:
            if resumption is not None:
                call.start_over(resumption.all_given())
            return await self._under(call, partial(send, None, None))

        async def drive() -> CallToolResult | InputRequiredResult | Result:
            responses, state, rounds, starts = input_responses, request_state, 0, 1
            if resumption is not None and resumption.round:
                responses, state, rounds = resumption.responses(), resumption.state, resumption.round
                call.given = resumption.all_given()
            elif resumption is not None:
                call.start_over(resumption.all_given())
            while True:
                try:
                    result = await send(responses, state)
                except MCPError as error:
                    if state is None or not _says_state_is_refused(error) or starts > self.answering.max_rounds:
                        raise
                    # The server has forgotten the call: it starts over, and nobody is asked the same again.
                    call.start_over(call.all_given())
                    responses, state, rounds, starts = None, None, 0, starts + 1
                    continue
                if not isinstance(result, InputRequiredResult):
                    return result
                rounds += 1
                if rounds > self.answering.max_rounds:
                    raise ToolError(f"The tool {name!r} asked for more than {self.answering.max_rounds} rounds")
                responses, state = None, result.request_state
                if result.input_requests:
                    context = ClientRequestContext(session=self, request_id=name, meta=None)
                    responses = await self.answering.answer_round(call, result, rounds, context)
                else:
                    await anyio.sleep(WAIT_BETWEEN_ROUNDS * rounds)

        return await self._under(call, drive)

    async def get_prompt(self, name: str, arguments: dict[str, str] | None = None, **options: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Get a prompt. What it makes the server ask is declined: no run asked for it."""
        call = Call(name, arguments or {})
        return await self._under(call, partial(super().get_prompt, name, arguments, **options))

    async def read_resource(self, uri: str, **options: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Read a resource. What it makes the server ask is declined: no run asked for it."""
        return await self._under(Call(uri), partial(super().read_resource, uri, **options))

    async def dispatch_input_request(
        self, ctx: ClientRequestContext, request: InputRequest
    ) -> InputResponse | ErrorData:
        """Answer a question that the server sent by itself, or that has come with a prompt or a resource."""
        call = self._caused_by()
        if call is None and self.answering.has_handler_for(request):
            call = Call()
        if call is None:
            return ErrorData(code=INVALID_REQUEST, message="No call under way can have caused this request")
        call.asked += 1
        if call.asked > MOST_QUESTIONS * self.answering.max_rounds:
            return ErrorData(code=INVALID_REQUEST, message="The call has asked too many questions")
        try:
            return await self.answering.answer_request(call, request, ctx)
        except ToolError as error:
            return ErrorData(code=INVALID_REQUEST, message=str(error))
        except DeferredError as stop:
            self.answering.stop_waiting(call, stop.question)
            # The call is being given up, and the question with it: this is no answer to it.
            with anyio.move_on_after(PATIENCE_WITH_SERVERS):
                await anyio.sleep_forever()
            return ErrorData(code=INVALID_REQUEST, message="The call that caused this was given up")
        except Exception:
            return ErrorData(code=INVALID_REQUEST, message="The client could not answer")

    def _resumption(self, call: Call) -> Suspension | None:
        """Where a call goes on that was stopped before, with an answer to each of its questions.

        Raises:
            ApprovalRequired: If there are questions without an answer still.
            UserError: If the call is not the one that was stopped.
        """
        resumption = call.run.resumption if call.run is not None else None
        if call.run is None or resumption is None or resumption.tool != call.tool:
            return None
        call.run.resumption = None
        if not resumption.is_of(call.arguments):
            raise call.failed(UserError(f"The tool call of {call.tool!r} {OTHER_ARGUMENTS}"))
        if len(resumption.responses()) < len(resumption.questions):
            raise call.failed(ApprovalRequired(metadata=resumption.to_metadata()))
        return resumption

    async def _under(self, call: Call, request: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Make a request, so that the questions it causes can be told to be its own."""
        call.outer = current_call.get()
        token = current_call.set(call)
        if call.run is not None:
            call.run.last = call
        try:
            if self._goes_in_rounds:
                return await request()
            if self.tells_calls_apart:
                return await self._while_it_waits(call, request)
            if any(outer in self._under_way for outer in call.outwards()):
                raise UserError(
                    "This connection carries one call at a time, and whoever answers a question of that call cannot "
                    "make another on it: use a second toolset"
                )
            async with self._one_at_a_time:
                return await self._while_it_waits(call, request)
        finally:
            current_call.reset(token)

    async def _while_it_waits(self, call: Call, request: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Make a request during which the server may send requests of its own."""
        call.trace = otel.get_current()
        self._under_way.append(call)
        try:
            with anyio.CancelScope() as call.scope:
                return await request()
        finally:
            self._under_way.remove(call)
        # Given up, because of what somebody who was asked has done.
        assert call.run is not None
        assert call.run.failure is not None
        raise call.run.failure

    @property
    def _goes_in_rounds(self) -> bool:
        return self.protocol_version in MODERN_PROTOCOL_VERSIONS

    def _caused_by(self) -> Call | None:
        if self._goes_in_rounds:
            # No server sends requests here: the question came with a prompt or a resource, which no run asked for.
            return Call()
        call = current_call.get()
        if call is None and not self.tells_calls_apart and self._under_way:
            # There is only ever one.
            return self._under_way[0]
        return call if call is not None and call in self._under_way else None


def _says_state_is_refused(error: MCPError) -> bool:
    data = error.error.data
    return isinstance(data, dict) and cast("dict[str, Any]", data).get("reason") == "invalid_request_state"
