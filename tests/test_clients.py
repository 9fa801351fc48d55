"""What a client must be able to do, models and roots, background tasks, HTTP, and processes."""

import json
import subprocess
import sys
from typing import Annotated, Any

import anyio
import fastmcp
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from fastmcp.client.transports import FastMCPTransport, StdioTransport
from fastmcp.utilities.tests import asgi_client, asgi_server
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
    SamplingToolsCapability,
    TextContent,
    Tool,
    ToolChoice,
    ToolUseContent,
)
from pydantic import BaseModel

from askback import Elicit, ListRoots, Resolve, Sample
from askback.integration import FastMCP, build_resolver_plans, find_resolved_parameters, resolve_arguments
from tests.conversation import Generation, Person, accept, asked, connect, one_round, said
from tests.test_engine import Rounds
from tests.test_rounds import state_of


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


def open_client(generation: Generation, **options: Any) -> fastmcp.Client[Any]:
    return fastmcp.Client(mcp, mode=generation, **options)


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
    generation: Generation, tool: str, options: dict[str, Any], required: dict[str, Any]
) -> None:
    async with open_client(generation, **options) as client:
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
            with pytest.raises(MCPError, match="did not declare that it can answer"):
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
        with pytest.raises(MCPError, match="did not declare that it can answer"):
            await resolution


async def test_a_model_answers_a_sample(generation: Generation) -> None:
    seen: list[Any] = []

    def model(_: Any, params: Any, __: Any) -> str:
        seen.append((params.messages[0].content.text, params.max_tokens, params.system_prompt, params.temperature))
        return "well"

    async with open_client(generation, sampling_handler=model) as client:
        assert said(await client.call_tool("samples")) == "CreateMessageResult well"
    assert seen == [("Well?", 7, "Be brief", 0.5)]


async def test_a_sample_may_offer_tools(generation: Generation) -> None:
    def model(_: Any, params: Any, __: Any) -> Any:
        if params.tools is None:
            return "dry"
        use = ToolUseContent(name=params.tools[0].name, id="1", input={})
        return CreateMessageResultWithTools(role="assistant", model="m", content=[use], stop_reason="toolUse")

    capabilities = SamplingCapability(tools=SamplingToolsCapability())
    async with open_client(generation, sampling_handler=model, sampling_capabilities=capabilities) as client:
        assert said(await client.call_tool("samples_with_tools")) == "CreateMessageResultWithTools ['tool_use']"
        assert said(await client.call_tool("samples_with_choice")) == "CreateMessageResultWithTools ['text']"


async def test_a_client_lists_its_roots(generation: Generation) -> None:
    async with open_client(generation, roots=["file:///a", "file:///b"]) as client:
        assert said(await client.call_tool("lists")) == "file:///a file:///b"


async def test_kinds_of_questions_mix(generation: Generation) -> None:
    person = Person({"Sure?": {"ok": True}})
    async with connect(mcp, generation, person, roots=["file:///a"], sampling_handler=lambda *_: "well") as client:
        assert said(await client.call_tool("does_all")) == "True 1 well"
    assert person.asked == ["Sure?"]


async def test_a_sample_of_the_wrong_kind_is_one_stable_sentence() -> None:
    async with open_client("auto", sampling_handler=lambda *_: "x", roots=["file:///a"]) as client:
        for tool, resolver in (("samples", "sample"), ("lists", "list_roots")):
            first = await one_round(client, tool)
            (key,) = asked(first)
            second = await one_round(client, tool, answers={key: accept(ok=True)}, state=state_of(first))
            assert said(second) == f"failed: Resolver '{resolver}': the response is not an answer to its question"


async def test_background_tasks_ask_too() -> None:
    server = FastMCP("tasks")
    server.add_extension(TasksExtension())

    async def ask_for(title: str) -> Elicit[Sure]:
        return Elicit(f"Buy {title}?", Sure)

    @server.tool(task=True)
    async def buy(ctx: fastmcp.Context, sure: Annotated[Sure, Resolve(ask_for)], title: str = "Dune") -> str:
        return f"{title} {sure.ok} {ctx.is_background_task}"

    person = Person({"Buy": {"ok": True}})
    async with connect(server, "auto", person) as client:
        assert said(await client.call_tool("buy", {"sure": {"ok": False}})) == "Dune True True"
    assert person.asked == ["Buy Dune?"]


async def test_over_http(generation: Generation) -> None:
    server = FastMCP("http")

    async def ask_for(ctx: SDKContext[Any, Any]) -> Elicit[Sure]:
        assert ctx.headers is not None
        return Elicit(f"Buy for {ctx.headers['x-user']}?", Sure)

    @server.tool
    async def buy(sure: Annotated[Sure, Resolve(ask_for)]) -> str:
        return f"{sure.ok}"

    person = Person({"Buy for ada?": {"ok": True}})
    async with asgi_client(server, headers={"x-user": "ada"}, mode=generation, elicitation_handler=person) as client:
        assert said(await client.call_tool("buy")) == "True"


async def test_a_connection_that_cannot_carry_a_question_says_so() -> None:
    person = Person({"Sure?": {"ok": True}})
    server = FastMCP("http")
    server.tool(asks)
    async with asgi_server(server, stateless_http=True) as served:
        async with served.client(mode="auto", elicitation_handler=person) as client:
            assert said(await client.call_tool("asks")) == "True"
        async with served.client(mode="legacy", elicitation_handler=person) as client:
            sentence = said(await client.call_tool("asks", raise_on_error=False))
    assert sentence == (
        "failed: Resolver 'ask' has a question, and this connection cannot carry it to the client (stateless, and "
        "older than 2026-07-28)"
    )
    assert person.asked == ["Sure?"]


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


async def test_over_stdio(generation: Generation) -> None:
    transport = StdioTransport(sys.executable, ["-c", "from tests.test_clients import mcp; mcp.run(show_banner=False)"])
    person = Person({"Sure?": {"ok": True}})
    with anyio.fail_after(60):
        async with fastmcp.Client(transport, mode=generation, elicitation_handler=person) as client:
            assert said(await client.call_tool("asks")) == "True"
    assert person.asked == ["Sure?"]
