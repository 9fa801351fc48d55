"""What can be said to a question. Each answer is also the policy that gives it to everybody."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from mcp_types import ElicitResult

from askback.agents.content import checked_content
from askback.agents.questions import Question


class _AlwaysGiven:
    """An answer as a policy: given to every elicitation, and no opinion on sampling and roots."""

    def __call__(self, ctx: Any, question: Question) -> Self | None:
        return self if question.kind == "elicitation" else None


@dataclass(frozen=True)
class Accept(_AlwaysGiven):
    """Yes, with what was asked for.

    For a form, `content` is a mapping, a pydantic model or a dataclass, checked against the form before it leaves; an
    address takes none. For sampling it is the text, or the whole result; for roots the directories, or the whole
    result.
    """

    content: Mapping[str, Any] | Any = None


@dataclass(frozen=True)
class Decline(_AlwaysGiven):
    """No. Sampling and roots have no way to say it: the tool call fails."""


@dataclass(frozen=True)
class Cancel(_AlwaysGiven):
    """Dismissed without an answer."""


@dataclass(frozen=True)
class Defer(_AlwaysGiven):
    """Somebody else is to answer, later: the run stops, and goes on when they have."""


Answer = Accept | Decline | Cancel | Defer


def elicit_result(answer: Accept | Decline | Cancel, question: Question) -> ElicitResult:
    """An answer to an elicitation, as the server is sent it.

    Raises:
        ContentError: If it accepts with content that does not fit the form.
    """
    if isinstance(answer, Decline):
        return ElicitResult(action="decline")
    if isinstance(answer, Cancel):
        return ElicitResult(action="cancel")
    if question.schema is None:
        return ElicitResult(action="accept")
    return ElicitResult(action="accept", content=checked_content(answer.content, question.schema))
