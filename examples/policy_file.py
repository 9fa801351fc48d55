"""Rules in a file: change how an agent answers without changing the program.

The rules are in policy_file.toml, next to this program; `--rules` takes another file. A question that matches no rule
is declined, never accepted.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import fastmcp
from pydantic import BaseModel, Field
from pydantic_ai import Agent

from askback import AcceptedElicitation, Elicit, ElicitationResult, Resolve
from askback.agents import AnswerRecord, rules_from
from askback.integration import FastMCP
from askback.testing import calls
from askback.toolsets import ResolverToolset
from examples.command_line import Options, argument, expect, parser_for, run
from examples.narration import narrate, show_answer

mcp = FastMCP("Hotel")
RULES = Path(__file__).with_suffix(".toml")
ACTIONS = {
    "Breakfast, at 12 a day?": "accept, by Rules",
    "Our newsletter, every day?": "decline, by Rules",
    "Insurance, in case you cannot come?": "cancel, by Rules",
    "A parking space, at 20 a day?": "decline, by (nobody)",
}


class Extra(BaseModel):
    """Whether a guest wants an extra."""

    wanted: bool = Field(description="Add it to the booking?")


Answered = ElicitationResult[Extra]


def offer(extra: str) -> Callable[[], Awaitable[Elicit[Extra]]]:
    """A resolver that offers one extra."""

    async def ask() -> Elicit[Extra]:
        return Elicit(f"{extra}?", Extra)

    return ask


@mcp.tool
async def book_room(
    nights: int,
    breakfast: Annotated[Answered, Resolve(offer("Breakfast, at 12 a day"))],
    newsletter: Annotated[Answered, Resolve(offer("Our newsletter, every day"))],
    insurance: Annotated[Answered, Resolve(offer("Insurance, in case you cannot come"))],
    parking: Annotated[Answered, Resolve(offer("A parking space, at 20 a day"))],
) -> str:
    """Book a room."""
    extras = {"breakfast": breakfast, "newsletter": newsletter, "insurance": insurance, "parking": parking}
    wanted = [name for name, answer in extras.items() if isinstance(answer, AcceptedElicitation) and answer.data.wanted]
    return f"Booked for {nights} nights, with {', '.join(wanted) or 'no extras'}."


async def story(options: Options) -> None:
    """Book a room, and let the rules decide on the extras."""
    actions: dict[str, str] = {}

    def on_answer(record: AnswerRecord) -> None:
        show_answer(record)
        actions[record.question.message] = f"{record.action}, by {record.policy}"

    client = fastmcp.Client(mcp, mode=options.mode)
    toolset = ResolverToolset[object](
        client, id="hotel", policies=[options.rules or rules_from(RULES)], on_answer=on_answer
    )
    agent = Agent(options.model or calls("book_room", nights=2), toolsets=[toolset])
    async with agent:
        print(f"On protocol {client.protocol_version}\n")
        result = await agent.run("Book a room for two nights.", event_stream_handler=narrate)
    print(f"The agent says: {result.output}")
    if options.rules is None:
        expect(actions, ACTIONS)


if __name__ == "__main__":
    parser = parser_for("policy_file", __doc__, model=True)
    parser.add_argument("--rules", type=argument(rules_from), metavar="FILE", help="another file of rules")
    run(parser, story)
