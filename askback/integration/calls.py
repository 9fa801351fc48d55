"""The calls that one request leads to: the tool that the client called, and the tools that it calls in turn.

In rounds, a request has one state and one set of answers for all of them. A `Ledger` shares them out, so that each call
has its own answers, and none is used for another. A call is known by its place: the tool's name, its arguments, which
occurrence of the two it is, and the call around it.

A nested call that asks does not return in this round. It waits until no other nested call can get any further, and then
the body of the outermost call is cancelled and the questions of all of them end the request. In the next round the body
runs again. A nested call that had finished is not made again: its result, or the error it failed with, is kept.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, cast

import anyio
from anyio.lowlevel import checkpoint
from fastmcp import Context
from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import FastMCPRequestContext
from fastmcp.tools.base import InputRequiredToolResult, ToolResult
from mcp_types import CallToolResult, InputRequest, InputRequiredResult, InputResponse
from pydantic_core import to_jsonable_python

from askback.integration.engine import Continuation, Limits

LEDGER_VERSION = 1
ENGINE_STATE = {"v", "t", "answers", "asked"}
"""What the state of a single call has in it. Another tool's own state, which it drives itself, has something else."""
OUTERMOST = ""
"""The key of the call that the client made."""

ONE_QUESTIONER = (
    "Two tools that ask were run within one call, in a way that does not tell them apart. Call them with call_tool() "
    "of an askback.integration.FastMCP, where any number of tools can ask"
)
NOT_BESIDE_OTHERS = (
    "The tool {name!r} is on another server or drives its questions itself, and it was called beside tools that ask. A "
    "call has one state, which it would need for itself: call it on its own"
)

CALL_IN_STATE = "askback.call"

_current_call: ContextVar["Call | None"] = ContextVar("askback_call", default=None)


class Call:
    """One call of a tool, as part of a request in rounds."""

    def __init__(
        self, ledger: "Ledger", tool: str, fn: object = None, *, key: str = OUTERMOST, outer: "Call | None" = None
    ) -> None:
        self.ledger = ledger
        self.tool = tool
        self.key = key
        self._fn = fn
        self._outer = outer
        self._questioner: object = None
        self._occurrences: Counter[str] = Counter()

    @staticmethod
    def current(request: FastMCPRequestContext | None) -> "Call | None":
        """The call whose body is running, if `request` led to it.

        A body can connect to its own server in the same process, which hands the context of one request to another.
        """
        call = _current_call.get()
        return call if call is not None and call.ledger.request is request else None

    def nested(self, name: str, arguments: Mapping[str, Any], version: object) -> "Call":
        """A call that the body of this one makes."""
        kind = f"{self.key}/{digest_of([name, str(version), dict(arguments)])}"
        self._occurrences[kind] += 1
        return Call(self.ledger, name, key=f"{kind}#{self._occurrences[kind]}", outer=self)

    def within(self) -> "Iterator[Call]":
        """This call, and those around it."""
        call: Call | None = self
        while call is not None:
            yield call
            call = call._outer

    def begin_asking(self, questioner: object) -> Continuation:
        """What a call comes with, for the one resolution that may ask on its behalf.

        Raises:
            ToolError: If another one has asked already.
        """
        if self._questioner not in (None, questioner):
            raise ToolError(ONE_QUESTIONER)
        self._questioner = questioner
        return self.ledger.continuation(self.key)

    def keep(self, state: Callable[[], str]) -> None:
        """Keep the answers that the call got through with, should a call after it ask."""
        self.ledger.answered[self.key] = state

    async def ask(self, asked: InputRequiredResult, fn: object) -> InputRequiredResult:
        """End the request with questions of this call.

        Where it is the tool's own function that asks, no body is running yet, and this returns the result that asks.
        Otherwise it does not return.
        """
        if self.key == OUTERMOST and fn is self._fn:
            return self.ledger.asks(self, asked)
        return await self.ledger.wait_for_answers(self, asked)

    async def make(self, run: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
        """Make the call."""
        token = _current_call.set(self)
        try:
            if self._outer is None:
                return await self.ledger.make_outermost(run)
            return await self.ledger.make_nested(self, run)
        finally:
            _current_call.reset(token)


class _OnOtherServer(Call):
    """The one call that may ask in a request to a server of another class, which has no say in how the request ends."""

    async def ask(self, asked: InputRequiredResult, fn: object) -> InputRequiredResult:
        """Leave the question to whoever made the call."""
        return asked


async def call_on_other_server(context: Context) -> Call:
    """The call that may ask in the request of `context`, on a server that does not keep its calls apart."""
    call = await context.get_state(CALL_IN_STATE)
    if call is None:
        new = _OnOtherServer(Ledger(context), "")
        await context.set_state(CALL_IN_STATE, new, serializable=False)
        call = await context.get_state(CALL_IN_STATE)
    return call


def digest_of(value: object) -> str:
    """Stands for JSON data, the same in every process."""
    text = json.dumps(to_jsonable_python(value, fallback=repr), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class Ledger:
    """What the calls of one request remember between rounds, and what they ask in this one."""

    def __init__(self, context: Context, limits: Limits = Limits()) -> None:  # noqa: B008 - it is immutable
        self.request = context.request_context
        self.answered: dict[str, Callable[[], str]] = {}
        self._context = context
        self._limit = limits.state
        self._before: _Before | None = None
        self._finished: dict[str, ToolResult | ToolError] = {}
        self._open: dict[str, InputRequiredResult] = {}
        self._running: set[Call] = set()
        self._stuck: set[Call] = set()
        self._scope = anyio.CancelScope()

    @property
    def before(self) -> "_Before":
        """What the round before has left, read when it is first needed."""
        if self._before is None:
            self._before = _Before(self._context.request_state, self._context.input_responses or {})
        return self._before

    @property
    def has_answers(self) -> bool:
        """Whether the state of this request is ours, and needed."""
        return bool(self.answered or self._open or self.before.calls)

    def continuation(self, key: str) -> Continuation:
        """What the call of that key comes with."""
        return self.before.continuation(key)

    async def make_outermost(self, run: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
        """Make the call that the client made, whose body is cancelled once a nested call asks."""
        result: ToolResult | None = None
        with self._scope:
            result = await run()
        if self._open:
            # Whatever a body makes of it that its nested call did not return, the question counts.
            return InputRequiredToolResult(self._input_required())
        assert result is not None
        return result

    async def make_nested(self, call: Call, run: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
        """Make a call that a body makes, unless it was made in an earlier round.

        Raises:
            ToolError: If it fails, or failed in an earlier round.
        """
        kept = self.before.result(call.key)
        if kept is not None:
            return kept
        self._running.add(call)
        try:
            result = await run()
            if not isinstance(result, InputRequiredToolResult):
                self._finished[call.key] = result
            elif self.has_answers:
                raise ToolError(NOT_BESIDE_OTHERS.format(name=call.tool))
            return result
        except ToolError as failure:
            self._finished[call.key] = failure
            raise
        finally:
            self._running.discard(call)
            self._end_if_stuck()

    def asks(self, call: Call, asked: InputRequiredResult) -> InputRequiredResult:
        """What a call asks before any body runs."""
        if not self.before.calls.keys() - {OUTERMOST}:
            return asked
        self._open[call.key] = asked
        return self._input_required()

    async def wait_for_answers(self, call: Call, asked: InputRequiredResult) -> InputRequiredResult:
        """Ask, and wait for the end of the round, which cancels this."""
        self._open[call.key] = asked
        self._stuck.update(call.within())
        # Calls that were started beside this one get as far as they can: their questions come in the same round.
        await checkpoint()
        self._end_if_stuck()
        await anyio.sleep_forever()
        return asked

    def _end_if_stuck(self) -> None:
        if self._open and self._running <= self._stuck:
            self._scope.cancel()

    def _input_required(self) -> InputRequiredResult:
        """Everything that is open, with what has to be remembered of all calls.

        Raises:
            ToolError: If that is too much.
        """
        numbers = self.before.numbers
        questions: dict[str, InputRequest] = {}
        calls = dict(self.before.calls)
        calls |= {key: {"state": json.loads(state())} for key, state in self.answered.items()}
        for key, asked in self._open.items():
            number = numbers.setdefault(key, len(numbers) + 1)
            requests = asked.input_requests or {}
            questions |= {_on_the_wire(name, key, number): request for name, request in requests.items()}
            calls[key] = {"state": json.loads(asked.request_state or "null")}
        calls |= {key: _kept(outcome) for key, outcome in self._finished.items()}
        # What a finished call had remembered is needed no more, nor is what it called in turn.
        over = [f"{key}/" for key, call in calls.items() if "state" not in call]
        remembered = {key: call for key, call in calls.items() if not key.startswith(tuple(over))}
        state = json.dumps({"v": LEDGER_VERSION, "calls": remembered, "numbers": numbers})
        if len(state) > self._limit:
            raise ToolError(f"The results and answers of this call are longer than {self._limit} characters together")
        return InputRequiredResult(input_requests=questions, request_state=state)


class _Before:
    """What the round before has left, as far as it can be read.

    FastMCP has verified the state, but another release may have written it: what does not read as expected is missing.
    """

    def __init__(self, state: str | None, responses: Mapping[str, InputResponse]) -> None:
        content = _mapping(_parsed(state))
        self._responses = responses
        self.numbers: dict[str, int] = {}
        self.calls: dict[str, dict[str, Any]] = {}
        if content.get("v") == LEDGER_VERSION and "calls" in content:
            self.calls = {key: _mapping(call) for key, call in _mapping(content["calls"]).items()}
            self.numbers = {key: n for key, n in _mapping(content.get("numbers")).items() if isinstance(n, int)}
        elif content.keys() == ENGINE_STATE:
            self.calls = {OUTERMOST: {"state": content}}

    def continuation(self, key: str) -> Continuation:
        state = self.calls.get(key, {}).get("state")
        number = self.numbers.get(key, 0)
        suffix = _on_the_wire("", key, number)
        responses = {name.removesuffix(suffix): each for name, each in self._responses.items() if name.endswith(suffix)}
        return Continuation(json.dumps(state) if state is not None else None, responses)

    def result(self, key: str) -> ToolResult | None:
        """The result of a call that has finished; None where it has not.

        Raises:
            ToolError: If it failed.
        """
        match self.calls.get(key):
            case {"result": result}:
                return ToolResult.from_mcp_result(CallToolResult.model_validate(result))
            case {"failed": str(message)}:
                raise ToolError(message)
            case _:
                return None


def _kept(outcome: ToolResult | ToolError) -> dict[str, Any]:
    """How a finished call ended, for the state."""
    if isinstance(outcome, ToolError):
        return {"failed": str(outcome)}
    result = CallToolResult(
        content=outcome.content,
        structured_content=outcome.structured_content,
        is_error=outcome.is_error,
        _meta=outcome.meta,  # pyright: ignore[reportCallIssue] - the protocol's name for it
    )
    return {"result": result.model_dump(mode="json", by_alias=True, exclude_none=True)}


def _on_the_wire(name: str, key: str, number: int) -> str:
    """What a question is called on the wire: as its resolver, and of which nested call it is.

    The number says nothing of the arguments of that call, which the client may not be meant to know.
    """
    return name if key == OUTERMOST else f"{name}@{number}"


def _parsed(text: str | None) -> Any:
    try:
        return json.loads(text) if text is not None else None
    except (ValueError, RecursionError):
        return None


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
