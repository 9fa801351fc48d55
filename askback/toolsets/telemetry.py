"""What people can see of a question: a span, and events in the agent's stream."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress

from opentelemetry.trace import INVALID_SPAN, Span
from pydantic_ai import CustomEvent, UserError

from askback.exchange.question import Question
from askback.toolsets.calls import Call


def attributes_of(question: Question) -> dict[str, str | int]:
    """What a span says of a question, always."""
    known = {
        "gen_ai.tool.name": question.tool,
        "askback.question.kind": question.kind,
        "askback.question.mode": question.mode,
        "askback.question.server": question.server,
        "askback.question.key": question.key,
        "askback.round": question.round,
    }
    return {name: value for name, value in known.items() if value is not None}


@contextmanager
def span_for(call: Call, name: str, attributes: Mapping[str, str | int]) -> Generator[Span]:
    """A span of the run that a call belongs to. Not every durable engine carries the run's tracer."""
    tracer = None
    if call.run is not None:
        with suppress(UserError):
            tracer = call.run.ctx.tracer
    if tracer is None:
        yield INVALID_SPAN
    else:
        # An error may repeat what was asked and answered.
        shown = shows_content(call)
        with tracer.start_as_current_span(
            name,
            context=call.trace,
            attributes=dict(attributes),
            record_exception=shown,
            set_status_on_exception=shown,
        ) as span:
            yield span


def shows_content(call: Call) -> bool:
    """Whether the run's instrumentation includes what was said."""
    return call.run is not None and call.run.ctx.trace_include_content


async def emit(call: Call, event: CustomEvent) -> None:
    """Show an event in the agent's stream, where there is one."""
    if call.run is not None:
        with suppress(UserError):
            await call.run.ctx.emit(event)
