"""`askback graph`: what tools need, and where they may ask."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from askback.cli.errors import CommandError
from askback.cli.graphs import ToolGraph, graph_of
from askback.cli.mermaid import mermaid_of
from askback.cli.screen import output_console
from askback.cli.servers import LoadedServer, ServedTool, did_you_mean, load_server
from askback.cli.tree import tree_of

Format = Literal["tree", "mermaid", "json"]


def graph(
    server: str,
    /,
    *tools: str,
    format: Annotated[Format, Parameter(name=["--format", "-f"])] = "tree",  # noqa: A002 - the option
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
) -> None:
    """Draw the resolvers of a server's tools.

    Shows what each resolver needs and what resolvers share, whom they may ask and with which form, and how many rounds
    of questions a call takes at most.

    Args:
        server: The server: module:attribute, path/to/file.py:attribute, or a module or file with a server called mcp,
            server or app.
        tools: The tools to draw; by default, all that have resolvers.
        format: A tree for the terminal, a Mermaid flowchart, or JSON for programs.
        output: A file to write to instead of the terminal.
    """
    graphs = [graph_of(each) for each in _chosen(server, load_server(server), tools)]
    if output is None:
        _print(graphs, format, output_console())
        return
    try:
        with output.open("w", encoding="utf-8") as file:
            _print(graphs, format, output_console(file))
    except OSError as error:
        raise CommandError(f"{str(output)!r} cannot be written: {error.strerror}") from error


def _chosen(server: str, loaded: LoadedServer, names: Sequence[str]) -> list[ServedTool]:
    """The named tools, or all that have resolvers.

    Raises:
        CommandError: If a named tool does not exist, or no tool has resolvers.
    """
    served = loaded.tools
    if not names:
        resolved = [each for each in served if each.resolved.plans]
        if not resolved:
            raise CommandError(f"no tool of {server!r} has resolvers. {_tools_in(loaded)}")
        return resolved
    chosen: list[ServedTool] = []
    for name in names:
        found = [each for each in served if name in (each.name, each.name.partition("@")[0])]
        if not found:
            near = did_you_mean(name, [each.name for each in served])
            raise CommandError(f"{server!r} has no tool {name!r}{near or '.'} {_tools_in(loaded)}")
        chosen += found
    return chosen


def _tools_in(loaded: LoadedServer) -> str:
    if not loaded.tools:
        return f"Its tools {loaded.remote}" if loaded.remote else "It has no tools"
    tools = f"Its tools: {', '.join(each.name for each in loaded.tools)}"
    return f"{tools}; others {loaded.remote}" if loaded.remote else tools


def _print(graphs: Sequence[ToolGraph], form: Format, console: Console) -> None:
    if form == "tree":
        for number, each in enumerate(graphs):
            console.print(*([""] if number else []), tree_of(each), sep="\n")
        return
    if form == "json":
        tools = [dataclasses.asdict(each) | {"rounds": each.rounds} for each in graphs]
        console.file.write(json.dumps({"tools": tools}, indent=2) + "\n")
        return
    console.file.write(mermaid_of(graphs))
