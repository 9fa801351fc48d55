"""The steps of a suspended run: start it, list what is pending, answer. Each can happen in another process."""

import os
from pathlib import Path
from typing import Any

import fastmcp
from pydantic_ai import Agent, AgentRunResult, DeferredToolRequests
from pydantic_ai.messages import ToolCallPart

from askback.agents import Accept, Cancel, Decline, Defer, PendingQuestion, pending_questions, resume_with
from askback.testing import ScriptedModel
from askback.toolsets import ResolverToolset
from examples.command_line import Options, StoryError
from examples.inbox.accounts import INVOICES, mcp
from examples.waiting import Waiting


def questions_in(file: Path) -> list[PendingQuestion]:
    """The pending questions of the run in a file."""
    return pending_questions(Waiting.model_validate_json(file.read_text()).requests)


def is_done(file: Path) -> bool:
    """Whether nothing is pending any more."""
    return not file.exists()


def accountant(options: Options) -> Agent[object, str | DeferredToolRequests]:
    """An agent that leaves every question to people. Each process creates its own."""
    toolset = ResolverToolset[object](
        fastmcp.Client(mcp, mode=options.mode),
        id="accounts",
        policies=[Defer()],
        # On 2025-11-25 a call cannot wait: it is cancelled, and made again when there is an answer. That is safe here,
        # because the tool does nothing before it asks.
        restartable=options.mode == "legacy",
    )
    at_once = [ToolCallPart("pay_invoice", {"number": number}) for number in INVOICES]
    return Agent(options.model or ScriptedModel(at_once), toolsets=[toolset], output_type=[str, DeferredToolRequests])


async def start(options: Options) -> None:
    """Run the agent until it is suspended."""
    store(await accountant(options).run(f"Pay {' and '.join(INVOICES)}."), options.file)


async def show(options: Options) -> None:
    """List the pending questions."""
    for pending in questions_in(options.file):
        print(f"   {pending.question.message}\n      id  {pending.id}")


async def answer(options: Options) -> None:
    """Answer one question, and run the agent until it is suspended again or done."""
    waiting = Waiting.model_validate_json(options.file.read_text())
    given = {"accept": Accept(options.content), "decline": Decline(), "cancel": Cancel()}[options.action]
    try:
        results = resume_with(waiting.requests, {options.id: given})
    except ValueError as wrong:
        raise StoryError(str(wrong)) from None
    agent = accountant(options)
    store(await agent.run(message_history=waiting.messages, deferred_tool_results=results), options.file)


def store(result: AgentRunResult[Any], file: Path) -> None:
    """Store a suspended run, or print the output of one that is done."""
    if isinstance(result.output, DeferredToolRequests):
        waiting = Waiting(messages=result.all_messages(), requests=result.output)
        file.write_text(waiting.model_dump_json(indent=1))
        print(f"   Process {os.getpid()} ends. Pending questions: {len(pending_questions(result.output))}")
    else:
        file.unlink(missing_ok=True)
        print(f"   Process {os.getpid()} ends, and the run is done: {result.output}")
