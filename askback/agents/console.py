"""Answers from the person at the terminal.

The screen has lines of ours and lines of the server's, and nobody must take one for the other: everything that a server
or a model wrote stands behind a margin, and our own lines contain none of it but the tool's name.
"""

import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO
from weakref import WeakKeyDictionary

import anyio

from askback.exchange.answer import Accept, Answer, Cancel, Decline
from askback.exchange.form import Choice, ContentError, Field, Form
from askback.exchange.question import Question
from askback.exchange.text import printable, quoted

if TYPE_CHECKING:
    from pydantic_ai import RunContext

CHOICES = "[a]ccept, [d]ecline or [c]ancel?"
YES_OR_NO = "[y]es, [n]o, [d]ecline or [c]ancel?"
MAX_NAME_CHARACTERS = 40
MAX_ARGUMENT_CHARACTERS = 200
MAX_ARGUMENTS = 20

WORDS = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
FORMATS = {
    "email": "an email address",
    "uri": "a URL",
    "date": "a date, such as 2026-07-28",
    "date-time": "a date and time, such as 2026-07-28T08:00:00Z",
}

_turns: WeakKeyDictionary[TextIO, anyio.Lock] = WeakKeyDictionary()
"""Whose turn it is at a terminal, whichever policy asks there."""


class Console:
    r"""A policy that asks the person at the terminal, one question at a time.

    It shows the tool, the arguments it was called with, and the question. Choices can be given by number or by value,
    and `c` cancels at every prompt; to enter the letter itself into a text field, type `\c`. Ctrl-C cancels the
    question, not the program. Without a terminal it has no opinion.
    """

    def __init__(self, *, input: TextIO | None = None, output: TextIO | None = None) -> None:  # noqa: A002
        self._input = input
        self._output = output

    async def __call__(self, ctx: "RunContext[Any]", question: Question) -> Answer | None:
        """Show an elicitation and read the answer."""
        source = self._input or sys.stdin
        if question.kind != "elicitation" or not source.isatty():
            return None
        async with _turns.setdefault(source, anyio.Lock()):
            return await _Dialogue(source, self._output or sys.stdout).ask(question)


class _CancelledError(Exception):
    """The person wants out of this question."""


class _Dialogue:
    def __init__(self, source: TextIO, output: TextIO) -> None:
        self._source = source
        self._output = output
        self._width = shutil.get_terminal_size().columns

    async def ask(self, question: Question) -> Answer:
        self._show(question)
        fields = list(question.form.fields.values()) if question.form is not None else []
        confirms = fields[0].name if len(fields) == 1 and fields[0].confirms else None
        try:
            while True:
                word = (await self._read(CHOICES if confirms is None else YES_OR_NO)).strip().lower()
                if word in ("d", "decline"):
                    return Decline()
                if word in ("a", "accept"):
                    return Accept(await self._fill(question.form) if question.form is not None else None)
                if confirms is not None and word in WORDS:
                    return Accept({confirms: WORDS[word]})
                if word in ("c", "cancel"):
                    return Cancel()
                self._say(f"Type {'a' if confirms is None else 'y, n'}, d or c.")
        except _CancelledError:
            self._say("Cancelled.")
            return Cancel()

    def _show(self, question: Question) -> None:
        tool, server = (_name(each) for each in (question.tool, question.server or "an unnamed server"))
        self._say(f"-- {tool} of {server} asks ".ljust(min(self._width, 80), "-"))
        if question.arguments:
            self._say("The tool was called with:")
            for line in _arguments(question.arguments):
                self._quote(line)
            self._say("The server says:")
        self._quote(question.message)
        if question.url is not None:
            self._say("It wants you to visit:")
            self._quote(question.url)
        if question.form is not None and question.form.fields:
            self._say("It wants to know:")
            for field in question.form.fields.values():
                self._quote("\n".join(_description(field)))

    async def _fill(self, form: Form) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for name, field in form.fields.items():
            self._quote(f"{name}:")
            may_skip = field.default is not None or not field.required
            hint = (
                "" if not may_skip else " (Enter for the default)" if field.default is not None else " (Enter to skip)"
            )
            while True:
                text = (await self._read(f"{_prompt(field)}{hint}:")).strip()
                if text == "c":
                    raise _CancelledError
                if not text and may_skip:
                    break
                try:
                    value = _parsed(text, field)
                    field.check(value)
                    content[name] = value
                    break
                except ContentError as misfit:
                    self._say("That does not fit:")
                    self._quote(str(misfit))
        return content

    async def _read(self, prompt: str) -> str:
        """Read a line, without leaving anything behind that waits for one when the question is over."""
        self._write(f"{prompt} ")
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
            raise _CancelledError
        return line.rstrip("\n")

    def _quote(self, text: str) -> None:
        for line in quoted(text, self._width):
            self._say(line)

    def _say(self, line: str) -> None:
        self._write(f"{line}\n")

    def _write(self, text: str) -> None:
        # A character that the terminal cannot show becomes a question mark, rather than failing the run.
        encoding = self._output.encoding or "utf-8"
        self._output.write(text.encode(encoding, "replace").decode(encoding))
        self._output.flush()


@contextmanager
def _interrupts() -> Generator[int | None]:
    """A pipe that becomes readable on Ctrl-C; None outside the main thread, which does not receive it.

    The previous handler is restored: it belongs to the application, or to its event loop.
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


def _name(text: str) -> str:
    return printable(text[:MAX_NAME_CHARACTERS])


def _arguments(arguments: dict[str, Any]) -> Iterator[str]:
    for name, value in list(arguments.items())[:MAX_ARGUMENTS]:
        text = f"{name}: {json.dumps(value, ensure_ascii=False, default=str)}"
        yield text if len(text) <= MAX_ARGUMENT_CHARACTERS else f"{text[:MAX_ARGUMENT_CHARACTERS]}..."
    if len(arguments) > MAX_ARGUMENTS:
        yield f"... and {len(arguments) - MAX_ARGUMENTS} more"


def _description(field: Field) -> Iterator[str]:
    """A field for people, to be shown behind the margin."""
    about = f" - {field.description}" if field.description else ""
    yield f"{field.name}: {_kind(field)}{'' if field.required else ', optional'}{about}"
    for label, choice in _labels(field):
        yield f"  {label} {choice.title}" + (f" ({choice.value})" if choice.title != str(choice.value) else "")
    if field.default is not None:
        yield f"  default: {json.dumps(field.default, ensure_ascii=False)}"


def _prompt(field: Field) -> str:
    """What to type into a field, in words of ours only."""
    if field.choices:
        one, several = ("number or value", "numbers or values") if _is_numbered(field) else ("value", "values")
        return f"{several}, separated by commas" if field.several else one
    return "y or n" if field.confirms else _kind(field)


def _kind(field: Field) -> str:
    """What a field takes, in words of ours only."""
    if field.choices and not field.several:
        return "one of these"
    if field.several:
        words = [
            "any of these" if field.choices else "texts, separated by commas",
            _bounds(field, "minItems", "maxItems"),
        ]
    elif field.confirms:
        words = ["yes or no"]
    elif _is_number(field):
        words = ["a number" if "number" in field.types else "a whole number", _bounds(field, "minimum", "maximum")]
        words.append(_bounds(field, "exclusiveMinimum", "exclusiveMaximum", "more than", "less than"))
    else:
        length = _bounds(field, "minLength", "maxLength")
        words = [FORMATS.get(field.format, "text"), length and f"{length} characters"]
    return ", ".join(filter(None, words))


def _is_number(field: Field) -> bool:
    return bool(field.types & {"integer", "number"}) and "string" not in field.types


def _bounds(field: Field, lowest: str, highest: str, least: str = "at least", most: str = "up to") -> str:
    low, high = (field.limits.get(name) for name in (lowest, highest))
    # A server's limits are checked before anyone is asked, except by tools that show whatever they get.
    words = [f"{word} {limit}" for word, limit in ((least, low), (most, high)) if isinstance(limit, int | float)]
    return f"{low} to {high}" if len(words) == 2 and most == "up to" else " and ".join(words)


def _is_numbered(field: Field) -> bool:
    """Whether choices can be given by number: not where a value could be taken for the number of another."""
    values = [str(choice.value) for choice in field.choices]
    numbers = [f"{number}" for number in range(1, len(values) + 1)]
    return all(value not in numbers or value == number for value, number in zip(values, numbers, strict=True))


def _labels(field: Field) -> Iterator[tuple[str, Choice]]:
    numbered = _is_numbered(field)
    for number, choice in enumerate(field.choices, 1):
        yield (f"{number}." if numbered else "-"), choice


def _parsed(text: str, field: Field) -> Any:
    """The value that a person typed for a field.

    Raises:
        ContentError: If it is of another type.
    """
    if field.several:
        return [_chosen(each, field) for each in _split(text)]
    if field.choices:
        return _chosen(text, field)
    if field.confirms:
        if text.lower() not in WORDS:
            raise ContentError("type y or n")
        return WORDS[text.lower()]
    if _is_number(field):
        try:
            return float(text) if "number" in field.types else int(text)
        except ValueError:
            raise ContentError(f"type {_kind(field)}") from None
    # `\c` stands for the letter, since `c` cancels.
    return text[1:] if re.fullmatch(r"\\+c", text) else text


def _split(text: str) -> list[str]:
    """Values separated by commas, or a JSON list where a value has a comma in it."""
    if text.startswith("["):
        try:
            return [str(each) for each in json.loads(text)]
        except ValueError:
            raise ContentError("type a JSON list, or values separated by commas") from None
    return [each.strip() for each in text.split(",") if each.strip()]


def _chosen(text: str, field: Field) -> Any:
    """The choice with this number or value; the text itself where there is no such choice."""
    for number, choice in enumerate(field.choices, 1):
        if text == str(choice.value) or (text == f"{number}" and _is_numbered(field)):
            return choice.value
    return text
