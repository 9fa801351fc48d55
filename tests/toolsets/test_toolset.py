"""Everything an `MCPToolset` takes and does still works."""

import copy
import inspect
import json
import sys
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import anyio
import fastmcp
import pytest
from fastmcp.client.transports import FastMCPTransport, StreamableHttpTransport
from fastmcp.utilities.tests import asgi_server
from fastmcp_tasks import TasksExtension
from mcp_types import ElicitResult, InputRequiredResult
from opentelemetry.sdk.trace import TracerProvider
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import MCP
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import PrefixedToolset

from askback import Elicit, Resolve
from askback.agents import Accept, Answers, Decline, PolicyError, Question
from askback.integration import FastMCP
from askback.testing import Rehearsal, calls
from askback.toolsets import ResolverToolset, load_resolver_toolsets
from askback.toolsets.toolset import StockOptions
from tests.agency import Scope, Script, Wrap, agent, ask_scope, ask_wrap, desk, toolset

YES = Accept({"full": True})


def test_it_takes_whatever_the_stock_toolset_takes() -> None:
    stock = set(inspect.signature(MCPToolset.__init__).parameters) - {"self"}
    named = set(inspect.signature(ResolverToolset.__init__).parameters) - {"self", "options"}
    new = {"policies", "sampling_from", "roots_from", "max_rounds", "restartable", "answer_timeout", "on_answer"}
    assert (named - new) | set(get_type_hints(StockOptions)) == stock
    assert inspect.signature(ResolverToolset.__init__).parameters["max_rounds"].default == 10


async def model(*_: Any) -> str:
    raise AssertionError


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"sampling_from": "run", "sampling_model": TestModel()}, "sampling_from"),
        ({"sampling_from": "run", "sampling_handler": model}, "sampling_from"),
        ({"sampling_model": TestModel(), "sampling_handler": model}, "either `sampling_model` or `sampling_handler`"),
        ({"roots_from": lambda ctx: [], "roots": ["file:///a"]}, "roots_from"),
        ({"max_rounds": 0}, "at least 1"),
    ],
)
def test_two_that_would_answer_the_same_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        ResolverToolset(desk, **options)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"elicitation_handler": model}, "elicitation_handler"),
        ({"sampling_handler": model}, "sampling_handler"),
        ({"roots": ["file:///a"]}, "roots"),
    ],
)
def test_a_client_with_handlers_of_its_own_is_refused(options: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=rf"has handlers of its own \({name}\)"):
        ResolverToolset(fastmcp.Client(desk, **options), policies=[Decline()])


async def test_a_connected_client_is_refused() -> None:
    async with fastmcp.Client(desk) as client:
        with pytest.raises(ValueError, match="must not be connected"):
            ResolverToolset(client, policies=[Decline()])


async def test_a_prebuilt_client_keeps_its_mode_and_transport(askback: Rehearsal) -> None:
    client = fastmcp.Client(desk, mode=askback.mode, timeout=7)
    tools = ResolverToolset(client, policies=[YES])
    assert tools.client is client
    assert client.mode == askback.mode
    assert client.transport.server is desk
    assert repr(client.transport) == repr(FastMCPTransport(desk))
    assert client.transport.get_session_id() is None
    assert repr(copy.copy(client.transport)) == repr(FastMCPTransport(desk))
    assert (await agent(tools).run("please")).output.startswith("refunded")
    await client.close()


@pytest.mark.parametrize(
    "connectable", [desk, FastMCPTransport(desk), pytest.param("script", marks=pytest.mark.processes)]
)
async def test_it_connects_to_whatever_the_stock_toolset_does(connectable: Any, tmp_path: Path) -> None:
    if connectable == "script":
        connectable = tmp_path / "server.py"
        root = Path(__file__).parent.parent.parent
        serve = "from tests.agency import desk; desk.run(show_banner=False)"
        connectable.write_text(f"import sys; sys.path.insert(0, {str(root)!r}); {serve}")
    tools = ResolverToolset(connectable, policies=[YES], init_timeout=30)
    assert (await agent(tools).run("please")).output.startswith("refunded")


def test_a_toolset_without_an_id_takes_the_host_of_its_address() -> None:
    assert ResolverToolset("http://example.com/mcp").id == "example.com"
    assert ResolverToolset("http://example.com/mcp", id="mine").id == "mine"
    assert ResolverToolset(desk).id is None
    assert ResolverToolset("http://example.com/mcp", headers={"a": "b"}).client.transport.headers == {"a": "b"}


async def test_headers_of_the_run_make_a_connection_of_its_own(askback: Rehearsal, monkeypatch: Any) -> None:
    server = FastMCP("headers")

    async def ask_for(ctx: fastmcp.Context) -> Elicit[Scope]:
        from fastmcp.server.dependencies import get_http_headers

        return Elicit(f"Refund for {get_http_headers()['x-user']}?", Scope)

    @server.tool
    async def refund(order: str, scope: Annotated[Scope, Resolve(ask_for)]) -> str:
        return scope.sku

    def answer(ctx: RunContext[str], question: Question) -> Accept:
        assert question.server == "mine"
        return Accept({"full": True, "sku": question.message.split()[-1]})

    async with asgi_server(server) as served:
        monkeypatch.setattr(
            StreamableHttpTransport, "__init__", _bound_to(served.http_client, StreamableHttpTransport.__init__)
        )
        monkeypatch.setattr(fastmcp.settings, "client_init_timeout", 10)
        tools = ResolverToolset(
            served.url, id="mine", policies=[answer], headers=lambda ctx: {"x-user": ctx.deps}, init_timeout=10
        )
        for name in ("ada", "bob"):
            running = agent(tools, deps_type=str)
            if askback.generation == "2025-11-25":
                monkeypatch.setattr(fastmcp.Client, "mode", "legacy", raising=False)
            assert (await running.run("please", deps=name)).output == f"{name}?"


def _bound_to(factory: Any, init: Any) -> Any:
    def bound(self: Any, *args: Any, **options: Any) -> None:
        options["httpx_client_factory"] = lambda follow_redirects=True, **rest: factory(**rest)
        init(self, *args, **options)

    return bound


async def test_hooks_prefixes_and_capabilities_stay(askback: Rehearsal) -> None:
    hooked: list[str] = []

    async def hook(ctx: Any, call_tool: Any, name: str, args: dict[str, Any]) -> Any:
        hooked.append(name)
        return await call_tool(name, {"order": "hooked"}, metadata={"a": 1})

    tools = toolset(policies=[YES], process_tool_call=hook)
    prefixed = await askback.play(agent(tools.prefixed("shop")), calls("shop_refund", order="x"))
    assert prefixed.output.startswith("refunded hooked")
    assert hooked == ["refund"]
    (record,) = prefixed.answers
    assert (record.question.tool, record.question.arguments) == ("refund", {"order": "hooked"})

    tools = toolset(mode=askback.mode, policies=[YES], id="local")
    by_capability = Agent(calls("refund", order="x"), capabilities=[MCP("http://example.com/mcp", local=tools)])
    assert (await by_capability.run("please")).output.startswith("refunded x")


@pytest.mark.filterwarnings("ignore:The logging capability is deprecated")
async def test_progress_logging_and_structured_results_stay(askback: Rehearsal) -> None:
    server = FastMCP("talks")
    reported: list[float] = []
    logged: list[Any] = []

    @server.tool
    async def refund(order: str, ctx: fastmcp.Context, scope: Annotated[Scope, Resolve(ask_scope)]) -> dict[str, int]:
        await ctx.report_progress(3, 4)
        await ctx.info("refunding")
        return {"cents": 5}

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        reported.append(progress)

    async def on_log(message: Any) -> None:
        logged.append(message.data["msg"])

    tools = ResolverToolset(
        server if askback.generation == "2026-07-28" else _legacy(server),
        policies=[YES],
        progress_handler=on_progress,
        log_handler=on_log,
    )
    assert (await agent(tools).run("please")).output == '{"cents": 5}'
    assert (reported, logged) == ([3], ["refunding"])


def _legacy(server: Any) -> Any:
    """A transport that speaks only the older generation, since only a client has a mode."""

    class Legacy(FastMCPTransport):
        legacy_only = True

    return Legacy(server)


async def test_trace_context_and_metadata_go_with_every_round(askback: Rehearsal) -> None:
    server = FastMCP("traced")
    traces: list[Any] = []

    async def ask_for(ctx: fastmcp.Context) -> Elicit[Scope]:
        assert ctx.request_context is not None
        meta = ctx.request_context.meta or {}
        traces.append((meta.get("traceparent"), meta.get("mine")))
        return Elicit("Refund all?", Scope)

    @server.tool
    async def refund(order: str, scope: Annotated[Scope, Resolve(ask_for)]) -> str:
        return "refunded"

    async def hook(ctx: Any, call_tool: Any, name: str, args: dict[str, Any]) -> Any:
        with TracerProvider().get_tracer("test").start_as_current_span("outer"):
            return await call_tool(name, args, metadata={"mine": 1})

    run = await askback.play(agent(toolset(policies=[YES], process_tool_call=hook)), server=server)
    assert run.output == "refunded"
    assert len(traces) == (2 if askback.generation == "2026-07-28" else 1)
    assert len(set(traces)) == 1
    assert traces[0][0] is not None
    assert traces[0][1] == 1


async def test_a_timeout_covers_each_round(askback: Rehearsal) -> None:
    server = FastMCP("slow")

    @server.tool
    async def refund(order: str, scope: Annotated[Scope, Resolve(ask_scope)]) -> str:
        await anyio.sleep_forever()
        return "never"

    tools = ResolverToolset(server, policies=[YES], read_timeout=0.2)
    with anyio.fail_after(10):
        assert "timed out" in (await askback.play(agent(tools))).output.lower()


async def test_background_tasks_are_answered_from_the_run() -> None:
    server = FastMCP("tasks")
    server.add_extension(TasksExtension())

    @server.tool(task=True)
    async def refund(order: str, ctx: fastmcp.Context, scope: Annotated[Scope, Resolve(ask_scope)]) -> str:
        return f"{order} {scope.full} {ctx.is_background_task}"

    policy = Script({"Refund all": Accept({"full": True})})
    tools = toolset(server, policies=[policy])
    result = await agent(tools, deps_type=str).run("please", deps="me")
    assert result.output == "ORD-1 True True"
    assert [(question.tool, question.arguments) for question in policy.asked] == [("refund", {"order": "ORD-1"})]
    assert policy.contexts[0].deps == "me"

    @server.tool(task=True)
    async def wrap(
        order: str, scope: Annotated[Scope, Resolve(ask_scope)], paper: Annotated[Wrap, Resolve(ask_wrap)]
    ) -> str:
        return paper.paper

    both = Answers({"Refund all": {"full": True}, "Which paper": {"paper": "red"}})
    assert (await agent(toolset(server, policies=[both]), calls("wrap", order="x")).run("please")).output == "red"

    def raises(ctx: Any, question: Question) -> None:
        raise ValueError("oops")

    with pytest.raises(PolicyError, match="raised ValueError: oops"):
        await agent(toolset(server, policies=[raises])).run("please")

    async def fails(*_: Any) -> Any:
        raise ValueError("closed")

    failed = await agent(toolset(server, elicitation_handler=fails)).run("please")
    assert "closed" in failed.output
    async with tools:
        with pytest.raises(Exception, match="elicitation was decline"):
            await tools.direct_call_tool("refund", {"order": "ORD-2"})


async def test_resources_and_prompts_stay(askback: Rehearsal) -> None:
    server = FastMCP("more")
    server.resource("config://all")(lambda: "all")

    @server.prompt
    def ask(topic: str) -> str:
        return f"What of {topic}?"

    tools = toolset(server, mode=askback.mode, policies=[YES])
    async with tools:
        assert await tools.read_resource("config://all") == "all"
        assert "What of Dune?" in str(await tools.get_prompt("ask", {"topic": "Dune"}))
        assert [each.name for each in await tools.list_prompts()] == ["ask"]


async def test_an_app_tool_stays_one(askback: Rehearsal) -> None:
    server = FastMCP("apps")

    @server.tool(meta={"ui": {"resourceUri": "ui://refund"}})
    async def refund(order: str, scope: Annotated[Scope, Resolve(ask_scope)]) -> str:
        return f"{order} {scope.full}"

    run = await askback.play(agent(toolset(policies=[YES])), server=server)
    assert run.output == "ORD-1 True"
    returned = [
        part for message in run.result.all_messages() for part in message.parts if part.part_kind == "tool-return"
    ]
    assert returned[0].metadata  # pyright: ignore


@pytest.mark.processes
async def test_toolsets_load_from_a_configuration(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("SERVE", "from tests.agency import desk; desk.run(show_banner=False)")
    config = tmp_path / "mcp.json"
    servers = {
        "desk": {"command": sys.executable, "args": ["-c", "${SERVE}"]},
        "web": {"url": "http://example.com/mcp", "headers": {"a": "b"}},
    }
    config.write_text(json.dumps({"mcpServers": servers}))
    local, web = load_resolver_toolsets(config, policies=[YES], max_rounds=3)
    assert isinstance(local, PrefixedToolset)
    assert isinstance(web, PrefixedToolset)
    assert isinstance(local.wrapped, ResolverToolset)
    assert (local.prefix, local.wrapped.id) == ("desk", "desk")
    assert isinstance(web.wrapped, ResolverToolset)
    assert web.wrapped.client.transport.headers == {"a": "b"}
    running = agent(local, calls("desk_refund", order="x"))
    assert (await running.run("please")).output.startswith("refunded x")


async def test_policies_are_others_for_the_time_of_an_override(askback: Rehearsal) -> None:
    answering = toolset(mode=askback.mode, policies=[Decline()])
    with answering.override(policies=[Accept({"full": True})]):
        overridden = await agent(answering).run("please")
    assert overridden.output == "refunded ORD-1, full=True, sku="
    assert "elicitation was decline. The user" in (await agent(answering).run("please")).output


async def test_an_override_leaves_nothing_behind(askback: Rehearsal) -> None:
    server = fastmcp.FastMCP("curious")

    @server.tool
    async def refund(order: str, ctx: fastmcp.Context) -> str:
        declared = ctx.session.client_capabilities
        return f"{declared is not None and declared.elicitation is not None}"

    other = fastmcp.Client(server, mode=askback.mode)
    asks_nobody = toolset(server, mode=askback.mode)
    before = asks_nobody.client, asks_nobody.client.transport, asks_nobody.client.mode, other.transport
    for client in (None, other):
        with asks_nobody.override(client=client, mode="legacy", policies=[YES]):
            assert (await agent(asks_nobody).run("please")).output == "True"
        assert (await agent(asks_nobody).run("please")).output == "False"
    async with other:
        assert (await other.call_tool("refund", {"order": "x"})).data == "False"
    assert before == (asks_nobody.client, asks_nobody.client.transport, asks_nobody.client.mode, other.transport)


async def test_whoever_sends_answers_drives_the_rounds_themselves() -> None:
    async with fastmcp.Client(desk, elicitation_handler=model) as client:
        asked = await client.session.call_tool("refund", {"order": "x"}, allow_input_required=True)
    assert isinstance(asked, InputRequiredResult)
    (key,) = asked.input_requests or {}
    tools = toolset(policies=[Decline()])
    async with tools:
        session = tools.client.session
        responses: Any = {key: ElicitResult(action="accept", content={"full": True})}
        done = await session.call_tool(
            "refund", {"order": "x"}, input_responses=responses, request_state=asked.request_state
        )
    assert done.content[0].text == "refunded x, full=True, sku="  # pyright: ignore
