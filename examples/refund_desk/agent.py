"""An agent at the same desk: its policies answer, and a person decides the rest."""

from dataclasses import dataclass

import fastmcp
from fastmcp.client.transports import ClientTransport
from pydantic_ai import Agent, RunContext

from askback.agents import Accept, AnswerRecord, Answers, Console, Question
from askback.testing import calls
from askback.toolsets import ResolverToolset
from examples.command_line import Options, expect
from examples.narration import narrate, show_answer
from examples.refund_desk.server import Restock, Scope


@dataclass
class Clerk:
    """The person on whose behalf the agent works."""

    name: str
    limit: int


def small_refunds(ctx: RunContext[Clerk], question: Question) -> Accept | None:
    """A clerk with a high enough limit gets a full refund without a question."""
    if question.asks(Scope) and ctx.deps.limit >= 10_000:
        return Accept(Scope(full=True))
    return None


def supervisor(ctx: RunContext[Clerk], question: Question) -> Accept | None:
    """Stands in for the person who is asked last; `--ask` asks you instead."""
    return Accept(Scope(full=False, sku="LAMP")) if question.asks(Scope) else None


async def story(server: ClientTransport, options: Options) -> None:
    """Refund the same order for two clerks: the same policies see different runs."""
    answered: list[tuple[str, str]] = []

    def on_answer(record: AnswerRecord) -> None:
        show_answer(record)
        answered.append((record.policy, record.action))

    person = Console() if options.ask else supervisor
    always_restock = Answers({Restock: Restock(restock=True)})
    client = fastmcp.Client(server, mode=options.mode)
    toolset = ResolverToolset[Clerk](
        client, id="desk", policies=[small_refunds, always_restock, person], on_answer=on_answer
    )
    model = options.model or calls("refund_order", order_id="ORD-7002", reason="the lamp is broken")
    agent = Agent(model, deps_type=Clerk, toolsets=[toolset])
    async with agent:
        print(f"\nAn agent, on protocol {client.protocol_version}")
        for clerk in (Clerk("Ada", limit=10_000), Clerk("Bob", limit=1_000)):
            print(f"\n{clerk.name} may refund up to {clerk.limit} cents.")
            prompt = "Refund order ORD-7002: the lamp is broken."
            result = await agent.run(prompt, deps=clerk, event_stream_handler=narrate)
            print(f"The agent says: {result.output}")
    rule, person_asked = type(always_restock).__name__, "Console" if options.ask else "supervisor"
    expect([who for who, _ in answered], ["small_refunds", rule, person_asked, rule])
