"""A question is answered from the run that caused it, and from no other."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal

import anyio
import anyio.lowlevel
import fastmcp
import pytest
from fastmcp.client.transports import StdioTransport
from fastmcp.server.middleware import Middleware
from fastmcp.utilities.tests import asgi_server
from mcp.shared.exceptions import MCPError
from pydantic_ai import RunContext, UserError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from askback.agents import Accept, Decline, PolicyError, Question
from askback.testing import Rehearsal, ScriptedModel, calls
from askback.toolsets import ResolverToolset
from tests.agency import Mode, agent, desk

Connection = Literal["in-process", "stdio", "HTTP"]
EVERYWHERE = pytest.mark.parametrize("connection", ["in-process", "stdio", "HTTP"])
SERVE = "from tests.agency import desk; desk.run(show_banner=False)"


@asynccontextmanager
async def client_over(connection: Connection, mode: Mode) -> AsyncGenerator[fastmcp.Client[Any]]:
    with anyio.fail_after(60):
        if connection == "HTTP":
            async with asgi_server(desk) as served:
                yield served.client(mode=mode)
        elif connection == "stdio":
            yield fastmcp.Client(StdioTransport(sys.executable, ["-c", SERVE], keep_alive=False), mode=mode)
        else:
            yield fastmcp.Client(desk, mode=mode)


async def from_deps(ctx: RunContext[str], question: Question) -> Accept:
    """Whoever is asked says who they are, after letting everybody else go first."""
    for _ in range(5):
        await anyio.lowlevel.checkpoint()
    order = question.arguments["order"]
    assert order.startswith(ctx.deps), "asked for another run's call"
    return Accept({"full": True, "sku": order})


@EVERYWHERE
async def test_runs_that_share_a_toolset_answer_for_themselves(connection: Connection, askback: Rehearsal) -> None:
    outputs: dict[str, str] = {}
    async with client_over(connection, askback.mode) as client:
        tools = ResolverToolset(client, id="desk", policies=[from_deps])

        async def run(name: str) -> None:
            model = ScriptedModel(
                [
                    ToolCallPart("refund", {"order": f"{name}1"}),
                    ToolCallPart("plain", {"order": name}),
                    ToolCallPart("refund", {"order": f"{name}2"}),
                ]
            )
            result = await agent(tools, model, deps_type=str).run("please", deps=name)
            outputs[name] = result.output

        async with tools, anyio.create_task_group() as group:
            for name in "abcdefgh":
                group.start_soon(run, name)
    assert outputs == {
        name: f"refunded {name}1, full=True, sku={name}1 | plain {name} | refunded {name}2, full=True, sku={name}2"
        for name in "abcdefgh"
    }


@EVERYWHERE
async def test_the_run_that_opens_the_connection_answers_only_for_itself(
    connection: Connection, askback: Rehearsal
) -> None:
    async with client_over(connection, askback.mode) as client:
        tools = ResolverToolset(client, id="desk", policies=[from_deps], tool_error_behavior="failed")

        async def opener(ctx: RunContext[str]) -> str:
            await stack.enter_async_context(tools)
            return "opened"

        from contextlib import AsyncExitStack

        async with AsyncExitStack() as stack:
            opening = agent(tools, calls("opener"), deps_type=str, tools=[opener])
            first = calls("refund", order="a")
            assert (await agent(tools, first, deps_type=str).run("please", deps="a")).output.endswith("sku=a")
            assert (await opening.run("please", deps="a")).output == "opened"
            second = calls("refund", order="b")
            assert (await agent(tools, second, deps_type=str).run("please", deps="b")).output.endswith("sku=b")
            with pytest.raises(Exception, match="elicitation was decline"):
                await tools.direct_call_tool("refund", {"order": "c"})


@EVERYWHERE
async def test_a_policy_that_calls_the_same_toolset_is_answered_or_refused(
    connection: Connection, askback: Rehearsal
) -> None:
    async with client_over(connection, askback.mode) as client:

        async def asks_around(ctx: RunContext[Any], question: Question) -> Accept:
            said = await tools.direct_call_tool("plain", {"order": "x"})
            refused = "declined" if "decline" in str(await failed(tools)) else "answered"
            return Accept({"full": True, "sku": f"{said[-1]} {refused}"})

        async def failed(tools: ResolverToolset[Any]) -> Any:
            try:
                return await tools.direct_call_tool("refund", {"order": "nested"})
            except Exception as error:
                return error

        tools = ResolverToolset(client, id="desk", policies=[asks_around], tool_error_behavior="failed")
        if (connection, askback.mode) == ("stdio", "legacy"):
            with pytest.raises(PolicyError, match="carries one call at a time"):
                await agent(tools).run("please")
        else:
            assert (await agent(tools).run("please")).output == "refunded ORD-1, full=True, sku=x declined"


@EVERYWHERE
async def test_sampling_and_roots_come_from_the_run_too(connection: Connection, askback: Rehearsal) -> None:
    outputs: dict[str, str] = {}

    def choose(ctx: RunContext[str], params: Any) -> Any:
        def opinion(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            return ModelResponse(parts=[TextPart(f"says {ctx.deps}")])

        return FunctionModel(opinion)

    async with client_over(connection, askback.mode) as client:
        tools = ResolverToolset(client, sampling_from=choose, roots_from=lambda ctx: [f"/{ctx.deps}"])

        async def run(name: str) -> None:
            model = ScriptedModel([ToolCallPart("judge", {"order": name}), ToolCallPart("browse", {})])
            outputs[name] = (await agent(tools, model, deps_type=str).run("please", deps=name)).output

        async with tools, anyio.create_task_group() as group:
            for name in "abc":
                group.start_soon(run, name)
    assert outputs == {name: f'{name}: says {name} | ["file:///{name}"]' for name in "abc"}


@EVERYWHERE
async def test_a_policy_that_is_wrong_ends_the_run_everywhere(connection: Connection, askback: Rehearsal) -> None:
    async with client_over(connection, askback.mode) as client:

        def raises(ctx: RunContext[Any], question: Question) -> None:
            raise ValueError("oops")

        tools = ResolverToolset(client, id="desk", policies=[raises])
        async with tools:
            with pytest.raises(PolicyError, match="raised ValueError: oops"):
                await agent(tools).run("please")
            alive = calls("plain", order="x")
            assert (await agent(tools, alive).run("please")).output == "plain x"


@EVERYWHERE
async def test_nobody_means_no_everywhere(connection: Connection, askback: Rehearsal) -> None:
    async with client_over(connection, askback.mode) as client:
        output = (await askback.play(agent(ResolverToolset(client, policies=[Decline()])))).output
    assert output.startswith("Resolver for parameter 'scope' could not resolve: elicitation was decline. The user ")


async def test_a_request_that_no_call_can_have_caused_is_refused() -> None:
    server = fastmcp.FastMCP("talkative")
    sessions: list[Any] = []
    waiting = [anyio.Event()]
    go = anyio.Event()

    @server.tool
    async def refund(order: str, ctx: fastmcp.Context) -> str:
        sessions.append(ctx.session)
        waiting[int(order)].set()
        await go.wait()
        return order

    schema: dict[str, Any] = {"type": "object", "properties": {}}
    asked: list[str] = []

    def policy(ctx: RunContext[Any], question: Question) -> Accept:
        asked.append(question.arguments["order"])
        return Accept({})

    tools = ResolverToolset(fastmcp.Client(server, mode="legacy"), policies=[policy])
    refused = pytest.raises(MCPError, match="No call under way can have caused this request")
    async with tools, anyio.create_task_group() as group:
        group.start_soon(agent(tools, calls("refund", order="0")).run, "please")
        await waiting[0].wait()
        # It is under way, but did not send this.
        with refused:
            await sessions[0].elicit_form("Whose?", schema)
        go.set()
    assert asked == []


async def test_what_a_call_asks_after_its_end_is_nobody_elses() -> None:
    server = fastmcp.FastMCP("late")
    late: list[Any] = []
    under_way, go = anyio.Event(), anyio.Event()

    @server.tool
    async def refund(order: str, ctx: fastmcp.Context) -> str:
        async def later() -> None:
            await under_way.wait()
            try:
                late.append(await session.elicit_form("Whose?", {"type": "object", "properties": {}}))
            except Exception as error:
                late.append(str(error))
            go.set()

        session = ctx.session
        background.start_soon(later)
        return "started"

    @server.tool
    async def slow(order: str) -> str:
        under_way.set()
        await go.wait()
        return "done"

    tools = ResolverToolset(fastmcp.Client(server, mode="legacy"), policies=[Accept({})])
    with anyio.fail_after(10):
        async with tools, anyio.create_task_group() as background:
            assert (await agent(tools).run("please")).output == "started"
            assert (await agent(tools, calls("slow", order="x")).run("please")).output == "done"
    assert late == ["No call under way can have caused this request"]


async def test_the_applications_own_roots_need_no_call() -> None:
    server = fastmcp.FastMCP("curious")
    roots: list[Any] = []

    class Asks(Middleware):
        async def on_list_tools(self, context: Any, call_next: Any) -> Any:
            session: Any = context.fastmcp_context.session
            roots.append([str(root.uri) for root in (await session.list_roots()).roots])
            return await call_next(context)

    server.add_middleware(Asks())
    with pytest.warns(Warning, match="roots capability is deprecated"):
        async with ResolverToolset(fastmcp.Client(server, mode="legacy"), roots=["file:///data"]) as tools:
            await tools.list_tools()
    assert roots == [["file:///data"]]


@pytest.mark.processes
async def test_a_chain_of_policies_that_comes_back_is_refused() -> None:
    async with client_over("stdio", "legacy") as client:

        async def calls_the_first(ctx: RunContext[Any], question: Question) -> Accept:
            return Accept({"full": True, "sku": (await first.direct_call_tool("plain", {"order": "x"}))[:5]})

        second = ResolverToolset(fastmcp.Client(desk), id="second", policies=[calls_the_first])

        async def runs_the_second(ctx: RunContext[Any], question: Question) -> Accept:
            return Accept({"full": True, "sku": (await agent(second).run("please")).output[:5]})

        first = ResolverToolset(client, id="first", policies=[runs_the_second])
        with anyio.fail_after(30), pytest.raises(PolicyError, match="carries one call at a time"):
            await agent(first).run("please")


async def test_what_fails_outside_a_run_fails_its_call_alone(askback: Rehearsal) -> None:
    def fails(context: Any) -> list[str]:
        raise ValueError("oops")

    tools = ResolverToolset(fastmcp.Client(desk, mode=askback.mode), roots=fails)
    async with tools:
        with pytest.raises(Exception, match="oops"):
            await tools.direct_call_tool("browse", {})
        assert await tools.direct_call_tool("plain", {"order": "x"}) == "plain x"


@pytest.mark.askback("2025-11-25")
async def test_a_call_cannot_ask_without_end(askback: Rehearsal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askback.agents.drivers.MAX_QUESTIONS", 2)
    server = fastmcp.FastMCP("greedy")

    @server.tool
    async def refund(order: str, ctx: fastmcp.Context) -> str:
        for _ in range(10):
            await ctx.elicit("Again?", bool)
        return "never"

    run = await askback.play(agent(ResolverToolset(server, policies=[Accept({"value": True})], max_rounds=2)))
    assert "The call has asked too many questions" in run.output


@EVERYWHERE
async def test_a_policy_that_is_cancelled_ends_its_own_run_alone(connection: Connection, askback: Rehearsal) -> None:
    outcomes: dict[str, Any] = {}
    async with client_over(connection, askback.mode) as client:

        async def waits(ctx: RunContext[str], question: Question) -> Accept:
            if ctx.deps == "bad":
                raise asyncio.CancelledError
            return Accept({"full": True})

        tools = ResolverToolset(client, id="desk", policies=[waits])

        async def run(name: str) -> None:
            try:
                outcomes[name] = (await agent(tools, deps_type=str).run("please", deps=name)).output
            except PolicyError as error:
                outcomes[name] = "was cancelled" in str(error)

        async with tools:
            async with anyio.create_task_group() as group:
                for name in ("bad", "good"):
                    group.start_soon(run, name)
            await run("later")
    assert outcomes == {
        "bad": True,
        "good": "refunded ORD-1, full=True, sku=",
        "later": "refunded ORD-1, full=True, sku=",
    }


@pytest.mark.askback("2025-11-25")
async def test_a_server_that_goes_on_after_a_policy_failed_is_left_alone(askback: Rehearsal) -> None:
    server = fastmcp.FastMCP("stubborn")

    @server.tool
    async def refund(order: str, ctx: fastmcp.Context) -> Any:
        with anyio.move_on_after(20):
            try:
                await ctx.elicit("Sure?", bool)
            except MCPError:
                await anyio.sleep_forever()
        return "went on"

    def raises(ctx: RunContext[Any], question: Question) -> Decline:
        raise ValueError("oops")

    with anyio.fail_after(10), pytest.raises(UserError, match="raised ValueError: oops"):
        await askback.play(agent(ResolverToolset(server, policies=[raises])))
