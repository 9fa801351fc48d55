"""Runs that wait for people: as a JSON document, and nothing else.

A policy that answers `Defer()` stops the tool call with Pydantic AI's own deferral. What is needed to go on is in its
metadata, so whoever stores the run's messages and its `DeferredToolRequests` can go on later, and elsewhere.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from inspect import isawaitable
from typing import Any, Literal, TypeVar, cast

from mcp_types import InputResponse
from pydantic import ValidationError
from pydantic.dataclasses import dataclass
from pydantic_ai import Agent, AgentRunResult, DeferredToolRequests, DeferredToolResults, ToolApproved, UserError
from pydantic_ai.messages import UserContent
from pydantic_core import to_jsonable_python

from askback.exchange.answer import Accept, Answer, Cancel, Decline, Defer
from askback.exchange.document import Document
from askback.exchange.form import ContentError
from askback.exchange.question import Question
from askback.exchange.response import elicit_result, recorded, wire

METADATA = "askback"
"""The key under which a deferred tool call's metadata says what its call waits for."""

OutputT = TypeVar("OutputT")


@dataclass(frozen=True, kw_only=True)
class PendingQuestion(Document):
    """A question that a stopped run waits for."""

    id: str
    tool_call_id: str
    question: Question


@dataclass(frozen=True, kw_only=True)
class Given:
    """An answer that was given, and to what."""

    fingerprint: str
    key: str | None = None
    response: dict[str, Any]

    def answers(self, question: Question) -> bool:
        """Whether it is the answer to just this question; connections before 2026-07-28 know no keys."""
        same_key = self.key is None or question.key is None or self.key == question.key
        return same_key and self.fingerprint == question.fingerprint()


@dataclass(kw_only=True)
class Asked:
    """A question of a stopped call. What the call was made with is not kept with it: it may hold secrets."""

    question: Question
    fingerprint: str
    response: dict[str, Any] | None = None
    later: bool = False
    """Whether it was answered after the call was stopped."""

    @classmethod
    def of(cls, question: Question, response: InputResponse | None = None) -> "Asked":
        """A question that was asked just now, and its answer if there is one."""
        kept = replace(question, arguments={})
        return cls(question=kept, fingerprint=question.fingerprint(), response=response and wire(response))


@dataclass(kw_only=True)
class Suspension(Document):
    """A call that is over until somebody makes it again, with the answers."""

    version: Literal[1] = 1
    server: str
    tool: str
    arguments: str
    """A salted digest of what the call was made with, which a hook may have put secrets into."""
    round: int
    """How many rounds the call has taken; 0 where it starts over."""
    state: str | None = None
    """The server's own, to be sent back as it is."""
    questions: dict[str, Asked]
    """What the round asks, by the server's keys."""
    given: list[Given] = field(default_factory=list[Given])
    """The answers of earlier rounds, in their order."""

    def is_of(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the call was made with these arguments."""
        return self.arguments == digest_of(arguments, self.arguments.partition(":")[0])

    def responses(self) -> dict[str, InputResponse]:
        """The answers of the round, as they are sent; those that there are."""
        return {
            key: recorded(asked.question, asked.response)
            for key, asked in self.questions.items()
            if asked.response is not None
        }

    def all_given(self) -> list[Given]:
        """Every answer so far, in the order in which it was asked for."""
        return [
            *self.given,
            *(
                Given(fingerprint=asked.fingerprint, key=asked.question.key, response=asked.response)
                for asked in self.questions.values()
                if asked.response is not None
            ),
        ]

    def to_metadata(self) -> dict[str, Any]:
        """What is stored with the run."""
        return {METADATA: self.adapter().dump_python(self, mode="json", by_alias=True, exclude_none=True)}

    @classmethod
    def from_metadata(cls, metadata: object) -> "Suspension | None":
        """What was stored with a run; None where it is not ours.

        Raises:
            UserError: If it was stored by a release with another format, or is damaged.
        """
        if not isinstance(metadata, Mapping) or METADATA not in metadata:
            return None
        stored = cast("dict[str, Any]", metadata[METADATA])
        version: object = stored.get("version") if isinstance(cast("object", stored), Mapping) else None
        if version != 1 or version is True:
            raise UserError(f"This run was stopped by another release of askback: its format is {version!r}, not 1")
        try:
            suspension = cls.adapter().validate_python(stored)
            suspension.responses()
        except ValidationError as error:
            raise UserError("What was stored with this run is damaged") from error
        return suspension


def digest_of(arguments: Mapping[str, Any], salt: str) -> str:
    """Stands for a call's arguments, and tells nothing of them."""
    text = json.dumps(to_jsonable_python(dict(arguments)), sort_keys=True)
    return f"{salt}:{hashlib.sha256(f'{salt}:{text}'.encode()).hexdigest()}"


def pending_questions(requests: DeferredToolRequests) -> list[PendingQuestion]:
    """What a stopped run waits for, of all its tool calls. Approvals of the application's own are not among them.

    A question's arguments are those that the model called the tool with.

    Raises:
        UserError: If the run was stopped by a release with another format.
    """
    return [pending for pending, _ in _open(requests)]


def resume_with(requests: DeferredToolRequests, answers: Mapping[str, Answer]) -> DeferredToolResults:
    """What to run an agent with to go on: the answers to pending questions, by their ids.

    Questions without an answer, or with `Defer()`, are pending again when the run goes on. The result covers the calls
    of toolsets that answer; `update` it with those for the application's own.

    Raises:
        ValueError: If an answer is for none of these requests, or does not fit its question.
    """
    suspensions = _suspensions(requests)
    open_questions = {pending.id: (pending, key) for pending, key in _open(requests)}
    unknown = sorted(set(answers) - set(open_questions))
    if unknown:
        raise ValueError(f"These answers are for no question of these requests: {', '.join(unknown)}")
    for question_id, answer in answers.items():
        pending, key = open_questions[question_id]
        asked = suspensions[pending.tool_call_id].questions[key]
        asked.response = _response(answer, pending)
        asked.later = asked.response is not None
    return DeferredToolResults(
        approvals={tool_call_id: ToolApproved() for tool_call_id in suspensions},
        metadata={tool_call_id: suspension.to_metadata() for tool_call_id, suspension in suspensions.items()},
    )


def _open(requests: DeferredToolRequests) -> Iterator[tuple[PendingQuestion, str]]:
    """The questions without an answer, and the keys their servers know them by."""
    arguments = {call.tool_call_id: call.args_as_dict() for call in requests.approvals}
    for tool_call_id, suspension in _suspensions(requests).items():
        for key, asked in suspension.questions.items():
            if asked.response is None:
                # A question reworded, or asked again, is another one, also to whoever still sees the old one.
                question_id = f"{tool_call_id}/{suspension.round}/{asked.fingerprint[:12]}/{key}"
                question = replace(asked.question, arguments=arguments[tool_call_id])
                yield PendingQuestion(id=question_id, tool_call_id=tool_call_id, question=question), key


def _suspensions(requests: DeferredToolRequests) -> dict[str, Suspension]:
    found = {
        call.tool_call_id: Suspension.from_metadata(requests.metadata.get(call.tool_call_id))
        for call in requests.approvals
    }
    return {tool_call_id: suspension for tool_call_id, suspension in found.items() if suspension is not None}


def _response(answer: object, pending: PendingQuestion) -> dict[str, Any] | None:
    if isinstance(answer, Defer):
        return None
    if not isinstance(answer, Accept | Decline | Cancel):
        raise ValueError(f"{pending.id}: {answer!r} is no answer")
    try:
        return wire(elicit_result(pending.question, answer))
    except ContentError as error:
        message = pending.question.message[:200]
        raise ValueError(f"{pending.id}: the answer does not fit the question {message!r}: {error}") from None


async def run_until_done(
    agent: Agent[Any, OutputT | DeferredToolRequests],
    prompt: str | Sequence[UserContent] | None = None,
    *,
    ask: Callable[[PendingQuestion], Answer | Awaitable[Answer]],
    others: Callable[[DeferredToolRequests], DeferredToolResults | Awaitable[DeferredToolResults]] | None = None,
    **options: Any,
) -> AgentRunResult[OutputT]:
    """Run an agent through any number of stops, with a person at hand.

    `ask` answers a pending question; `others` gives the results for deferred calls that are not ours, such as approvals
    of the application's own. The options are those of `Agent.run`, for every run.

    Raises:
        UserError: If a call was deferred that neither of them covers.
    """
    run = cast("Callable[..., Awaitable[AgentRunResult[Any]]]", agent.run)
    result = await run(prompt, **options)
    while isinstance(result.output, DeferredToolRequests):
        requests = result.output
        answers: dict[str, Answer] = {}
        for pending in pending_questions(requests):
            answer = ask(pending)
            answers[pending.id] = await answer if isawaitable(answer) else answer
        results = DeferredToolResults()
        if others is not None:
            given = others(requests)
            results = await given if isawaitable(given) else given
        results.update(resume_with(requests, answers))
        if requests.remaining(results) is not None:
            raise UserError("The run waits for calls that ask no question: pass `others` to give their results")
        options |= {"message_history": result.all_messages(), "deferred_tool_results": results}
        result = await run(**options)
    return result
