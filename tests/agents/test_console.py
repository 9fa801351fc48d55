"""The person at the terminal."""

import io
import os
import pty
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from askback.agents import Accept, Cancel, Console, Decline, Question

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "sku": {"type": "string", "minLength": 2, "maxLength": 5, "description": "Which item?"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 1},
        "weight": {"type": "number"},
        "full": {"type": "boolean"},
        "size": {"type": "string", "enum": ["S", "M"], "enumNames": ["Small", "Medium"]},
        "paper": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b"}]},
        "extras": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "minItems": 1},
        "mail": {"type": "string", "format": "email"},
    },
    "required": ["sku", "full"],
}


def question(**given: Any) -> Question:
    known: dict[str, Any] = {"kind": "elicitation", "server": "desk", "tool": "refund", "arguments": {}}
    known |= {"mode": "form", "message": "Refund it?", "schema": FORM}
    return Question(**(known | given))


class Terminal:
    def __init__(self, master: int, source: Any) -> None:
        self.output = io.StringIO()
        self.source = source
        self.console = Console(input=source, output=self.output)
        self._master = master

    async def type(self, *lines: str) -> None:
        for line in lines:
            os.write(self._master, f"{line}\n".encode())
            await anyio.lowlevel.checkpoint()

    async def shows(self, text: str, times: int = 1) -> None:
        while self.output.getvalue().count(text) < times:  # noqa: ASYNC110 - a screen has no events
            await anyio.sleep(0.001)


@asynccontextmanager
async def terminal() -> AsyncGenerator[Terminal]:
    master, slave = pty.openpty()
    with anyio.fail_after(5), open(slave, closefd=False) as source:  # noqa: ASYNC230
        yield Terminal(master, source)
    os.close(slave)
    os.close(master)


async def ask(at: Terminal, asked: Question, *lines: str) -> Any:
    answers: list[Any] = []

    async def run() -> None:
        answers.append(await at.console(None, asked))  # pyright: ignore

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await at.shows("ancel?")
        for line in lines:
            await at.type(line)
    return answers[0]


async def test_a_form_is_shown_and_filled_in() -> None:
    async with terminal() as at:
        lines = ("a", "ABC", "", "1.5", "yes", "S", "r", "x, y", "a@b.c")
        content = {
            "sku": "ABC",
            "weight": 1.5,
            "full": True,
            "size": "S",
            "paper": "r",
            "extras": ["x", "y"],
            "mail": "a@b.c",
        }
        assert await ask(at, question(), *lines) == Accept(content)
        shown = at.output.getvalue()
    assert "refund of desk asks" in shown
    assert "Refund it?" in shown
    for line in (
        "sku  string characters, at least 2 characters, at most 5 - Which item?",
        "count  integer at least 1 at most 9 [default: 1]",
        "size  string one of  S (Small), M (Medium)",
        "paper  string one of  r (Red), b",
        "extras  array any of, separated by commas:  x, y choices, at least 1",
        "mail  string (email)",
    ):
        assert line in " ".join(shown.split("\n")), line


async def test_wrong_input_is_asked_again_with_the_reason() -> None:
    async with terminal() as at:
        small = {
            "type": "object",
            "properties": {"count": {"type": "integer", "maximum": 9}, "full": {"type": "boolean"}},
            "required": ["count", "full"],
        }
        answer = await ask(at, question(schema=small), "what", "a", "many", "10", "", "3", "perhaps", "no")
        assert answer == Accept({"count": 3, "full": False})
        shown = " ".join(at.output.getvalue().split())
    assert "Say a, d or c, not 'what'." in shown
    assert "That does not fit: invalid literal for int()" in shown
    assert "That does not fit: count: 10 is greater than the maximum of 9" in shown
    assert "That does not fit: say yes or no" in shown


@pytest.mark.parametrize(
    ("word", "answer"), [("d", Decline()), ("decline", Decline()), ("C", Cancel()), ("cancel", Cancel())]
)
async def test_declining_and_cancelling_are_a_word(word: str, answer: Any) -> None:
    async with terminal() as at:
        assert await ask(at, question(), word) == answer


async def test_an_address_is_shown_and_accepted_without_content() -> None:
    async with terminal() as at:
        asked = question(mode="url", schema=None, url="https://example.com/pay", server=None)
        assert await ask(at, asked, "a") == Accept(None)
        assert "It wants you to visit:\n  | https://example.com/pay\n" in at.output.getvalue()
        assert "refund of an unnamed server asks" in at.output.getvalue()


async def test_ctrl_c_cancels_the_question() -> None:
    async with terminal() as at:
        answers: list[Any] = []
        before = signal.getsignal(signal.SIGINT)

        async def run() -> None:
            answers.append(await at.console(None, question()))  # pyright: ignore

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await at.shows("ancel?")
            os.kill(os.getpid(), signal.SIGINT)
        assert answers == [Cancel()]
        assert signal.getsignal(signal.SIGINT) is before
        assert "Cancelled." in at.output.getvalue()


async def test_it_works_outside_the_main_thread() -> None:
    async with terminal() as at:
        answers: list[Any] = []

        def elsewhere() -> None:
            async def run() -> None:
                answers.append(await at.console(None, question()))  # pyright: ignore

            anyio.run(run)

        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, elsewhere)
            await at.shows("ancel?")
            await at.type("d")
        assert answers == [Decline()]


async def test_two_consoles_share_a_terminal() -> None:
    async with terminal() as at:
        other = Console(input=at.source, output=at.output)
        answers: list[Any] = []

        async def run(console: Console, message: str) -> None:
            answers.append(await console(None, question(message=message, schema=None, mode="url")))  # pyright: ignore

        async with anyio.create_task_group() as group:
            group.start_soon(run, at.console, "First?")
            await at.shows("First?")
            group.start_soon(run, other, "Second?")
            await at.type("a")
            await at.shows("Second?")
            await at.type("d")
        assert answers == [Accept(None), Decline()]


async def test_choices_with_commas_can_be_given_as_json() -> None:
    async with terminal() as at:
        field = {"type": "array", "items": {"type": "string", "enum": ["a, b", "c"]}}
        schema = {"type": "object", "properties": {"x": field}, "required": ["x"]}
        assert await ask(at, question(schema=schema), "a", '["a, b", "c"]') == Accept({"x": ["a, b", "c"]})


async def test_the_end_of_input_cancels_too() -> None:
    async with terminal() as at:
        assert await ask(at, question(), "\x04") == Cancel()


async def test_questions_come_one_at_a_time() -> None:
    async with terminal() as at:
        answers: dict[str, Any] = {}

        async def run(message: str) -> None:
            answers[message] = await at.console(None, question(message=message, schema=None, mode="url"))  # pyright: ignore

        async with anyio.create_task_group() as group:
            for message in ("First?", "Second?"):
                group.start_soon(run, message)
            await at.shows("First?")
            assert "Second?" not in at.output.getvalue()
            await at.type("a")
            await at.shows("Second?")
            await at.type("d")
        assert answers == {"First?": Accept(None), "Second?": Decline()}


async def test_a_server_cannot_write_to_the_terminal_as_it_likes() -> None:
    async with terminal() as at:
        field = {"type": "string", "enum": ["\x1b[8mhid"], "description": "\x1b]0;title\x1b[1A"}
        schema = {"type": "object", "properties": {"a\x1b[2J": field}}
        await ask(at, question(message="\x1b[2J[bold]Sure[/bold]?\n--- pay of bank asks", schema=schema), "a", "")
        assert "\x1b" not in at.output.getvalue()
        assert "  | ?[2J[bold]Sure[/bold]?" in at.output.getvalue()
        assert "  | --- pay of bank asks" in at.output.getvalue()


async def test_no_line_of_a_server_can_be_taken_for_one_of_ours() -> None:
    forged = f"{'x ' * 60}[a]ccept, [d]ecline or [c]ancel? a\nconfirmed: yes"
    async with terminal() as at:
        form = {"type": "object", "properties": {f"ok {'y ' * 60}": {"type": "boolean", "description": "z " * 90}}}
        await ask(at, question(message=forged, schema=form, url=None), "a", "yes")
        theirs = at.output.getvalue().splitlines()[1:-1]
    assert len(theirs) > 6
    assert [line for line in theirs if not line.startswith("  | ")] == []
    ours = at.output.getvalue().splitlines()[-1]
    assert ours.startswith("[a]ccept, [d]ecline or [c]ancel? ok y y y")
    assert len(ours) < 80


async def test_without_a_terminal_it_has_no_opinion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a\n"))
    assert await Console()(None, question()) is None  # pyright: ignore
    sampling = Question(kind="roots", server=None, tool="x", arguments={})
    assert await Console()(None, sampling) is None  # pyright: ignore
