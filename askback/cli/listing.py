"""The tools of a server, listed for `askback call` without a tool."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from mcp_types import Tool

from askback.cli.arguments import arguments_of
from askback.cli.screen import as_line

Resolved = Mapping[str, Sequence[str]]
"""The resolved parameters of each tool, where the server's code is known."""


def print_tools(tools: Sequence[Tool], resolved: Resolved, *, as_json: bool) -> None:
    """Print what each tool takes and does, and which of its parameters resolvers fill."""
    if as_json:
        listed = [_as_json(tool, resolved.get(tool.name)) for tool in tools]
        sys.stdout.write(json.dumps({"tools": listed}, indent=2) + "\n")
        return
    for tool in tools:
        arguments = [
            f"{name}{'' if field.required else '?'}: {field.takes}" for name, field in arguments_of(tool).items()
        ]
        lines = [f"{tool.name}({', '.join(arguments)})", tool.description or ""]
        if resolved.get(tool.name):
            lines.append(f"resolved: {', '.join(resolved[tool.name])}")
        sys.stdout.write("\n    ".join(as_line(line) for line in lines if line) + "\n")


def _as_json(tool: Tool, resolved: Sequence[str] | None) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "arguments": [
            {"name": name, "takes": field.takes, "required": field.required}
            for name, field in arguments_of(tool).items()
        ],
        "resolved": list(resolved) if resolved is not None else None,
    }
