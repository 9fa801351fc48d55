"""Prints an agent's run as it happens: the tools it calls, and who answers what they ask."""

from collections.abc import AsyncIterable
from typing import Any

from pydantic_ai import AgentStreamEvent, FunctionToolCallEvent, FunctionToolResultEvent, RunContext

from askback.agents import AnswerRecord
from examples.conversation import shown


async def narrate(ctx: RunContext[Any], events: AsyncIterable[AgentStreamEvent]) -> None:
    """Print the calls of a run and their results: an `event_stream_handler`."""
    async for event in events:
        if isinstance(event, FunctionToolCallEvent):
            print(f"{event.part.tool_name}({shown(event.part.args_as_dict())})")
        elif isinstance(event, FunctionToolResultEvent):
            print(f"   {'said' if event.part.outcome == 'success' else 'failed':<9} {event.part.content}")


def show_answer(record: AnswerRecord) -> None:
    """Print a question, its answer and who gave it: an `on_answer`."""
    given = f" with {shown(record.content)}" if record.question.schema and record.content else ""
    print(f"   asked     {record.question.message or f'({record.question.kind})'}")
    print(f"   answered  {record.action}{given}, by {record.policy}")
