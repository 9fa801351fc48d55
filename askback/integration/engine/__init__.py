"""The resolver engine: what a tool's annotations ask for, and how it is found out during a call.

It knows the MCP SDK and no server framework. A server plugs in by being a `Host`: one call of a tool, and how its
client can be reached.

When a tool is registered
    `find_resolved_parameters` finds the parameters annotated `Annotated[T, Resolve(fn)]` (`annotations` reads them
    wherever they were written). `build_resolver_plans` follows the resolvers behind them, and those behind these, into
    a graph (`graph`): what fills each parameter, who waits for whom, which form is asked, under which key. Whatever can
    never work is an `InvalidSignature` here, including annotations that can never agree (`agreement`).

When it is called
    `resolve_arguments` (`resolution`) runs the graph: everything that is ready at the same time, each resolver once. A
    resolver that returns `Elicit`, `Sample` or `ListRoots` has a question (`questions`): rendered once, with a digest
    that stands for exactly what is asked. The call's `Channel` (`channels`) takes it to the client, in one of two ways.

    *Rounds*, 2026-07-28 and later. The first run finds nothing answered, so the questions that can be asked now become
    an `InputRequiredResult`, with the digests of what was asked in its state, and the call ends. The client calls again
    with the answers and the state. The graph runs from the start: a resolver that asks the same again, word for word,
    gets the answer instead. Answers of earlier rounds ride in the state, and an answer counts only for the digest it
    was given for. When no question is open, there is a value for every parameter, and the host runs the body.

    *Requests*, 2025-11-25 and earlier. A question is sent while the call waits, to people one at a time.

A refusal reaches those who take the outcome as that outcome. For those who need the value it ends the call.
"""

from askback.integration.engine.graph import (
    ResolverPlan,
    build_resolver_plans,
    find_resolved_parameters,
    returns_input_required,
)
from askback.integration.engine.host import Continuation, Host, HostTypes, Limits
from askback.integration.engine.resolution import resolve_arguments

__all__ = [
    "Continuation",
    "Host",
    "HostTypes",
    "Limits",
    "ResolverPlan",
    "build_resolver_plans",
    "find_resolved_parameters",
    "resolve_arguments",
    "returns_input_required",
]
