"""Which call, of which run, a server's question belongs to."""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import anyio
from opentelemetry import context as otel
from pydantic_ai import RunContext


@dataclass(eq=False, slots=True)
class RunCall:
    """A tool call of a run, as the toolset sees it: it may make several requests, or none."""

    ctx: RunContext[Any]
    failure: BaseException | None = None
    """What ends the run, whatever a hook in between makes of it."""
    last: "Call | None" = None
    """The request that went out last. What a background task asks belongs to it."""


@dataclass(eq=False, slots=True)
class Call:
    """A request on a session that may make its server ask."""

    tool: str
    arguments: Mapping[str, Any]
    run: RunCall | None
    """The tool call of a run that it is made for; None where an application calls the server by itself."""
    scope: anyio.CancelScope | None = None
    """Where questions come while the request waits: what to give it up with."""
    trace: otel.Context | None = None
    """Where questions come while the request waits: what spans for them belong under."""

    def fail(self, error: BaseException) -> None:
        """Give the request up, and end the run that it is made for."""
        if self.run is not None:
            self.run.failure = self.run.failure or error
            if self.scope is not None:
                self.scope.cancel()


current_run_call: ContextVar[RunCall | None] = ContextVar("askback_run_call", default=None)
"""Set while a toolset carries out a tool call of a run."""

current_call: ContextVar[Call | None] = ContextVar("askback_call", default=None)
"""Set while a session waits for a request, and for whoever answers what it makes the server ask."""
