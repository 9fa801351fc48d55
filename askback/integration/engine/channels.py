"""How a question reaches the client, and what comes back: one way for each protocol generation."""

import json
import logging
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
    Marker,
    RecordedAnswer,
    Refusal,
    RenderedQuestion,
    outcome_of,
    question_of,
)

logger = logging.getLogger(__name__)

STATE_VERSION = 2

DECLARE = {
    "elicitation.form": "an elicitation handler (`elicitation_handler=` of fastmcp.Client)",
    "sampling": "a sampling handler (`sampling_handler=` of fastmcp.Client)",
    "sampling.tools": (
        "a sampling handler that can call tools (`sampling_handler=` and "
        "`sampling_capabilities=SamplingCapability(tools=...)` of fastmcp.Client)"
    ),
    "roots": "its directories (`roots=` of fastmcp.Client)",
}
"""What the developer of a client can do about a capability that it lacks."""


class Channel(Protocol):
    """The client, as the resolvers of one call reach it."""

    async def ask(self, plan: ResolverPlan, question: RenderedQuestion) -> Accepted | Refusal | None:
        """Ask what `plan` wants to know. None: the answer comes with the next round."""
        ...

    def settled(self, plan: ResolverPlan) -> None:
        """Take note that `plan` has its value and will not ask any more."""
        ...

    def close(self) -> InputRequiredResult | None:
        """What ends the call so that the client can answer; None where no question is open."""
        ...


def open_channel(host: Host, plans: Sequence[ResolverPlan], settled: Sequence[bool]) -> Channel:
    """Reach the client of a call, when its first question comes up."""
    return _Rounds(host, plans) if host.in_rounds else _Requests(host, plans, settled)


def question_for(plan: ResolverPlan, marker: Marker) -> RenderedQuestion:
    """The question that a resolver has just returned.

    Raises:
        TypeError: If the protocol cannot ask it: a mistake of the resolver's author.
    """
    try:
        return question_of(marker, plan.graph.forms)
    except TypeError as error:
        raise TypeError(f"Resolver {plan.name!r} cannot ask: {error}") from error


class _Rounds:
    """2026-07-28 and later: open questions end the call, and the client calls again with the answers."""

    def __init__(self, host: Host, plans: Sequence[ResolverPlan]) -> None:
        self._host = host
        self._tool = plans[0].graph.tool
        self._belongs_to = f"{self._tool}{host.call_id}"
        self._state: _State | None = None
        self._kept: dict[str, RecordedAnswer] = {}
        self._open: dict[int, tuple[str, str, InputRequest]] = {}

    async def ask(self, plan: ResolverPlan, question: RenderedQuestion) -> Accepted | Refusal | None:
        continuation = await self._host.continuation()
        if self._state is None:
            self._state = _State(continuation.state, self._belongs_to)
        state = self._state
        digest = question.digest()
        # The resolver has just decided to ask, so nothing a client sent can stand in for a value it would compute.
        outcome = self._recorded(state, plan.key, question, digest)
        if outcome is not None:
            return outcome
        # An answer counts for what was asked in the round before, in exactly these words.
        if state.asked.get(plan.key) == digest:
            response = continuation.responses.get(plan.key)
            if response is not None:
                self._kept[plan.key], outcome = outcome_of(question, response, plan.name, self._host.limits)
                return outcome
        elif state.mentions(plan.key):
            logger.warning(
                "The question of resolver %r of tool %r changed between two rounds. Its answer was dropped, and it is "
                "asked again. Keep what changes by itself, such as a clock or a random number, out of questions.",
                plan.name,
                self._tool,
            )
        _check_reachable(plan, question, self._host)
        self._open[plan.index] = (plan.key, digest, question.request())
        return None

    def settled(self, plan: ResolverPlan) -> None:
        pass

    def close(self) -> InputRequiredResult | None:
        if not self._open:
            self._host.keep(self._encoded)
            return None
        return InputRequiredResult(
            input_requests={key: request for _, (key, _, request) in sorted(self._open.items())},
            request_state=self._encoded(),
        )

    def _encoded(self) -> str:
        asked = {key: digest for key, digest, _ in self._open.values()}
        state = _State.encode(self._belongs_to, self._kept, asked)
        limit = self._host.limits.state
        if len(state) > limit:
            logger.warning("A call of tool %r was refused: its state is longer than %d characters", self._tool, limit)
            raise ToolError(f"The answers of this call are longer than {limit} characters together")
        return state

    def _recorded(
        self, state: "_State", key: str, question: RenderedQuestion, digest: str
    ) -> Accepted | Refusal | None:
        answer = state.answer(key, digest)
        if answer is None:
            return None
        try:
            outcome = question.outcome(answer)
        except Exception:
            # It fitted when it came, so the form's model has changed since. Its error may repeat the answer.
            logger.info("The answer to resolver question %r no longer fits its form and is asked for again", key)
            return None
        self._kept[key] = answer
        return outcome


class _State:
    """The state of the round before: the answers so far, and what was asked last.

    The host has verified it, but an older or newer release may have written it: whatever does not read as expected is
    taken as missing, so its question is asked again.
    """

    def __init__(self, text: str | None, belongs_to: str) -> None:
        content: Mapping[str, Any] = _mapping(_parsed(text)) if text is not None else {}
        known = content.get("v") == STATE_VERSION and content.get("t") == belongs_to
        if content and not known:
            logger.info("A call of %s came with the state of another call or release, and starts over", belongs_to)
        self.asked: Mapping[str, Any] = _mapping(content.get("asked")) if known else {}
        self._answers: Mapping[str, Any] = _mapping(content.get("answers")) if known else {}

    def mentions(self, key: str) -> bool:
        """Whether a question of that key was asked before, in whatever words."""
        return key in self.asked or key in self._answers

    def answer(self, key: str, digest: str) -> RecordedAnswer | None:
        """The answer recorded for exactly this question."""
        match self._answers.get(key):
            case [str(recorded), "accept", str(content)] if recorded == digest:
                return RecordedAnswer(recorded, "accept", content)
            case [str(recorded), ("decline" | "cancel") as action, None] if recorded == digest:
                return RecordedAnswer(recorded, action, None)
            case _:
                return None

    @staticmethod
    def encode(belongs_to: str, answers: Mapping[str, RecordedAnswer], asked: Mapping[str, str]) -> str:
        """The state to send along with a round's questions."""
        # In ASCII, so that nothing a client can put into a string fails to encode.
        return json.dumps({"v": STATE_VERSION, "t": belongs_to, "answers": answers, "asked": asked})


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

    async def ask(self, plan: ResolverPlan, question: RenderedQuestion) -> Accepted | Refusal | None:
        _check_reachable(plan, question, self._host)
        if question.kind == "elicitation":
            await self._turn(plan.index)
        try:
            response = await self._host.send(question.request(), question.result_type)
        except ValidationError:
            raise ToolError(f"Resolver {plan.name!r}: {WRONG_KIND}") from None
        return outcome_of(question, response, plan.name, self._host.limits)[1]

    def settled(self, plan: ResolverPlan) -> None:
        self._before_others.discard(plan.index)
        if self._asking == plan.index:
            self._asking = None
        self._next_turn()

    def close(self) -> InputRequiredResult | None:
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


def _check_reachable(plan: ResolverPlan, question: RenderedQuestion, host: Host) -> None:
    """Refuse to ask a client that could not answer.

    Raises:
        ToolError: If there is nobody to ask.
        MCPError: If the client did not declare the capability that the question needs.
    """
    reason = host.unreachable(question.kind)
    if reason is not None:
        raise ToolError(f"Resolver {plan.name!r} has a question, and {reason}")
    missing = question.needs(host.client_capabilities)
    if missing is not None:
        required = MissingRequiredClientCapabilityErrorData(required_capabilities=missing).model_dump(
            by_alias=True, mode="json", exclude_none=True
        )
        name = _name_of(required["requiredCapabilities"])
        raise MCPError(
            code=MISSING_REQUIRED_CLIENT_CAPABILITY,
            message=(
                f"This tool has a question that the client cannot answer: it did not declare the capability {name}. "
                f"Give the client {DECLARE[name]}, or call the tool with one that has it"
            ),
            data=required,
        )


def _name_of(capability: Mapping[str, Any]) -> str:
    """A capability as people write it, down to the part that is needed: `sampling.tools`."""
    name, parts = next(iter(capability.items()))
    return ".".join([name, *parts])


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
