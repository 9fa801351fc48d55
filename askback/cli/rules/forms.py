"""Forms that the protocol cannot ask."""

from collections.abc import Iterator

from askback.cli.findings import Finding
from askback.cli.questions import form_of, models_asked
from askback.cli.servers import LoadedServer
from askback.cli.source import FunctionSource


def unaskable_forms(server: LoadedServer) -> Iterator[Finding]:
    """Forms that no return annotation declares: those that one does declare are refused at registration."""
    for tool, plan in server.resolvers:
        source = FunctionSource(plan.fn)
        for model, place in models_asked(plan, source).items():
            form = form_of(model)
            if isinstance(form, str):
                yield Finding(
                    "unaskable-form",
                    (tool.name,),
                    plan.name,
                    place,
                    f"The protocol cannot ask for {model.__name__}: {form}.",
                    "Make it a pydantic model of texts, numbers, yes or no, and choices, and declare it as "
                    f"Elicit[{model.__name__}] in the return annotation.",
                )
