"""What was called, asked and answered: recorded, drawn for people, saved and loaded."""

import dataclasses
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field
from pydantic.dataclasses import dataclass

from askback.exchange.answer import Action
from askback.exchange.document import Document
from askback.exchange.question import Question

DONE = {"accept": "accepted", "decline": "declined", "cancel": "cancelled", "defer": "deferred"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnswerRecord:
    """A question of a run and its answer, as passed to a toolset's `on_answer`."""

    question: Question
    action: Action
    policy: str
    """Who decided: the policy's name, or a word in parentheses where no policy did."""
    content: Any = dataclasses.field(default=None, repr=False)
    """The accepted content, as sent to the server."""
    seconds: float
    run_id: str | None
    tool_call_id: str | None


OnAnswer = Callable[[AnswerRecord], Awaitable[None] | None]


@dataclass(kw_only=True)
class Exchange:
    """A question of a recorded call, and its answer."""

    question: Question
    action: Action | None = None
    """None while nobody has answered."""
    content: Any = None
    answered_by: str = ""


@dataclass(kw_only=True)
class ToolCall:
    """A call, what it made the server ask, and how it ended."""

    tool: str
    arguments: dict[str, Any]
    exchanges: list[Exchange] = Field(default_factory=list[Exchange])
    result: str = ""
    """The tool's result as text, or its error message."""
    failed: bool = False
    id: str | None = None
    """The tool call id, where an agent made the call."""

    @property
    def messages(self) -> list[str]:
        """The messages of the questions that it made the server ask."""
        return [exchange.question.message for exchange in self.exchanges]


@dataclass(kw_only=True)
class Conversation(Document):
    """The calls of a connection or a run, with their questions and answers.

    Save it, and load it to answer the same questions again. It can also be a toolset's `on_answer`, to record the
    answers of real people and models: `ResolverToolset(..., on_answer=conversation)`.
    """

    version: Literal[1] = 1
    calls: list[ToolCall] = Field(default_factory=list[ToolCall])

    def __call__(self, record: AnswerRecord) -> None:
        """Record a question that was answered in a run."""
        exchanges = self.call_that_asks(record.question, record.tool_call_id).exchanges
        exchange = Exchange(
            question=record.question, action=record.action, content=record.content, answered_by=record.policy
        )
        fingerprint = record.question.fingerprint()
        for number, each in enumerate(exchanges):
            if each.action == "defer" and each.question.fingerprint() == fingerprint:
                # It was deferred, and now somebody has answered.
                exchanges[number] = exchange
                return
        exchanges.append(exchange)

    def call_that_asks(self, question: Question, tool_call_id: str | None) -> ToolCall:
        """The agent's call that a question belongs to, recorded now if it is new."""
        call = next((each for each in reversed(self.calls) if each.id == tool_call_id), None)
        if call is None:
            call = ToolCall(tool=question.tool, arguments=question.arguments, id=tool_call_id)
            self.calls.append(call)
        return call

    @property
    def exchanges(self) -> list[Exchange]:
        """Every question with its answer, in the order in which they were asked."""
        return [exchange for call in self.calls for exchange in call.exchanges]

    def save(self, path: str | Path) -> None:
        """Write it to a JSON file, readable by people and by `load`."""
        Path(path).write_text(json.dumps(json.loads(self.to_json()), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that `save` has written.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If it does not hold a conversation.
        """
        text = Path(path).read_bytes()
        try:
            if not {"version", "calls"} <= set(json.loads(text)):
                raise ValueError("it has no version and no calls")
            return cls.from_json(text)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path} holds no conversation: {error}") from None

    def picture(self) -> str:
        """The conversation as text, for people."""
        return "\n".join(line for call in self.calls for line in _call_lines(call))


class ConversationError(AssertionError):
    """A conversation did not go as its test said it would; the message shows it."""

    def __init__(self, reason: str, conversation: Conversation) -> None:
        self.reason = reason
        self.conversation = conversation
        picture = conversation.picture() or "(nothing was called)"
        super().__init__(f"{reason}\n\n{picture}")


def _call_lines(call: ToolCall) -> list[str]:
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    lines = [f"{call.tool}({arguments})"]
    number = 0
    for exchange in call.exchanges:
        question = exchange.question
        if question.in_rounds and question.round != number:
            number = question.round
            lines.append(f"  round {number}")
        asker = (
            question.key or {"elicitation": "a person", "sampling": "a model", "roots": "directories"}[question.kind]
        )
        lines.append(f"    asks   {asker}: {question.message or question.kind}")
        lines += [f"           {line}" for line in _fields(question)]
        by = f"  (by {exchange.answered_by})" if exchange.answered_by else ""
        content = f" {json.dumps(exchange.content)}" if exchange.content is not None else ""
        lines.append(f"    gets   {DONE[exchange.action]}{content}{by}" if exchange.action else "    gets   no answer")
    if call.result:
        lines.append(f"  {'failed' if call.failed else 'said'}   {call.result}")
    return lines


def _fields(question: Question) -> list[str]:
    """The fields of a form, one per line."""
    return [
        f"{field.name}: {' | '.join(sorted(field.types)) or 'anything'}"
        + (f" of {[choice.value for choice in field.choices]}" if field.choices else "")
        for field in (question.form.fields.values() if question.form is not None else ())
    ]
