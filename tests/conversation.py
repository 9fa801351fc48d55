"""Calls on the wire, one round at a time, and a server state that can be read and forged."""

import base64
import json
from collections.abc import Mapping
from typing import Any

import fastmcp
from mcp.server.request_state import RequestStateSecurity
from mcp_types import CallToolResult, ElicitResult, InputRequiredResult, InputResponse


async def one_round(
    client: fastmcp.Client[Any],
    tool: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    answers: Mapping[str, InputResponse] | None = None,
    state: str | None = None,
) -> CallToolResult | InputRequiredResult:
    """One call on the wire, without the client's driver."""
    return await client.session.call_tool(
        tool,
        dict(arguments or {}),
        input_responses=dict(answers) if answers is not None else None,
        request_state=state,
        allow_input_required=True,
    )


def said(result: CallToolResult | InputRequiredResult) -> str:
    """What a tool says, or the sentence it fails with."""
    assert not isinstance(result, InputRequiredResult), "it asks"
    text = getattr(result.content[0], "text", "") if result.content else ""
    return f"failed: {text}" if result.is_error else text


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


def state_of(result: object) -> str:
    """What a round wants to have back, as it is on the wire."""
    assert isinstance(result, InputRequiredResult)
    assert result.request_state is not None
    return result.request_state


def state_in(result: object) -> dict[str, Any]:
    """What the engine remembers in a round's state."""
    return json.loads(json.loads(Readable().unseal(state_of(result)))["s"])


def forged(result: object, content: object) -> str:
    """A round's state, with the engine's part replaced."""
    claims = json.loads(Readable().unseal(state_of(result)))
    claims["s"] = content if isinstance(content, str) else json.dumps(content)
    return Readable().seal(json.dumps(claims).encode())
