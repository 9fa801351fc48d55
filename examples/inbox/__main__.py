"""A suspended run in a file, which people answer in their own time, each in another process.

Without arguments, this runs the whole story and starts the other processes itself. By hand, one step at a time, with
options first:

    python -m examples.inbox start FILE
    python -m examples.inbox list FILE
    python -m examples.inbox answer FILE ID accept '{"approved": true}'

Between two steps there is only a JSON document: no agent, no server, no connection.
"""

import json
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory

from examples.command_line import Options, argument, expect, parser_for, run
from examples.inbox import steps
from examples.processes import output_of


async def story(options: Options) -> None:
    """Suspend the run in one process, and answer in two others."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "inbox.json")
        await step("start", file)
        print(f"\n{described(file)}\n")
        await step("list", file)
        first, second = steps.questions_in(file)
        await step("answer", file, first.id, "accept", '{"approved": true}')
        (left,) = steps.questions_in(file)
        expect(left.question, second.question)
        await step("answer", file, left.id, "decline")
        expect(steps.is_done(file), True)


def described(file: Path) -> str:
    """What a suspended run consists of."""
    resumable = all(pending.question.in_rounds for pending in steps.questions_in(file))
    then = "goes on where it stopped" if resumable else "is made again from the start"
    return (
        f"Now the run is {file.stat().st_size} bytes of JSON, and no process is running. Once answered, a call {then}."
    )


async def step(*words: str | Path) -> None:
    """Take a step in its own process, with the options of this one."""
    shown = [word.name if isinstance(word, Path) else word for word in words]
    print(f"$ python -m examples.inbox {shlex.join(shown)}", flush=True)
    await output_of("examples.inbox", *map(str, words))


if __name__ == "__main__":
    parser = parser_for("inbox", __doc__, model=True)
    parser.set_defaults(step=story)
    by_hand = parser.add_subparsers(title="steps")
    for name, function in {"start": steps.start, "list": steps.show, "answer": steps.answer}.items():
        taken = by_hand.add_parser(name, help=function.__doc__)
        taken.add_argument("file", type=Path)
        taken.set_defaults(step=function)
        if name == "answer":
            taken.add_argument("id", help="as `list` prints it")
            taken.add_argument("action", choices=["accept", "decline", "cancel"])
            taken.add_argument(
                "content", nargs="?", type=argument(json.loads), help="the content to accept with, as JSON"
            )
    run(parser, lambda options: options.step(options))
