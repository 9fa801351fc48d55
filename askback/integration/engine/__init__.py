"""The resolver engine: what a tool's annotations ask for, and how it is found out during a call.

It knows the MCP SDK and no server framework. A server plugs in by being a `Host`.
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
