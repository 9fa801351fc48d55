"""Servers that ask what nobody can be asked."""

import sys
from typing import Any

import anyio
import fastmcp
import pytest
from fastmcp.client.transports import StdioTransport
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ImageContent,
    InputRequiredResult,
    SamplingMessage,
    TextContent,
    ToolResultContent,
)

from askback.agents import Accept, Question
from askback.testing import Generation, Rehearsal
from tests.agency import agent, toolset


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


def asking(generation: Generation, message: str, schema: Any) -> fastmcp.FastMCP[Any]:
    server = fastmcp.FastMCP("hostile")

    @server.tool
    async def refund(order: str, ctx: fastmcp.Context) -> Any:
        params = ElicitRequestFormParams(message=message, requested_schema=schema)
        if generation == "2025-11-25":
            return (await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)).action
        if ctx.input_responses is None:
            return InputRequiredResult(input_requests={"x": ElicitRequest(params=params)})
        return ctx.input_responses["x"].action  # pyright: ignore

    return server


OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("message", "schema"),
    [
        pytest.param("m" * 1_000_000, OBJECT, id="a message of a megabyte"),
        pytest.param(
            "?",
            {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(10_000)}},
            id="10,000 properties",
        ),
        pytest.param("?", nested(50), id="nesting"),
        pytest.param("?", {"type": "object", "properties": {"x": {"type": "string", "minLength": -1}}}, id="no schema"),
        pytest.param(
            "?", {"type": "object", "properties": {"x": {"type": "string", "title": "t" * 100_000}}}, id="long"
        ),
    ],
)
async def test_an_unusable_question_is_declined_without_asking_anybody(
    askback: Rehearsal, message: str, schema: Any
) -> None:
    def nobody(ctx: None, question: Question) -> Accept:
        raise AssertionError("somebody was asked")

    server = asking(askback.generation, message, schema)
    run = await askback.play(agent(toolset()), server=server, answers=nobody)
    assert run.output == "decline"
    assert [record.policy for record in run.answers] == ["(unusable question)"]


@pytest.mark.askback("2026-07-28")
async def test_a_server_that_never_stops_asking_is_given_up(askback: Rehearsal) -> None:
    server = fastmcp.FastMCP("endless")

    @server.tool
    async def refund(order: str, ctx: fastmcp.Context) -> Any:
        number = int(ctx.request_state or "0")
        params = ElicitRequestFormParams(message=f"{number}?", requested_schema=OBJECT)
        return InputRequiredResult(input_requests={"x": ElicitRequest(params=params)}, request_state=f"{number + 1}")

    run = await askback.play(agent(toolset(policies=[Accept({})])), server=server)
    assert "asked for more than 10 rounds" in run.output
    assert [record.question.message for record in run.answers] == [f"{number}?" for number in range(10)]


@pytest.mark.askback("2026-07-28")
async def test_too_many_questions_at_once_are_refused(askback: Rehearsal) -> None:
    server = fastmcp.FastMCP("many")

    @server.tool
    async def refund(order: str) -> Any:
        params = ElicitRequestFormParams(message="?", requested_schema=OBJECT)
        return InputRequiredResult(input_requests={f"{n}": ElicitRequest(params=params) for n in range(101)})

    run = await askback.play(agent(toolset(policies=[Accept({})])), server=server)
    assert "asked 101 questions at once; more than 100 are refused" in run.output


@pytest.mark.askback("2026-07-28")
async def test_a_server_that_asks_for_patience_gets_it(askback: Rehearsal) -> None:
    server = fastmcp.FastMCP("slow")

    @server.tool
    async def refund(order: str, ctx: fastmcp.Context) -> Any:
        count = int(ctx.request_state or "0")
        return InputRequiredResult(request_state=f"{count + 1}") if count < 2 else "done"

    with anyio.fail_after(10):
        run = await askback.play(agent(toolset(policies=[Accept({})])), server=server)
    assert run.output == "done"


RAW = """
import json, sys
DONE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
RESULTS = {
    "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, **DONE},
    "tools/list": {"tools": [{"name": "refund", "inputSchema": {"type": "object"}}], **DONE},
    "tools/call": {"resultType": "input_required", "inputRequests": {"x": {"method": "mind/read", "params": {}}}},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": RESULTS[message["method"]]}), flush=True)
"""


@pytest.mark.processes
async def test_a_kind_of_question_that_nobody_knows_is_refused() -> None:
    """No server of a library sends one, so this one is written by hand."""
    transport = StdioTransport(sys.executable, ["-c", RAW], keep_alive=False)
    with anyio.fail_after(30):
        output = (await agent(toolset(transport, policies=[Accept({})])).run("please")).output
    assert output == "The server's response to 'refund' is not valid in this protocol version"


BAD_SAMPLES = [
    (
        [SamplingMessage(role="user", content=ImageContent(data="not base64!", mime_type="image/png"))],
        "not valid base64",
    ),
    (
        [SamplingMessage(role="user", content=[ToolResultContent(tool_use_id="1", content=[])])],
        "a tool's result without its call",
    ),
    (
        [SamplingMessage(role="assistant", content=[ToolResultContent(tool_use_id="1", content=[])])],
        "an assistant's message has a tool's result",
    ),
    ([SamplingMessage(role="user", content=TextContent(text="m" * 1_000_000))], "longer than 20000 characters"),
]


@pytest.mark.parametrize(("messages", "reason"), BAD_SAMPLES)
async def test_a_sample_that_cannot_be_made_fails_the_call_in_words(
    askback: Rehearsal, messages: Any, reason: str
) -> None:
    server = fastmcp.FastMCP("samples")

    @server.tool
    async def refund(order: str, ctx: fastmcp.Context) -> Any:
        request = CreateMessageRequest(params=CreateMessageRequestParams(messages=messages, max_tokens=5))
        if askback.generation == "2026-07-28":
            return InputRequiredResult(input_requests={"x": request})
        from mcp.shared.message import ServerMessageMetadata
        from mcp_types import CreateMessageResult

        return str(
            await ctx.session.send_request(
                request, CreateMessageResult, metadata=ServerMessageMetadata(related_request_id=ctx.request_id)
            )
        )

    run = await askback.play(agent(toolset(sampling_from="run")), server=server)
    assert reason in run.output
