"""Observing: the span, the events, the record and the time limit around a decision."""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from inspect import isawaitable

import anyio
from opentelemetry.trace import INVALID_SPAN, Span

from askback.agents.calls import Call
from askback.agents.decide import Decision, timed_out
from askback.exchange.question import Question
from askback.exchange.transcript import AnswerRecord, OnAnswer

logger = logging.getLogger(__name__)


@dataclass
class Observer:
    """Shows to whoever wants to see it what was asked, what was answered and by whom."""

    on_answer: OnAnswer | None = None
    answer_timeout: float | None = None

    async def decided(self, call: Call, question: Question, decide: Callable[[], Awaitable[Decision]]) -> Decision:
        """Have a question decided within the time limit, and show the decision."""
        if call.run is not None:
            await call.run.asked(question)
        started = time.perf_counter()
        decision: Decision | None = None
        with span_of(call, f"answer {question.kind}", _attributes(question)) as span:
            with anyio.move_on_after(self.answer_timeout):
                decision = await decide()
            if decision is None:
                decision = timed_out(question)
                logger.info(
                    "A question of tool %r of server %r timed out after %s seconds",
                    question.tool,
                    question.server,
                    self.answer_timeout,
                )
            span.set_attributes({"askback.answer.action": decision.action, "askback.answer.policy": decision.by})
            if span.is_recording() and call.run is not None and call.run.traces_content:
                span.set_attribute("askback.question.message", question.message)
                span.set_attribute("askback.answer.content", str(decision.content))
        await self.record(call, question, decision, time.perf_counter() - started)
        return decision

    async def record(self, call: Call, question: Question, decision: Decision, seconds: float = 0.0) -> None:
        """Show a decision to the run's listeners and to the application."""
        if call.run is None:
            return
        await call.run.answered(question, decision.action, decision.by)
        if self.on_answer is not None:
            record = AnswerRecord(
                question=question,
                action=decision.action,
                policy=decision.by,
                content=decision.content,
                seconds=seconds,
                run_id=call.run.run_id,
                tool_call_id=call.run.tool_call_id,
            )
            seen = self.on_answer(record)
            if isawaitable(seen):
                await seen


def span_of(call: Call, name: str, attributes: Mapping[str, str | int]) -> AbstractContextManager[Span]:
    """A span in the trace of the run that a call belongs to."""
    return call.run.span(name, attributes, call.trace) if call.run is not None else nullcontext(INVALID_SPAN)


def _attributes(question: Question) -> dict[str, str | int]:
    known = {
        "gen_ai.tool.name": question.tool,
        "askback.question.kind": question.kind,
        "askback.question.mode": question.mode,
        "askback.question.server": question.server,
        "askback.question.key": question.key,
        "askback.round": question.round,
    }
    return {name: value for name, value in known.items() if value is not None}
