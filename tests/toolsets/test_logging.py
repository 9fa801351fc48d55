"""What the agent side says it does: enough to act on, and nothing of what was asked or answered."""

import logging
from typing import Any

import anyio
import fastmcp
import pytest
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

from askback.agents import Accept, Decline, Question, when
from askback.testing import Rehearsal, calls
from tests.agency import Scope, agent, toolset
from tests.stopping import Sure, desk, stoppable

SECRET = "hunter2"


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.DEBUG, "askback")

    def lines() -> list[tuple[str, str]]:
        return [
            (record.levelname, record.getMessage())
            for record in caplog.records
            if record.name.startswith("askback.agents") and record.levelno > logging.DEBUG
        ]

    return lines


async def test_a_question_that_nobody_answers(askback: Rehearsal, logged: Any) -> None:
    await askback.play(agent(toolset(policies=[when(Decline(), tool="other")])))
    assert logged() == [
        ("INFO", "Declined a question (elicitation) of tool 'refund' of server 'desk': nobody answered it")
    ]


async def test_an_answer_says_nothing(askback: Rehearsal, logged: Any) -> None:
    await askback.play(agent(toolset(policies=[Accept(Scope(full=True))])))
    assert logged() == []


async def test_a_question_that_times_out(askback: Rehearsal, logged: Any) -> None:
    async def slow(ctx: Any, question: Question) -> None:
        await anyio.sleep_forever()

    await askback.play(agent(toolset(policies=[slow], answer_timeout=0.01)))
    assert logged() == [("INFO", "A question of tool 'refund' of server 'desk' timed out after 0.01 seconds")]


@pytest.mark.askback("2026-07-28")
async def test_a_form_that_nobody_can_be_shown(
    askback: Rehearsal, logged: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server = fastmcp.FastMCP("hostile")
    schema = {"type": "object", "properties": {SECRET: {"type": "object", "properties": {}}}}

    @server.tool
    async def refund(order: str, ctx: fastmcp.Context) -> Any:
        params = ElicitRequestFormParams(message=SECRET, requested_schema=schema)
        done = ctx.input_responses is not None
        return "done" if done else InputRequiredResult(input_requests={"x": ElicitRequest(params=params)})

    await askback.play(agent(toolset(policies=[Accept({})])), calls("refund", order=SECRET), server)
    assert logged() == [
        (
            "WARNING",
            "Declined a question of tool 'refund' of server 'desk' without asking anyone: it cannot be shown",
        )
    ]
    reasons = [record.getMessage() for record in caplog.records if record.levelno == logging.DEBUG]
    assert f"The question cannot be shown: its field '{SECRET}' has properties, which forms cannot have" in reasons


@pytest.mark.askback("2026-07-28")
async def test_a_call_that_starts_over(askback: Rehearsal, logged: Any) -> None:
    running = stoppable(toolset(policies=[when(Accept({"ok": True}), schema=Sure)], max_rounds=1))
    await askback.play(running, server=desk("k" * 32, 1e-9))
    assert logged() == [
        ("INFO", "Server 'desk' refused the state of a call of tool 'refund': starting over (restart 1 of at most 1)")
    ]


@pytest.mark.askback("2026-07-28")
async def test_a_limit_that_is_hit(askback: Rehearsal, logged: Any) -> None:
    policies = [Accept({"full": True})]
    await askback.play(agent(toolset(policies=policies, max_rounds=1)), calls("wrap", order=SECRET))
    assert logged() == [
        (
            "WARNING",
            "A call of tool 'wrap' of server 'desk' hit a limit: The tool 'wrap' asked for more than 1 rounds",
        )
    ]
