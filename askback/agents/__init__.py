"""The agent side: questions, answers, and who gives them."""

from askback.agents.answers import Accept, Answer, Cancel, Decline, Defer
from askback.agents.console import Console
from askback.agents.models import FromModel
from askback.agents.policies import Answers, Policy, PolicyError, when
from askback.agents.questions import Question
from askback.agents.records import AnswerRecord, QuestionAnswered, QuestionAsked
from askback.agents.rules import rules_from
from askback.agents.suspension import PendingQuestion, pending_questions, resume_with, run_until_done

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
