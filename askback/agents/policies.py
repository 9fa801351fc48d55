"""Policies: who answers a question, and the small ready-made ones."""

import fnmatch
import inspect
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
from pydantic_ai import RunContext, UserError
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, RunCancelled, UsageLimitExceeded

from askback.exchange.answer import ANSWERS, Accept, Answer
from askback.exchange.question import Kind, Mode, Question

DepsT = TypeVar("DepsT")

Policy = Callable[[RunContext[DepsT], Question], Answer | Awaitable[Answer | None] | None]
"""Says what to answer in a run, or None for no opinion, so that the next policy is asked."""

ENDS_THE_RUN = (UsageLimitExceeded, RunCancelled, ApprovalRequired, CallDeferred)
"""What a policy raises on behalf of the run: a limit, a cancellation, a stop. Anything else is a bug in it."""


class PolicyError(UserError):
    """A policy did what no policy may: it raised, returned no answer, or accepted with content that does not fit."""

    def __init__(self, policy: str, question: Question, reason: str) -> None:
        self.policy = policy
        self.question = question
        super().__init__(
            f"The policy {policy} {reason}, when tool {question.tool!r} of server {question.server!r} asked: "
            f"{question.message[:200]!r}"
        )


async def first_answer(
    policies: Sequence[Policy[Any]], ctx: RunContext[Any], question: Question
) -> tuple[Answer, str] | None:
    """Ask one policy after another. The first answer counts, and comes with the name of who gave it.

    Raises:
        PolicyError: If a policy raises, or returns something that is no answer.
    """
    for policy in policies:
        name = name_of(policy)
        try:
            answer = policy(ctx, question)
            if inspect.isawaitable(answer):
                answer = await answer
        except ENDS_THE_RUN:
            raise
        except anyio.get_cancelled_exc_class():
            # Either whoever asks has stopped waiting, or what the policy waited for was cancelled.
            if anyio.current_effective_deadline() == -math.inf:
                raise
            raise PolicyError(name, question, "was cancelled") from None
        except Exception as error:
            raise PolicyError(name, question, f"raised {type(error).__name__}: {error}") from error
        if isinstance(answer, ANSWERS):
            return answer, name
        if answer is not None:
            raise PolicyError(name, question, f"returned {answer!r}, which is no answer")
    return None


def name_of(policy: object) -> str:
    """What a policy is called where people read of it."""
    return getattr(policy, "__name__", None) or type(policy).__name__


@dataclass(frozen=True)
class when:  # noqa: N801 - it reads as a word: when(policy, tool="refund")
    """A policy for some questions only: `when(policy, tool="refund_*", message="(?i)gift")`.

    `tool`, `server` and `key` are shell patterns, `message` and `url` regular expressions that may match anywhere,
    `schema` is a model the form must ask for, and `where` any other condition. All that are given must hold.
    """

    policy: Policy[Any]
    kind: Kind | None = None
    mode: Mode | None = None
    tool: str | None = None
    server: str | None = None
    key: str | None = None
    message: str | re.Pattern[str] | None = None
    url: str | re.Pattern[str] | None = None
    schema: type | None = None
    round: int | None = None
    where: Callable[[Question], bool] | None = None

    @property
    def __name__(self) -> str:
        """The name of the policy that it narrows."""
        return name_of(self.policy)

    def __call__(self, ctx: RunContext[Any], question: Question) -> Answer | Awaitable[Answer | None] | None:
        """Ask the policy, if the question is one for it."""
        return self.policy(ctx, question) if self.matches(question) else None

    def matches(self, question: Question) -> bool:
        """Whether the question is one for the policy."""
        exact = (("kind", question.kind), ("mode", question.mode), ("round", question.round))
        globs = (("tool", question.tool), ("server", question.server), ("key", question.key))
        texts = (("message", question.message), ("url", question.url))
        return (
            all(getattr(self, name) in (None, value) for name, value in exact)
            and all(_is_like(getattr(self, name), value) for name, value in globs)
            and all(_has(getattr(self, name), value) for name, value in texts)
            and (self.schema is None or question.asks(self.schema))
            and (self.where is None or self.where(question))
        )


@dataclass(frozen=True)
class Answers:
    """Answers by what is asked: `Answers({"(?i)gift wrap": Decline(), Scope: Scope(full=True)})`.

    A key is a regular expression for the message, or a model that the form must ask for. A value is an answer, or the
    content to accept with. The first that fits counts; only elicitations are answered.
    """

    by_question: Mapping[Any, Any]

    def __call__(self, ctx: RunContext[Any], question: Question) -> Answer | None:
        """The answer for a question, if there is one."""
        if question.kind != "elicitation":
            return None
        for asked, answer in self.by_question.items():
            if question.matches(asked):
                return answer if isinstance(answer, ANSWERS) else Accept(answer)
        return None


def _is_like(pattern: str | None, value: str | None) -> bool:
    return pattern is None or (value is not None and fnmatch.fnmatchcase(value, pattern))


def _has(pattern: str | re.Pattern[str] | None, value: str | None) -> bool:
    return pattern is None or (value is not None and re.search(pattern, value) is not None)
