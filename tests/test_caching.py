"""A cache of results does not stand in for resolvers."""

from typing import Annotated, Any

import pytest
from fastmcp.exceptions import ToolError
from fastmcp.server.middleware.caching import CallToolSettings, ResponseCachingMiddleware
from pydantic import BaseModel

from askback import Elicit, Resolve
from askback.integration import FastMCP
from askback.testing import Rehearsal


class Sure(BaseModel):
    ok: bool


async def ask() -> Elicit[Sure]:
    return Elicit("Sure?", Sure)


def served(settings: CallToolSettings | None) -> tuple[FastMCP[Any], list[str]]:
    mcp = FastMCP("shop", middleware=[ResponseCachingMiddleware(call_tool_settings=settings)])
    ran: list[str] = []

    @mcp.tool
    async def buy(sure: Annotated[Sure, Resolve(ask)]) -> str:
        ran.append("buy")
        return f"{sure.ok}"

    @mcp.tool
    async def look() -> str:
        ran.append("look")
        return "looked"

    return mcp, ran


@pytest.mark.parametrize("settings", [None, CallToolSettings(included_tools=["buy"])])
async def test_a_tool_with_resolvers_is_refused_where_its_results_are_cached(
    askback: Rehearsal, settings: CallToolSettings | None
) -> None:
    mcp, ran = served(settings)
    for _ in range(2):
        async with askback.connect(mcp) as client:
            with pytest.raises(
                ToolError, match=r"Exclude it: call_tool_settings=CallToolSettings\(excluded_tools=\['buy'\]"
            ):
                await client.call_tool("buy")
    assert ran == []


@pytest.mark.parametrize(
    "settings",
    [CallToolSettings(excluded_tools=["buy"]), CallToolSettings(enabled=False)],
    ids=["excluded", "disabled"],
)
async def test_a_tool_that_is_excluded_asks_each_time(askback: Rehearsal, settings: CallToolSettings) -> None:
    mcp, ran = served(settings)
    async with askback.connect(mcp, [{"ok": True}, {"ok": False}]) as client:
        assert [(await client.call_tool("buy")).data for _ in range(2)] == ["True", "False"]
    assert ran == ["buy", "buy"]


async def test_tools_without_resolvers_are_cached_as_ever(askback: Rehearsal) -> None:
    mcp, ran = served(None)
    async with askback.connect(mcp) as client:
        assert [(await client.call_tool("look")).data for _ in range(2)] == ["looked", "looked"]
    assert ran == ["look"]


async def test_a_cache_in_front_of_a_mounted_server_counts_too(askback: Rehearsal) -> None:
    mcp, ran = served(CallToolSettings(enabled=False))
    parent = FastMCP("parent", middleware=[ResponseCachingMiddleware()])
    parent.mount(mcp, namespace="shop")
    async with askback.connect(parent) as client:
        with pytest.raises(ToolError, match="'shop_buy' has resolvers"):
            await client.call_tool("shop_buy")
        assert (await client.call_tool("shop_look")).data == "looked"
    assert ran == ["look"]
