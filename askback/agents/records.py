"""What people can see of questions and answers: records, and events in the agent's stream."""

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic_ai import CustomEvent

from askback.exchange.answer import Action
from askback.exchange.question import Question


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnswerRecord:
    """A question, and what became of it."""

    question: Question
    action: Action
    policy: str
    """Who decided: the policy's name, or a word in parentheses where it was none of them."""
    content: Any = dataclasses.field(default=None, repr=False)
    """What was accepted with, as the server was sent it."""
    seconds: float
    run_id: str | None
    tool_call_id: str | None


OnAnswer = Callable[[AnswerRecord], Awaitable[None] | None]


@dataclasses.dataclass(kw_only=True)
class QuestionAsked(CustomEvent, name="askback.question_asked"):
    """A tool asks something, and the run's policies are about to be asked."""

    question: Question


@dataclasses.dataclass(kw_only=True)
class QuestionAnswered(CustomEvent, name="askback.question_answered"):
    """A question has its answer."""

    question: Question
    action: Action
    policy: str
