"""`Resolve` and `Elicit`, and the words of the MCP SDK that go with them.

Each is the SDK's own class or a subclass of it, so a resolver written for the SDK's `MCPServer` runs on FastMCP
unchanged, and the other way round.
"""

from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar

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
from mcp.server.mcpserver.exceptions import InvalidSignature
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

    It is also a FastMCP dependency provider. A server that does not run resolvers therefore still keeps the parameter
    out of the input schema, and fails the call instead of taking the value from the client.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        super().__init__(fn)

    async def __aenter__(self) -> NoReturn:
        """Fail the call: only a server that does not know resolvers enters the marker itself."""
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

    The message is shown as it stands, the model's fields become the form, and the answer arrives as an instance of it.
    """

    def __init__(self, message: str, schema: type[T]) -> None:
        super().__init__(message, schema)
