"""The three ways to have resolvers on FastMCP, and the ways to forget them."""

import functools
import threading
from typing import Annotated, Any

import fastmcp
import pytest
from fastmcp import FastMCPApp
from fastmcp.exceptions import ToolError
from fastmcp.prompts import Prompt, prompt
from fastmcp.resources import Resource, ResourceTemplate, TextResource, resource
from fastmcp.server.middleware import Middleware
from fastmcp.server.providers import LocalProvider
from fastmcp.server.providers.addressing import hashed_backend_name
from fastmcp.server.transforms import ToolTransform
from fastmcp.tools import FunctionTool, Tool, tool
from fastmcp.tools.tool_transform import ArgTransform, ToolTransformConfig
from mcp.server.mcpserver import Resolve as SDKResolve
from mcp.shared.exceptions import MCPError
from mcp_types import InputRequiredResult, ToolAnnotations
from pydantic import AliasChoices, AnyUrl, BaseModel, Field

from askback import Elicit, InvalidSignature, Resolve
from askback.integration import FastMCP, resolved
from askback.integration.mounts import mounted_tool
from askback.testing import Rehearsal


class Stock(BaseModel):
    copies: int


def check_stock(title: str) -> Stock:
    return Stock(copies=len(title))


async def order(title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> str:
    """Order a book.

    Args:
        title: What is on the cover.
        stock: What is on the shelf.
    """
    return f"{stock.copies} of {title}"


async def sdk_order(title: str, stock: Annotated[Stock, SDKResolve(check_stock)]) -> str:
    return f"{stock.copies} of {title}"


def plain_order(title: str) -> str:
    """Order a book.

    Args:
        title: What is on the cover.
    """
    return title


class Unschemable:
    pass


def make_unschemable() -> Unschemable:
    return Unschemable()


def ours(*tools: Any) -> FastMCP[Any]:
    mcp = FastMCP("ours")
    for each in tools:
        mcp.add_tool(each)
    return mcp


def decorated_bare() -> FastMCP[Any]:
    mcp = FastMCP("ours")
    assert mcp.tool(order) is order
    return mcp


def decorated_with_parentheses() -> FastMCP[Any]:
    mcp = FastMCP("ours")
    assert mcp.tool()(order) is order
    return mcp


def decorated_with_a_name() -> FastMCP[Any]:
    mcp = FastMCP("ours")
    assert mcp.tool("order", description="x")(order) is order
    return mcp


def decorated_with_a_keyword() -> FastMCP[Any]:
    mcp = FastMCP("ours")
    mcp.tool(name="order")(order)
    return mcp


def on_a_plain_server() -> fastmcp.FastMCP[Any]:
    plain = fastmcp.FastMCP("plain")
    plain.tool(resolved(order))
    return plain


def on_a_plain_server_with_a_name() -> fastmcp.FastMCP[Any]:
    plain = fastmcp.FastMCP("plain")
    plain.tool("order")(resolved(order))
    return plain


def mounted() -> fastmcp.FastMCP[Any]:
    plain = fastmcp.FastMCP("plain")
    plain.mount(ours(order))
    return plain


async def arguments(client: fastmcp.Client[Any], tool: str) -> list[str]:
    """What a client is told that a tool takes."""
    schemas = {each.name: each.input_schema for each in await client.list_tools()}
    return list(schemas[tool].get("properties", {}))


WAYS = [
    pytest.param(decorated_bare, id="@mcp.tool"),
    pytest.param(decorated_with_parentheses, id="@mcp.tool()"),
    pytest.param(decorated_with_a_name, id="@mcp.tool(name, ...)"),
    pytest.param(decorated_with_a_keyword, id="@mcp.tool(name=...)"),
    pytest.param(lambda: ours(order), id="add_tool(fn)"),
    pytest.param(
        lambda: ours(tool(name="order")(functools.update_wrapper(_copy(order), order))), id="add_tool(@tool fn)"
    ),
    pytest.param(lambda: ours(Tool.from_function(order)), id="add_tool(Tool)"),
    pytest.param(lambda: FastMCP("ours", tools=[order]), id="FastMCP(tools=[fn])"),
    pytest.param(lambda: ours(Tool.from_function(sdk_order, name="order")), id="add_tool(Tool) with the SDK's marker"),
    pytest.param(lambda: _named(FastMCP("ours"), sdk_order), id="the SDK's marker"),
    pytest.param(lambda: _named(fastmcp.FastMCP("plain"), resolved(sdk_order)), id="the SDK's marker under @resolved"),
    pytest.param(on_a_plain_server, id="@plain.tool @resolved"),
    pytest.param(on_a_plain_server_with_a_name, id="@plain.tool(name) @resolved"),
    pytest.param(lambda: _named(FastMCP("ours"), resolved(order)), id="@mcp.tool @resolved"),
    pytest.param(mounted, id="mounted"),
    pytest.param(lambda: _keyword(sdk_order), id="tool(name_or_fn=fn)"),
    pytest.param(lambda: _provided(LocalProvider()), id="add_provider"),
    pytest.param(lambda: FastMCP("ours", providers=[_filled(LocalProvider())]), id="providers=[...]"),
    pytest.param(lambda: _local(FastMCP("ours")), id="local_provider.tool"),
    pytest.param(lambda: _renamed(FastMCP("ours")), id="renamed by a transform"),
    pytest.param(lambda: ours(Tool.from_tool(resolved(order), name="order")), id="add_tool(transformed)"),
]


def _keyword(fn: Any) -> FastMCP[Any]:
    mcp = FastMCP("ours")
    assert mcp.tool(name_or_fn=fn, name="order") is fn
    return mcp


def _filled(provider: LocalProvider) -> LocalProvider:
    provider.tool(sdk_order, name="order")
    return provider


def _provided(provider: LocalProvider) -> FastMCP[Any]:
    mcp = FastMCP("ours")
    mcp.add_provider(_filled(provider))
    return mcp


def _local(mcp: FastMCP[Any]) -> FastMCP[Any]:
    _filled(mcp.local_provider)
    return mcp


def _renamed(mcp: FastMCP[Any]) -> FastMCP[Any]:
    mcp.tool(_copy(order), name="original")
    mcp.add_transform(ToolTransform({"original": ToolTransformConfig(name="order")}))
    return mcp


def _copy(fn: Any) -> Any:
    async def copied(title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> str:
        return await fn(title, stock)

    return copied


def _named(server: Any, fn: Any) -> Any:
    server.tool(fn, name="order")
    return server


@pytest.mark.parametrize("make", WAYS)
async def test_every_way_to_register_a_tool_hides_and_fills_its_parameters(askback: Rehearsal, make: Any) -> None:
    async with askback.connect(make()) as client:
        assert await arguments(client, "order") == ["title"]
        assert (await client.call_tool("order", {"title": "Dune"})).data == "4 of Dune"


@pytest.mark.parametrize("make", WAYS)
async def test_a_value_sent_by_a_client_is_never_used(askback: Rehearsal, make: Any) -> None:
    server = make()
    async with askback.connect(server) as client:
        await client.list_tools()
        await client.call_tool("order", {"title": "Dune", "stock": {"copies": 99}}, raise_on_error=False)
    (call,) = client.conversation.calls
    if isinstance(server, FastMCP) or (server.name == "plain" and make is mounted):
        assert (call.result, call.failed) == ("4 of Dune", False)
    else:
        assert call.failed
        assert "stock" in (call.result or "")


async def test_a_name_is_dropped_only_where_it_is_resolved(askback: Rehearsal) -> None:
    mcp = ours(order)

    @mcp.tool
    async def restock(stock: int) -> str:
        return f"{stock} more"

    call = await askback.call(mcp, "restock", {"stock": 3})
    assert (call.result, call.failed) == ("3 more", False)
    async with fastmcp.Client(mcp, mode=askback.mode) as client:
        with pytest.raises(ToolError, match="Unexpected keyword argument"):
            await client.call_tool("order", {"title": "Dune", "shelf": 3})
        with pytest.raises(ToolError, match="Unknown tool"):
            await client.call_tool("reorder", {"stock": 3})


async def test_a_value_from_middleware_is_dropped_too(askback: Rehearsal) -> None:
    class Injects(Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            context.message.arguments["stock"] = {"copies": 99}
            return await call_next(context)

    mcp = FastMCP("ours", middleware=[Injects()])
    mcp.tool(order)
    call = await askback.call(mcp, "order", {"title": "Dune"})
    assert (call.result, call.failed) == ("4 of Dune", False)


async def test_a_forgotten_resolved_does_not_open_a_hole(askback: Rehearsal) -> None:
    plain = fastmcp.FastMCP("plain")
    plain.tool(order)
    async with askback.connect(plain) as client:
        assert await arguments(client, "order") == ["title"]
        with pytest.raises(ToolError) as caught:
            await client.call_tool("order", {"title": "Dune"})
        with pytest.raises(ToolError):
            await client.call_tool("order", {"title": "Dune", "stock": {"copies": 9}})
    sentence = str(caught.value)
    assert sentence.startswith("A parameter is filled by the resolver 'check_stock', which was not run.")
    assert "put @resolved (from askback.integration) under the @tool decorator" in sentence


async def test_the_tool_is_what_fastmcp_makes_of_the_original() -> None:
    def written(title: Annotated[str, Field(description="From the field.")], copies: int = 1) -> dict[str, int]:
        """Order a book.

        Args:
            title: Not this one.
            copies: How many.
        """
        return {title: copies}

    def with_resolver(
        title: Annotated[str, Field(description="From the field.")],
        stock: Annotated[Stock, Resolve(check_stock)],
        copies: int = 1,
    ) -> dict[str, int]:
        """Order a book.

        Args:
            title: Not this one.
            copies: How many.
        """
        return {title: copies}

    options: dict[str, Any] = {
        "name": "order",
        "title": "Order!",
        "tags": {"shop"},
        "annotations": ToolAnnotations(read_only_hint=True),
        "meta": {"a": 1},
        "timeout": 3.0,
        "version": "2",
    }
    plain, resolving, elsewhere = fastmcp.FastMCP("plain"), FastMCP("ours"), fastmcp.FastMCP("elsewhere")
    plain.tool(written, **options)
    resolving.tool(with_resolver, **options)
    elsewhere.tool(resolved(with_resolver), **options)
    converted = FastMCP("ours")
    converted.add_tool(FunctionTool.from_function(with_resolver, **options))

    expected = await plain.get_tool("order")
    assert expected is not None
    for server in (resolving, elsewhere, converted):
        made = await server.get_tool("order")
        assert isinstance(made, FunctionTool)
        assert made.model_dump(exclude={"fn"}) == expected.model_dump(exclude={"fn"})
        assert made.run_in_thread


async def test_names_and_descriptions_of_objects_and_partials_stay(askback: Rehearsal) -> None:
    class Orders:
        """Orders books."""

        async def __call__(self, title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> str:
            return f"{stock.copies}"

        async def again(self, title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> str:
            """Order again."""
            return f"{stock.copies} again"

    class Undescribed:
        async def __call__(self, title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> str:
            """Described where it is called."""
            raise AssertionError("never called")

    named = functools.partial(order)
    named.__name__, named.__doc__ = "named", "Described as a partial."  # pyright: ignore[reportAttributeAccessIssue]
    mcp = ours(Orders(), Orders().again, functools.partial(order, title="Emma!"), Undescribed(), named)
    tools = {each.name: each for each in await mcp.list_tools()}
    assert {name: each.description for name, each in tools.items()} == {
        "Orders": "Orders books.",
        "again": "Order again.",
        "order": "Order a book.",
        "Undescribed": "Described where it is called.",
        "named": "Described as a partial.",
    }
    async with askback.connect(mcp) as client:
        assert (await client.call_tool("Orders", {"title": "Dune"})).data == "4"
        assert (await client.call_tool("again", {"title": "Dune"})).data == "4 again"
        assert await arguments(client, "order") == ["title"]
        assert (await client.call_tool("order")).data == "5 of Emma!"
        assert (await client.call_tool("order", {"title": "Dune"})).data == "4 of Dune"


async def test_run_in_thread_is_honoured(askback: Rehearsal) -> None:
    def where(stock: Annotated[Stock, Resolve(check_stock)], title: str = "Dune") -> str:
        return str(threading.current_thread() is threading.main_thread())

    mcp = FastMCP("ours")
    mcp.tool(where, name="threaded")
    mcp.tool(where, name="inline", run_in_thread=False)
    plain = fastmcp.FastMCP("plain")
    plain.tool(resolved(where), name="inline", run_in_thread=False)
    async with askback.connect(mcp) as client:
        assert (await client.call_tool("threaded")).data == "False"
        assert (await client.call_tool("inline")).data == "True"
    async with askback.connect(plain) as client:
        assert (await client.call_tool("inline")).data == "True"
    with pytest.raises(ValueError, match="timeout cannot be enforced"):
        mcp.tool(where, name="never", run_in_thread=False, timeout=1.0)


async def test_a_resolved_function_still_takes_all_its_parameters_directly() -> None:
    assert await resolved(order)("Dune", Stock(copies=2)) == "2 of Dune"
    assert await resolved(order)(title="Dune", stock=Stock(copies=2)) == "2 of Dune"
    assert resolved(plain_order) is plain_order


async def test_a_tool_may_also_have_fastmcps_own_dependencies(askback: Rehearsal) -> None:
    from fastmcp.dependencies import Depends

    mcp = FastMCP("ours")

    async def database() -> str:
        return "database"

    @mcp.tool
    async def find(
        title: str,
        ctx: fastmcp.Context,
        stock: Annotated[Stock, Resolve(check_stock)],
        db: str = Depends(database),
    ) -> str:
        return f"{stock.copies} {db} {ctx.fastmcp.name}"

    async with askback.connect(mcp) as client:
        assert await arguments(client, "find") == ["title"]
        assert (await client.call_tool("find", {"title": "Dune"})).data == "4 database ours"
        with pytest.raises(ToolError, match="db\n  Unexpected keyword argument"):
            await client.call_tool("find", {"title": "Dune", "db": "forged"})


async def test_a_transformed_tool_keeps_its_resolvers(askback: Rehearsal) -> None:
    mcp = ours(Tool.from_tool(resolved(order), name="order", transform_args={"title": ArgTransform(name="book")}))
    async with askback.connect(mcp) as client:
        assert await arguments(client, "order") == ["book"]
        assert (await client.call_tool("order", {"book": "Dune"})).data == "4 of Dune"


@pytest.mark.parametrize("fn", [order, sdk_order])
def test_a_transformed_tool_that_would_lose_its_resolvers_is_refused(fn: Any) -> None:
    with pytest.raises(InvalidSignature, match="Tool 'other': '.*order' has resolvers that it would not run"):
        ours(Tool.from_tool(fn, name="other"))
    with pytest.raises(InvalidSignature, match="Tool 'again': '.*order' has resolvers that it would not run"):
        ours(Tool.from_tool(Tool.from_tool(fn, name="other"), name="again"))


async def test_a_tool_object_keeps_its_class_and_configuration(askback: Rehearsal) -> None:
    class Loud(FunctionTool):
        async def run(self, arguments: dict[str, Any]) -> Any:
            return self.convert_result(f"{said_by(await super().run(arguments))}!")

    made = Loud.from_function(sdk_order, name="order", output_schema=None)
    made.parameters["properties"]["title"]["description"] = "edited"
    made.description = None
    mcp = FastMCP("ours")
    added = mcp.add_tool(made)
    assert isinstance(added, Loud)
    assert added.description is None
    assert added.parameters["properties"] == {"title": {"type": "string", "description": "edited"}}
    assert "$defs" not in added.parameters
    call = await askback.call(mcp, "order", {"title": "Dune"})
    assert (call.result, call.failed) == ("4 of Dune!", False)


async def test_an_argument_may_be_called_like_a_resolved_parameter_on_the_wire(askback: Rehearsal) -> None:
    mcp = FastMCP("ours")

    @mcp.tool
    def find(place: Annotated[Stock, Resolve(check_stock)], title: Annotated[str, Field(alias="place")]) -> str:
        return f"{place.copies} {title}"

    call = await askback.call(mcp, "find", {"place": "Dune"})
    assert (call.result, call.failed) == ("4 Dune", False)


async def test_a_resolver_may_name_any_alias_of_an_argument(askback: Rehearsal) -> None:
    mcp = FastMCP("ours")

    @mcp.tool
    def find(
        stock: Annotated[Stock, Resolve(check_stock)],
        book: Annotated[str, Field(validation_alias=AliasChoices("title", "name"))],
    ) -> str:
        return f"{stock.copies} {book}"

    call = await askback.call(mcp, "find", {"title": "Dune"})
    assert (call.result, call.failed) == ("4 Dune", False)


@pytest.mark.parametrize("returned", [None, int, "None"])
async def test_the_output_schema_is_what_fastmcp_makes_of_the_return(returned: Any) -> None:
    async def written(title: str) -> returned:
        return None

    async def with_resolver(title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> returned:
        return None

    plain, mcp = fastmcp.FastMCP("plain"), FastMCP("ours")
    plain.tool(written, name="tool")
    mcp.tool(with_resolver, name="tool")
    expected, made = await plain.get_tool("tool"), await mcp.get_tool("tool")
    assert expected is not None
    assert made is not None
    assert made.output_schema == expected.output_schema


async def test_an_async_generator_is_still_one(askback: Rehearsal) -> None:
    mcp = FastMCP("ours")

    @mcp.tool(timeout=5.0, run_in_thread=False)
    async def count(stock: Annotated[Stock, Resolve(check_stock)], title: str = "Dune") -> Any:
        for number in range(stock.copies):
            yield number

    call = await askback.call(mcp, "count")
    assert (call.result, call.failed) == ("[0,1,2,3]", False)


def test_a_registered_function_carries_its_registration() -> None:
    async def special(title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> str:
        return title

    FastMCP("ours").tool(special, name="very special", tags={"z"})
    again = FastMCP("again").add_tool(special)
    assert (again.name, again.tags) == ("very special", {"z"})


async def test_a_tool_that_is_no_function_is_added_as_it_is(askback: Rehearsal) -> None:
    class Says(Tool):
        async def run(self, arguments: dict[str, Any]) -> Any:
            return self.convert_result("said")

    mcp = ours(Says(name="says", parameters={"type": "object"}))
    call = await askback.call(mcp, "says")
    assert (call.result, call.failed) == ("said", False)


async def test_a_value_of_any_class_may_be_resolved(askback: Rehearsal) -> None:
    mcp = FastMCP("ours")

    @mcp.tool
    def see(thing: Annotated[Unschemable, SDKResolve(make_unschemable)]):
        return type(thing).__name__

    call = await askback.call(mcp, "see")
    assert (call.result, call.failed) == ("Unschemable", False)


def ask_prompt(topic: str, stock: Annotated[Stock, Resolve(make_unschemable)]) -> str:
    raise AssertionError("never registered")


def read_config(stock: Annotated[Stock, Resolve(make_unschemable)]) -> str:
    raise AssertionError("never registered")


def read_shelf(name: str, stock: Annotated[Stock, Resolve(make_unschemable)]) -> str:
    raise AssertionError("never registered")


def sdk_read_shelf(name: str, stock: Annotated[str, SDKResolve(make_unschemable)] = "") -> str:
    raise AssertionError("never registered")


@pytest.mark.parametrize(
    "register",
    [
        lambda mcp: mcp.prompt(ask_prompt),
        lambda mcp: mcp.prompt("ask")(ask_prompt),
        lambda mcp: mcp.prompt(resolved(read_config)),
        lambda mcp: mcp.add_prompt(prompt(functools.partial(ask_prompt).func)),
        lambda mcp: mcp.add_prompt(Prompt.from_function(sdk_read_shelf)),
        lambda mcp: mcp.resource("config://all")(read_config),
        lambda mcp: mcp.resource("shelf://{name}")(read_shelf),
        lambda mcp: mcp.add_resource(resource("config://all")(read_config)),
        lambda mcp: mcp.add_resource(Resource.from_function(sdk_read_shelf, uri="config://all")),
        lambda mcp: mcp.add_template(ResourceTemplate.from_function(sdk_read_shelf, uri_template="shelf://{name}")),
    ],
)
def test_prompts_and_resources_cannot_have_resolvers(register: Any) -> None:
    with pytest.raises(InvalidSignature, match="has resolvers; only tools can, not prompts and resources"):
        register(FastMCP("ours"))


async def test_prompts_and_resources_without_resolvers_are_fastmcps(askback: Rehearsal) -> None:
    mcp = FastMCP("ours")

    @mcp.prompt
    def ask(topic: str) -> str:
        return f"What of {topic}?"

    @mcp.resource("config://all")
    def config() -> str:
        return "all"

    mcp.add_resource(TextResource(uri=AnyUrl("config://fixed"), name="fixed", text="fixed"))
    mcp.add_resource(Resource.from_function(lambda: "text", uri="config://text", name="text"))
    mcp.add_template(ResourceTemplate.from_function(lambda name: name, uri_template="shelf://{name}", name="shelf"))
    mcp.add_prompt(Prompt.from_function(ask, name="again"))
    async with askback.connect(mcp) as client:
        assert "What of Dune?" in str(await client.get_prompt("ask", {"topic": "Dune"}))
        assert "What of Dune?" in str(await client.get_prompt("again", {"topic": "Dune"}))
        assert "all" in str(await client.read_resource("config://all"))
        assert "text" in str(await client.read_resource("config://text"))
        assert "fixed" in str(await client.read_resource("config://fixed"))
        assert "A" in str(await client.read_resource("shelf://A"))


async def test_a_plain_server_cannot_make_a_prompt_or_resource_of_resolvers(askback: Rehearsal) -> None:
    plain = fastmcp.FastMCP("plain")
    plain.prompt("resolved")(resolved(ask_prompt))
    plain.prompt("forgotten")(ask_prompt)
    plain.resource("shelf://{name}")(resolved(read_shelf))
    async with askback.connect(plain) as client:
        with pytest.raises(MCPError, match="only tools can, not prompts and resources"):
            await client.get_prompt("resolved", {"topic": "Dune"})
        with pytest.raises(MCPError, match="prompts and resources cannot have resolvers"):
            await client.get_prompt("forgotten", {"topic": "Dune"})
        with pytest.raises(MCPError, match="only tools can, not prompts and resources"):
            await client.read_resource("shelf://A")


async def test_a_body_that_asks_by_hand_beside_its_resolvers_fails(askback: Rehearsal) -> None:
    mcp = FastMCP("ours")

    async def asks_by_hand() -> InputRequiredResult:
        return InputRequiredResult(input_requests={}, request_state="mine")

    @mcp.tool
    def sly_later(stock: Annotated[Stock, Resolve(check_stock)], title: str = "Dune") -> Any:
        return asks_by_hand()

    @mcp.tool
    def sly(stock: Annotated[Stock, Resolve(check_stock)], title: str = "Dune") -> Any:
        return InputRequiredResult(input_requests={}, request_state="mine")

    @mcp.tool
    async def forwards(ctx: fastmcp.Context, stock: Annotated[Stock, Resolve(check_stock)], title: str = "Dune") -> Any:
        return await ctx.fastmcp.call_tool("asks")

    class Sure(BaseModel):
        ok: bool

    async def ask() -> Elicit[Sure]:
        return Elicit("Sure?", Sure)

    @mcp.tool
    async def asks(sure: Annotated[Sure, Resolve(ask)]) -> str:
        return str(sure.ok)

    for by_hand in ("sly", "sly_later"):
        assert "although it has resolvers" in ((await askback.call(mcp, by_hand)).result or "")
    call = await askback.call(mcp, "forwards", {}, {Sure: Sure(ok=True)})
    assert (call.result, call.failed) == ("True", False)


async def test_without_a_client_a_tool_works_while_nothing_asks() -> None:
    mcp = ours(order)

    class Sure(BaseModel):
        ok: bool

    async def ask(title: str) -> str | Elicit[Sure]:
        return "yes" if title == "Dune" else Elicit("Sure?", Sure)

    @mcp.tool
    async def asks(title: str, sure: Annotated[str, Resolve(ask)]) -> str:
        return sure

    assert said_by(await mcp.call_tool("order", {"title": "Dune", "stock": 3})) == "4 of Dune"
    assert said_by(await mcp.call_tool("asks", {"title": "Dune"})) == "yes"
    sentence = "Resolver 'ask' has a question, and the tool was called without a client that could be asked"
    with pytest.raises(ToolError, match=sentence):
        await mcp.call_tool("asks", {"title": "Emma"})


def said_by(result: Any) -> str:
    return result.content[0].text


async def test_a_tool_of_a_sync_generator_is_still_one(askback: Rehearsal) -> None:
    mcp = FastMCP("ours")

    @mcp.tool
    def count(stock: Annotated[Stock, Resolve(check_stock)], title: str = "Dune") -> Any:
        yield from range(stock.copies)

    call = await askback.call(mcp, "count")
    assert (call.result, call.failed) == ("[0,1,2,3]", False)


async def test_a_mounted_tool_is_looked_through_as_long_as_it_is_there() -> None:
    inner = ours(order)
    outer = FastMCP("outer")
    outer.mount(inner, namespace="inner")
    tool = await outer.get_tool("inner_order")
    assert tool is not None
    assert (await mounted_tool(tool)).name == "order"
    inner.local_provider.remove_tool("order")
    assert await mounted_tool(tool) is tool


async def test_a_tool_can_be_run_without_middleware_and_without_a_request() -> None:
    assert said_by(await ours(order).call_tool("order", {"title": "Dune"}, run_middleware=False)) == "4 of Dune"


async def test_the_tool_of_an_app_is_filled_under_its_hashed_name_too(askback: Rehearsal) -> None:
    app = FastMCPApp("books")
    app.tool()(order)
    mcp = FastMCP("ours", providers=[app])
    hashed = hashed_backend_name("books", "order")
    for name in ("order", hashed):
        for smuggled in ({}, {"stock": {"copies": 99}}):
            call = await askback.call(mcp, name, {"title": "Dune", **smuggled})
            assert (call.result, call.failed) == ("4 of Dune", False)


async def test_a_ready_made_tool_without_resolvers_is_added_as_it_is() -> None:
    async def greet(name: str) -> str:
        return f"hello {name}"

    tool = Tool.from_function(greet)
    assert FastMCP("ours").add_tool(tool) is tool
