"""The format of a suspended call: a run that waits for people is this JSON document, and nothing else.

A policy that answers `Defer()` suspends the tool call. Everything needed to resume it is in the `Suspension`, which the
framework stores with the run, so that it can go on later and elsewhere.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Literal, cast

from mcp_types import InputResponse
from pydantic import ValidationError
from pydantic.dataclasses import dataclass
from pydantic_core import to_jsonable_python

from askback.agents.errors import AnsweringError
from askback.exchange.document import Document
from askback.exchange.question import Question
from askback.exchange.response import recorded, wire

METADATA = "askback"
"""The key under which a suspended call is stored in its framework's metadata."""


@dataclass(frozen=True, kw_only=True)
class PendingQuestion(Document):
    """A question that a suspended run waits for."""

    id: str
    tool_call_id: str
    question: Question


@dataclass(frozen=True, kw_only=True)
class Given:
    """An answer that was given, and to which question."""

    fingerprint: str
    key: str | None = None
    response: dict[str, Any]

    def answers(self, question: Question) -> bool:
        """Whether it is the answer to exactly this question. A call may resume on a connection that has no keys."""
        same_key = self.key is None or question.key is None or self.key == question.key
        return same_key and self.fingerprint == question.fingerprint()


@dataclass(kw_only=True)
class SuspendedQuestion:
    """A question of a suspended call. The call's arguments are not stored with it: they may hold secrets."""

    question: Question
    fingerprint: str
    response: dict[str, Any] | None = None
    later: bool = False
    """Whether it was answered after the call was suspended."""

    @classmethod
    def of(cls, question: Question, response: InputResponse | None = None) -> "SuspendedQuestion":
        """A question that was just asked, and its answer if there is one."""
        kept = replace(question, arguments={})
        return cls(question=kept, fingerprint=question.fingerprint(), response=response and wire(response))


@dataclass(kw_only=True)
class Suspension(Document):
    """A call that ended with open questions, to be made again with the answers."""

    version: Literal[1] = 1
    server: str
    tool: str
    arguments: str
    """A salted digest of the call's arguments, to which a hook may have added secrets."""
    round: int
    """How many rounds the call has taken; 0 where it starts over."""
    state: str | None = None
    """The server's own state, to be sent back unchanged."""
    questions: dict[str, SuspendedQuestion]
    """The questions of the last round, by the server's keys."""
    given: list[Given] = field(default_factory=list[Given])
    """The answers of earlier rounds, in their order."""

    def is_of(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the call was made with these arguments."""
        return self.arguments == digest_of(arguments, self.arguments.partition(":")[0])

    def responses(self) -> dict[str, InputResponse]:
        """The answers of the last round so far, ready to be sent."""
        return {
            key: recorded(asked.question, asked.response)
            for key, asked in self.questions.items()
            if asked.response is not None
        }

    def all_given(self) -> list[Given]:
        """Every answer so far, in the order of the questions."""
        return [
            *self.given,
            *(
                Given(fingerprint=asked.fingerprint, key=asked.question.key, response=asked.response)
                for asked in self.questions.values()
                if asked.response is not None
            ),
        ]

    def pending(self, tool_call_id: str, arguments: Mapping[str, Any]) -> dict[str, PendingQuestion]:
        """The questions without an answer, by the server's keys; `arguments` are those that may be shown."""
        return {
            key: PendingQuestion(
                # A question reworded or asked again gets another id, so that an answer to the old one cannot fit it.
                id=f"{tool_call_id}/{self.round}/{asked.fingerprint[:12]}/{key}",
                tool_call_id=tool_call_id,
                question=replace(asked.question, arguments=dict(arguments)),
            )
            for key, asked in self.questions.items()
            if asked.response is None
        }

    def to_metadata(self) -> dict[str, Any]:
        """The document to store with the run."""
        return {METADATA: self.adapter().dump_python(self, mode="json", by_alias=True, exclude_none=True)}

    @classmethod
    def from_metadata(cls, metadata: object) -> "Suspension | None":
        """The document that was stored with a run; None where askback stored nothing.

        Raises:
            AnsweringError: If it was stored by a release with another format, or is damaged.
        """
        if not isinstance(metadata, Mapping) or METADATA not in metadata:
            return None
        stored = cast("dict[str, Any]", metadata[METADATA])
        version: object = stored.get("version") if isinstance(cast("object", stored), Mapping) else None
        if version != 1 or version is True:
            raise AnsweringError(
                f"This run was suspended by another release of askback: its format is {version!r}, not 1"
            )
        try:
            suspension = cls.adapter().validate_python(stored)
            suspension.responses()
        except ValidationError as error:
            raise AnsweringError("The document stored with this run is damaged") from error
        return suspension


def digest_of(arguments: Mapping[str, Any], salt: str) -> str:
    """A salted digest of a call's arguments, to recognise them by without storing them."""
    text = json.dumps(to_jsonable_python(dict(arguments)), sort_keys=True)
    return f"{salt}:{hashlib.sha256(f'{salt}:{text}'.encode()).hexdigest()}"
