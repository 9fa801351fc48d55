"""A client whose person answers from a script, and a server state that can be read and forged."""

import base64
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

import anyio
import fastmcp
from fastmcp.client.client import CallToolResult
from mcp.server.request_state import RequestStateSecurity
from mcp_types import CallToolResult as WireResult
from mcp_types import ElicitResult, InputRequiredResult, InputResponse

Generation = Literal["auto", "legacy"]
Server = fastmcp.FastMCP[Any]
Reply = dict[str, Any] | Literal["decline", "cancel"]


class Person:
    """Answers by what a message contains, and remembers what it was asked."""

    def __init__(self, replies: Mapping[str, Reply] | None = None) -> None:
        self.replies: dict[str, Reply] = dict(replies or {})
        self.asked: list[str] = []

    async def __call__(self, message: str, *_: Any) -> Any:
        self.asked.append(message)
        for part, reply in self.replies.items():
            if part in message:
                return reply if isinstance(reply, dict) else ElicitResult(action=reply)
        raise AssertionError(f"nobody expected to be asked {message!r}")


@asynccontextmanager
async def connect(
    server: Server, generation: Generation = "auto", person: Callable[..., Any] | None = None, **options: Any
) -> AsyncGenerator[fastmcp.Client[Any]]:
    with anyio.fail_after(20):
        async with fastmcp.Client(server, mode=generation, elicitation_handler=person or Person(), **options) as client:
            yield client


async def call(server: Server, generation: Generation, tool: str, *, person: Person | None = None, **args: Any) -> str:
    """What a tool says, or the sentence it fails with."""
    async with connect(server, generation, person or Person()) as client:
        return said(await client.call_tool(tool, args, raise_on_error=False))


def said(result: CallToolResult | WireResult | InputRequiredResult) -> str:
    assert not isinstance(result, InputRequiredResult), "it asks"
    text = getattr(result.content[0], "text", "") if result.content else ""
    return f"failed: {text}" if result.is_error else text


async def properties(server: Server, tool: str) -> dict[str, Any]:
    """The arguments that a client is told a tool has."""
    async with connect(server) as client:
        schemas = {each.name: each.input_schema for each in await client.list_tools()}
    return schemas[tool].get("properties", {})


async def one_round(
    client: fastmcp.Client[Any],
    tool: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    answers: Mapping[str, InputResponse] | None = None,
    state: str | None = None,
) -> WireResult | InputRequiredResult:
    """One call on the wire, without the client's driver."""
    return await client.session.call_tool(
        tool,
        dict(arguments or {}),
        input_responses=dict(answers) if answers is not None else None,
        request_state=state,
        allow_input_required=True,
    )


def asked(result: object) -> dict[str, str]:
    """The open questions of a round, by key."""
    assert isinstance(result, InputRequiredResult)
    return {key: getattr(request.params, "message", "") for key, request in (result.input_requests or {}).items()}


def accept(**content: Any) -> ElicitResult:
    return ElicitResult(action="accept", content=content)


class Readable:
    """A codec that seals nothing, so that a test can look into the state and forge it."""

    def seal(self, payload: bytes) -> str:
        return base64.urlsafe_b64encode(payload).decode()

    def unseal(self, token: str) -> bytes:
        return base64.urlsafe_b64decode(token)

    @classmethod
    def security(cls) -> RequestStateSecurity:
        return RequestStateSecurity(codec=cls())


def state_in(result: object) -> dict[str, Any]:
    """What the engine remembers in a round's state."""
    assert isinstance(result, InputRequiredResult)
    assert result.request_state is not None
    return json.loads(json.loads(Readable().unseal(result.request_state))["s"])


def forged(result: object, content: object) -> str:
    """A round's state, with the engine's part replaced."""
    assert isinstance(result, InputRequiredResult)
    assert result.request_state is not None
    claims = json.loads(Readable().unseal(result.request_state))
    claims["s"] = content if isinstance(content, str) else json.dumps(content)
    return Readable().seal(json.dumps(claims).encode())
