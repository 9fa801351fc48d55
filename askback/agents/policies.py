"""Policies: who answers a question, and the small ready-made ones."""

import fnmatch
import inspect
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from typing_extensions import TypeAliasType

from askback.agents.errors import PolicyError
from askback.exchange.answer import ANSWERS, Accept, Answer
from askback.exchange.question import Kind, Mode, Question

if TYPE_CHECKING:
    from pydantic_ai import RunContext

DepsT = TypeVar("DepsT")

Policy = TypeAliasType(
    "Policy",
    "Callable[[RunContext[DepsT], Question], Answer | Awaitable[Answer | None] | None]",
    type_params=(DepsT,),
)
"""Returns an answer, or None for no opinion, in which case the next policy is asked.

The context is Pydantic AI's `RunContext`, by type only: defining and calling a policy needs no framework.
"""


async def first_answer(
    policies: Sequence[Policy[Any]],
    ctx: Any,
    question: Question,
    passing: tuple[type[BaseException], ...] = (),
) -> tuple[Answer, str] | None:
    """Ask one policy after another. The first answer counts, and comes with the name of the policy that gave it.

    Exceptions in `passing` are the framework's own way to end a run, and pass through.

    Raises:
        PolicyError: If a policy raises anything else, or returns something other than an answer.
    """
    for policy in policies:
        name = name_of(policy)
        try:
            answer = policy(ctx, question)
            if inspect.isawaitable(answer):
                answer = await answer
        except passing:
            raise
        except anyio.get_cancelled_exc_class():
            # Either the caller has stopped waiting, or something the policy waited for was cancelled. Only the first
            # is a cancellation of ours, and swallowing that one would break the cancel scope around us.
            if anyio.current_effective_deadline() == -math.inf:
                raise
            raise PolicyError(name, question, "was cancelled") from None
        except Exception as error:
            raise PolicyError(name, question, f"raised {type(error).__name__}: {error}") from error
        if isinstance(answer, ANSWERS):
            return answer, name
        if answer is not None:
            raise PolicyError(name, question, f"returned {answer!r}, which is not an answer")
    return None


def name_of(policy: object) -> str:
    """The name of a policy in records, spans and messages."""
    return getattr(policy, "__name__", None) or type(policy).__name__


@dataclass(frozen=True)
class when:  # noqa: N801 - it reads as a word: when(policy, tool="refund")
    """Ask a policy about some questions only: `when(policy, tool="refund_*", message="(?i)gift")`.

    `tool`, `server` and `key` are shell patterns, `message` and `url` regular expressions that may match anywhere, and
    `schema` is a model that the form must ask for. All conditions that are given must hold. For any other condition,
    write a policy.
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

    @property
    def __name__(self) -> str:
        """The name of the policy inside."""
        return name_of(self.policy)

    def __call__(self, ctx: "RunContext[Any]", question: Question) -> Answer | Awaitable[Answer | None] | None:
        """Ask the policy, if the question matches."""
        return self.policy(ctx, question) if self.matches(question) else None

    def matches(self, question: Question) -> bool:
        """Whether every condition holds for a question."""
        return (
            self.kind in (None, question.kind)
            and self.mode in (None, question.mode)
            and _is_like(self.tool, question.tool)
            and _is_like(self.server, question.server)
            and _is_like(self.key, question.key)
            and _is_found(self.message, question.message)
            and _is_found(self.url, question.url)
            and (self.schema is None or question.asks(self.schema))
        )


@dataclass(frozen=True)
class Answers:
    """Answers by question: `Answers({"(?i)gift wrap": Decline(), Scope: Scope(full=True)})`.

    A key is a regular expression for the message, or a model that the form must ask for. A value is an answer, or the
    content to accept with. The first key that matches counts; only elicitations are answered.
    """

    by_question: Mapping[Any, Any]

    def __call__(self, ctx: "RunContext[Any]", question: Question) -> Answer | None:
        """The answer to a question, if there is one."""
        if question.kind != "elicitation":
            return None
        for asked, answer in self.by_question.items():
            if question.matches(asked):
                return answer if isinstance(answer, ANSWERS) else Accept(answer)
        return None


def _is_like(pattern: str | None, value: str | None) -> bool:
    return pattern is None or (value is not None and fnmatch.fnmatchcase(value, pattern))


def _is_found(pattern: str | re.Pattern[str] | None, value: str | None) -> bool:
    return pattern is None or (value is not None and re.search(pattern, value) is not None)
