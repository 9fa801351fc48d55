"""The agent side: questions, answers, and who gives them.

Nothing here needs an agent framework, except what is made of Pydantic AI's own objects: its stream events, a model that
answers, and its deferred tool requests. Those come with the extra `agent`, and are imported on first use.
"""

from typing import TYPE_CHECKING

from askback.agents.console import Console
from askback.agents.errors import PolicyError
from askback.agents.policies import Answers, Policy, when
from askback.agents.rules import rules_from
from askback.agents.suspension import PendingQuestion
from askback.exchange.answer import Accept, Answer, Cancel, Decline, Defer
from askback.exchange.question import Question
from askback.exchange.transcript import AnswerRecord
from askback.extras import from_extra

if TYPE_CHECKING:
    from askback.toolsets.deferral import pending_questions, resume_with, run_until_done
    from askback.toolsets.events import QuestionAnswered, QuestionAsked
    from askback.toolsets.models import FromModel

__all__ = [
    "Accept",
    "Answer",
    "AnswerRecord",
    "Answers",
    "Cancel",
    "Console",
    "Decline",
    "Defer",
    "FromModel",
    "PendingQuestion",
    "Policy",
    "PolicyError",
    "Question",
    "QuestionAnswered",
    "QuestionAsked",
    "pending_questions",
    "resume_with",
    "rules_from",
    "run_until_done",
    "when",
]

__getattr__ = from_extra(
    "agent",
    "Pydantic AI",
    __name__,
    {
        "FromModel": "askback.toolsets.models",
        "QuestionAnswered": "askback.toolsets.events",
        "QuestionAsked": "askback.toolsets.events",
        "pending_questions": "askback.toolsets.deferral",
        "resume_with": "askback.toolsets.deferral",
        "run_until_done": "askback.toolsets.deferral",
    },
)
