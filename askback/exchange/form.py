"""Checking what is about to be sent to a server, and the forms that servers send."""

import dataclasses
import json
import math
import re
from collections import OrderedDict
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, cast
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError
from jsonschema.validators import create  # pyright: ignore[reportUnknownVariableType]
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

MOST_PROPERTIES = 100
MOST_CHARACTERS = 50_000
DEEPEST = 12
MOST_REMEMBERED = 100

KEYWORDS = (
    "type",
    "enum",
    "const",
    "oneOf",
    "anyOf",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "format",
)
"""What is checked here. A `pattern` is not: a server could send one that takes for ever to match."""


UNCHECKED = frozenset(
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
"""What a field of a form cannot have: nothing here would check it."""


class UnusableFormError(ValueError):
    """A form that nobody can be shown: no schema, or too large a one."""


class ContentError(ValueError):
    """Content that does not fit its form; the message names the field."""


class FormCheck:
    """Checks that a server's schemas are forms: flat, no larger than a form can be, and checkable here.

    Servers ask the same again and again, so it remembers the latest that it found in order.
    """

    def __init__(self) -> None:
        self._in_order: OrderedDict[str, None] = OrderedDict()

    def __call__(self, schema: object) -> None:
        """Check a schema.

        Raises:
            UnusableFormError: If nobody can be shown a form of it.
        """
        if not isinstance(schema, dict):
            raise UnusableFormError("its schema is no object")
        form = cast("dict[str, Any]", schema)
        if _depth(form) > DEEPEST:
            raise UnusableFormError("its schema is nested too deeply")
        text = json.dumps(form)
        if text in self._in_order:
            return
        if len(text) > MOST_CHARACTERS:
            raise UnusableFormError(f"its schema is longer than {MOST_CHARACTERS} characters")
        try:
            Draft202012Validator.check_schema(form)
        except SchemaError as error:
            raise UnusableFormError(f"its schema is none: {error.message}") from None
        _check_fields(form)
        self._in_order[text] = None
        if len(self._in_order) > MOST_REMEMBERED:
            self._in_order.popitem(last=False)


def _check_fields(form: dict[str, Any]) -> None:
    fields: dict[str, Any] = form.get("properties", {})
    if len(fields) > MOST_PROPERTIES:
        raise UnusableFormError(f"its schema has more than {MOST_PROPERTIES} properties")
    if not set(form.get("required", ())) <= set(fields):
        raise UnusableFormError("it requires a field that it does not have")
    for name, field in fields.items():
        if not isinstance(field, dict):
            raise UnusableFormError(f"its field {name!r} is no schema of its own")
        _check_field(name, cast("dict[str, Any]", field))


def _check_field(name: str, field: dict[str, Any]) -> None:
    parts: list[Any] = [field, field.get("items", {}), *field.get("oneOf", ()), *field.get("anyOf", ())]
    if isinstance(parts[1], dict):
        items = cast("dict[str, Any]", parts[1])
        parts += [*items.get("oneOf", ()), *items.get("anyOf", ())]
    for part in parts:
        unchecked = set(cast("dict[str, Any]", part)) & UNCHECKED if isinstance(part, dict) else {"a bare boolean"}
        if unchecked:
            raise UnusableFormError(f"its field {name!r} has {', '.join(sorted(unchecked))}, which no form has")
    names = field.get("enumNames")
    if names is not None and (
        not isinstance(names, list) or len(cast("list[Any]", names)) != len(field.get("enum", ()))
    ):
        raise UnusableFormError(f"its field {name!r} has not as many names as choices")
    if field.get("default") is not None and not _FormValidator(field, format_checker=_FORMATS).is_valid(
        field["default"]
    ):
        raise UnusableFormError(f"its field {name!r} has a default that does not fit it")


def checked_content(content: object, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Content as it goes to the server: plain JSON, with the form's defaults for what is left out.

    Raises:
        ContentError: If it does not fit the form.
    """
    fields: dict[str, dict[str, Any]] = schema.get("properties", {})
    filled = {name: field["default"] for name, field in fields.items() if field.get("default") is not None}
    filled |= _plain(content)
    error = next(iter(_FormValidator(schema, format_checker=_FORMATS).iter_errors(filled)), None)
    if error is not None:
        field = ".".join(str(part) for part in error.absolute_path)
        raise ContentError(f"{field}: {error.message}" if field else error.message)
    return filled


def _plain(content: object) -> dict[str, Any]:
    is_dataclass = dataclasses.is_dataclass(content) and not isinstance(content, type)
    if not is_dataclass and not isinstance(content, BaseModel | Mapping):
        raise ContentError(f"a form takes a mapping, a pydantic model or a dataclass, not {type(content).__name__}")
    try:
        plain = to_jsonable_python(
            dict(cast("Mapping[str, Any]", content)) if isinstance(content, Mapping) else content, by_alias=True
        )
    except (ValueError, RecursionError) as error:
        raise ContentError(f"it is no JSON: {error}") from None
    for name, value in plain.items():
        if not _is_answer(value):
            raise ContentError(f"{name}: a form takes texts, numbers, booleans and lists of texts")
    return plain


def _is_answer(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(each, str) for each in cast("list[Any]", value))
    return value is None or (isinstance(value, str | int | float) and (isinstance(value, str) or math.isfinite(value)))


def _depth(value: Any, reached: int = 0) -> int:
    """How deeply `value` is nested, without following it further than needs be."""
    if reached > DEEPEST or not isinstance(value, dict | list):
        return reached
    nested = cast("dict[str, Any] | list[Any]", value)
    inner = nested.values() if isinstance(nested, dict) else nested
    return max((_depth(each, reached + 1) for each in inner), default=reached)


_FormValidator: Any = create(
    meta_schema=Draft202012Validator.META_SCHEMA,
    validators={name: Draft202012Validator.VALIDATORS[name] for name in KEYWORDS},
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
