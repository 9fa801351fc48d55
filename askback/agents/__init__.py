"""The agent side: questions, answers, and who gives them.

Questions and answers need only the MCP SDK. Everything else needs Pydantic AI, the extra `agent`, and imports it when
it is first named.
"""

from typing import TYPE_CHECKING

from askback.exchange.answer import Accept, Answer, Cancel, Decline, Defer
from askback.exchange.question import Question
from askback.exchange.transcript import AnswerRecord
from askback.extras import from_extra

if TYPE_CHECKING:
    from askback.agents.console import Console
    from askback.agents.models import FromModel
    from askback.agents.policies import Answers, Policy, PolicyError, when
    from askback.agents.rules import rules_from
    from askback.agents.suspension import PendingQuestion, pending_questions, resume_with, run_until_done
    from askback.toolsets.events import QuestionAnswered, QuestionAsked

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
        "Answers": "policies",
        "Console": "console",
        "FromModel": "models",
        "PendingQuestion": "suspension",
        "Policy": "policies",
        "PolicyError": "policies",
        "QuestionAnswered": "askback.toolsets.events",
        "QuestionAsked": "askback.toolsets.events",
        "pending_questions": "suspension",
        "resume_with": "suspension",
        "rules_from": "rules",
        "run_until_done": "suspension",
        "when": "policies",
    },
)
