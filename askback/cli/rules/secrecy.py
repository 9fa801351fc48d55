"""Forms that ask for secrets."""

import ast
from collections.abc import Iterator
from typing import Any

from askback.cli.findings import Finding
from askback.cli.questions import form_of, models_asked, written_questions
from askback.cli.servers import LoadedServer
from askback.cli.source import FunctionSource
from askback.exchange.question import Question
from askback.exchange.secrecy import asks_for_secrets

REMEDY = "The protocol keeps secrets out of forms: send the person to a page of your own (URL mode) that takes it."


def secrets_in_forms(server: LoadedServer) -> Iterator[Finding]:
    """Questions to people whose message, or a field of whose form, asks for a password, a token, a key or a card.

    A secret is text. A form without a field to type it into may well speak of one: "Reset the password?"
    """
    for tool, plan in server.resolvers:
        source = FunctionSource(plan.fn)
        for question in written_questions(source):
            message = literals(question.source, question.message) if question.message is not None else ()
            if _has_room(question.model) and _is_secret(" ".join(message), {}):
                problem = "The message of a form asks for a secret."
                yield Finding("secret-in-form", (tool.name,), plan.name, question.place, problem, REMEDY)
        for model, place in models_asked(plan, source).items():
            fields = _texts_in(model) or {}
            secret = [repr(name) for name, field in fields.items() if _is_secret("", {name: field})]
            if secret:
                problem = f"The form {model.__name__} asks for a secret: {', '.join(secret)}."
                yield Finding("secret-in-form", (tool.name,), plan.name, place, problem, REMEDY)


def _has_room(model: type[Any] | None) -> bool:
    """Whether a form takes text, or may, where it is not known."""
    return model is None or _texts_in(model) != {}


def _texts_in(model: type[Any]) -> dict[str, Any] | None:
    """The fields of a form that somebody types a text into; None for one that cannot be asked."""
    form = form_of(model)
    if isinstance(form, str):
        return None
    fields: dict[str, dict[str, Any]] = form.get("properties", {})
    return {
        name: field
        for name, field in fields.items()
        if field.get("type") == "string" and not field.keys() & {"enum", "oneOf"}
    }


def literals(source: FunctionSource, expression: ast.AST, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """The parts of a text that are the same in every call."""
    if isinstance(expression, ast.Constant):
        yield str(expression.value)
    elif isinstance(expression, ast.Name) and expression.id in source.assigned:
        for value in source.assigned[expression.id] if expression.id not in seen else ():
            yield from literals(source, value, seen | {expression.id})
    elif isinstance(expression, ast.expr) and isinstance(constant := source.stands_for(expression), str):
        yield constant
    elif not isinstance(expression, ast.Subscript):
        # What is looked up under a key is shown, and not the key.
        for part in ast.iter_child_nodes(expression):
            yield from literals(source, part, seen)


def _is_secret(message: str, fields: dict[str, Any]) -> bool:
    schema = {"type": "object", "properties": fields}
    return asks_for_secrets(
        Question(kind="elicitation", mode="form", tool="", arguments={}, message=message, schema=schema)
    )
