"""Answers from the person at the terminal."""

import json
import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TextIO
from weakref import WeakKeyDictionary

import anyio
from pydantic_ai import RunContext
from rich.console import Console as RichConsole
from rich.markup import escape
from rich.text import Text

from askback.exchange.answer import Accept, Answer, Cancel, Decline
from askback.exchange.form import ContentError, Field, Form
from askback.exchange.question import Question
from askback.exchange.text import MARGIN, printable

CHOICES = "[a]ccept, [d]ecline or [c]ancel?"
NARROWEST = 20
LONGEST_NAME = 40

_turns: WeakKeyDictionary[TextIO, anyio.Lock] = WeakKeyDictionary()
"""Whose turn it is at a terminal, whichever policy it is that asks there."""


class Console:
    """A policy that asks whoever sits at the terminal, one question at a time.

    Without a terminal it has no opinion. Ctrl-C cancels the question, not the program.
    """

    def __init__(self, *, input: TextIO | None = None, output: TextIO | None = None) -> None:  # noqa: A002
        self._input = input
        self._output = output

    async def __call__(self, ctx: RunContext[Any], question: Question) -> Answer | None:
        """Show an elicitation and read the answer."""
        source = self._input or sys.stdin
        if question.kind != "elicitation" or not source.isatty():
            return None
        async with _turns.setdefault(source, anyio.Lock()):
            return await _Conversation(source, self._output or sys.stdout).ask(question)


class _InterruptedError(Exception):
    """The person wants out of this question."""


class _Conversation:
    def __init__(self, source: TextIO, output: TextIO) -> None:
        self._source = source
        self._screen = RichConsole(file=output, highlight=False)

    async def ask(self, question: Question) -> Answer:
        self._show(question)
        try:
            while True:
                word = (await self._read(CHOICES)).strip().lower()
                if word in ("d", "decline"):
                    return Decline()
                if word in ("c", "cancel"):
                    return Cancel()
                if word in ("a", "accept"):
                    return Accept(await self._fill(question.form) if question.form is not None else None)
                self._say(f"Say a, d or c, not {word!r}.")
        except _InterruptedError:
            self._say("Cancelled.")
            return Cancel()

    def _show(self, question: Question) -> None:
        asks = f"{printable(question.tool)} of {printable(question.server or 'an unnamed server')} asks"
        self._screen.rule(escape(asks))
        for line in question.message.splitlines():
            self._quote(line)
        if question.url is not None:
            self._say("It wants you to visit:")
            self._quote(question.url)
        for field in question.form.fields.values() if question.form is not None else ():
            self._quote(f"  {_describe(field)}", field.name)

    async def _fill(self, form: Form) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for name, field in form.fields.items():
            while True:
                text = await self._read(f"{printable(name[:LONGEST_NAME])}:")
                if not text.strip() and (field.default is not None or not field.required):
                    break
                try:
                    value = _parsed(text.strip(), field)
                    field.check(value)
                    content[name] = value
                    break
                except (ContentError, ValueError) as wrong:
                    self._say(f"That does not fit: {wrong}")
        return content

    async def _read(self, prompt: str) -> str:
        """A line, once there is one: nothing is left waiting for it when the question is over."""
        self._screen.print(escape(prompt), end=" ")
        self._screen.file.flush()
        line: str | None = None

        async def wait_for_line() -> None:
            nonlocal line
            await anyio.wait_readable(self._source)
            line = self._source.readline()
            group.cancel_scope.cancel()

        async def wait_for_interrupt(pipe: int) -> None:
            await anyio.wait_readable(pipe)
            group.cancel_scope.cancel()

        with _interrupts() as pipe:
            async with anyio.create_task_group() as group:
                group.start_soon(wait_for_line)
                if pipe is not None:
                    group.start_soon(wait_for_interrupt, pipe)
        if not line:
            raise _InterruptedError
        return line.rstrip("\n")

    def _quote(self, text: str, heading: str = "") -> None:
        quote(self._screen, Text.assemble((printable(heading), "bold"), printable(text)))

    def _say(self, text: str) -> None:
        self._screen.print(escape(printable(text)))


def quote(screen: RichConsole, written: Text) -> None:
    """Show what a server wrote, with a margin on every line, so that none can be taken for a line of ours."""
    for line in written.wrap(screen, max(screen.width - len(MARGIN), NARROWEST)):
        screen.print(Text(MARGIN).append_text(line))


@contextmanager
def _interrupts() -> Generator[int | None]:
    """A pipe that can be read from once Ctrl-C was pressed. None outside the main thread, which does not hear of it.

    The handler that was there is put back: it is the application's, or its event loop's.
    """
    reading, writing = os.pipe()

    def note(number: int, frame: object) -> None:
        os.write(writing, b"!")

    try:
        before = signal.signal(signal.SIGINT, note)
    except ValueError:
        yield None
    else:
        try:
            yield reading
        finally:
            signal.signal(signal.SIGINT, before)
    finally:
        os.close(reading)
        os.close(writing)


def _describe(field: Field) -> str:
    """A field in words: its type, choices, limits and default."""
    words = [" | ".join(sorted(field.types)) or "text"]
    if field.format:
        words.append(f"({field.format})")
    if field.choices:
        words.append("any of, separated by commas: " if field.several else "one of ")
        labels = [(f"{each.value}", each.title) for each in field.choices]
        words.append(", ".join(f"{value} ({title})" if title != value else value for value, title in labels))
    limits = {
        "minimum": "at least",
        "exclusiveMinimum": "more than",
        "maximum": "at most",
        "exclusiveMaximum": "less than",
        "minLength": "characters, at least",
        "maxLength": "characters, at most",
        "minItems": "choices, at least",
        "maxItems": "choices, at most",
    }
    words += [f"{text} {field.limits[name]}" for name, text in limits.items() if name in field.limits]
    if field.default is not None:
        words.append(f"[default: {json.dumps(field.default)}]")
    if field.description:
        words.append(f"- {field.description}")
    return " ".join(words)


def _parsed(text: str, field: Field) -> Any:
    """What a person typed, as the type that the field has.

    Raises:
        ValueError: If it cannot be read so.
    """
    if "boolean" in field.types:
        words = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
        if text.lower() not in words:
            raise ValueError("say yes or no")
        return words[text.lower()]
    if "integer" in field.types:
        return int(text)
    if "number" in field.types:
        return float(text)
    if field.several:
        return json.loads(text) if text.startswith("[") else [each.strip() for each in text.split(",") if each.strip()]
    return text
