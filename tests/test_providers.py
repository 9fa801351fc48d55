"""Tools that come from providers have resolvers too, and cost and show nothing besides."""

import functools
import gc
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import fastmcp
import pytest
from fastmcp.server.providers import Provider
from fastmcp.server.providers.skills import SkillsDirectoryProvider
from fastmcp.skills.extension import SkillsExtension
from fastmcp.tools import Tool
from mcp.server.mcpserver import Resolve as SDKResolve

from askback import Resolve
from askback.integration import FastMCP
from askback.testing import Rehearsal


def check_stock(title: str) -> int:
    return len(title)


class Dynamic(Provider):
    """Makes its tools anew at each lookup."""

    def __init__(self, marker: Any = Resolve) -> None:
        super().__init__()
        self.marker = marker
        self.made: list[weakref.ref[Any]] = []

    def _tools(self) -> list[Tool]:
        async def order(title: str, copies: Annotated[int, self.marker(check_stock)]) -> str:
            return f"{copies} of {title}"

        async def plain(title: str) -> str:
            return title

        self.made += [weakref.ref(order), weakref.ref(plain)]
        return [Tool.from_function(order), Tool.from_function(plain), Tool.from_function(self.method)]

    async def method(self, title: str, copies: Annotated[int, Resolve(check_stock)]) -> str:
        return f"{copies} by {type(self).__name__}"

    async def _list_tools(self) -> Sequence[Tool]:
        return self._tools()

    async def _get_tool(self, name: str, version: Any = None) -> Tool | None:
        return next((tool for tool in self._tools() if tool.name == name), None)


MARKERS = pytest.mark.parametrize("marker", [Resolve, SDKResolve], ids=["ours", "the SDK's"])


@MARKERS
async def test_tools_that_are_made_at_each_lookup_have_resolvers(askback: Rehearsal, marker: Any) -> None:
    mcp = FastMCP("shop")
    mcp.add_provider(Dynamic(marker))
    async with askback.connect(mcp) as client:
        listed = {tool.name: tool.input_schema for tool in await client.list_tools()}
        assert all(set(schema["properties"]) == {"title"} for schema in listed.values())
        assert all(schema.get("required") == ["title"] for schema in listed.values())
        said = {name: (await client.call_tool(name, {"title": "Dune"})).data for name in listed}
    assert said == {"order": "4 of Dune", "plain": "Dune", "method": "4 by Dynamic"}


@MARKERS
async def test_a_smuggled_value_is_dropped_the_first_time_too(askback: Rehearsal, marker: Any) -> None:
    mcp = FastMCP("shop")
    mcp.add_provider(Dynamic(marker))
    async with askback.connect(mcp) as client:
        for name in ("order", "method", "order", "method"):
            result = await client.call_tool(name, {"title": "Dune", "copies": 99})
            assert result.data.startswith("4 ")


async def test_nothing_of_ours_is_listed() -> None:
    mcp = FastMCP("shop")
    provider = Dynamic()
    mcp.add_provider(provider)
    assert mcp.transforms == []
    assert provider.transforms == []
    assert provider in mcp.providers
    assert [type(each).__module__.split(".")[0] for each in mcp.middleware] == ["fastmcp"] * len(mcp.middleware)


async def test_skills_work_beside_resolvers(tmp_path: Path) -> None:
    skill = tmp_path / "greet"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: greet\ndescription: Greets.\n---\nSay hello.\n")
    provider = SkillsDirectoryProvider(tmp_path, experimental_skills=True)
    mcp = FastMCP("shop")
    mcp.add_provider(provider)
    mcp.add_provider(Dynamic())
    mcp.add_extension(SkillsExtension(providers=[provider]))
    assert [tool.name for tool in await mcp.list_tools()] == ["order", "plain", "method"]


async def test_the_same_function_is_prepared_once() -> None:
    mcp = FastMCP("shop")
    provider = Dynamic()
    mcp.add_provider(provider)
    tool, again = await mcp.get_tool("method"), await mcp.get_tool("method")
    assert tool is not None
    assert again is not None
    assert tool.fn == again.fn  # pyright: ignore
    assert tool.fn != provider.method  # pyright: ignore

    def copied(fn: Any) -> Any:
        """A decorator that copies what the function it wraps remembers."""

        @functools.wraps(fn)
        async def wrapper(self: Any, title: str, copies: Annotated[int, Resolve(check_stock)]) -> str:
            return f"wrapped {await fn(self, title, copies)}"

        return wrapper

    class Other(Dynamic):
        method = copied(Dynamic.method)

    mcp.add_provider(Other(), namespace="other")
    result = await mcp.call_tool("other_method", {"title": "Dune"})
    assert result.content[0].text == "wrapped 4 by Other"  # pyright: ignore


async def test_what_a_provider_makes_is_not_kept() -> None:
    mcp = FastMCP("shop")
    mcp.add_provider(Dynamic())
    stock = fastmcp.FastMCP("stock")
    kept: dict[str, int] = {}
    for server in (mcp, stock):
        provider = Dynamic()
        server.add_provider(provider)
        for _ in range(20):
            await server.get_tool("order")
            await server.list_tools()
        gc.collect()
        kept[server.name] = sum(1 for made in provider.made if made() is not None)
    # The library that FastMCP injects dependencies with remembers every function that it has seen.
    assert kept["shop"] <= kept["stock"]
