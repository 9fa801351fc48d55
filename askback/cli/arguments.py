"""The arguments of a call, from what is typed to what the tool takes."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from mcp_types import Tool

from askback.cli.errors import CommandError
from askback.cli.servers import did_you_mean


def arguments_for(tool: Tool, given: Sequence[str]) -> dict[str, Any]:
    """What was given as `name=value`, as the types that the tool takes.

    Text is taken as it is where the tool takes text, and read as JSON everywhere else, if it is that.

    Raises:
        CommandError: If something is not given so, or not taken.
    """
    fields = _mapping(tool.input_schema.get("properties"))
    arguments: dict[str, Any] = {}
    for each in given:
        name, separator, text = each.partition("=")
        if not separator:
            raise CommandError(f"an argument is given as name=value, not as {each!r}")
        if name not in fields:
            there = f"; it takes {', '.join(fields)}" if fields else "; it takes none"
            raise CommandError(f"{tool.name!r} takes no argument {name!r}{did_you_mean(name, fields)}{there}")
        takes_text = _takes_text(fields[name], _mapping(tool.input_schema.get("$defs")), frozenset())
        arguments[name] = text if takes_text else _read(text)
    return arguments


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _takes_text(schema: object, definitions: Mapping[str, Any], seen: frozenset[str]) -> bool:
    """Whether a schema names text among what it allows, itself, in one of its choices, or where it refers to."""
    field = _mapping(schema)
    kinds = field.get("type")
    if kinds == "string" or (isinstance(kinds, list) and "string" in kinds):
        return True
    values = [*_sequence(field.get("enum")), field.get("const")]
    if any(isinstance(value, str) for value in values):
        return True
    name = str(field.get("$ref", "")).removeprefix("#/$defs/")
    parts = [part for key in ("anyOf", "oneOf", "allOf") for part in _sequence(field.get(key))]
    if name in definitions and name not in seen:
        parts.append(definitions[name])
    return any(_takes_text(part, definitions, seen | {name}) for part in parts)


def _mapping(value: object) -> Mapping[str, Any]:
    """A server may send anything for a part of a schema; `true` is one that allows everything."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _sequence(value: object) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()
