"""The second process of the demo: all it has is a file, with the run to finish."""

import os

import anyio

from askback.agents import Accept, pending_questions, resume_with
from examples.command_line import Options, expect, parser_for, run
from examples.demo import screen
from examples.demo.desk import Desk, house_rule
from examples.refund_desk.server import Scope
from examples.waiting import Waiting


async def story(options: Options) -> None:
    """Answer what is pending, and resume the run."""
    waiting = Waiting.model_validate_json(await anyio.Path(options.file).read_text())
    screen.line("another process", f"({os.getpid()}) opens it", "bold")
    pending = pending_questions(waiting.requests)
    for each in pending:
        screen.line("is pending", each.question.message, "magenta")
    answers = {each.id: Accept(Scope(full=False, sku="LAMP")) for each in pending}
    desk = Desk([house_rule], options.model)
    results = resume_with(waiting.requests, answers)
    result = await desk.run(None, message_history=waiting.messages, deferred_tool_results=results)
    screen.line("the receipt", result.output, "bold green")
    expect("4900" in result.output, True)


if __name__ == "__main__":
    parser = parser_for("demo.resume", __doc__, model=True)
    parser.add_argument("file", help="the stored run")
    run(parser, story)
