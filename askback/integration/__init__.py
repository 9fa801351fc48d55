"""The server side: the resolver engine, and the FastMCP servers it plugs into.

`FastMCP` and `resolved` need FastMCP, the extra `server`, and import it when they are first named. The four functions
of the engine and its `Host` need only the MCP SDK.
"""

from typing import TYPE_CHECKING

from askback.extras import from_extra
from askback.integration.engine import (
    Continuation,
    Host,
    HostTypes,
    Limits,
    ResolverPlan,
    build_resolver_plans,
    find_resolved_parameters,
    resolve_arguments,
    returns_input_required,
)

if TYPE_CHECKING:
    from askback.integration.server import FastMCP
    from askback.integration.tools import resolved

__all__ = [
    "Continuation",
    "FastMCP",
    "Host",
    "HostTypes",
    "Limits",
    "ResolverPlan",
    "build_resolver_plans",
    "find_resolved_parameters",
    "resolve_arguments",
    "resolved",
    "returns_input_required",
]

__getattr__ = from_extra("server", "FastMCP", __name__, {"FastMCP": "server", "resolved": "tools"})
