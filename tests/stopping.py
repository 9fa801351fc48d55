"""A run stopped in one process and finished in another: `python -m tests.stopping serve|start|resume ...`."""

import asyncio
import json
import logging
import os
import sys
from typing import Annotated, Any

import anyio
from mcp.server.request_state import RequestStateSecurity
from pydantic import BaseModel, TypeAdapter
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models import Model

from askback import Elicit, Resolve
from askback.agents import Accept, Defer, pending_questions, resume_with
from askback.integration import FastMCP
from askback.testing import calls
from askback.toolsets import ResolverToolset

REQUESTS = TypeAdapter(DeferredToolRequests)


class Sure(BaseModel):
    ok: bool


class Name(BaseModel):
    name: str


def desk(key: str | None = None, ttl: float = 600, wording: str = "Sure") -> FastMCP[Any]:
    security = RequestStateSecurity(keys=[key], ttl=ttl) if key else None
    server = FastMCP("desk", request_state_security=security)

    async def ask_sure(order: str) -> Elicit[Sure]:
        return Elicit(f"{wording} about {order}?", Sure)

    async def ask_name(sure: Annotated[Sure, Resolve(ask_sure)]) -> Elicit[Name]:
        return Elicit("Whose?", Name)

    @server.tool
    async def refund(
        order: str, sure: Annotated[Sure, Resolve(ask_sure)], name: Annotated[Name, Resolve(ask_name)]
    ) -> str:
        return f"refunded {order} for {name.name} ({sure.ok})"

    return server


def stoppable(toolset: Any, model: Model | None = None, **options: Any) -> Agent[Any, Any]:
    toolsets = toolset if isinstance(toolset, list) else [toolset]
    output_type = [str, DeferredToolRequests]
    return Agent(model or calls("refund", order="ORD-1"), toolsets=toolsets, output_type=output_type, **options)


def stored(result: Any) -> str:
    """A stopped run, as it is put away."""
    messages = json.loads(ModelMessagesTypeAdapter.dump_json(result.all_messages()))
    return json.dumps({"messages": messages, "requests": json.loads(REQUESTS.dump_json(result.output))})


def loaded(text: str) -> tuple[list[Any], DeferredToolRequests]:
    document = json.loads(text)
    return ModelMessagesTypeAdapter.validate_python(document["messages"]), REQUESTS.validate_python(
        document["requests"]
    )


async def main(command: str, *arguments: str) -> None:
    logging.disable(logging.CRITICAL)
    if command == "serve":
        port, key, ttl = arguments
        await desk(key, float(ttl)).run_async(
            transport="http", port=int(port), show_banner=False, uvicorn_config={"log_level": "critical"}
        )
        return
    url, file = arguments[:2]
    agent = stoppable(ResolverToolset(url, id="desk", policies=[Defer()]))
    path = anyio.Path(file)
    if command == "start":
        result = await agent.run("please")
    else:
        messages, requests = loaded(await path.read_text())
        answers = {
            pending.id: Accept({"ok": True} if pending.question.asks(Sure) else {"name": f"process {os.getpid()}"})
            for pending in pending_questions(requests)
        }
        result = await agent.run(message_history=messages, deferred_tool_results=resume_with(requests, answers))
    if isinstance(result.output, DeferredToolRequests):
        await path.write_text(stored(result))
        print("stopped:", *(pending.question.message for pending in pending_questions(result.output)))  # noqa: T201
    else:
        print("finished:", result.output)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
