"""Resolvers that only their order tells apart."""

from collections.abc import Iterator

from askback.cli.findings import Finding
from askback.cli.questions import declared_questions
from askback.cli.servers import LoadedServer
from askback.cli.source import FunctionSource
from askback.integration import ResolverPlan
from askback.integration.engine.annotations import key_of


def colliding_keys(server: LoadedServer) -> Iterator[Finding]:
    """Different resolvers of one tool with one name on the wire, of which some may ask: only answers go by keys."""
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
                    FunctionSource(plans[0].fn).place(),
                    f"{len(plans)} resolvers are called {key!r} and told apart only by the order of their declaration, "
                    "so a deployment that declares them in another order gives the answer to one to another.",
                    "Write each as a function with a name of its own.",
                )
