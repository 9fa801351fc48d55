"""A run that waits in a file for people, who answer in their own time, each in another process.

Alone, this tells the whole story, and starts the other processes itself. By hand, a step at a time, options first:

    python -m examples.inbox start FILE
    python -m examples.inbox list FILE
    python -m examples.inbox answer FILE ID accept '{"approved": true}'

Between two steps there is a JSON document, and nothing else: no agent, no server, no connection.
"""

import json
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory

from examples.command_line import Options, argument, expect, parser_for, run
from examples.inbox import steps
from examples.processes import heard


async def story(options: Options) -> None:
    """Stop in one process, and answer in two others."""
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
    """What the run is while nobody is at work on it."""
    # Only servers of 2026-07-28 have a name for a question, by which to go on.
    stopped = all(pending.question.key is not None for pending in steps.questions_in(file))
    then = "goes on where it stopped" if stopped else "is made again from the start"
    return f"Now the run is {file.stat().st_size} bytes of JSON, and nothing runs. Once answered, a call {then}."


async def step(*words: str | Path) -> None:
    """Take a step in a process of its own, with the options of this one."""
    shown = [word.name if isinstance(word, Path) else word for word in words]
    print(f"$ python -m examples.inbox {shlex.join(shown)}", flush=True)
    await heard("examples.inbox", *map(str, words))


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
            taken.add_argument("content", nargs="?", type=argument(json.loads), help="what to accept with, as JSON")
    run(parser, lambda options: options.step(options))
