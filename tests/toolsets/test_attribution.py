"""A question is answered from the run that caused it, and from no other."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal

import anyio
import anyio.lowlevel
import fastmcp
import pytest
from fastmcp.client.transports import StdioTransport
from fastmcp.utilities.tests import asgi_server
from mcp.shared.exceptions import MCPError
from pydantic_ai import RunContext, UserError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from askback.agents import Accept, Decline, PolicyError, Question
from askback.toolsets import ResolverToolset
from tests.agency import agent, calls, desk
from tests.conversation import Generation

Connection = Literal["in-process", "stdio", "HTTP"]
EVERYWHERE = pytest.mark.parametrize("connection", ["in-process", "stdio", "HTTP"])
SERVE = "from tests.agency import desk; desk.run(show_banner=False)"


@asynccontextmanager
async def client_over(connection: Connection, generation: Generation) -> AsyncGenerator[fastmcp.Client[Any]]:
    with anyio.fail_after(60):
        if connection == "HTTP":
            async with asgi_server(desk) as served:
                yield served.client(mode=generation)
        elif connection == "stdio":
            yield fastmcp.Client(StdioTransport(sys.executable, ["-c", SERVE], keep_alive=False), mode=generation)
        else:
            yield fastmcp.Client(desk, mode=generation)


async def from_deps(ctx: RunContext[str], question: Question) -> Accept:
    """Whoever is asked says who they are, after letting everybody else go first."""
    for _ in range(5):
        await anyio.lowlevel.checkpoint()
    order = question.arguments["order"]
    assert order.startswith(ctx.deps), "asked for another run's call"
    return Accept({"full": True, "sku": order})


@EVERYWHERE
async def test_runs_that_share_a_toolset_answer_for_themselves(connection: Connection, generation: Generation) -> None:
    outputs: dict[str, str] = {}
    async with client_over(connection, generation) as client:
        tools = ResolverToolset(client, id="desk", policies=[from_deps])

        async def run(name: str) -> None:
            model = calls(
                ("refund", {"order": f"{name}1"}), ("plain", {"order": name}), ("refund", {"order": f"{name}2"})
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
    connection: Connection, generation: Generation
) -> None:
    async with client_over(connection, generation) as client:
        tools = ResolverToolset(client, id="desk", policies=[from_deps], tool_error_behavior="failed")

        async def opener(ctx: RunContext[str]) -> str:
            await stack.enter_async_context(tools)
            return "opened"

        from contextlib import AsyncExitStack

        async with AsyncExitStack() as stack:
            opening = agent(tools, calls(("opener", {})), deps_type=str, tools=[opener])
            first = calls(("refund", {"order": "a"}))
            assert (await agent(tools, first, deps_type=str).run("please", deps="a")).output.endswith("sku=a")
            assert (await opening.run("please", deps="a")).output == "opened"
            second = calls(("refund", {"order": "b"}))
            assert (await agent(tools, second, deps_type=str).run("please", deps="b")).output.endswith("sku=b")
            with pytest.raises(Exception, match="elicitation was decline"):
                await tools.direct_call_tool("refund", {"order": "c"})


@EVERYWHERE
async def test_a_policy_that_calls_the_same_toolset_is_answered_or_refused(
    connection: Connection, generation: Generation
) -> None:
    async with client_over(connection, generation) as client:

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
        if (connection, generation) == ("stdio", "legacy"):
            with pytest.raises(UserError, match="carries one call at a time"):
                await agent(tools).run("please")
        else:
            assert (await agent(tools).run("please")).output == "refunded ORD-1, full=True, sku=x declined"


@EVERYWHERE
async def test_sampling_and_roots_come_from_the_run_too(connection: Connection, generation: Generation) -> None:
    outputs: dict[str, str] = {}

    def choose(ctx: RunContext[str], params: Any) -> Any:
        def opinion(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            return ModelResponse(parts=[TextPart(f"says {ctx.deps}")])

        return FunctionModel(opinion)

    async with client_over(connection, generation) as client:
        tools = ResolverToolset(client, sampling_from=choose, roots_from=lambda ctx: [f"/{ctx.deps}"])

        async def run(name: str) -> None:
            model = calls(("judge", {"order": name}), ("browse", {}))
            outputs[name] = (await agent(tools, model, deps_type=str).run("please", deps=name)).output

        async with tools, anyio.create_task_group() as group:
            for name in "abc":
                group.start_soon(run, name)
    assert outputs == {name: f"{name}: says {name} | ['file:///{name}']" for name in "abc"}


@EVERYWHERE
async def test_a_policy_that_is_wrong_ends_the_run_everywhere(connection: Connection, generation: Generation) -> None:
    async with client_over(connection, generation) as client:

        def raises(ctx: RunContext[Any], question: Question) -> None:
            raise ValueError("oops")

        tools = ResolverToolset(client, id="desk", policies=[raises])
        async with tools:
            with pytest.raises(PolicyError, match="raised ValueError: oops"):
                await agent(tools).run("please")
            alive = calls(("plain", {"order": "x"}))
            assert (await agent(tools, alive).run("please")).output == "plain x"


@EVERYWHERE
async def test_nobody_means_no_everywhere(connection: Connection, generation: Generation) -> None:
    async with client_over(connection, generation) as client:
        output = (await agent(ResolverToolset(client, policies=[Decline()])).run("please")).output
    assert output == "Resolver for parameter 'scope' could not resolve: elicitation was decline"


async def test_a_request_that_no_call_can_have_caused_is_refused() -> None:
    server = fastmcp.FastMCP("talkative")
    sessions: list[Any] = []
    waiting = [anyio.Event(), anyio.Event()]
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
    async with tools, anyio.create_task_group() as group:
        group.start_soon(agent(tools, calls(("refund", {"order": "0"}))).run, "please")
        await waiting[0].wait()
        # One call is under way, so it can only be that one's.
        assert (await sessions[0].elicit_form("Whose?", schema)).action == "accept"
        group.start_soon(agent(tools, calls(("refund", {"order": "1"}))).run, "please")
        await waiting[1].wait()
        with pytest.raises(MCPError, match="No call under way can have caused this request"):
            await sessions[0].elicit_form("Whose?", schema)
        go.set()
        while tools.client.session._under_way:  # pyright: ignore
            await anyio.lowlevel.checkpoint()
        with pytest.raises(MCPError, match="No call under way can have caused this request"):
            await sessions[0].elicit_form("Whose?", schema)
    assert asked == ["0"]


async def test_a_server_that_goes_on_after_a_policy_failed_is_left_alone(generation: Generation) -> None:
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

    tools = ResolverToolset(fastmcp.Client(server, mode="legacy"), policies=[raises])
    with anyio.fail_after(10), pytest.raises(UserError, match="raised ValueError: oops"):
        await agent(tools).run("please")
    del generation
