"""Resolvers that share a key."""

from collections.abc import Iterator

from askback.cli.findings import Finding
from askback.cli.places import place_of
from askback.cli.questions import declared_questions
from askback.cli.servers import LoadedServer
from askback.integration import ResolverPlan
from askback.integration.engine.annotations import key_of


def colliding_keys(server: LoadedServer) -> Iterator[Finding]:
    """Report different resolvers of one tool that share a key, if any of them may ask: answers are matched by key."""
    for tool in server.tools:
        by_key: dict[str, list[ResolverPlan]] = {}
        for plan in tool.resolved.plans:
            by_key.setdefault(key_of(plan.fn), []).append(plan)
        for key, plans in by_key.items():
            if len(plans) > 1 and any(declared_questions(plan) for plan in plans):
                yield Finding(
                    "colliding-keys",
                    (tool.name,),
                    plans[0].name,
                    place_of(plans[0].fn),
                    f"{len(plans)} resolvers share the key {key!r} and are told apart only by their order of "
                    "declaration, so a deployment that declares them in another order mixes up their answers.",
                    "Write each as a function with its own name.",
                )
