"""Forms that the protocol cannot ask."""

from collections.abc import Iterator

from askback.cli.findings import Finding
from askback.cli.places import place_of
from askback.cli.questions import form_of, models_asked
from askback.cli.servers import LoadedServer


def unaskable_forms(server: LoadedServer) -> Iterator[Finding]:
    """Report forms that the return annotation does not declare; a declared one is rejected at registration."""
    for tool, plan in server.resolvers:
        for model in models_asked(plan):
            form = form_of(model)
            if isinstance(form, str):
                yield Finding(
                    "unaskable-form",
                    (tool.name,),
                    plan.name,
                    place_of(plan.fn),
                    f"The protocol cannot ask for {model.__name__}: {form}.",
                    "Use a pydantic model with only text, number, boolean and choice fields, and declare it as "
                    f"Elicit[{model.__name__}] in the return annotation.",
                )
