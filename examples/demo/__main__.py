"""The whole of askback in a few seconds: a refund desk that asks, and an agent that answers.

The same order three times: answered by policies, declined by a person, and deferred, to be finished by another process.
"""

import inspect
import os
import tempfile
from pathlib import Path

from askback.agents import pending_questions
from examples.command_line import Options, expect, parser_for, run
from examples.demo import screen
from examples.demo.desk import PROMPT, Desk, customer, house_rule, night_clerk, within_limit
from examples.processes import output_of
from examples.refund_desk.server import mcp, refund_order
from examples.waiting import Waiting


async def by_policy(options: Options) -> None:
    """Policies answer, and the whole call is drawn."""
    screen.title("1. The policies answer")
    (tool,) = await mcp.list_tools()
    visible = list(tool.parameters["properties"])
    hidden = [name for name in inspect.signature(refund_order).parameters if name not in visible]
    screen.line("a user asks", PROMPT)
    screen.line("the model sees", f"{tool.name}({', '.join(visible)})")
    screen.line("it never sees", f"{', '.join(hidden)}, nor the questions and answers", "yellow")
    desk = Desk([within_limit, house_rule], options.model)
    result = await desk.run()
    screen.line("the receipt", result.output, "bold green")
    said = result.all_messages_json().decode()
    expect([each.question.message in said for each in desk.conversation.exchanges], [False, False])
    expect("6150" in said, True)
    screen.console.print()
    screen.picture(desk.conversation.calls[0])


async def by_a_person_who_declines(options: Options) -> None:
    """A person declines, and the model reads why there is no refund."""
    screen.title("2. A person declines")
    desk = Desk([customer], options.model)
    result = await desk.run()
    screen.line("the model", "reads why there is no refund, and says:", "cyan")
    screen.line("", result.output, "red")
    expect([record.action for record in desk.conversation.exchanges], ["decline"])


async def by_somebody_tomorrow(options: Options) -> None:
    """The run is suspended, and another process finishes it."""
    screen.title("3. Nobody is there: the run is suspended, and another process goes on")
    desk = Desk([night_clerk, house_rule], options.model)
    result = await desk.run()
    expect(len(pending_questions(result.output)), 1)
    with tempfile.TemporaryDirectory() as folder:
        document = Waiting(messages=result.all_messages(), requests=result.output).model_dump_json()
        path = Path(folder) / "run.json"
        path.write_text(document)
        screen.line("this process", f"stores the run: {len(document)} bytes of JSON, and nothing else waits", "bold")
        if screen.console.is_terminal and not screen.PLAIN:
            os.environ.setdefault("FORCE_COLOR", "1")
        await output_of("examples.demo.resume", str(path))


async def story(options: Options) -> None:
    """The three parts."""
    await by_policy(options)
    await by_a_person_who_declines(options)
    await by_somebody_tomorrow(options)
    screen.console.print()


if __name__ == "__main__":
    run(parser_for("demo", __doc__, model=True), story)
