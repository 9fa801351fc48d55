"""What the engine needs from the server it runs in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from mcp.server.mcpserver import Context
from mcp_types import ClientCapabilities, InputResponse, ServerRequest
from pydantic import BaseModel

from askback.markers import AcceptedElicitation, CancelledElicitation, DeclinedElicitation

ResultT = TypeVar("ResultT", bound=BaseModel)


@dataclass(frozen=True)
class HostTypes:
    """The host's own classes that may stand in annotations, known when a tool is registered.

    `contexts` are the classes a resolver parameter may be annotated with to get the host's context. `outcomes` are
    those that ask for the outcome of a question rather than the value inside it, and `accepted` the one an accepted
    outcome is made of; it must be an instance of every class of that name in `outcomes`.
    """

    contexts: tuple[type, ...] = (Context,)
    outcomes: tuple[type, ...] = (AcceptedElicitation, DeclinedElicitation, CancelledElicitation)
    accepted: type[AcceptedElicitation[Any]] = AcceptedElicitation


Kind = Literal["elicitation", "sampling", "roots"]
"""Who a question is for: a person, a model, or whoever knows the client's directories."""


@dataclass(frozen=True)
class Limits:
    """How much of what a client sends is taken, in characters of JSON."""

    answer: int = 1_000_000
    """One answer. A completion with an image in it fits."""
    state: int = 2_000_000
    """All the answers that a call remembers between rounds."""


@dataclass(frozen=True)
class Continuation:
    """What a call in rounds comes with: nothing in the first round."""

    state: str | None = None
    """The state of the round before, opened and verified by the host."""
    responses: Mapping[str, InputResponse] = field(default_factory=dict[str, InputResponse])
    """The client's answers to the questions of the round before."""


class Host(Protocol):
    """One call of a tool, as the engine sees it.

    Everything but `context` is read only once a resolver asks something.
    """

    @property
    def in_rounds(self) -> bool:
        """Whether a question ends the call (2026-07-28 and later) rather than being sent while the call waits."""
        ...

    @property
    def client_capabilities(self) -> ClientCapabilities | None:
        """What the client declared it can be asked; None where it declared nothing."""
        ...

    @property
    def limits(self) -> Limits:
        """How much of what the client sends is taken."""
        return Limits()

    @property
    def call_id(self) -> str:
        """In rounds: what tells this call from others of the same tool that may come with the same state."""
        return ""

    def unreachable(self, kind: Kind) -> str | None:
        """Why nobody can be asked such a question during this call, as the end of a sentence; None where they can."""
        ...

    async def continuation(self) -> Continuation:
        """In rounds: what this call comes with. The same each time."""
        ...

    def keep(self, state: Callable[[], str]) -> None:
        """In rounds: take the state of a call that has all its answers, if a later round could need it again."""

    async def send(self, request: ServerRequest, result_type: type[ResultT]) -> ResultT:
        """Not in rounds: send the client a request of its own, tied to this call.

        Raises:
            pydantic.ValidationError: The client's result is not a `result_type`.
        """
        ...

    def context(self, kind: type) -> object:
        """The context for a resolver parameter annotated with `kind`, one of the host's `HostTypes.contexts`."""
        ...
