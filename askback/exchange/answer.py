"""The answers to a question. Each is also a policy that gives itself to every elicitation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from askback.exchange.question import Question

Action = Literal["accept", "decline", "cancel", "defer"]


class _AlwaysGiven:
    """An answer as a policy: given to every elicitation, with no opinion on sampling and roots."""

    action: ClassVar[Action]

    def __call__(self, ctx: Any, question: Question) -> Self | None:
        return self if question.kind == "elicitation" else None


@dataclass(frozen=True)
class Accept(_AlwaysGiven):
    """Yes, with the content that was asked for.

    For a form, `content` is a mapping, a pydantic model or a dataclass, checked against the form before it is sent. A
    URL question takes no content. For sampling it is the text or the whole result; for roots, the directories or the
    whole result.
    """

    action = "accept"
    content: Mapping[str, Any] | Any = None


@dataclass(frozen=True)
class Decline(_AlwaysGiven):
    """No. Sampling and roots requests cannot be declined in the protocol: the tool call fails."""

    action = "decline"


@dataclass(frozen=True)
class Cancel(_AlwaysGiven):
    """Dismissed without an answer."""

    action = "cancel"


@dataclass(frozen=True)
class Defer(_AlwaysGiven):
    """Somebody else will answer later: the run is suspended, and resumes when they have."""

    action = "defer"


Answer = Accept | Decline | Cancel | Defer
ANSWERS = (Accept, Decline, Cancel, Defer)
