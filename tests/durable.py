"""A run under DBOS: `python -m tests.durable FOLDER [answer]`, killed and started again as often as it takes."""

import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import Any

from dbos import DBOS, SetWorkflowID
from pydantic_ai import DeferredToolRequests
from pydantic_ai.durable_exec.dbos import DBOSDurability

from askback.agents import Accept, Defer, Question, pending_questions, resume_with, when
from askback.toolsets import ResolverToolset
from tests.stopping import Name, Sure, desk, stoppable

folder = Path(sys.argv[1])


def note(name: str, line: str) -> int:
    """Write down that something happened, and say how often it has."""
    path = folder / name
    with path.open("a") as file:
        file.write(f"{line}\n")
    return len(path.read_text().splitlines())


async def slow_the_first_time(ctx: Any, question: Question) -> Accept:
    if note("answering", question.message) == 1:
        await asyncio.sleep(3600)
    return Accept({"name": "Ada"})


toolset = ResolverToolset(
    desk("k" * 32), id="desk", policies=[when(slow_the_first_time, schema=Name), Defer()], init_timeout=30
)
agent = stoppable(toolset, name="durable", capabilities=[DBOSDurability()])


@DBOS.step()
async def ask_person(message: str) -> None:
    note("asked", message)


@DBOS.workflow()
async def refund() -> str:
    result = await agent.run("please")
    while isinstance(result.output, DeferredToolRequests):
        requests = result.output
        answers = {}
        for pending in pending_questions(requests):
            assert pending.question.asks(Sure)
            await ask_person(pending.question.message)
            note("waiting", pending.question.message)
            answers[pending.id] = Accept(json.loads(await DBOS.recv_async("answer", timeout_seconds=600)))
        result = await agent.run(
            message_history=result.all_messages(), deferred_tool_results=resume_with(requests, answers)
        )
    return result.output


async def main() -> None:
    logging.disable(logging.CRITICAL)
    DBOS(
        config={
            "name": "askback-durable",
            "system_database_url": f"sqlite:///{folder / 'dbos.sqlite'}",
            "application_version": "1",
            "log_level": "CRITICAL",
        }
    )
    DBOS.launch()
    with SetWorkflowID("refund"):
        handle = await DBOS.start_workflow_async(refund)
    if len(sys.argv) > 2:
        await DBOS.send_async("refund", sys.argv[2], "answer")
    note("finished", await handle.get_result())
    DBOS.destroy()


if __name__ == "__main__":
    asyncio.run(main())
