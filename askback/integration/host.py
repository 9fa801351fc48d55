"""FastMCP as a host of the engine, and its context for resolvers that were written for the SDK's."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeVar, cast

from fastmcp import Context
from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import FastMCPRequestContext
from fastmcp.server.elicitation import AcceptedElicitation as FastMCPAcceptedElicitation
from mcp.server.mcpserver import Context as SDKContext
from mcp.server.session import ServerSession
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    ClientCapabilities,
    ElicitationCapability,
    FormElicitationCapability,
    InputRequiredResult,
    ServerRequest,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel
from typing_extensions import override

from askback.integration.calls import Call, call_on_other_server, digest_of
from askback.integration.engine import Continuation, Host, HostTypes, Limits
from askback.integration.engine.host import Kind
from askback.markers import AcceptedElicitation, CancelledElicitation, DeclinedElicitation

ResultT = TypeVar("ResultT", bound=BaseModel)

ANY_FORM = ClientCapabilities(elicitation=ElicitationCapability(form=FormElicitationCapability()))
DEFAULT_LIMITS = Limits()
WANTED = {"sampling": "completions", "roots": "directories"}


class AcceptedEverywhere(AcceptedElicitation[Any], FastMCPAcceptedElicitation[Any]):
    """An accepted outcome for whichever of the two classes of that name a FastMCP author has imported."""

    def __eq__(self, other: object) -> bool:
        is_accepted = isinstance(other, AcceptedElicitation | FastMCPAcceptedElicitation)
        return is_accepted and bool(self.data == cast("AcceptedElicitation[Any]", other).data)


FASTMCP_TYPES = HostTypes(
    contexts=(Context, SDKContext),
    outcomes=(AcceptedElicitation, FastMCPAcceptedElicitation, DeclinedElicitation, CancelledElicitation),
    accepted=AcceptedEverywhere,
)


class FastMCPHost(Host):
    """A call of a FastMCP tool, in the foreground or in a background task."""

    def __init__(self, context: Context, arguments: Mapping[str, Any], fn: object) -> None:
        self._context = context
        self._arguments = arguments
        self._fn = fn
        self._continuation: Continuation | None = None

    @cached_property
    def _call(self) -> Call | None:
        """The call that this is on an askback server, which keeps the calls of a request apart."""
        return Call.current(self._context.request_context)

    @override
    def unreachable(self, kind: Kind) -> str | None:
        if self._context.is_background_task:
            return None if kind == "elicitation" else f"a background task can ask people only, not for {WANTED[kind]}"
        if self._context.request_context is None:
            return "the tool was called without a client that could be asked, or from a background task"
        if not self.in_rounds and not self._context.session.can_send_request:
            return "this connection cannot carry it to the client (stateless, and older than 2026-07-28)"
        return None

    @property
    @override
    def in_rounds(self) -> bool:
        request = self._context.request_context
        return request is None or request.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    @override
    def client_capabilities(self) -> ClientCapabilities | None:
        # A background task outlives its client's session, and whoever polls it answers what they can.
        return ANY_FORM if self._context.is_background_task else self._context.session.client_capabilities

    @property
    @override
    def limits(self) -> Limits:
        return getattr(self._context.fastmcp, "limits", DEFAULT_LIMITS)

    @property
    @override
    def call_id(self) -> str:
        # On any other server there can be only one that asks, and its arguments must not have changed.
        return "" if self._call is not None else f":{digest_of(self._arguments)}"

    @override
    async def continuation(self) -> Continuation:
        if self._continuation is None:
            self._continuation = await self._begin_asking()
        return self._continuation

    async def _begin_asking(self) -> Continuation:
        if self._context.request_context is None:
            return Continuation(self._context.request_state, self._context.input_responses or {})
        call = self._call or await call_on_other_server(self._context)
        return call.begin_asking(self)

    @override
    def keep(self, state: Callable[[], str]) -> None:
        if self._call is not None:
            self._call.keep(state)

    async def ask(self, asked: InputRequiredResult) -> InputRequiredResult:
        """End the call with what its resolvers ask. It does not return where the body of another call is running."""
        return await self._call.ask(asked, self._fn) if self._call is not None else asked

    @override
    async def send(self, request: ServerRequest, result_type: type[ResultT]) -> ResultT:
        return await self._context.session.send_request(
            request, result_type, metadata=ServerMessageMetadata(related_request_id=self._context.request_id)
        )

    @override
    def context(self, kind: type) -> object:
        return self._context if kind is Context else ContextOfTheSDK(self._context)


class NotOnFastMCPError(ToolError, AttributeError):
    """Something of the SDK's context that has no counterpart: an error that FastMCP does not mask."""


class ContextOfTheSDK:
    """What a resolver written for the SDK's `MCPServer` uses of its `Context`, on FastMCP."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def request_context(self) -> FastMCPRequestContext:
        """The request: its session, lifespan context, metadata and HTTP request.

        Raises:
            ValueError: If there is no request.
        """
        request = self._context.request_context
        if request is None:
            raise ValueError("there is no request: the tool was called without a client")
        return request

    @property
    def request_id(self) -> str:
        """The id of the request."""
        return str(self.request_context.request_id)

    @property
    def protocol_version(self) -> str | None:
        """The negotiated protocol version; None without a request."""
        request = self._context.request_context
        return request.protocol_version if request is not None else None

    @property
    def headers(self) -> Mapping[str, str] | None:
        """The headers of the HTTP request; None on other transports, and without a request."""
        request = self._context.request_context
        return getattr(request.request, "headers", None) if request is not None else None

    @property
    def client_capabilities(self) -> ClientCapabilities | None:
        """What the client declared; None without a request."""
        return self.session.client_capabilities if self._context.request_context is not None else None

    @property
    def session(self) -> ServerSession:
        """The session with the client."""
        return self.request_context.session

    def __getattr__(self, name: str) -> Any:
        raise NotOnFastMCPError(
            f"On FastMCP, a resolver's SDK Context has no {name!r}: it has request_context, request_id, "
            "protocol_version, headers, client_capabilities and session. Annotate the parameter with fastmcp.Context "
            "for FastMCP's own, and return Elicit, Sample or ListRoots to ask"
        )
