"""The arguments of a call, from `name=value` to what the tool takes."""

import json
from collections.abc import Sequence
from typing import Any

from mcp_types import Tool

from askback.cli.errors import CommandError
from askback.cli.servers import did_you_mean
from askback.exchange.form import Field, Form


def arguments_of(tool: Tool) -> dict[str, Field]:
    """The arguments in a tool's input schema, by name."""
    return Form(tool.input_schema).fields


def arguments_for(tool: Tool, given: Sequence[str]) -> dict[str, Any]:
    """The given `name=value` pairs, with the types that the tool takes.

    A value stays text if the tool takes text, and is otherwise read as JSON if it is valid JSON.

    Raises:
        CommandError: If a pair has no `=`, or the tool has no such argument.
    """
    known = arguments_of(tool)
    arguments: dict[str, Any] = {}
    for pair in given:
        name, separator, text = pair.partition("=")
        if not separator:
            raise CommandError(f"an argument is given as name=value, not as {pair!r}")
        if name not in known:
            there = f"; it takes {', '.join(known)}" if known else "; it takes no arguments"
            raise CommandError(f"{tool.name!r} has no argument {name!r}{did_you_mean(name, known)}{there}")
        arguments[name] = text if "string" in known[name].types else _read(text)
    return arguments


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
