"""The cost of answering for an agent, compared with the stock `MCPToolset`.

Every figure is the median of interleaved tool calls of a run over an in-process connection. `python -m
benchmarks.toolset` prints a table and fails if a ratio exceeds its limit.
"""

import asyncio
import warnings
from typing import Any

import fastmcp
from pydantic_ai import RunContext, RunUsage
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.test import TestModel

from askback.agents import Accept, Question
from askback.toolsets import ResolverToolset
from benchmarks.bookshop import mcp
from benchmarks.side_by_side import Call, Row, measure, repeats, report


def agree(ctx: RunContext[Any], question: Question) -> Accept:
    """Agree, as a policy."""
    return Accept({"confirm": True})


async def agree_by_hand(message: str, response_type: Any, params: Any, context: Any) -> dict[str, bool]:
    """Agree, as a handler."""
    return {"confirm": True}


async def calling(toolset: MCPToolset[Any], name: str) -> Call:
    """A tool call, made the way a run makes it."""
    ctx = RunContext[Any](deps=None, model=TestModel(), usage=RunUsage(), run_id="run", tool_name=name)
    tool = (await toolset.get_tools(ctx))[name]
    return lambda: toolset.call_tool(name, {"title": "Dune"}, ctx, tool)


async def compare(times: int) -> list[Row]:
    """Take all measurements, on both generations."""
    rows: list[Row] = []
    for mode in ("auto", "legacy"):
        generation = "2026-07-28" if mode == "auto" else "2025-11-25"
        ours = ResolverToolset[Any](fastmcp.Client(mcp, mode=mode), policies=[agree])
        stock = MCPToolset[Any](fastmcp.Client(mcp, mode=mode, elicitation_handler=agree_by_hand))
        async with ours, stock:
            taken = await measure(
                {
                    "ours": await calling(ours, "plain"),
                    "stock": await calling(stock, "plain"),
                    "ours, asking": await calling(ours, "order"),
                    "stock, asking": await calling(stock, "order"),
                },
                times,
            )
        rows += [
            Row(f"a call, {generation}", taken["ours"], "stock", taken["stock"], 1.05),
            Row(
                f"a question, {generation}", taken["ours, asking"], "stock with a handler", taken["stock, asking"], 1.1
            ),
        ]
    return rows


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    report(asyncio.run(compare(repeats())))
