"""Events in the agent's stream, so that applications can show questions as they are asked and answered."""

import dataclasses

from pydantic_ai import CustomEvent

from askback.exchange.answer import Action
from askback.exchange.question import Question


@dataclasses.dataclass(kw_only=True)
class QuestionAsked(CustomEvent, name="askback.question_asked"):
    """A tool asks a question, which the run's policies are about to see."""

    question: Question


@dataclasses.dataclass(kw_only=True)
class QuestionAnswered(CustomEvent, name="askback.question_answered"):
    """A question has its answer."""

    question: Question
    action: Action
    policy: str
