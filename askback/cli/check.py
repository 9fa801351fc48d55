"""`askback check`: a linter for resolvers, for people and for CI."""

import json
import sys
from collections.abc import Sequence, Sized
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from askback.cli.errors import CommandError, RejectedToolError
from askback.cli.findings import Finding, IgnorableCode, merged
from askback.cli.places import Place
from askback.cli.rules import RULES
from askback.cli.screen import as_line
from askback.cli.servers import LoadedServer, load_server
from askback.integration.engine.graph import identity


def check(
    server: str,
    /,
    *,
    ignore: Annotated[tuple[IgnorableCode, ...], Parameter(negative=())] = (),
    format: Annotated[Literal["text", "json"], Parameter(name=["--format", "-f"])] = "text",  # noqa: A002 - the option
) -> int:
    """Check the resolvers of a server's tools for mistakes.

    The exit code is 0 if there are no findings, 1 if there are some, and 2 if the server could not be checked.
    A comment `# askback: ignore[code]` inside a resolver silences that finding for it.

    Args:
        server: The server: module:attribute, path/to/file.py:attribute, or a module or file with a server called mcp,
            server or app.
        ignore: A code of findings to leave out; can be repeated.
        format: Text for people, or JSON for programs.
    """
    try:
        loaded = load_server(server)
    except RejectedToolError as rejected:
        findings, summary = [_rejection(rejected)], "the server could not be loaded"
    else:
        _report_remote_tools(server, loaded)
        reported = merged(finding for rule in RULES for finding in rule(loaded))
        findings = [each for each in reported if each.code not in {*ignore, *each.place.ignored}]
        resolvers = {identity(plan.fn) for _, plan in loaded.resolvers}
        summary = f"checked {_count(loaded.tools, 'tool')} and {_count(resolvers, 'resolver')}"
    _print(findings, summary, as_json=format == "json")
    return 1 if findings else 0


def _report_remote_tools(server: str, loaded: LoadedServer) -> None:
    """Name the tools that run elsewhere, such as a proxy's, on the standard error.

    Raises:
        CommandError: If there are no other tools to check.
    """
    if not loaded.tools:
        raise CommandError(f"the tools of {server!r} {loaded.remote}" if loaded.remote else f"{server!r} has no tools")
    if loaded.remote:
        sys.stderr.write(as_line(f"askback: some tools of {server!r} {loaded.remote}") + "\n")


def _rejection(rejected: RejectedToolError) -> Finding:
    """The finding for a tool that was rejected at registration."""
    problem = rejected.problem
    return Finding(
        "invalid-signature",
        (problem.tool,) if problem.tool is not None else (),
        problem.resolver or "",
        Place(rejected.file, rejected.line),
        f"The tool is rejected at registration: {problem}.",
        "Fix this first; no other checks can run.",
    )


def _print(findings: Sequence[Finding], summary: str, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({"findings": [_as_json(each) for each in findings]}, indent=2) + "\n")
        return
    for each in findings:
        tools = f" of {', '.join(each.tools)}" if each.tools else ""
        lines = (f"{_shown(each.place)}: {each.code}: {each.resolver}{tools}", each.problem, each.remedy)
        sys.stdout.write("\n    ".join(map(as_line, lines)) + "\n")
    sys.stdout.write(f"{_count(findings, 'finding')}; {summary}.\n")


def _count(things: Sized, name: str) -> str:
    return f"{len(things) or 'no'} {name}{'' if len(things) == 1 else 's'}"


def _as_json(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "tools": finding.tools,
        "resolver": finding.resolver,
        "file": finding.place.file,
        "line": finding.place.line,
        "problem": finding.problem,
        "remedy": finding.remedy,
    }


def _shown(place: Place) -> str:
    path = Path(place.file)
    here = Path.cwd()
    return f"{path.relative_to(here) if path.is_relative_to(here) else path}:{place.line}"
