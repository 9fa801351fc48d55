"""A tool call of a Pydantic AI run, as the answering side sees it."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from opentelemetry import context as otel
from opentelemetry.trace import INVALID_SPAN, Span
from pydantic_ai import CustomEvent, RunContext, UserError
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, RunCancelled, UsageLimitExceeded
from typing_extensions import override

from askback.agents.calls import RunCall
from askback.agents.suspension import Suspension
from askback.exchange.answer import Action
from askback.exchange.question import Question
from askback.toolsets.events import QuestionAnswered, QuestionAsked


class PydanticRunCall(RunCall):
    """The plug: a tool call with the `RunContext` of its run.

    Not every durable engine carries the whole context: without a tracer there are no spans, and where events cannot be
    emitted they are left out.
    """

    passing = (UsageLimitExceeded, RunCancelled, ApprovalRequired, CallDeferred)

    def __init__(self, ctx: RunContext[Any], resumption: Suspension | None = None) -> None:
        super().__init__(resumption)
        self._ctx = ctx

    @property
    @override
    def context(self) -> RunContext[Any]:
        return self._ctx

    @property
    @override
    def run_id(self) -> str | None:
        return self._ctx.run_id

    @property
    @override
    def tool_call_id(self) -> str | None:
        return self._ctx.tool_call_id

    @property
    @override
    def traces_content(self) -> bool:
        return self._ctx.trace_include_content

    @override
    @contextmanager
    def span(self, name: str, attributes: Mapping[str, str | int], parent: otel.Context | None) -> Generator[Span]:
        tracer = None
        with suppress(UserError):
            tracer = self._ctx.tracer
        if tracer is None:
            yield INVALID_SPAN
            return
        # An error may repeat what was asked and answered.
        with tracer.start_as_current_span(
            name,
            context=parent,
            attributes=dict(attributes),
            record_exception=self.traces_content,
            set_status_on_exception=self.traces_content,
        ) as span:
            yield span

    @override
    async def asked(self, question: Question) -> None:
        await self._emit(QuestionAsked(question=question))

    @override
    async def answered(self, question: Question, action: Action, by: str) -> None:
        await self._emit(QuestionAnswered(question=question, action=action, policy=by))

    async def _emit(self, event: CustomEvent) -> None:
        with suppress(UserError):
            await self._ctx.emit(event)
