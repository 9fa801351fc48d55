"""Which call, of which run, a server's question belongs to; and what a framework plugs in to have it answered."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp_types import InputResponse
from opentelemetry import context as otel
from opentelemetry.trace import Span

from askback.agents.suspension import Given, Suspension
from askback.exchange.answer import Action
from askback.exchange.question import Question
from askback.exchange.response import recorded, wire


@dataclass(frozen=True, slots=True)
class Stop:
    """A tool call ends, and the run is suspended with it, until somebody has answered."""

    suspension: Suspension


@dataclass(frozen=True, slots=True)
class Failure:
    """A tool call ends, and the run with it, because whoever was to answer failed."""

    error: BaseException


ENDED = (Stop, Failure)


class CallEndedError(Exception):
    """Unwinds the request of a tool call that has ended. Whatever a hook makes of it, the plug raises what ended it."""


class RunCall(ABC):
    """A tool call of an agent's run. A framework plugs in by saying here what it knows of its run."""

    passing: tuple[type[BaseException], ...] = ()
    """The exceptions with which a policy may end the run on the framework's behalf."""

    def __init__(self, resumption: Suspension | None = None) -> None:
        self.resumption = resumption
        """Where to resume, if the call was suspended before; taken by the request that does."""
        self.ended: Stop | Failure | None = None
        """How the call has ended, whatever a hook in between makes of it."""
        self.last: Call | None = None
        """The latest request of the call. Questions of a background task belong to it."""

    @property
    @abstractmethod
    def context(self) -> Any:
        """The context that policies are called with."""

    @property
    @abstractmethod
    def run_id(self) -> str | None:
        """Identifies the run for which refusals are remembered."""

    @property
    @abstractmethod
    def tool_call_id(self) -> str | None:
        """Identifies the tool call in records."""

    @property
    @abstractmethod
    def traces_content(self) -> bool:
        """Whether spans may contain what was asked and answered."""

    @abstractmethod
    def span(
        self, name: str, attributes: Mapping[str, str | int], parent: otel.Context | None
    ) -> AbstractContextManager[Span]:
        """Open a span in the run's trace, under `parent` if given and else under the current span."""

    @abstractmethod
    async def asked(self, question: Question) -> None:
        """Show the run's listeners that a question is asked."""

    @abstractmethod
    async def answered(self, question: Question, action: Action, by: str) -> None:
        """Show the run's listeners that a question was answered."""


@dataclass(eq=False, slots=True)
class Call:
    """A request on a connection that may make its server ask."""

    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    run: RunCall | None = None
    """The tool call of a run that it is made for; None where an application calls the server by itself."""
    scope: anyio.CancelScope | None = None
    """Where questions come while the request waits: cancels the request."""
    trace: otel.Context | None = None
    """Where questions come while the request waits: the parent of their spans."""
    ended: Stop | Failure | None = None
    """Why the request was cancelled."""
    given: list[Given] = field(default_factory=list[Given])
    """The answers given before the call was suspended."""
    answered: list[tuple[Question, InputResponse]] = field(default_factory=list[tuple[Question, InputResponse]])
    """The questions answered since."""
    replay: list[Given] = field(default_factory=list[Given])
    """Where the call starts over: the answers to give again, each once."""
    outer: "Call | None" = None
    """The call whose question is being answered by whoever makes this one."""
    asked: int = 0
    """How many requests of its own the server has sent during the call."""

    def outwards(self) -> Iterator["Call"]:
        """The calls that wait for this one, nearest first."""
        outer = self.outer
        while outer is not None:
            yield outer
            outer = outer.outer

    def all_given(self, *, of_the_first: int | None = None) -> list[Given]:
        """Every answer so far, in the order of the questions; of those since the suspension, only the first ones."""
        since = [
            Given(fingerprint=question.fingerprint(), key=question.key, response=wire(response))
            for question, response in self.answered[:of_the_first]
        ]
        return [*self.given, *since]

    def start_over(self, given: list[Given]) -> None:
        """Forget how far the call has come, but keep its answers."""
        self.replay, self.given, self.answered = given, [], []

    def replayed(self, question: Question) -> InputResponse | None:
        """The answer that exactly this question had before the call started over."""
        for index, given in enumerate(self.replay):
            if given.answers(question):
                return recorded(question, self.replay.pop(index).response)
        return None

    def end(self, outcome: Stop | Failure) -> None:
        """Cancel the request of a run, because of what became of one of its questions. The first reason counts."""
        if self.run is not None and self.scope is not None:
            self.ended = self.ended or outcome
            self.scope.cancel()


def unwinding(run: RunCall | None, outcome: Stop | Failure) -> BaseException:
    """The exception with which to leave a call that has ended. Outside a run, only a failure can end it."""
    if run is None:
        assert isinstance(outcome, Failure)
        return outcome.error
    run.ended = outcome
    return CallEndedError("The tool call has ended")


current_run_call: ContextVar[RunCall | None] = ContextVar("askback_run_call", default=None)
"""Set while a framework carries out a tool call of a run."""

current_call: ContextVar[Call | None] = ContextVar("askback_call", default=None)
"""Set while a connection waits for a request, and for whoever answers what it makes the server ask."""
