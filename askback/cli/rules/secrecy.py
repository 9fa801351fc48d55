"""Forms that ask for secrets."""

from collections.abc import Iterator
from typing import Any

from askback.cli.findings import Finding
from askback.cli.places import place_of
from askback.cli.questions import form_of, models_asked, written_questions
from askback.cli.servers import LoadedServer
from askback.exchange.form import Field, Form
from askback.exchange.question import Question
from askback.exchange.secrecy import asks_for_secrets

REMEDY = "The protocol keeps secrets out of forms: send the person to a page of your own (URL mode) instead."


def secrets_in_forms(server: LoadedServer) -> Iterator[Finding]:
    """Report questions to people whose message or form asks for a password, a token, a key or a card number.

    A secret is text, so a form without a text field may mention one: "Reset the password?"
    """
    for tool, plan in server.resolvers:
        place = place_of(plan.fn)
        messages = [
            each.message for each in written_questions(plan.fn) if each.whom == "person" and _may_take_text(each.model)
        ]
        if any(_is_secret(message) for message in messages):
            problem = "The message of a form asks for a secret."
            yield Finding("secret-in-form", (tool.name,), plan.name, place, problem, REMEDY)
        for model in models_asked(plan):
            secret = [repr(field.name) for field in _text_fields(model) if _is_secret("", field)]
            if secret:
                problem = f"The form {model.__name__} asks for a secret: {', '.join(secret)}."
                yield Finding("secret-in-form", (tool.name,), plan.name, place, problem, REMEDY)


def _may_take_text(model: type[Any] | None) -> bool:
    """Whether a form takes text, or may, because it is not known or cannot be asked."""
    return model is None or not isinstance(form_of(model), Form) or bool(_text_fields(model))


def _text_fields(model: type[Any]) -> list[Field]:
    form = form_of(model)
    return [field for field in form.fields.values() if field.takes_text] if isinstance(form, Form) else []


def _is_secret(message: str, *fields: Field) -> bool:
    schema = {"type": "object", "properties": {field.name: field.schema for field in fields}}
    return asks_for_secrets(
        Question(kind="elicitation", mode="form", tool="", arguments={}, message=message, schema=schema)
    )
