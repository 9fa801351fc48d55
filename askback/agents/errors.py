"""Errors that are the application's to fix, whichever framework runs the agent."""

from askback.exchange.question import Question


class AnsweringError(Exception):
    """The application cannot answer as it is set up. Ends the run; under Pydantic AI it is also a `UserError`."""


class PolicyError(AnsweringError):
    """A policy raised, returned something other than an answer, or accepted with content that does not fit.

    Under Pydantic AI it is also a `UserError`.
    """

    def __init__(self, policy: str, question: Question, reason: str) -> None:
        self.policy = policy
        self.question = question
        self.reason = reason
        super().__init__(
            f"The policy {policy} {reason}, when tool {question.tool!r} of server {question.server!r} asked: "
            f"{question.message[:200]!r}"
        )
