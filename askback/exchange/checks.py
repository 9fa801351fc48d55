"""Checks with JSON Schema: whether a form can be shown to anyone, and whether content fits it.

Both the form and the content may come from a stranger. Only keywords that take bounded time are evaluated.
"""

import dataclasses
import functools
import json
import math
import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, cast
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError
from jsonschema.validators import create  # pyright: ignore[reportUnknownVariableType]
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

MAX_FIELDS = 100
MAX_CHARACTERS = 50_000
MAX_DEPTH = 12
MAX_REMEMBERED = 100

LIMITS = (
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
)

CHECKED = (
    "type",
    "enum",
    "const",
    "oneOf",
    "anyOf",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "format",
    *LIMITS,
)
"""The keywords that content is checked against. `pattern` is not one: a server could send one that never finishes."""

UNSUPPORTED = frozenset(
    {
        "$dynamicRef",
        "$ref",
        "allOf",
        "contains",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "if",
        "maxProperties",
        "minProperties",
        "not",
        "patternProperties",
        "prefixItems",
        "properties",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""The keywords that a field cannot have, because content is not checked against them."""


class ContentError(ValueError):
    """Content that does not fit its form; the message names the field."""


def problem_with(schema: object) -> str | None:
    """Why the form of a schema cannot be shown to anyone, as the end of a sentence; None where it can.

    Servers ask the same questions again and again, so the latest verdicts are remembered.
    """
    if not isinstance(schema, dict):
        return "its schema is not a JSON object"
    if _depth(cast("object", schema)) > MAX_DEPTH:
        return "its schema is nested too deeply"
    text = json.dumps(schema)
    if len(text) > MAX_CHARACTERS:
        return f"its schema is longer than {MAX_CHARACTERS} characters"
    return _problem(text)


def check_value(value: object, schema: Mapping[str, Any], *path: str) -> None:
    """Check a value against a schema; `path` says where it stands.

    Raises:
        ContentError: If it does not fit.
    """
    error = next(iter(_Validator(schema, format_checker=_FORMATS).iter_errors(value)), None)
    if error is not None:
        field = ".".join(str(part) for part in (*path, *error.absolute_path))
        raise ContentError(f"{field}: {error.message}" if field else error.message)


def plain_content(content: object) -> dict[str, Any]:
    """Content as plain JSON.

    Raises:
        ContentError: If it cannot be written as JSON, or a form cannot take it.
    """
    is_dataclass = dataclasses.is_dataclass(content) and not isinstance(content, type)
    if not is_dataclass and not isinstance(content, BaseModel | Mapping):
        raise ContentError(f"a form takes a mapping, a pydantic model or a dataclass, not {type(content).__name__}")
    try:
        plain = to_jsonable_python(
            dict(cast("Mapping[str, Any]", content)) if isinstance(content, Mapping) else content, by_alias=True
        )
    except (ValueError, RecursionError) as error:
        raise ContentError(f"it cannot be written as JSON: {error}") from None
    for name, value in plain.items():
        check_type(name, value)
    return plain


def check_type(name: str, value: object) -> None:
    """Reject values that no form takes, whatever its schema allows.

    Raises:
        ContentError: If the value is one of them.
    """
    if isinstance(value, list):
        fits = all(isinstance(each, str) for each in cast("list[Any]", value))
    else:
        fits = value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
    if not fits:
        raise ContentError(f"{name}: a form takes texts, numbers, booleans and lists of texts")


@functools.lru_cache(MAX_REMEMBERED)
def _problem(text: str) -> str | None:
    schema = json.loads(text)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"its schema is not valid JSON Schema: {error.message}"
    fields: dict[str, Any] = schema.get("properties", {})
    if len(fields) > MAX_FIELDS:
        return f"its schema has more than {MAX_FIELDS} fields"
    if not set(schema.get("required", ())) <= set(fields):
        return "it requires a field that it does not have"
    problems = (_field_problem(field) for field in fields.values())
    return next(
        (f"its field {name!r} {problem}" for name, problem in zip(fields, problems, strict=True) if problem), None
    )


def _field_problem(field: object) -> str | None:
    if not isinstance(field, dict):
        return "has no schema of its own"
    schema = cast("dict[str, Any]", field)
    for part in _parts(schema):
        if not isinstance(part, dict):
            return "has a bare boolean for a schema, which forms cannot have"
        unsupported = sorted(set(cast("dict[str, Any]", part)) & UNSUPPORTED)
        if unsupported:
            return f"has {', '.join(unsupported)}, which forms cannot have"
    names = schema.get("enumNames")
    if names is not None and (
        not isinstance(names, list) or len(cast("list[Any]", names)) != len(schema.get("enum", ()))
    ):
        return "does not have as many names as choices"
    if schema.get("default") is not None and not _Validator(schema, format_checker=_FORMATS).is_valid(
        schema["default"]
    ):
        return "has a default that does not fit it"
    return None


def _parts(schema: dict[str, Any]) -> list[object]:
    """A field's schema, that of its items, and the alternatives of both."""
    items: Any = schema.get("items", {})
    both: list[dict[str, Any]] = [schema, items] if isinstance(items, dict) else [schema]
    alternatives = [part.get(key, ()) for part in both for key in ("oneOf", "anyOf")]
    return [schema, items, *(each for group in alternatives for each in group)]


def _depth(value: Any, reached: int = 0) -> int:
    """How deeply `value` is nested, without following it further than the limit."""
    if reached > MAX_DEPTH or not isinstance(value, dict | list):
        return reached
    nested = cast("dict[str, Any] | list[Any]", value)
    inner = nested.values() if isinstance(nested, dict) else nested
    return max((_depth(each, reached + 1) for each in inner), default=reached)


_Validator: Any = create(
    meta_schema=Draft202012Validator.META_SCHEMA,
    validators={name: Draft202012Validator.VALIDATORS[name] for name in CHECKED},
    type_checker=Draft202012Validator.TYPE_CHECKER,
)

_FORMATS = FormatChecker(formats=())


@_FORMATS.checks("email")
def _is_email(value: object) -> bool:
    return not isinstance(value, str) or re.fullmatch(r"[^@\s]+@[^@\s]+", value) is not None


@_FORMATS.checks("uri", raises=ValueError)
def _is_uri(value: object) -> bool:
    return not isinstance(value, str) or (bool(urlsplit(value).scheme) and not re.search(r'[\s<>"{}|\\^`]', value))


@_FORMATS.checks("date", raises=ValueError)
def _is_date(value: object) -> bool:
    return not isinstance(value, str) or (len(value) == 10 and bool(date.fromisoformat(value)))


@_FORMATS.checks("date-time", raises=ValueError)
def _is_date_time(value: object) -> bool:
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None
