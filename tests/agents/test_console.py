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
        lines = ("a", "ABC", "", "1.5", "yes", "S", "1", "x, 2", "a@b.c")
        content = {
            "sku": "ABC",
            "weight": 1.5,
            "full": True,
            "size": "S",
            "paper": "r",
            "extras": ["x", "y"],
            "mail": "a@b.c",
        }
        assert await ask(at, question(arguments={"order": "ORD-1", "note": "größer"}), *lines) == Accept(content)
        shown = at.output.getvalue()
    assert shown.startswith(
        """\
-- refund of desk asks ---------------------------------------------------------
The tool was called with:
  | order: "ORD-1"
  | note: "größer"
The server says:
  | Refund it?
It wants to know:
  | sku: text, 2 to 5 characters - Which item?
  | count: a whole number, 1 to 9, optional
  |   default: 1
  | weight: a number, optional
  | full: yes or no
  | size: one of these, optional
  |   1. Small (S)
  |   2. Medium (M)
  | paper: one of these, optional
  |   1. Red (r)
  |   2. b
  | extras: any of these, at least 1, optional
  |   1. x
  |   2. y
  | mail: an email address, optional
[a]ccept, [d]ecline or [c]ancel?   | sku:
text, 2 to 5 characters:   | count:
a whole number, 1 to 9 (Enter for the default):"""
    )


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"type": "string", "maxLength": 200}, "text, up to 200 characters"),
        ({"type": "string", "minLength": 3}, "text, at least 3 characters"),
        ({"type": "string", "format": "date"}, "a date, such as 2026-07-28"),
        ({"type": "string", "format": "uri"}, "a URL"),
        ({"type": "string", "format": "date-time"}, "a date and time, such as 2026-07-28T08:00:00Z"),
        ({"type": "string", "minLength": "many"}, "text"),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 9.5}, "a number, more than 0 and less than 9.5"),
        ({"type": "integer", "minimum": 3}, "a whole number, at least 3"),
        ({"type": "array", "maxItems": 3}, "texts, separated by commas, up to 3"),
        ({"type": "array", "items": {"enum": ["a"]}}, "numbers or values, separated by commas"),
        ({"enum": ["2", "1"]}, "value"),
        ({"enum": ["x", "y"]}, "number or value"),
        ({"type": "array", "items": {"enum": ["2", "1"]}}, "values, separated by commas"),
        ({}, "text"),
    ],
)
async def test_a_prompt_says_what_to_type(field: dict[str, Any], words: str) -> None:
    async with terminal() as at:
        schema = {"type": "object", "properties": {"x": field}, "required": ["x"]}
        assert await ask(at, question(schema=schema), "a", "c") == Cancel()
        assert f"  | x:\n{words}: " in at.output.getvalue()


async def test_wrong_input_is_asked_again_with_the_reason() -> None:
    async with terminal() as at:
        small = {
            "type": "object",
            "properties": {
                "count": {"type": "integer", "maximum": 9},
                "weight": {"type": "number"},
                "full": {"type": "boolean"},
                "extras": {"type": "array", "items": {"enum": ["x"]}},
            },
            "required": ["count", "weight", "full", "extras"],
        }
        lines = ("what", "a", "many", "10", "", "3", "x", "nan", "1", "perhaps", "no", "[x", "z", '["x"]')
        answer = await ask(at, question(schema=small), *lines)
        assert answer == Accept({"count": 3, "weight": 1.0, "full": False, "extras": ["x"]})
        shown = at.output.getvalue()
    assert "Type a, d or c.\n" in shown
    reasons = [line for line in shown.splitlines() if line.startswith("  | ") and shown.index(line) > shown.index("9:")]
    for reason in (
        "  | type a whole number, up to 9",
        "  | count: 10 is greater than the maximum of 9",
        "  | type a number",
        "  | weight: a form takes texts, numbers, booleans and lists of texts",
        "  | type y or n",
        "  | type a JSON list, or values separated by commas",
        "  | extras.0: 'z' is not one of ['x']",
    ):
        assert reason in reasons, reason
        assert f"That does not fit:\n{reason}\n" in shown


@pytest.mark.parametrize(("word", "ok"), [("y", True), ("YES", True), ("n", False), ("no", False)])
async def test_yes_or_no_takes_one_key(word: str, ok: bool) -> None:
    form = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    async with terminal() as at:
        assert await ask(at, question(schema=form), "what", word) == Accept({"ok": ok})
        assert "[y]es, [n]o, [d]ecline or [c]ancel? Type y, n, d or c.\n" in at.output.getvalue()
    async with terminal() as at:
        assert await ask(at, question(schema=form), "a", word) == Accept({"ok": ok})
    async with terminal() as at:
        assert await ask(at, question(schema=form), "d") == Decline()


async def test_c_cancels_inside_a_form_too() -> None:
    form = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
    async with terminal() as at:
        assert await ask(at, question(schema=form), "a", "something", "c") == Cancel()
        assert at.output.getvalue().endswith("Cancelled.\n")


@pytest.mark.parametrize(("typed", "text"), [("\\c", "c"), ("\\\\c", "\\c"), ("\\d", "\\d"), ("C", "C"), ("cc", "cc")])
async def test_the_letter_c_can_be_typed_into_a_text(typed: str, text: str) -> None:
    form = {"type": "object", "properties": {"grade": {"type": "string"}}, "required": ["grade"]}
    async with terminal() as at:
        assert await ask(at, question(schema=form), "a", typed) == Accept({"grade": text})


async def test_a_number_is_not_taken_for_a_value_that_looks_like_another() -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"enum": ["2", "1"]}, "y": {"enum": [1, 5]}},
        "required": ["x", "y"],
    }
    async with terminal() as at:
        assert await ask(at, question(schema=schema), "a", "1", "2") == Accept({"x": "1", "y": 5})
        assert "  |   - 2\n  |   - 1\n" in at.output.getvalue()


async def test_long_and_many_arguments_are_cut_short() -> None:
    async with terminal() as at:
        arguments: dict[str, Any] = {"text": "x" * 10_000, **{f"a{number}": object() for number in range(30)}}
        await ask(at, question(arguments=arguments), "d")
        shown = at.output.getvalue()
    assert len(shown) < 5_000
    assert "xxx..." in shown.replace("\n  | ", "")
    assert "  | ... and 11 more\n" in shown


async def test_a_terminal_that_cannot_show_a_character_shows_another() -> None:
    async with terminal() as at:
        raw = io.BytesIO()
        at.console = Console(input=at.source, output=io.TextIOWrapper(raw, encoding="ascii"))
        await at.type("d")
        assert await at.console(None, question(message="Größe?")) == Decline()  # pyright: ignore
        assert b"  | Gr??e?\n" in raw.getvalue()


@pytest.mark.parametrize(
    ("word", "answer"), [("d", Decline()), ("decline", Decline()), ("C", Cancel()), ("cancel", Cancel())]
)
async def test_declining_and_cancelling_are_a_word(word: str, answer: Any) -> None:
    async with terminal() as at:
        assert await ask(at, question(), word) == answer


async def test_a_url_is_shown_and_accepted_without_content() -> None:
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
        asked = question(tool="t" * 100, arguments={"order\nconfirmed: yes": "x\ny"}, message=forged, schema=form)
        await ask(at, asked, "a", "yes")
        lines = at.output.getvalue().splitlines()
    assert len(lines) > 8
    assert [line for line in lines if not line.startswith("  | ")] == [
        f"-- {'t' * 40} of desk asks ".ljust(80, "-"),
        "The tool was called with:",
        "The server says:",
        "It wants to know:",
        # Typed at the terminal, and not seen here: "a", and then "yes".
        next(line for line in lines if line.startswith("[y]es, [n]o, [d]ecline or [c]ancel?   | ok y y y")),
        "y or n (Enter to skip): ",
    ]
    assert max(map(len, lines)) < 120


async def test_without_a_terminal_it_has_no_opinion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a\n"))
    assert await Console()(None, question()) is None  # pyright: ignore
    sampling = Question(kind="roots", server=None, tool="x", arguments={})
    assert await Console()(None, sampling) is None  # pyright: ignore
