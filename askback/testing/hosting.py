"""How a test connects to its server: in memory, over HTTP on this machine, or as a process of its own."""

import os
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from importlib.machinery import PathFinder
from typing import Any, Literal, Unpack

import anyio
import fastmcp
import uvicorn
from fastmcp.client.transports import ClientTransport, StdioTransport, StreamableHttpTransport, infer_transport
from fastmcp.client.transports.base import SessionKwargs, TransportOptions
from mcp import ClientSession
from typing_extensions import override

Over = Literal["memory", "http", "stdio"]


def transport_to(server: Any, over: Over) -> ClientTransport:
    """The transport that connects to a server.

    Raises:
        ValueError: If the server cannot be reached over such a connection.
    """
    if over == "memory":
        return infer_transport(server)
    if over not in ("http", "stdio"):
        raise ValueError(f"A server is reached over 'memory', 'http' or 'stdio', not over {over!r}")
    if not isinstance(server, fastmcp.FastMCP):
        raise ValueError(f"Over {over}, the test starts the server itself, which must be a FastMCP: {server!r} is not")
    return SelfHostedTransport(server) if over == "http" else _process_of(server)  # pyright: ignore[reportUnknownArgumentType]


class SelfHostedTransport(StreamableHttpTransport):
    """HTTP to a server that runs, on a free port, for as long as a client is connected."""

    def __init__(self, server: fastmcp.FastMCP[Any]) -> None:
        super().__init__("http://127.0.0.1/mcp")
        self._server = server

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session_kwargs: Unpack[SessionKwargs]
    ) -> AsyncGenerator[ClientSession]:
        """Start the server, connect to it, and stop it afterwards."""
        host = _Host(uvicorn.Config(self._server.http_app(), log_level="error", ws="none"))
        with socket.create_server(("127.0.0.1", 0)) as listener:
            # Accepted connections inherit it. Without it, each response waits 40 ms for the client to acknowledge.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
            async with anyio.create_task_group() as group:
                group.start_soon(host.serve, [listener])
                await host.is_up.wait()
                try:
                    connection = super().connect_session(transport_options=transport_options, **session_kwargs)
                    async with connection as session:
                        yield session
                finally:
                    host.should_exit = True


class _Host(uvicorn.Server):
    """An HTTP server that says when it has started, and leaves signals to the test runner."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = anyio.Event()

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        except SystemExit:
            raise RuntimeError("The server did not start; its log says why") from None
        self.is_up.set()

    @override
    def capture_signals(self) -> AbstractContextManager[None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return nullcontext()


def _process_of(server: fastmcp.FastMCP[Any]) -> StdioTransport:
    """A process that imports the server and serves it over stdio."""
    place = next(
        (
            (module, name)
            for module, content in sys.modules.copy().items()
            for name, value in getattr(content, "__dict__", {}).copy().items()
            if value is server and _is_importable(module, content)
        ),
        None,
    )
    if place is None:
        raise ValueError(
            f"Over stdio another process imports the server, so {server.name!r} must be a global of a module"
        )
    module, name = place
    return StdioTransport(
        sys.executable,
        ["-c", f"from {module} import {name} as server; server.run('stdio', show_banner=False, log_level='CRITICAL')"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(each or "." for each in sys.path)},
        keep_alive=False,
    )


def _is_importable(name: str, module: Any) -> bool:
    """Whether another process can import a module by that name: not `__main__`, nor one created at run time."""
    is_itself = getattr(getattr(module, "__spec__", None), "name", None) == name
    return is_itself and PathFinder.find_spec(name.partition(".")[0]) is not None
