"""Which call, of which run, a server's question belongs to."""

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio
from mcp_types import InputResponse
from opentelemetry import context as otel
from pydantic_ai import RunContext

from askback.agents.suspension import Given, Suspension
from askback.exchange.question import Question
from askback.exchange.response import recorded, wire

ErrorT = TypeVar("ErrorT", bound=BaseException)


@dataclass(eq=False, slots=True)
class RunCall:
    """A tool call of a run, as the toolset sees it: it may make several requests, or none."""

    ctx: RunContext[Any]
    resumption: Suspension | None = None
    """Where it goes on, if it was stopped before; taken by the request that does."""
    failure: BaseException | None = None
    """What ends the run, whatever a hook in between makes of it."""
    last: "Call | None" = None
    """The request that went out last. What a background task asks belongs to it."""


@dataclass(eq=False, slots=True)
class Call:
    """A request on a session that may make its server ask."""

    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    run: RunCall | None = None
    """The tool call of a run that it is made for; None where an application calls the server by itself."""
    scope: anyio.CancelScope | None = None
    """Where questions come while the request waits: what to give it up with."""
    trace: otel.Context | None = None
    """Where questions come while the request waits: what spans for them belong under."""
    given: list[Given] = field(default_factory=list[Given])
    """The answers given before the call was stopped."""
    answered: list[tuple[Question, InputResponse]] = field(default_factory=list[tuple[Question, InputResponse]])
    """What was asked and answered since."""
    replay: list[Given] = field(default_factory=list[Given])
    """Where the call has to start over: the answers to give again, each once."""
    outer: "Call | None" = None
    """The call whose question whoever makes this one is answering."""
    asked: int = 0
    """How many questions it has caused, outside rounds."""

    def outwards(self) -> Iterator["Call"]:
        """The calls that wait for this one, the nearest first."""
        outer = self.outer
        while outer is not None:
            yield outer
            outer = outer.outer

    def all_given(self, *, of_the_first: int | None = None) -> list[Given]:
        """Every answer so far, in the order in which it was asked for; of those since the stop, only the first ones."""
        since = [
            Given(fingerprint=question.fingerprint(), key=question.key, response=wire(response))
            for question, response in self.answered[:of_the_first]
        ]
        return [*self.given, *since]

    def start_over(self, given: list[Given]) -> None:
        """Forget how far the call has come, but not what was answered."""
        self.replay, self.given, self.answered = given, [], []

    def replayed(self, question: Question) -> InputResponse | None:
        """The answer that just this question had before the call had to start over."""
        for index, given in enumerate(self.replay):
            if given.answers(question):
                return recorded(question, self.replay.pop(index).response)
        return None

    def failed(self, error: ErrorT) -> ErrorT:
        """Give the request up, and end the run that it is made for, with `error`."""
        if self.run is not None:
            self.run.failure = self.run.failure or error
            if self.scope is not None:
                self.scope.cancel()
        return error


current_run_call: ContextVar[RunCall | None] = ContextVar("askback_run_call", default=None)
"""Set while a toolset carries out a tool call of a run."""

current_call: ContextVar[Call | None] = ContextVar("askback_call", default=None)
"""Set while a session waits for a request, and for whoever answers what it makes the server ask."""
