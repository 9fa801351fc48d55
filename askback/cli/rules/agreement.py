"""Parameters that may get something else than they are annotated to take."""

from collections.abc import Callable, Iterator
from typing import Any

from askback.cli.findings import Finding
from askback.cli.places import place_of
from askback.cli.servers import LoadedServer
from askback.integration.engine.agreement import Agreement, agreement
from askback.integration.engine.annotations import function_behind, name_of, read_parameters, read_return
from askback.integration.engine.graph import Link, ResolverPlan
from askback.markers import InvalidSignature


def doubtful_types(server: LoadedServer) -> Iterator[Finding]:
    """Report parameters whose resolver may give something else; one that always does is rejected at registration."""
    for tool in server.tools:
        consumers: list[tuple[Callable[..., Any], tuple[Link, ...]]] = [(function_behind(tool.fn), tool.resolved.links)]
        consumers += [(plan.fn, plan.links) for plan in tool.resolved.plans]
        for consumer, links in consumers:
            for link in links:
                resolver = tool.resolved.plans[link.resolver]
                if _agreement(consumer, link.name, resolver) is Agreement.DOUBTFUL:
                    yield Finding(
                        "doubtful-type",
                        (tool.name,),
                        resolver.name,
                        place_of(resolver.fn),
                        f"The parameter {link.name!r} of {name_of(consumer)!r} may get something else than it is "
                        "annotated to take.",
                        "Annotate the parameter with everything that the resolver may return or be answered with.",
                    )


def _agreement(consumer: Callable[..., Any], parameter: str, resolver: ResolverPlan) -> Agreement:
    try:
        return agreement(
            read_parameters(consumer)[parameter].annotation, read_return(resolver.fn), resolver.graph.types
        )
    except InvalidSignature:
        # It could be read where the tool was registered, and cannot be read any more.
        return Agreement.AGREED
