"""A client session that answers, and a transport that opens one."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Unpack

from fastmcp.client.transports import ClientTransport, FastMCPTransport, StreamableHttpTransport
from fastmcp.client.transports.base import SessionKwargs, TransportOptions
from fastmcp.exceptions import ToolError
from mcp import ClientSession
from mcp.client.session import ClientRequestContext
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    CallToolResult,
    DiscoverResult,
    ErrorData,
    InitializeResult,
    InputRequest,
    InputRequiredResult,
    InputResponse,
    InputResponses,
    RequestParamsMeta,
    Result,
)
from pydantic import ValidationError
from typing_extensions import override

from askback.agents.answering import Answering
from askback.agents.calls import ENDED, Call, CallEndedError, current_call, current_run_call, unwinding
from askback.agents.decide import Refusal
from askback.agents.drivers import Driver, driver_for
from askback.transports import SessionTransport

TELLS_CALLS_APART = (FastMCPTransport, StreamableHttpTransport)
"""On these, a server's request during a call arrives in the context of that call, also before 2026-07-28."""


class AnsweringTransport(SessionTransport):
    """A transport whose sessions answer what the server asks."""

    def __init__(self, transport: ClientTransport, answering: Answering) -> None:
        tells_calls_apart = isinstance(transport, TELLS_CALLS_APART)
        super().__init__(transport, partial(AnsweringSession, answering=answering, tells_calls_apart=tells_calls_apart))

    @override
    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session_kwargs: Unpack[SessionKwargs]
    ) -> AsyncGenerator[ClientSession]:
        """Connect without inheriting the opening run's context, which is only one of many that use the connection."""
        current_call.set(None)
        current_run_call.set(None)
        async with super().connect_session(transport_options=transport_options, **session_kwargs) as session:
            yield session


class AnsweringSession(ClientSession):
    """A session that takes each question to the run whose call made the server ask it.

    How depends on the protocol generation: the connection's driver knows. It is chosen when the session adopts a
    protocol version; the handshake before that belongs to the older generation.
    """

    def __init__(self, *args: Any, answering: Answering, tells_calls_apart: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._choose_driver = partial(driver_for, self, answering, tells_calls_apart=tells_calls_apart)
        self._driver: Driver = self._choose_driver()

    @override
    def adopt(self, result: InitializeResult | DiscoverResult) -> None:
        """Adopt the negotiated protocol version, and the driver that goes with it."""
        super().adopt(result)
        self._driver = self._choose_driver()

    @override
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
        """Call a tool, and answer what it asks, in as many rounds as it takes.

        Raises:
            CallEndedError: If the tool call is over, and its run with it. The toolset raises the reason.
            ToolError: If a limit was hit, or a question has no answer that could be sent.
        """

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
                raise ToolError(f"The server's response to {name!r} is not valid in this protocol version") from error

        if input_responses is not None or request_state is not None:
            # Whoever sends answers drives the rounds themselves.
            return await send(input_responses, request_state)
        run = current_run_call.get()
        if run is not None and run.ended is not None:
            # A hook that caught the end of its call must not go on in the run's name.
            raise CallEndedError("The tool call has ended")
        call = Call(name, arguments or {}, run)
        outcome = await self._driver.call_tool(call, send)
        if isinstance(outcome, ENDED):
            raise unwinding(run, outcome)
        if isinstance(outcome, Refusal):
            raise ToolError(outcome.sentence)
        return outcome

    @override
    async def get_prompt(self, name: str, arguments: dict[str, str] | None = None, **options: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Get a prompt. No run asked for it, so only the application's own handlers answer its questions."""
        call = Call(name, arguments or {})
        return await self._driver.make(call, partial(super().get_prompt, name, arguments, **options))

    @override
    async def read_resource(self, uri: str, **options: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Read a resource. No run asked for it, so only the application's own handlers answer its questions."""
        return await self._driver.make(Call(uri), partial(super().read_resource, uri, **options))

    @override
    async def dispatch_input_request(
        self, ctx: ClientRequestContext, request: InputRequest
    ) -> InputResponse | ErrorData:
        """Answer a question that the server sent by itself, or that came with a prompt or a resource."""
        return await self._driver.answer(request, ctx)
