"""The agent side without Pydantic AI: what can be imported, and what another framework plugs in."""

import subprocess
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import fastmcp
import pytest
from opentelemetry.trace import INVALID_SPAN, Span

from askback.agents import Accept, Answers, Defer, PolicyError, Question
from askback.agents.answering import Answering
from askback.agents.calls import CallEndedError, Failure, RunCall, Stop, current_run_call
from askback.agents.decide import Decider, Handlers
from askback.agents.observe import Observer
from askback.exchange.answer import Action
from askback.exchange.transcript import AnswerRecord
from askback.testing import Rehearsal
from askback.toolsets.sessions import AnsweringTransport
from askback.transports import NEVER_CALLED
from tests.agency import desk

WITHOUT_PYDANTIC_AI = """
import asyncio, sys
for name in ("pydantic_ai", "fastmcp", "rich"):
    sys.modules[name] = None

import askback.agents
from askback.agents import (
    Accept, Answer, AnswerRecord, Answers, Cancel, Console, Decline, Defer, PendingQuestion, Policy, PolicyError,
    Question, rules_from, when,
)
from askback.agents.suspension import SuspendedQuestion, Suspension, digest_of
from askback.agents import decide, drivers, observe
from askback.exchange.answer import Action
from askback.exchange.transcript import Conversation

schema = {"type": "object", "properties": {"full": {"type": "boolean"}}}
question = Question(kind="elicitation", mode="form", tool="refund", arguments={}, message="Refund?", schema=schema)
answers = Answers({"Refund": {"full": True}})
policies: list[Policy[None]] = [Console(), rules_from(sys.argv[1]), when(answers, tool="refund")]
answered = asyncio.run(askback.agents.policies.first_answer(policies, None, question))
assert answered == (Accept({"full": True}), "Answers")

questions = {"q": SuspendedQuestion.of(question)}
suspension = Suspension(server="desk", tool="refund", arguments=digest_of({}, "s"), round=1, questions=questions)
(pending,) = Suspension.from_metadata(suspension.to_metadata()).pending("1", {}).values()
assert PendingQuestion.from_json(pending.to_json()).question == question

conversation = Conversation()
conversation(AnswerRecord(question=question, action="decline", policy="me", seconds=0, run_id=None, tool_call_id=None))
assert "declined" in conversation.picture()

for name in ("FromModel", "QuestionAsked", "QuestionAnswered", "pending_questions", "resume_with", "run_until_done"):
    try:
        getattr(askback.agents, name)
    except ImportError as error:
        assert "needs Pydantic AI: pip install 'askback[agent]'" in str(error), error
    else:
        raise SystemExit(f"{name} came without Pydantic AI")
"""


@pytest.mark.processes
def test_policies_and_stored_runs_need_no_framework(tmp_path: Any) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text("[[rule]]\ntool = 'other'\nanswer = 'decline'\n")
    command = [sys.executable, "-W", "error", "-c", WITHOUT_PYDANTIC_AI, str(rules)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


class PlainRun(RunCall):
    """A tool call of a framework that has nothing but a name for its run."""

    def __init__(self, user: str) -> None:
        super().__init__()
        self.user = user
        self.seen: list[str] = []

    @property
    def context(self) -> str:
        return self.user

    @property
    def run_id(self) -> str:
        return f"run of {self.user}"

    @property
    def tool_call_id(self) -> None:
        return None

    @property
    def traces_content(self) -> bool:
        return False

    def span(self, name: str, attributes: Mapping[str, str | int], parent: Any) -> AbstractContextManager[Span]:
        return nullcontext(INVALID_SPAN)

    async def asked(self, question: Question) -> None:
        self.seen.append(question.message)

    async def answered(self, question: Question, action: Action, by: str) -> None:
        self.seen.append(f"{action} by {by}")


def client_of(answering: Answering, mode: Any) -> fastmcp.Client[Any]:
    client: fastmcp.Client[Any] = fastmcp.Client(desk, mode=mode)
    client.transport = AnsweringTransport(client.transport, answering)
    client.set_elicitation_callback(NEVER_CALLED)
    return client


async def call(client: fastmcp.Client[Any], run: RunCall | None) -> str:
    current_run_call.set(run)
    async with client:
        result = await client.call_tool("refund", {"order": "ORD-1"}, raise_on_error=False)
    return result.content[0].text  # pyright: ignore


async def test_another_framework_plugs_in_with_what_it_knows_of_its_run(askback: Rehearsal) -> None:
    def by_user(ctx: Any, question: Question) -> Accept | None:
        return Accept({"full": True, "sku": ctx})

    records: list[AnswerRecord] = []
    answering = Answering(decider=Decider(policies=[by_user]), observer=Observer(records.append))
    run = PlainRun("ada")
    assert await call(client_of(answering, askback.mode), run) == "refunded ORD-1, full=True, sku=ada"
    assert run.seen == ["Refund all of ORD-1?", "accept by by_user"]
    assert [(record.run_id, record.policy) for record in records] == [("run of ada", "by_user")]
    assert run.ended is None


async def test_a_suspended_call_is_a_value(askback: Rehearsal) -> None:
    answering = Answering(decider=Decider(policies=[Defer()]), restartable=True, server=lambda: "desk")
    run = PlainRun("ada")
    with pytest.raises(CallEndedError):
        await call(client_of(answering, askback.mode), run)
    assert isinstance(run.ended, Stop)
    (pending,) = run.ended.suspension.pending("1", {}).values()
    assert pending.question.message == "Refund all of ORD-1?"


async def test_a_failure_is_a_value_inside_a_run_and_raised_outside(askback: Rehearsal) -> None:
    async def fails(context: Any, params: Any) -> Any:
        raise ZeroDivisionError("oops")

    answering = Answering(decider=Decider(policies=[Answers({"Refund": 3})], handlers=Handlers(elicitation=fails)))
    run = PlainRun("ada")
    with pytest.raises(CallEndedError):
        await call(client_of(answering, askback.mode), run)
    assert isinstance(run.ended, Failure)
    assert isinstance(run.ended.error, PolicyError)
    if askback.generation == "2026-07-28":
        with pytest.raises(ZeroDivisionError):
            await call(client_of(answering, askback.mode), None)
    else:
        assert "The client could not answer" in await call(client_of(answering, askback.mode), None)
