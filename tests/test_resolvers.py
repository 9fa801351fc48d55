"""What a resolver may be, and what it may take."""

import functools
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

import fastmcp
import pytest
from fastmcp.exceptions import ToolError
from fastmcp.server.lifespan import lifespan
from mcp.server.mcpserver import Context as SDKContext
from mcp_types import ElicitResult
from pydantic import BaseModel, Field

from askback import Elicit, Resolve
from askback.integration import FastMCP
from askback.testing import Rehearsal
from tests.conversation import said


class Shelf:
    def __init__(self, name: str) -> None:
        self.name = name

    def locate(self, title: str) -> str:
        return f"{title} on {self.name}"

    async def locate_later(self, title: str) -> str:
        return f"{title} soon on {self.name}"


@dataclass
class Locator:
    name: str

    def __call__(self, title: str) -> str:
        return f"{title} at {self.name}"


class SlowLocator:
    async def __call__(self, title: str) -> str:
        return f"{title} eventually"


def closure(name: str) -> Callable[[str], str]:
    def locate(title: str) -> str:
        return f"{title} in {name}"

    return locate


def passed_through(fn: Callable[[str], Awaitable[str]]) -> Callable[[str], Awaitable[str]]:
    @functools.wraps(fn)
    def wrapper(title: str) -> Awaitable[str]:
        return fn(title)

    return wrapper


async def locate_in(region: str, title: str, *, floor: int) -> str:
    return f"{title} in {region}, floor {floor}"


def upper(title: str) -> str:
    return title.upper()


class Place:
    def __init__(self, title: str) -> None:
        self.title = title

    def __str__(self) -> str:
        return f"a place for {self.title}"


@pytest.mark.parametrize(
    ("resolver", "value"),
    [
        pytest.param(upper, "DUNE", id="function"),
        pytest.param(lambda title: title[::-1], "enuD", id="lambda"),
        pytest.param(Shelf("A").locate, "Dune on A", id="bound method"),
        pytest.param(Shelf("B").locate_later, "Dune soon on B", id="async bound method"),
        pytest.param(closure("C"), "Dune in C", id="closure"),
        pytest.param(functools.partial(locate_in, "D", floor=2), "Dune in D, floor 2", id="async partial"),
        pytest.param(
            functools.partial(functools.partial(locate_in, "D"), floor=3), "Dune in D, floor 3", id="partials"
        ),
        pytest.param(Locator("E"), "Dune at E", id="callable object"),
        pytest.param(SlowLocator(), "Dune eventually", id="async callable object"),
        pytest.param(passed_through(SlowLocator()), "Dune eventually", id="function that returns a coroutine"),
        pytest.param(staticmethod(upper), "DUNE", id="static method"),
        pytest.param(Place, "a place for Dune", id="class"),
    ],
)
async def test_a_resolver_is_any_callable(askback: Rehearsal, resolver: Callable[..., Any], value: str) -> None:
    mcp = FastMCP("shop")

    @mcp.tool
    async def find(title: str, place: Annotated[Any, Resolve(resolver)]) -> str:
        return str(place)

    call = await askback.call(mcp, "find", {"title": "Dune"})
    assert (call.result, call.failed) == (value, False)


async def test_a_keyword_that_a_partial_has_filled_is_not_taken_from_the_tool(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")

    @mcp.tool
    async def find(
        title: str, floor: int, place: Annotated[str, Resolve(functools.partial(locate_in, "D", floor=2))]
    ) -> str:
        return f"{place} ({floor})"

    call = await askback.call(mcp, "find", {"title": "Dune", "floor": 9})
    assert (call.result, call.failed) == ("Dune in D, floor 2 (9)", False)


async def test_sync_resolvers_run_in_a_thread_and_async_ones_on_the_loop(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")

    def here() -> bool:
        return threading.current_thread() is threading.main_thread()

    async def here_async() -> bool:
        return here()

    @mcp.tool
    async def where(sync: Annotated[bool, Resolve(here)], on_loop: Annotated[bool, Resolve(here_async)]) -> str:
        return f"{sync} {on_loop}"

    call = await askback.call(mcp, "where")
    assert (call.result, call.failed) == ("False True", False)


async def test_a_resolver_sees_the_arguments_that_the_body_sees(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    seen: list[tuple[object, ...]] = []

    class Order(BaseModel):
        copies: int

    async def look(order: Order, title: str, count: int, extras: list[str]) -> int:
        seen.append((id(order), title, count, id(extras)))
        return count

    @mcp.tool
    async def buy(
        order: Order,
        title: Annotated[str, Field(alias="bookTitle")],
        looked: Annotated[int, Resolve(look)],
        extras: Annotated[list[str], Field(default_factory=list)],
        count: int = 3,
    ) -> str:
        seen.append((id(order), title, count, id(extras)))
        return f"{looked}"

    call = await askback.call(mcp, "buy", {"order": {"copies": "2"}, "bookTitle": "Dune"})
    assert (call.result, call.failed) == ("3", False)
    assert seen[0] == seen[1]
    assert seen[0][1:3] == ("Dune", 3)


async def test_a_resolver_may_name_an_argument_by_its_alias(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")

    async def look(bookTitle: str) -> str:  # noqa: N803 - the name on the wire
        return bookTitle.upper()

    @mcp.tool
    async def buy(title: Annotated[str, Field(alias="bookTitle")], looked: Annotated[str, Resolve(look)]) -> str:
        return looked

    call = await askback.call(mcp, "buy", {"bookTitle": "Dune"})
    assert (call.result, call.failed) == ("DUNE", False)


async def test_a_resolver_may_take_the_context(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")

    async def who(ctx: fastmcp.Context, maybe: fastmcp.Context | None = None) -> str:
        assert maybe is ctx
        return f"{ctx.fastmcp.name} {ctx.request_id == ctx.origin_request_id}"

    @mcp.tool
    async def tell(ctx: fastmcp.Context, told: Annotated[str, Resolve(who)]) -> str:
        return f"{told} {ctx.fastmcp.name}"

    call = await askback.call(mcp, "tell")
    assert (call.result, call.failed) == ("shop True shop", False)


async def test_a_resolver_written_for_the_sdk_gets_what_it_uses_of_its_context(askback: Rehearsal) -> None:
    @lifespan
    async def opened(server: Any) -> AsyncIterator[dict[str, Any]]:
        yield {"database": "open"}

    mcp = FastMCP("shop", lifespan=opened)

    async def look(ctx: SDKContext[Any, Any]) -> str:
        assert ctx.headers is None
        assert ctx.protocol_version is not None
        assert ctx.client_capabilities is not None
        assert ctx.session is ctx.request_context.session
        assert ctx.request_id == str(ctx.request_context.request_id)
        return f"{ctx.request_context.lifespan_context['database']} {ctx.protocol_version >= '2026-07-28'}"

    @mcp.tool
    async def tell(told: Annotated[str, Resolve(look)]) -> str:
        return told

    call = await askback.call(mcp, "tell")
    assert (call.result, call.failed) == (f"open {askback.generation == '2026-07-28'}", False)


async def test_the_rest_of_the_sdks_context_is_refused_with_a_sentence(askback: Rehearsal) -> None:
    mcp = FastMCP("shop", mask_error_details=True)

    async def look(ctx: SDKContext[Any, Any]) -> str:
        return str(await ctx.elicit("Sure?", BaseModel))

    @mcp.tool
    async def tell(told: Annotated[str, Resolve(look)]) -> str:
        return told

    call = await askback.call(mcp, "tell")
    assert "has no 'elicit'" in (call.result or "")
    assert "return Elicit, Sample or ListRoots to ask" in (call.result or "")


async def test_without_a_request_the_sdks_context_says_so() -> None:
    mcp = FastMCP("shop")

    async def look(ctx: SDKContext[Any, Any]) -> str:
        assert (ctx.protocol_version, ctx.headers, ctx.client_capabilities) == (None, None, None)
        return ctx.request_id

    @mcp.tool
    async def tell(told: Annotated[str, Resolve(look)]) -> str:
        return told

    with pytest.raises(ToolError, match="there is no request"):
        await mcp.call_tool("tell")


async def test_a_tool_may_be_sync_and_have_resolvers_that_ask(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")

    class Sure(BaseModel):
        ok: bool

    def ask(title: str) -> Elicit[Sure]:
        return Elicit(f"Buy {title}?", Sure)

    @mcp.tool
    def buy(title: str, sure: Annotated[Sure, Resolve(ask)]) -> str:
        return f"{sure.ok} {threading.current_thread() is threading.main_thread()}"

    call = await askback.call(mcp, "buy", {"title": "Dune"}, {"Buy": {"ok": True}})
    assert (call.result, call.failed) == ("True False", False)


async def test_a_person_may_be_asked_with_the_sdks_own_word(askback: Rehearsal) -> None:
    from mcp.server.mcpserver import Elicit as SDKElicit

    mcp = FastMCP("shop")

    class Sure(BaseModel):
        ok: bool

    async def ask() -> SDKElicit[Sure]:
        return SDKElicit("Sure?", Sure)

    @mcp.tool
    async def buy(sure: Annotated[Sure, Resolve(ask)]) -> str:
        return str(sure.ok)

    call = await askback.call(mcp, "buy", {}, {"Sure": {"ok": True}})
    assert (call.result, call.failed) == ("True", False)


async def test_a_question_that_the_protocol_cannot_ask_says_what_is_wrong(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")

    async def ask() -> Any:
        return Elicit("Sure?", bool)

    @mcp.tool
    async def buy(sure: Annotated[bool, Resolve(ask)]) -> str:
        return str(sure)

    call = await askback.call(mcp, "buy")
    assert "Resolver 'ask' cannot ask: a question is answered with a pydantic model" in (call.result or "")


async def test_a_resolver_written_here_runs_on_the_sdks_own_server() -> None:
    import mcp as sdk
    from mcp.server import MCPServer

    server = MCPServer("shop")

    class Sure(BaseModel):
        ok: bool

    async def ask(title: str) -> Elicit[Sure]:
        return Elicit(f"Buy {title}?", Sure)

    @server.tool()
    async def buy(title: str, sure: Annotated[Sure, Resolve(ask)]) -> str:
        return str(sure.ok)

    async def agree(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"ok": True})

    async with sdk.Client(server, elicitation_callback=agree) as client:
        tools = (await client.list_tools()).tools
        assert list(tools[0].input_schema["properties"]) == ["title"]
        assert said(await client.call_tool("buy", {"title": "Dune"})) == "True"
