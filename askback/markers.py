"""What a tool author types: `Resolve`, the questions a resolver can return, and their outcomes.

Each is the MCP SDK's own class or a subclass of it, so a resolver written for the SDK's `MCPServer` runs on FastMCP
unchanged, and the other way round.
"""

from collections.abc import Callable
from typing import Any, Generic, NoReturn, Self, TypeVar

from mcp.server.mcpserver import (
    AcceptedElicitation,
    CancelledElicitation,
    DeclinedElicitation,
    ElicitationResult,
    ListRoots,
    Sample,
)
from mcp.server.mcpserver import Elicit as SDKElicit
from mcp.server.mcpserver import Resolve as SDKResolve
from mcp.server.mcpserver.exceptions import InvalidSignature as SDKInvalidSignature
from uncalled_for import Provider

__all__ = [
    "AcceptedElicitation",
    "CancelledElicitation",
    "DeclinedElicitation",
    "Elicit",
    "ElicitationResult",
    "InvalidSignature",
    "ListRoots",
    "Resolve",
    "SDKElicit",
    "SDKResolve",
    "Sample",
]

T = TypeVar("T")


class Resolve(SDKResolve, Provider[Any]):
    """Marks a parameter to be filled by a resolver: `Annotated[T, Resolve(fn)]`.

    `key` is the name of the resolver's question on the wire; without one it is `module:qualname` of the resolver.
    Choose one where clients match on it, or where it must not change with how the server is started.

    The marker is also a FastMCP dependency provider. A server that does not run resolvers therefore still keeps the
    parameter out of the input schema, and fails the call instead of taking the value from the client.
    """

    def __init__(self, fn: Callable[..., Any], *, key: str | None = None) -> None:
        super().__init__(fn)
        if key is not None and (not isinstance(key, str) or not key or "@" in key):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"The key of a question is a non-empty string without '@', not {key!r}")
        self.key = key

    async def __aenter__(self) -> NoReturn:
        """Fail the call: only a server that does not run resolvers enters the marker itself."""
        # FastMCP masks every other exception, and a process without FastMCP never gets here.
        from fastmcp.exceptions import ToolError

        name = getattr(self.fn, "__name__", type(self.fn).__name__)
        raise ToolError(
            f"A parameter is filled by the resolver {name!r}, which was not run. On a tool, put @resolved (from "
            "askback.integration) under the @tool decorator, or register it with an askback.integration.FastMCP; "
            "prompts and resources cannot have resolvers."
        )


class Elicit(SDKElicit[Any], Generic[T]):
    """A resolver's question to the person behind the client: `Elicit(message, Model)`.

    The message is shown as written, the model's fields become the form, and the answer arrives as an instance of it.
    """

    def __init__(self, message: str, schema: type[T]) -> None:
        super().__init__(message, schema)


class InvalidSignature(SDKInvalidSignature):
    """A tool cannot be registered as it is annotated.

    Attributes:
        reason: What is wrong, and what to write instead.
        tool: The name of the tool, where it is known.
        parameter: The tool's parameter that leads to the problem.
        resolver: The name of the resolver that has the problem.
    """

    def __init__(
        self,
        reason: str,
        *,
        tool: str | None = None,
        parameter: str | None = None,
        resolver: str | None = None,
        where: str = "",
    ) -> None:
        self.reason = reason
        self.tool = tool
        self.parameter = parameter
        self.resolver = resolver
        self._where = where
        super().__init__(": ".join(part for part in (f"Tool {tool!r}" if tool else "", where, reason) if part))

    def in_tool(self, tool: str) -> Self:
        """The same problem, said of `tool`."""
        return type(self)(self.reason, tool=tool, parameter=self.parameter, resolver=self.resolver, where=self._where)
