"""How a question reaches the client, and what comes back: one way for each protocol generation."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

import anyio
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    InputRequest,
    InputRequiredResult,
    MissingRequiredClientCapabilityErrorData,
)
from pydantic import ValidationError

from askback.integration.engine.graph import ResolverPlan
from askback.integration.engine.host import Host
from askback.integration.engine.questions import (
    WRONG_KIND,
    Accepted,
    Answer,
    Marker,
    Question,
    Refusal,
    outcome_of,
    question_of,
)
from askback.markers import SDKElicit

STATE_VERSION = 1


class Channel(Protocol):
    """The client, as the resolvers of one call reach it."""

    async def ask(self, plan: ResolverPlan, marker: Marker) -> Accepted | Refusal | None:
        """Ask what `plan` wants to know. None: the answer comes with the next round."""
        ...

    def settled(self, plan: ResolverPlan) -> None:
        """Take note that `plan` has its value and will not ask any more."""
        ...

    def input_required(self) -> InputRequiredResult | None:
        """What ends the call so that the client can answer; None where nothing is left open."""
        ...


def open_channel(host: Host, plans: Sequence[ResolverPlan], settled: Sequence[bool]) -> Channel:
    """Reach the client of a call, when its first question comes up."""
    return _Rounds(host, plans) if host.in_rounds else _Requests(host, plans, settled)


class _Rounds:
    """2026-07-28 and later: open questions end the call, and the client calls again with the answers."""

    def __init__(self, host: Host, plans: Sequence[ResolverPlan]) -> None:
        self._host = host
        self._tool = plans[0].graph.tool
        self._state = _State(host.request_state, self._tool)
        self._kept: dict[str, Answer] = {}
        self._open: dict[int, tuple[str, str, InputRequest]] = {}

    async def ask(self, plan: ResolverPlan, marker: Marker) -> Accepted | Refusal | None:
        question = _question(plan, marker)
        digest = question.digest()
        # The resolver has just decided to ask, so nothing a client sent can stand in for a value it would compute.
        outcome = self._recorded(plan.key, question, digest)
        if outcome is not None:
            return outcome
        # An answer counts for what was asked in the round before, in exactly these words.
        if self._state.asked.get(plan.key) == digest:
            response = (self._host.input_responses or {}).get(plan.key)
            if response is not None:
                self._kept[plan.key], outcome = outcome_of(question, response, plan.name)
                return outcome
        _check_reachable(plan, question, self._host)
        self._open[plan.index] = (plan.key, digest, question.request())
        return None

    def settled(self, plan: ResolverPlan) -> None:
        pass

    def input_required(self) -> InputRequiredResult | None:
        if not self._open:
            return None
        open_questions = [self._open[index] for index in sorted(self._open)]
        return InputRequiredResult(
            input_requests={key: request for key, _, request in open_questions},
            request_state=_State.encode(self._tool, self._kept, {key: digest for key, digest, _ in open_questions}),
        )

    def _recorded(self, key: str, question: Question, digest: str) -> Accepted | Refusal | None:
        answer = self._state.answer(key, digest)
        if answer is None:
            return None
        try:
            outcome = question.outcome(answer)
        except ValueError:
            return None
        self._kept[key] = answer
        return outcome


class _State:
    """The `request_state` of the round before: the answers so far, and what was asked last.

    The host has verified it, but an older or newer release may have written it: whatever does not read as expected is
    taken as not there, so its question is asked again.
    """

    def __init__(self, text: str | None, tool: str) -> None:
        content: Mapping[str, Any] = _mapping(_parsed(text)) if text is not None else {}
        known = content.get("v") == STATE_VERSION and content.get("t") == tool
        self.asked: Mapping[str, Any] = _mapping(content.get("asked")) if known else {}
        self._answers: Mapping[str, Any] = _mapping(content.get("answers")) if known else {}

    def answer(self, key: str, digest: str) -> Answer | None:
        """The answer recorded for exactly this question."""
        match self._answers.get(key):
            case [str(recorded), ("accept" | "decline" | "cancel") as action, content] if recorded == digest:
                return Answer(recorded, action, content)
            case _:
                return None

    @staticmethod
    def encode(tool: str, answers: Mapping[str, Answer], asked: Mapping[str, str]) -> str:
        """The state to send along with a round's questions."""
        # In ASCII, so that nothing a client can put into a string fails to encode.
        return json.dumps({"v": STATE_VERSION, "t": tool, "answers": answers, "asked": asked})


class _Requests:
    """2025-11-25 and earlier: a question is a request of its own, sent while the call waits.

    People are asked one question at a time, in declaration order: a question waits until every resolver declared
    before it that may ask a person has its value. Models and roots are asked at once.
    """

    def __init__(self, host: Host, plans: Sequence[ResolverPlan], settled: Sequence[bool]) -> None:
        self._host = host
        self._before_others = {plan.index for plan in plans if plan.may_elicit and not settled[plan.index]}
        self._asking: int | None = None
        self._waiting: dict[int, anyio.Event] = {}

    async def ask(self, plan: ResolverPlan, marker: Marker) -> Accepted | Refusal | None:
        question = _question(plan, marker)
        _check_reachable(plan, question, self._host)
        if isinstance(marker, SDKElicit):
            await self._turn(plan.index)
        try:
            response = await self._host.send(question.request(), question.result_type)
        except ValidationError:
            raise ToolError(f"Resolver {plan.name!r}: {WRONG_KIND}") from None
        return outcome_of(question, response, plan.name)[1]

    def settled(self, plan: ResolverPlan) -> None:
        self._before_others.discard(plan.index)
        if self._asking == plan.index:
            self._asking = None
        self._next_turn()

    def input_required(self) -> InputRequiredResult | None:
        return None

    async def _turn(self, index: int) -> None:
        """Wait for the person. The turn is over when the resolver has its value; a failure ends the call instead."""
        turn = self._waiting[index] = anyio.Event()
        self._next_turn()
        await turn.wait()

    def _next_turn(self) -> None:
        if self._asking is None and self._waiting:
            index = min(self._waiting)
            if not any(other < index for other in self._before_others):
                self._asking = index
                self._waiting.pop(index).set()


def _question(plan: ResolverPlan, marker: Marker) -> Question:
    try:
        return question_of(marker, plan.graph.forms)
    except TypeError as error:
        raise TypeError(f"Resolver {plan.name!r} cannot ask: {error}") from error


def _check_reachable(plan: ResolverPlan, question: Question, host: Host) -> None:
    """Refuse to ask a client that could not answer.

    Raises:
        ToolError: If there is no client to ask.
        MCPError: If it did not declare the capability that the question needs.
    """
    if host.unreachable is not None:
        raise ToolError(f"Resolver {plan.name!r} has a question, and {host.unreachable}")
    missing = question.needs(host.client_capabilities)
    if missing is not None:
        required = MissingRequiredClientCapabilityErrorData(required_capabilities=missing).model_dump(
            by_alias=True, mode="json", exclude_none=True
        )
        names = ", ".join(required["requiredCapabilities"])
        raise MCPError(
            code=MISSING_REQUIRED_CLIENT_CAPABILITY,
            message=f"This tool has a question, and the client did not declare that it can answer one ({names})",
            data=required,
        )


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
