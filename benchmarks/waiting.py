"""The cost of suspended runs: while they wait, here and at the server, and to store and load them.

`python -m benchmarks.waiting 10000` suspends that many runs, and fails if anything is held or a limit is exceeded.
"""

import asyncio
import gc
import json
import statistics
import sys
import tempfile
import time
import tracemalloc
from typing import Any

import anyio
from pydantic import TypeAdapter
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from rich.console import Console
from rich.table import Table

from askback.agents import Accept, Defer, pending_questions, resume_with
from askback.toolsets import ResolverToolset
from benchmarks.bookshop import mcp
from benchmarks.side_by_side import repeats

REQUESTS = TypeAdapter(DeferredToolRequests)


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Call the tool, then say that it is done."""
    if len(messages) == 1:
        return ModelResponse(parts=[ToolCallPart("order", {"title": "Dune"})])
    return ModelResponse(parts=[TextPart("done")])


def store(messages: list[ModelMessage], requests: DeferredToolRequests) -> bytes:
    """A suspended run, as a document."""
    return ModelMessagesTypeAdapter.dump_json(messages) + b"\n" + REQUESTS.dump_json(requests)


def read(document: bytes) -> tuple[list[ModelMessage], DeferredToolRequests]:
    """A suspended run, read from its document."""
    messages, requests = document.split(b"\n")
    return ModelMessagesTypeAdapter.validate_json(messages), REQUESTS.validate_json(requests)


def overhead(requests: DeferredToolRequests) -> int:
    """How many bytes are stored besides the messages, questions, answers and the server's own state."""
    (metadata,) = requests.metadata.values()
    kept: dict[str, Any] = metadata["askback"]
    given = sum(len(json.dumps(kept[name])) for name in ("questions", "given", "state"))
    return len(json.dumps(metadata)) - given


async def suspend_many(count: int) -> dict[str, tuple[float, float]]:
    """Suspend `count` runs, and return each figure with its limit."""
    toolset = ResolverToolset[object](mcp, id="shop", policies=[Defer()])
    agent = Agent(FunctionModel(model), toolsets=[toolset], output_type=[str, DeferredToolRequests])
    loaded: list[float] = []
    document = b""

    async def suspend(path: anyio.Path) -> float:
        result = await agent.run("please")
        assert isinstance(result.output, DeferredToolRequests)
        start = time.perf_counter()
        document = store(result.all_messages(), result.output)
        spent = time.perf_counter() - start
        await path.write_bytes(document)
        return spent

    with tempfile.TemporaryDirectory() as folder:
        tracemalloc.start()
        # Let the caches of all libraries fill up first.
        for _ in range(300):
            await suspend(anyio.Path(folder, "0.json"))
        gc.collect()
        tasks = len(asyncio.all_tasks())
        held = tracemalloc.get_traced_memory()[0]
        stored = [await suspend(anyio.Path(folder, f"{number}.json")) for number in range(count)]
        gc.collect()
        figures = sum(map(sys.getsizeof, (stored, *stored)))
        growth = (tracemalloc.get_traced_memory()[0] - held - figures) / count
        tracemalloc.stop()
        waiting_tasks = len(asyncio.all_tasks()) - tasks
        connections = int(toolset.client.is_connected())
        for number in range(count):
            document = await anyio.Path(folder, f"{number}.json").read_bytes()
            start = time.perf_counter()
            read(document)
            loaded.append(time.perf_counter() - start)
    messages, requests = read(document)
    (pending,) = pending_questions(requests)
    results = resume_with(requests, {pending.id: Accept({"confirm": True})})
    finished = await agent.run(message_history=messages, deferred_tool_results=results)
    assert finished.output == "done"
    return {
        "tasks held": (waiting_tasks, 0),
        "connections held": (connections, 0),
        "bytes of memory held, each": (growth, 100),
        "µs to store one": (statistics.median(stored) * 1e6, 1000),
        "µs to read one": (statistics.median(loaded) * 1e6, 1000),
        "bytes of overhead, each": (overhead(requests), 1024),
    }


if __name__ == "__main__":
    count = repeats()
    figures = asyncio.run(suspend_many(count))
    table = Table(f"{count} suspended runs", "measured", "limit")
    for what, (measured, limit) in figures.items():
        table.add_row(what, f"{measured:.0f}", f"{limit}")
    Console().print(table)
    sys.exit(any(measured > limit for measured, limit in figures.values()))
