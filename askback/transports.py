"""Connections whose sessions are made by a factory of ours."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Unpack, cast

from fastmcp.client.transports import ClientTransport
from fastmcp.client.transports.base import SessionKwargs, TransportOptions
from mcp import ClientSession

NEVER_CALLED: Any = object
"""A callback to declare a capability with. The sessions answer by themselves."""


class SessionTransport(ClientTransport):
    """A transport that opens the sessions a factory makes, and otherwise behaves as the transport inside it.

    The factory takes the arguments of `ClientSession`; a subclass is a factory, too.
    """

    def __init__(self, transport: ClientTransport, make_session: Callable[..., ClientSession]) -> None:
        self._transport = transport
        # FastMCP types the option as a class, and only ever calls it.
        self._session_class = cast("type[ClientSession]", make_session)
        self.legacy_only = transport.legacy_only

    def __getattr__(self, name: str) -> Any:
        """Everything else comes from the transport inside: its URL, its headers."""
        if name == "_transport":
            raise AttributeError(name)
        return getattr(self._transport, name)

    def __repr__(self) -> str:
        return repr(self._transport)

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session_kwargs: Unpack[SessionKwargs]
    ) -> AsyncGenerator[ClientSession]:
        """Connect."""
        options = replace(transport_options or TransportOptions(), session_class=self._session_class)
        async with self._transport.connect_session(transport_options=options, **session_kwargs) as session:
            yield session

    async def close(self) -> None:
        """Close the transport inside."""
        await self._transport.close()

    def get_session_id(self) -> str | None:
        """The session id of the transport inside."""
        return self._transport.get_session_id()
