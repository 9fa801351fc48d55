"""The process that is killed and started again: `python -m examples.durable.work FOLDER [ANSWER]`.

Its work is a DBOS workflow, whose steps are recorded in a database in the folder.
"""

import json
import os
from pathlib import Path

import fastmcp
from dbos import DBOS, SetWorkflowID
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.durable_exec.dbos import DBOSDurability

from askback.agents import Accept, Answer, Defer, pending_questions, resume_with
from askback.testing import calls
from askback.toolsets import ResolverToolset
from examples.command_line import Options, parser_for, run
from examples.inbox.accounts import mcp

WORKFLOW = "pay INV-31"


@DBOS.step()
async def ask_person(question: str) -> None:
    """Notify a person of a question. As a step, it runs once."""
    print(f"   Process {os.getpid()} asks: {question}", flush=True)


async def pay(options: Options) -> None:
    """Start the workflow, or resume it."""
    toolset = ResolverToolset[object](
        fastmcp.Client(mcp, mode=options.mode),
        id="accounts",
        policies=[Defer()],
        restartable=options.mode == "legacy",
    )
    agent = Agent(
        options.model or calls("pay_invoice", number="INV-31"),
        name="accountant",
        toolsets=[toolset],
        output_type=[str, DeferredToolRequests],
        capabilities=[DBOSDurability()],
    )

    @DBOS.workflow()
    async def work() -> str:
        result = await agent.run("Pay INV-31.")
        while isinstance(result.output, DeferredToolRequests):
            answers: dict[str, Answer] = {}
            for pending in pending_questions(result.output):
                await ask_person(pending.question.message)
                print(f"   Process {os.getpid()} waits for the answer", flush=True)
                answers[pending.id] = Accept(json.loads(await DBOS.recv_async("answer", timeout_seconds=600)))
            results = resume_with(result.output, answers)
            result = await agent.run(message_history=result.all_messages(), deferred_tool_results=results)
        return result.output

    database = f"sqlite:///{options.folder / 'steps.sqlite'}"
    DBOS(config={"name": "examples", "system_database_url": database, "application_version": "1"})
    DBOS.launch()
    with SetWorkflowID(WORKFLOW):
        handle = await DBOS.start_workflow_async(work)
    if options.answer is not None:
        await DBOS.send_async(WORKFLOW, options.answer, "answer")
    print(f"   Process {os.getpid()} is done: {await handle.get_result()}", flush=True)
    DBOS.destroy()


if __name__ == "__main__":
    parser = parser_for("durable.work", __doc__, model=True)
    parser.add_argument("folder", type=Path)
    parser.add_argument("answer", nargs="?")
    run(parser, pay)
