"""What a client must be able to do, models and roots, background tasks, HTTP, and processes."""

import json
import subprocess
import sys
from typing import Annotated, Any

import anyio
import fastmcp
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from fastmcp.client.transports import FastMCPTransport
from fastmcp.utilities.tests import asgi_server
from fastmcp_tasks import TasksExtension
from mcp.server.mcpserver import Context as SDKContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    ClientCapabilities,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitationCapability,
    ElicitResult,
    Implementation,
    InitializedNotification,
    InitializeRequest,
    InitializeRequestParams,
    InitializeResult,
    ListRootsResult,
    SamplingCapability,
    SamplingMessage,
    TextContent,
    Tool,
    ToolChoice,
    ToolUseContent,
)
from pydantic import BaseModel

from askback import Elicit, ListRoots, Resolve, Sample
from askback.integration import FastMCP, build_resolver_plans, find_resolved_parameters, resolve_arguments
from askback.testing import Rehearsal, ScriptedClient
from tests.conversation import accept, asked, one_round, said, state_of
from tests.test_engine import Rounds


class Sure(BaseModel):
    ok: bool


WEATHER = Tool(name="weather", input_schema={"type": "object"})


def messages(text: str) -> list[SamplingMessage]:
    return [SamplingMessage(role="user", content=TextContent(text=text))]


async def ask() -> Elicit[Sure]:
    return Elicit("Sure?", Sure)


async def sample() -> Sample:
    return Sample(messages("Well?"), max_tokens=7, system_prompt="Be brief", temperature=0.5)


async def sample_with_tools() -> Sample:
    return Sample(messages("Weather?"), max_tokens=7, tools=[WEATHER], tool_choice=ToolChoice(mode="required"))


async def sample_with_choice() -> Sample:
    return Sample(messages("Weather?"), max_tokens=7, tool_choice=ToolChoice(mode="none"))


async def list_roots() -> ListRoots:
    return ListRoots()


mcp = FastMCP("clients")


@mcp.tool
async def asks(sure: Annotated[Sure, Resolve(ask)]) -> str:
    return f"{sure.ok}"


@mcp.tool
async def samples(sampled: Annotated[CreateMessageResult, Resolve(sample)]) -> str:
    return f"{type(sampled).__name__} {getattr(sampled.content, 'text', '')}"


@mcp.tool
async def samples_with_tools(sampled: Annotated[CreateMessageResultWithTools, Resolve(sample_with_tools)]) -> str:
    return f"{type(sampled).__name__} {[block.type for block in sampled.content_as_list]}"


@mcp.tool
async def samples_with_choice(sampled: Annotated[CreateMessageResultWithTools, Resolve(sample_with_choice)]) -> str:
    return f"{type(sampled).__name__} {[block.type for block in sampled.content_as_list]}"


@mcp.tool
async def lists(roots: Annotated[ListRootsResult, Resolve(list_roots)]) -> str:
    return " ".join(str(root.uri) for root in roots.roots)


@mcp.tool
async def does_all(
    sampled: Annotated[CreateMessageResult, Resolve(sample)],
    roots: Annotated[ListRootsResult, Resolve(list_roots)],
    sure: Annotated[Sure, Resolve(ask)],
) -> str:
    return f"{sure.ok} {len(roots.roots)} {getattr(sampled.content, 'text', '')}"


@pytest.mark.parametrize(
    ("tool", "options", "required"),
    [
        ("asks", {}, {"elicitation": {"form": {}}}),
        ("samples", {}, {"sampling": {}}),
        ("lists", {}, {"roots": {}}),
        (
            "samples_with_tools",
            {"sampling_handler": lambda *_: "x", "sampling_capabilities": SamplingCapability()},
            {"sampling": {"tools": {}}},
        ),
    ],
)
async def test_a_client_without_the_capability_is_refused_and_not_asked(
    askback: Rehearsal, tool: str, options: dict[str, Any], required: dict[str, Any]
) -> None:
    async with fastmcp.Client(mcp, mode=askback.mode, **options) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool(tool)
    assert caught.value.error.code == -32021
    assert caught.value.error.data == {"requiredCapabilities": required}


DECLARATIONS = pytest.mark.parametrize(
    ("declared", "can_answer"),
    [({}, True), ({"form": {}}, True), ({"form": {}, "url": {}}, True), ({"url": {}}, False)],
    ids=["elicitation: {}", "form", "form and url", "url alone"],
)


@DECLARATIONS
async def test_which_declarations_count_as_forms(declared: Any, can_answer: bool) -> None:
    async def answer(context: Any, params: Any) -> ElicitResult:
        return accept(ok=True)

    initialize = InitializeRequest(
        params=InitializeRequestParams(
            protocol_version="2025-11-25",
            capabilities=ClientCapabilities(elicitation=ElicitationCapability.model_validate(declared)),
            client_info=Implementation(name="client", version="1"),
        )
    )
    async with FastMCPTransport(mcp).connect_session(elicitation_callback=answer) as session:
        await session.send_request(initialize, InitializeResult)
        await session.send_notification(InitializedNotification())
        if can_answer:
            assert said(await session.call_tool("asks", {})) == "True"
        else:
            with pytest.raises(
                MCPError,
                match="did not declare the capability elicitation.form. Give the client an elicitation handler",
            ):
                await session.call_tool("asks", {})


@DECLARATIONS
async def test_which_declarations_count_as_forms_in_rounds(declared: Any, can_answer: bool) -> None:
    class Declares(Rounds):
        @property
        def client_capabilities(self) -> ClientCapabilities | None:
            return ClientCapabilities(elicitation=ElicitationCapability.model_validate(declared))

    resolved = find_resolved_parameters(asks)
    resolution = resolve_arguments(resolved, build_resolver_plans(resolved, set()), {}, Declares())
    if can_answer:
        assert list(asked(await resolution).values()) == ["Sure?"]
    else:
        with pytest.raises(
            MCPError, match="did not declare the capability elicitation.form. Give the client an elicitation handler"
        ):
            await resolution


async def test_a_model_answers_a_sample(askback: Rehearsal) -> None:
    async with askback.connect(mcp, {Sample: "well"}) as client:
        assert (await client.call_tool("samples")).data == "CreateMessageResult well"
    (question,) = client.asked
    params = question.sampling
    assert params is not None
    assert params.messages == messages("Well?")
    assert (params.max_tokens, params.system_prompt, params.temperature) == (7, "Be brief", 0.5)


async def test_a_sample_may_offer_tools(askback: Rehearsal) -> None:
    use = ToolUseContent(name="weather", id="1", input={})
    used = CreateMessageResultWithTools(role="assistant", model="m", content=[use], stop_reason="toolUse")
    async with askback.connect(mcp, [used, "dry"]) as client:
        assert (await client.call_tool("samples_with_tools")).data == "CreateMessageResultWithTools ['tool_use']"
        assert (await client.call_tool("samples_with_choice")).data == "CreateMessageResultWithTools ['text']"
    offered = [question.sampling.tools for question in client.asked if question.sampling is not None]
    assert offered == [[WEATHER], None]


async def test_a_client_lists_its_roots(askback: Rehearsal) -> None:
    call = await askback.call(mcp, "lists", {}, {ListRoots: ["file:///a", "file:///b"]})
    assert (call.result, call.failed) == ("file:///a file:///b", False)


async def test_kinds_of_questions_mix(askback: Rehearsal) -> None:
    call = await askback.call(mcp, "does_all", {}, {Sure: Sure(ok=True), ListRoots: ["file:///a"], Sample: "well"})
    assert (call.result, call.failed) == ("True 1 well", False)
    assert sorted(exchange.question.kind for exchange in call.exchanges) == ["elicitation", "roots", "sampling"]
    assert [each.question.message for each in call.exchanges if each.question.kind == "elicitation"] == ["Sure?"]


async def test_a_sample_of_the_wrong_kind_is_one_stable_sentence() -> None:
    async with ScriptedClient(mcp) as client:
        for tool, resolver in (("samples", "sample"), ("lists", "list_roots")):
            first = await one_round(client, tool)
            (key,) = asked(first)
            second = await one_round(client, tool, answers={key: accept(ok=True)}, state=state_of(first))
            assert said(second) == f"failed: Resolver '{resolver}': the response is not an answer to its question"


@pytest.mark.askback("2026-07-28")
async def test_background_tasks_ask_too(askback: Rehearsal) -> None:
    server = FastMCP("tasks")
    server.add_extension(TasksExtension())

    async def ask_for(title: str) -> Elicit[Sure]:
        return Elicit(f"Buy {title}?", Sure)

    @server.tool(task=True)
    async def buy(ctx: fastmcp.Context, sure: Annotated[Sure, Resolve(ask_for)], title: str = "Dune") -> str:
        return f"{title} {sure.ok} {ctx.is_background_task}"

    async with askback.connect(server, {"Buy Dune": {"ok": True}}) as client:
        assert (await client.call_tool("buy", {"sure": {"ok": False}})).data == "Dune True True"
    assert client.messages == ["Buy Dune?"]


@pytest.mark.askback("2026-07-28")
async def test_a_background_task_can_only_ask_people(askback: Rehearsal) -> None:
    server = FastMCP("tasks")
    server.add_extension(TasksExtension())

    async def ask_model() -> Sample:
        return Sample(messages("Well?"), max_tokens=7)

    async def ask_roots() -> ListRoots:
        return ListRoots()

    async def ask_person() -> Elicit[Sure]:
        return Elicit("Sure?", Sure)

    @server.tool(task=True)
    async def samples(answer: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
        return "sampled"

    @server.tool(task=True)
    async def lists(answer: Annotated[ListRootsResult, Resolve(ask_roots)]) -> str:
        return "listed"

    @server.tool
    async def nested(sure: Annotated[Sure, Resolve(ask_person)]) -> str:
        return "nested"

    @server.tool(task=True)
    async def outer() -> str:
        await server.call_tool("nested")
        return "outer"

    async with askback.connect(server) as client:
        for tool, reason in (
            (
                "samples",
                "Resolver 'ask_model' has a question, and a background task can ask people only, not for co",
            ),
            ("lists", "Resolver 'ask_roots' has a question, and a background task can ask people only, not for direct"),
            ("outer", "Resolver 'ask_person' has a question, and the tool was called without a client that could be "),
        ):
            result = await client.call_tool(tool, raise_on_error=False)
            assert result.is_error
            assert reason in str(result.content)


@pytest.mark.parametrize(
    ("tool", "declared", "missing", "advice"),
    [
        ("asks", {}, "elicitation.form", "an elicitation handler (`elicitation_handler=` of fastmcp.Client)"),
        ("samples", {}, "sampling", "a sampling handler (`sampling_handler=` of fastmcp.Client)"),
        ("samples_with_tools", {"sampling_handler": True}, "sampling.tools", "a sampling handler that can call tools"),
        ("lists", {}, "roots", "its directories (`roots=` of fastmcp.Client)"),
    ],
)
async def test_a_missing_capability_is_named_with_what_to_do(
    askback: Rehearsal, tool: str, declared: dict[str, Any], missing: str, advice: str
) -> None:
    async def complete(*args: Any) -> str:
        return "well"

    handlers = dict.fromkeys(declared, complete)
    mode = "auto" if askback.generation == "2026-07-28" else "legacy"
    async with fastmcp.Client(mcp, mode=mode, **handlers) as client:
        with pytest.raises(MCPError) as refused:
            await client.call_tool(tool)
    error = refused.value.error
    assert error.code == -32021
    assert f"it did not declare the capability {missing}. Give the client {advice}" in error.message
    assert list(error.data["requiredCapabilities"]) == [missing.split(".")[0]]


async def test_over_http(askback: Rehearsal) -> None:
    server = FastMCP("http")

    async def ask_for(ctx: SDKContext[Any, Any]) -> Elicit[Sure]:
        assert ctx.headers is not None
        return Elicit(f"Buy for {ctx.headers['x-user']}?", Sure)

    @server.tool
    async def buy(sure: Annotated[Sure, Resolve(ask_for)]) -> str:
        return f"{sure.ok}"

    async with asgi_server(server) as served:
        ada = served.transport(headers={"x-user": "ada"})
        call = await askback.call(ada, "buy", {}, {"Buy for ada": {"ok": True}})
    assert (call.result, call.failed) == ("True", False)


async def test_a_connection_that_cannot_carry_a_question_says_so(askback: Rehearsal) -> None:
    server = FastMCP("http")
    server.tool(asks)
    async with asgi_server(server, stateless_http=True) as served:
        if askback.generation == "2026-07-28":
            call = await askback.call(served.transport(), "asks", {}, {"Sure": {"ok": True}})
            assert (call.result, call.failed) == ("True", False)
        else:
            call = await askback.call(served.transport(), "asks")
            assert (call.result, call.failed, call.exchanges) == (
                "Resolver 'ask' has a question, and this connection cannot carry it to the client (stateless, and "
                "older than 2026-07-28)",
                True,
                [],
            )


@pytest.mark.processes
async def test_a_malformed_response_is_one_stable_sentence() -> None:
    """No client library sends one, so this speaks JSON-RPC to a server of its own."""
    process = await anyio.open_process(
        [sys.executable, "-c", "from tests.test_clients import mcp; mcp.run(show_banner=False)"],
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    lines = BufferedByteReceiveStream(process.stdout)

    async def send(message: dict[str, Any]) -> None:
        assert process.stdin is not None
        await process.stdin.send(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def receive() -> dict[str, Any]:
        return json.loads(await lines.receive_until(b"\n", 100_000))

    async with process:
        with anyio.fail_after(60):
            hello = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "x", "version": "1"}}
            params = {**hello, "capabilities": {"elicitation": {}}}
            await send({"id": 1, "method": "initialize", "params": params})
            await receive()
            await send({"method": "notifications/initialized"})
            await send({"id": 2, "method": "tools/call", "params": {"name": "asks", "arguments": {}}})
            question = await receive()
            assert question["method"] == "elicitation/create"
            await send({"id": question["id"], "result": {"roots": []}})
            answer = await receive()
            process.terminate()
    assert answer["result"]["isError"]
    assert answer["result"]["content"][0]["text"] == "Resolver 'ask': the response is not an answer to its question"


@pytest.mark.askback(over="stdio")
async def test_over_stdio(askback: Rehearsal) -> None:
    call = await askback.call(mcp, "asks", {}, {"Sure": {"ok": True}})
    assert (call.result, call.failed) == ("True", False)
    assert call.messages == ["Sure?"]
