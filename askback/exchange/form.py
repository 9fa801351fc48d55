"""Forms: the one place that reads the JSON schema of an elicitation.

A form is flat: an object whose fields are texts, numbers, booleans or choices. `Form` reads whatever a server sent
without failing, says in `problem` why it cannot be shown to anyone, and checks the content it is answered with. Code
that has looked at `problem` can rely on every field being what it says it is.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, cast
from weakref import WeakKeyDictionary

from pydantic import BaseModel, TypeAdapter

from askback.exchange.checks import LIMITS, ContentError, check_type, check_value, plain_content, problem_with

__all__ = ["Choice", "ContentError", "Field", "Form"]

WORDING = frozenset({"title", "description", "default", "$schema", "additionalProperties", "enumNames"})
"""The keywords that change how a form reads, and not what it asks for."""

CHOICES = ("enum", "const", "oneOf", "anyOf")


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the values that a field offers."""

    value: Any
    title: str
    """The label to show for it; the value itself where the server gave none."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form."""

    name: str
    schema: Mapping[str, Any]
    """The field's own JSON schema, as the server wrote it."""
    required: bool
    types: frozenset[str]
    """The JSON types it takes; empty where it takes anything."""
    choices: tuple[Choice, ...]
    """The values to choose from; empty where it takes any value of its types."""
    several: bool
    """Whether it takes a list, of choices where it has some."""

    @property
    def title(self) -> str:
        """The field's label; empty where the server gave none."""
        return _text(self.schema.get("title"))

    @property
    def description(self) -> str:
        """What the server says about the field; empty where it says nothing."""
        return _text(self.schema.get("description"))

    @property
    def format(self) -> str:
        """The format of a text, such as `email`; empty where any text will do."""
        return _text(self.schema.get("format"))

    @property
    def default(self) -> Any:
        """The value the server suggests; None where it suggests none."""
        return self.schema.get("default")

    @property
    def limits(self) -> dict[str, Any]:
        """The bounds of a number, a text's length or a list's length, by their JSON schema keyword."""
        return {name: self.schema[name] for name in LIMITS if name in self.schema}

    @property
    def takes_text(self) -> bool:
        """Whether a person may type any text into it."""
        return "string" in self.types and not self.choices

    @property
    def confirms(self) -> bool:
        """Whether it takes nothing but yes or no."""
        return bool(self.types) and self.types <= {"boolean", "null"}

    @property
    def takes(self) -> str:
        """What to answer with, in a few words: its choices, its format, or its type."""
        if self.choices:
            values = " | ".join(str(choice.value) for choice in self.choices)
            return f"some of {values}" if self.several else values
        return self.format or " | ".join(sorted(self.types)) or "anything"

    def check(self, value: object) -> None:
        """Check a value for this field alone.

        Raises:
            ContentError: If the field does not take it.
        """
        check_type(self.name, value)
        check_value(value, self.schema, self.name)


class Form:
    """An elicitation's JSON schema, read."""

    def __init__(self, schema: object) -> None:
        self.schema = schema

    @classmethod
    def of(cls, model: type[Any]) -> "Form":
        """The form that asks for the fields of a pydantic model or a dataclass, read once for each model.

        Raises:
            TypeError: If `model` is neither.
        """
        form = _forms.get(model)
        if form is None:
            if not issubclass(model, BaseModel) and not dataclasses.is_dataclass(cast("object", model)):
                raise TypeError(f"A form is made of a pydantic model or a dataclass, not of {model!r}")
            form = _forms[model] = cls(TypeAdapter[Any](model).json_schema())
        return form

    @cached_property
    def fields(self) -> dict[str, Field]:
        """The fields by name, in the form's own order. Parts that are not readable are left out."""
        schema = _mapping(self.schema)
        required = _sequence(schema.get("required"))
        definitions = _mapping(schema.get("$defs"))
        return {
            name: _field(name, _mapping(field), name in required, definitions)
            for name, field in _mapping(schema.get("properties")).items()
        }

    @property
    def only_confirms(self) -> bool:
        """Whether it asks for nothing but yes or no."""
        return all(field.confirms for field in self.fields.values())

    @cached_property
    def shape(self) -> object:
        """What the form asks for without its wording: two forms that ask for the same have equal shapes."""
        schema = _mapping(self.schema)
        definitions = _mapping(schema.get("$defs"))
        rest = {key: value for key, value in schema.items() if key not in WORDING and key != "$defs"}
        return rest | {
            "properties": {
                name: _shape(field, definitions) for name, field in _mapping(schema.get("properties")).items()
            },
            "required": sorted(_sequence(schema.get("required")), key=str),
        }

    @property
    def problem(self) -> str | None:
        """Why the form cannot be shown to anyone, as the end of a sentence; None where it can."""
        return problem_with(self.schema)

    def checked(self, content: object) -> dict[str, Any]:
        """Content as it is sent to the server: plain JSON, with the form's defaults for fields that are left out.

        Raises:
            ContentError: If it does not fit the form.
        """
        schema = _mapping(self.schema)
        defaults = {name: _mapping(field).get("default") for name, field in _mapping(schema.get("properties")).items()}
        filled = {name: default for name, default in defaults.items() if default is not None} | plain_content(content)
        check_value(filled, schema)
        return filled


_forms: WeakKeyDictionary[type[Any], Form] = WeakKeyDictionary()
"""The forms of models. A model that goes takes its form with it."""


def _field(name: str, schema: Mapping[str, Any], required: bool, definitions: Mapping[str, Any]) -> Field:
    types = frozenset(_types(schema, definitions))
    several = "array" in types
    one = _resolved(schema, definitions)
    choices = _choices(_resolved(_mapping(one.get("items")), definitions) if several else one)
    return Field(name, schema, required, types, tuple(choices), several)


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema as Pydantic means it: enumerations stand beside the form, and an optional field admits null."""
    name = _text(schema.get("$ref")).rpartition("/")[2]
    if name in definitions:
        schema = _mapping(definitions[name])
    some = [each for each in _sequence(schema.get("anyOf")) if each != {"type": "null"}]
    return _resolved(_mapping(some[0]), definitions) if len(some) == 1 else schema


def _types(schema: Mapping[str, Any], definitions: Mapping[str, Any], seen: frozenset[str] = frozenset()) -> set[str]:
    """The JSON types that a schema allows, itself, in its alternatives, or where it refers to."""
    stated = schema.get("type")
    if stated is not None:
        return {each for each in (stated, *_sequence(stated)) if isinstance(each, str)}
    values = [*_sequence(schema.get("enum")), *([schema["const"]] if "const" in schema else ())]
    if values:
        return {_type_of(value) for value in values}
    name = _text(schema.get("$ref")).removeprefix("#/$defs/")
    parts = [part for key in ("anyOf", "oneOf", "allOf") for part in _sequence(schema.get(key))]
    if name in definitions and name not in seen:
        parts.append(definitions[name])
    return {each for part in parts for each in _types(_mapping(part), definitions, seen | {name})}


def _type_of(value: object) -> str:
    if value is None:
        return "null"
    names: dict[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")


def _choices(schema: Mapping[str, Any]) -> Iterator[Choice]:
    """The choices of a field or of a list's items, in whichever of the protocol's spellings they come."""
    if "const" in schema:
        yield Choice(schema["const"], str(schema["const"]))
    values = _sequence(schema.get("enum"))
    titles = _sequence(schema.get("enumNames"))
    for value, title in zip_longest(values, titles[: len(values)]):
        yield Choice(value, _text(title) or str(value))
    for each in map(_mapping, (*_sequence(schema.get("oneOf")), *_sequence(schema.get("anyOf")))):
        if "const" in each:
            yield Choice(each["const"], _text(each.get("title")) or str(each["const"]))


def _shape(value: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_shape(each, definitions) for each in cast("list[Any]", value)]
    if not isinstance(value, Mapping):
        return value
    schema = _resolved(cast("Mapping[str, Any]", value), definitions)
    choices = [choice.value for choice in _choices(schema)]
    left_out = {*WORDING, *CHOICES, "type"} if choices else WORDING
    shape = {key: _shape(each, definitions) for key, each in schema.items() if key not in left_out}
    return shape | {"choices": choices} if choices else shape


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _sequence(value: object) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
