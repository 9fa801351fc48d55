"""The client's side of the examples without an agent: a person who answers, and calls that print what happens."""

from collections.abc import Mapping
from typing import Any, Literal

import fastmcp
from fastmcp.client.elicitation import ElicitResult

Reply = Mapping[str, Any] | Literal["decline", "cancel"]


class Person:
    """A person at the client, who gives these replies in order and declines every other question."""

    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)
        self.asked: list[str] = []

    async def __call__(self, message: str, *_: Any) -> Any:
        """Answer a question."""
        reply: Reply = self._replies.pop(0) if self._replies else "decline"
        self.asked.append(message)
        print(f"   asked     {message}")
        if isinstance(reply, Mapping):
            print(f"   answered  {shown(reply)}")
            return dict(reply)
        print(f"   answered  ({reply}s)")
        return ElicitResult(action=reply)


async def call(client: fastmcp.Client[Any], tool: str, **arguments: Any) -> str:
    """Call a tool and print what happens. Returns its text, prefixed with `failed: ` if it fails."""
    print(f"{tool}({shown(arguments)})")
    result = await client.call_tool(tool, arguments, raise_on_error=False)
    text = getattr(result.content[0], "text", "")
    print(f"   {'failed' if result.is_error else 'said':<9} {text}")
    return f"failed: {text}" if result.is_error else text


def shown(values: Mapping[str, Any]) -> str:
    """Names and values, as keyword arguments in Python."""
    return ", ".join(f"{name}={value!r}" for name, value in values.items())
