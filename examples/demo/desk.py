"""The agent of the demo, and the policies that answer for it."""

import json
from collections.abc import AsyncIterable, Sequence
from typing import Any

import fastmcp
from pydantic_ai import Agent, AgentStreamEvent, DeferredToolRequests, FunctionToolCallEvent, RunContext
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model

from askback.agents import Accept, AnswerRecord, Decline, Defer, Policy, Question
from askback.testing import Conversation, Rehearsal, calls
from askback.toolsets import ResolverToolset
from examples.demo import screen
from examples.refund_desk.server import Restock, Scope, mcp

PROMPT = "Refund order ORD-7002: it arrived late."


def within_limit(ctx: RunContext[int], question: Question) -> Accept | None:
    """The clerk may refund up to $100 without asking."""
    return Accept(Scope(full=True)) if question.asks(Scope) and ctx.deps >= 10_000 else None


def house_rule(ctx: RunContext[int], question: Question) -> Accept | None:
    """Unopened goods are sold again."""
    return Accept(Restock(restock=True)) if question.asks(Restock) else None


def night_clerk(ctx: RunContext[int], question: Question) -> Defer | None:
    """A manager decides tomorrow."""
    return Defer() if question.asks(Scope) else None


def customer(ctx: RunContext[int], question: Question) -> Decline:
    """The customer has changed their mind."""
    return Decline()


def onlooker(ctx: RunContext[int], question: Question) -> None:
    """Has no opinion, and shows every question."""
    screen.asked(question)


class Desk:
    """An agent at the refund desk, whose calls are shown as they happen."""

    def __init__(self, policies: Sequence[Policy[int]], model: Model | None) -> None:
        self.conversation = Conversation()
        self._reasons = {getattr(each, "__name__", type(each).__name__): (each.__doc__ or "") for each in policies}
        client = fastmcp.Client(Rehearsal(over="stdio").transport(mcp))
        toolset = ResolverToolset[int](client, id="desk", policies=[onlooker, *policies], on_answer=self._answered)
        scripted = calls("refund_order", order_id="ORD-7002", reason="it arrived late")
        self.agent = Agent(
            model or scripted, deps_type=int, toolsets=[toolset], output_type=[str, DeferredToolRequests]
        )

    async def run(self, prompt: str | None = PROMPT, **options: Any) -> Any:
        """Run the agent, and show what happens."""
        result = await self.agent.run(prompt, deps=10_000, event_stream_handler=_show, **options)
        for call in self.conversation.calls:
            call.result = _last_result(result.all_messages())
        return result

    def _answered(self, record: AnswerRecord) -> None:
        self.conversation(record)
        why = self._reasons.get(record.policy, "A manager has decided.")
        screen.answered(record.policy, why, record.action, record.content)


async def _show(ctx: RunContext[int], events: AsyncIterable[AgentStreamEvent]) -> None:
    async for event in events:
        if isinstance(event, FunctionToolCallEvent):
            arguments = ", ".join(f"{name}={value!r}" for name, value in event.part.args_as_dict().items())
            screen.line("the model", f"calls {event.part.tool_name}({arguments})", "cyan")


def _last_result(messages: Sequence[ModelMessage]) -> str:
    results = [part for message in messages for part in message.parts if part.part_kind == "tool-return"]
    content: Any = getattr(results[-1], "content", "") if results else ""
    return content if isinstance(content, str) else json.dumps(content)
