"""What the engine needs from the server it runs in."""

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from mcp.server.mcpserver import Context
from mcp_types import ClientCapabilities, InputResponses, ServerRequest
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


class Host(Protocol):
    """One call of a tool, as the engine sees it.

    Everything but `context` is read only once a resolver asks something.
    """

    @property
    def unreachable(self) -> str | None:
        """Why no client can be asked during this call, as the end of a sentence; None where one can."""
        ...

    @property
    def in_rounds(self) -> bool:
        """Whether a question ends the call (2026-07-28 and later) rather than being sent while the call waits."""
        ...

    @property
    def client_capabilities(self) -> ClientCapabilities | None:
        """What the client declared it can be asked; None where it declared nothing."""
        ...

    @property
    def input_responses(self) -> InputResponses | None:
        """In rounds: the client's answers to the questions of the round before."""
        ...

    @property
    def request_state(self) -> str | None:
        """In rounds: the state of the round before, opened and verified by the host."""
        ...

    async def send(self, request: ServerRequest, result_type: type[ResultT]) -> ResultT:
        """Not in rounds: send the client a request of its own, tied to this call.

        Raises:
            pydantic.ValidationError: The client's result is not a `result_type`.
        """
        ...

    def context(self, kind: type) -> object:
        """The context for a resolver parameter annotated with `kind`, one of the host's `HostTypes.contexts`."""
        ...
