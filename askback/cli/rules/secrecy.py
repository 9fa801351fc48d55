"""Forms that ask for secrets."""

from collections.abc import Iterator
from typing import Any

from askback.cli.findings import Finding
from askback.cli.places import place_of
from askback.cli.questions import form_of, models_asked, written_questions
from askback.cli.servers import LoadedServer
from askback.exchange.question import Question
from askback.exchange.secrecy import asks_for_secrets

REMEDY = "The protocol keeps secrets out of forms: send the person to a page of your own (URL mode) instead."


def secrets_in_forms(server: LoadedServer) -> Iterator[Finding]:
    """Report questions to people whose message or form asks for a password, a token, a key or a card number.

    A secret is text, so a form without a text field may mention one: "Reset the password?"
    """
    for tool, plan in server.resolvers:
        place = place_of(plan.fn)
        messages = [each for each in written_questions(plan.fn) if each.whom == "person" and _takes_text(each.model)]
        if any(_is_secret(each.message, {}) for each in messages):
            problem = "The message of a form asks for a secret."
            yield Finding("secret-in-form", (tool.name,), plan.name, place, problem, REMEDY)
        for model in models_asked(plan):
            fields = _text_fields(model) or {}
            secret = [repr(name) for name, field in fields.items() if _is_secret("", {name: field})]
            if secret:
                problem = f"The form {model.__name__} asks for a secret: {', '.join(secret)}."
                yield Finding("secret-in-form", (tool.name,), plan.name, place, problem, REMEDY)


def _takes_text(model: type[Any] | None) -> bool:
    """Whether a form takes text, or may, if it is not known."""
    return model is None or _text_fields(model) != {}


def _text_fields(model: type[Any]) -> dict[str, Any] | None:
    """The fields of a form that take free text; None for a form that cannot be asked."""
    form = form_of(model)
    if isinstance(form, str):
        return None
    fields: dict[str, dict[str, Any]] = form.get("properties", {})
    return {
        name: field
        for name, field in fields.items()
        if field.get("type") == "string" and not field.keys() & {"enum", "oneOf"}
    }


def _is_secret(message: str, fields: dict[str, Any]) -> bool:
    schema = {"type": "object", "properties": fields}
    return asks_for_secrets(
        Question(kind="elicitation", mode="form", tool="", arguments={}, message=message, schema=schema)
    )
