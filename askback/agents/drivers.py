"""How a connection's questions are answered: one way for each protocol generation.

The mirror image of the engine's channels. Which driver a connection gets is decided once, when its protocol version is
known. Every outcome of a tool call is a value: the plug turns a `Stop`, a `Failure` and a `Refusal` into whatever its
framework expects.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

import anyio
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_REQUEST,
    CallToolResult,
    ErrorData,
    InputRequest,
    InputRequiredResult,
    InputResponse,
    InputResponses,
    Result,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from opentelemetry import context as otel
from typing_extensions import override

from askback.agents.answering import CANNOT_SUSPEND, Answering
from askback.agents.calls import ENDED, Call, Failure, Stop, current_call
from askback.agents.decide import Decision, Refusal
from askback.agents.errors import AnsweringError
from askback.agents.observe import span_of
from askback.agents.suspension import SuspendedQuestion, Suspension
from askback.exchange.question import Question

logger = logging.getLogger(__name__)

MAX_QUESTIONS = 100
"""How many questions a server may ask in one round, or on older connections for each round that a call may take."""
WITHDRAWAL_TIMEOUT = 5.0
"""How many seconds a server has to withdraw a question whose call was cancelled, before it gets an error."""
STATE_ONLY_DELAY = 0.05
"""How many seconds to wait, times the round, before calling again a server that sent a state and no question."""

ResultT = TypeVar("ResultT")
Send = Callable[[InputResponses | None, str | None], Awaitable[CallToolResult | InputRequiredResult | Result]]
"""Sends a tool call with the answers and the state of the round before."""
Outcome = CallToolResult | Result | Refusal | Stop | Failure
"""How a tool call went."""


class Driver(Protocol):
    """Answers what one connection's server asks."""

    async def call_tool(self, call: Call, send: Send) -> Outcome:
        """Call a tool, and answer what the call makes the server ask."""
        ...

    async def make(self, call: Call, request: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Make any other request that may make the server ask."""
        ...

    async def answer(self, request: InputRequest, context: ClientRequestContext) -> InputResponse | ErrorData:
        """Answer a question that arrived outside a tool call's result."""
        ...


def driver_for(session: ClientSession, answering: Answering, *, tells_calls_apart: bool) -> Driver:
    """The driver for the protocol version of a session. The handshake that agrees on one is of the older kind."""
    if session.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return Rounds(session, answering)
    return Requests(answering, tells_calls_apart=tells_calls_apart)


@dataclass(slots=True)
class _Position:
    """How far a call in rounds has come: what the next request carries."""

    responses: InputResponses | None = None
    state: str | None = None
    round: int = 0


class Rounds(Driver):
    """2026-07-28 and later: questions come as the result of a call, which is made again with the answers."""

    def __init__(self, session: ClientSession, answering: Answering) -> None:
        self._session = session
        self._answering = answering

    @override
    async def call_tool(self, call: Call, send: Send) -> Outcome:
        resumed = await self._answering.resumption(call)
        if isinstance(resumed, ENDED):
            return resumed
        at = self._start(call, resumed)
        restarts = 0
        with _UnderWay(call, []):
            while True:
                try:
                    result = await send(at.responses, at.state)
                except MCPError as error:
                    if at.state is None or not _is_refused_state(error) or restarts >= self._answering.max_rounds:
                        raise
                    restarts += 1
                    at = self._restart(call, restarts)
                    continue
                if not isinstance(result, InputRequiredResult):
                    return result
                following = await self._round(call, result, at.round + 1)
                if not isinstance(following, _Position):
                    return following
                at = following

    @override
    async def make(self, call: Call, request: Callable[[], Awaitable[ResultT]]) -> ResultT:
        with _UnderWay(call, []):
            return await request()

    @override
    async def answer(self, request: InputRequest, context: ClientRequestContext) -> InputResponse | ErrorData:
        # Servers send no requests here: the question came with a prompt or a resource, which no run asked for.
        call = Call()
        outcome = await self._answering.answer(call, self._answering.question(call, request), request, context)
        return _sent(outcome)

    def _start(self, call: Call, resumed: Suspension | None) -> _Position:
        """Start a call: afresh, where it was suspended, or over again with the answers it had."""
        if resumed is None:
            return _Position()
        if resumed.round:
            call.given = resumed.all_given()
            return _Position(resumed.responses(), resumed.state, resumed.round)
        call.start_over(resumed.all_given())
        return _Position()

    def _restart(self, call: Call, restarts: int) -> _Position:
        """Start over a call that the server has forgotten. Questions that were answered are not asked again."""
        logger.info(
            "Server %r refused the state of a call of tool %r: starting over (restart %d of at most %d)",
            self._answering.server(),
            call.tool,
            restarts,
            self._answering.max_rounds,
        )
        call.start_over(call.all_given())
        return _Position()

    async def _round(self, call: Call, asked: InputRequiredResult, number: int) -> _Position | Refusal | Stop | Failure:
        """Answer the questions of a round, at the same time."""
        requests = asked.input_requests or {}
        if number > self._answering.max_rounds:
            return self._limit(call, f"The tool {call.tool!r} asked for more than {self._answering.max_rounds} rounds")
        if len(requests) > MAX_QUESTIONS:
            return self._limit(
                call, f"The server asked {len(requests)} questions at once; more than {MAX_QUESTIONS} are refused"
            )
        if not requests:
            await anyio.sleep(STATE_ONLY_DELAY * number)
            return _Position(None, asked.request_state, number)
        questions = {key: self._answering.question(call, each, key, number) for key, each in requests.items()}
        before = len(call.answered)
        outcomes = await self._answers(call, questions, requests, number)
        failure = next((outcome for outcome in outcomes.values() if isinstance(outcome, Failure)), None)
        if failure is not None:
            return failure
        responses: dict[str, InputResponse | None] = {}
        for key, outcome in cast("dict[str, Decision]", outcomes).items():
            if isinstance(outcome.response, Refusal):
                return outcome.response
            if isinstance(outcome.response, ErrorData):
                raise MCPError.from_error_data(outcome.response)
            responses[key] = outcome.response
        if None in responses.values():
            kept = {key: SuspendedQuestion.of(question, responses[key]) for key, question in questions.items()}
            given = call.all_given(of_the_first=before)
            return self._answering.suspend(call, kept, given, asked.request_state, number)
        return _Position(cast("InputResponses", responses), asked.request_state, number)

    async def _answers(
        self, call: Call, questions: Mapping[str, Question], requests: Mapping[str, InputRequest], number: int
    ) -> dict[str, Decision | Failure]:
        """Answer questions at the same time, until all are answered or one of them fails the call."""
        context = ClientRequestContext(session=self._session, request_id=call.tool, meta=None)
        outcomes: dict[str, Decision | Failure] = {}

        async def answer(key: str, request: InputRequest) -> None:
            outcomes[key] = outcome = await self._answering.answer(call, questions[key], request, context)
            if isinstance(outcome, Failure) or isinstance(outcome.response, ErrorData | Refusal):
                group.cancel_scope.cancel()

        attributes = {"askback.round": number, "askback.questions": len(requests)}
        with span_of(call, f"answer round {number}", attributes):
            async with anyio.create_task_group() as group:
                for key, request in requests.items():
                    group.start_soon(answer, key, request)
        return outcomes

    def _limit(self, call: Call, sentence: str) -> Refusal:
        logger.warning("A call of tool %r of server %r hit a limit: %s", call.tool, self._answering.server(), sentence)
        return Refusal(sentence)


class Requests(Driver):
    """2025-11-25 and earlier: a question is a request of its own, sent while the call waits.

    Nothing on the wire ties such a request to a call: the context it arrives in does. Where it does not, calls are made
    one at a time.
    """

    def __init__(self, answering: Answering, *, tells_calls_apart: bool) -> None:
        self._answering = answering
        self._tells_calls_apart = tells_calls_apart
        self._under_way: list[Call] = []
        self._one_at_a_time = anyio.Lock()

    @override
    async def call_tool(self, call: Call, send: Send) -> Outcome:
        resumed = await self._answering.resumption(call)
        if isinstance(resumed, ENDED):
            return resumed
        if resumed is not None:
            call.start_over(resumed.all_given())

        async def send_until_ended() -> Outcome:
            with anyio.CancelScope() as call.scope:
                return await send(None, None)
            assert call.ended is not None
            return call.ended

        return await self.make(call, send_until_ended)

    @override
    async def make(self, call: Call, request: Callable[[], Awaitable[ResultT]]) -> ResultT:
        under_way = _UnderWay(call, self._under_way)
        call.trace = otel.get_current()
        if self._tells_calls_apart:
            with under_way:
                return await request()
        if any(outer in self._under_way for outer in call.outwards()):
            raise AnsweringError(
                "This connection carries one call at a time, and whoever answers a question of that call cannot make "
                "another on it: use a second toolset"
            )
        async with self._one_at_a_time:
            with under_way:
                return await request()

    @override
    async def answer(self, request: InputRequest, context: ClientRequestContext) -> InputResponse | ErrorData:
        call = self._caused_by()
        if call is None and self._answering.decider.handlers.covers(request):
            call = Call()
        if call is None:
            logger.warning("Server %r sent a request that no call can have caused", self._answering.server())
            return _error("No call under way can have caused this request")
        call.asked += 1
        if call.asked > MAX_QUESTIONS * self._answering.max_rounds:
            logger.warning("A call of tool %r of server %r asked too often", call.tool, self._answering.server())
            return _error("The call has asked too many questions")
        question = self._answering.question(call, request)
        outcome = await self._answering.answer(call, question, request, context)
        if isinstance(outcome, Failure):
            call.end(outcome)
        elif outcome.response is None:
            call.end(self._suspended(call, SuspendedQuestion.of(question)))
            # The call is being cancelled, and the question with it. Whatever we sent would pass for an answer.
            with anyio.move_on_after(WITHDRAWAL_TIMEOUT):
                await anyio.sleep_forever()
        return _sent(outcome)

    def _suspended(self, call: Call, asked: SuspendedQuestion) -> Stop | Failure:
        """Suspend a call that will be made again from the start, if it may be."""
        if not self._answering.restartable:
            return Failure(AnsweringError(CANNOT_SUSPEND))
        return self._answering.suspend(call, {asked.fingerprint: asked}, call.all_given(), None, 0)

    def _caused_by(self) -> Call | None:
        call = current_call.get()
        if call is None and not self._tells_calls_apart and self._under_way:
            # There is only ever one.
            return self._under_way[0]
        return call if call is not None and call in self._under_way else None


class _UnderWay:
    """While it is entered, a call is under way, and questions that arrive in its context belong to it."""

    __slots__ = ("_call", "_others", "_token")

    def __init__(self, call: Call, others: list[Call]) -> None:
        self._call = call
        self._others = others
        call.outer = current_call.get()

    def __enter__(self) -> None:
        call = self._call
        self._others.append(call)
        self._token = current_call.set(call)
        if call.run is not None:
            call.run.last = call

    def __exit__(self, *_: object) -> None:
        current_call.reset(self._token)
        self._others.remove(self._call)


def _sent(outcome: Decision | Failure) -> InputResponse | ErrorData:
    """What a server gets that waits for a response. It learns nothing about a failure of this side."""
    if isinstance(outcome, Failure):
        return _error("The client could not answer")
    if isinstance(outcome.response, Refusal):
        return _error(outcome.response.sentence)
    return outcome.response if outcome.response is not None else _error("The call that caused this was cancelled")


def _error(sentence: str) -> ErrorData:
    return ErrorData(code=INVALID_REQUEST, message=sentence)


def _is_refused_state(error: MCPError) -> bool:
    data = error.error.data
    return isinstance(data, dict) and cast("dict[str, Any]", data).get("reason") == "invalid_request_state"
