"""`askback check`: what is wrong with a server's resolvers, for people and for CI."""

import json
import re
import sys
from collections.abc import Sequence, Sized
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from askback.cli.console import as_line
from askback.cli.errors import CommandError, RefusedError
from askback.cli.findings import Finding, IgnorableCode, merged
from askback.cli.rules import RULES
from askback.cli.servers import LoadedServer, load_server
from askback.cli.source import Place
from askback.integration.engine.graph import identity


def check(
    server: str,
    /,
    *,
    ignore: Annotated[tuple[IgnorableCode, ...], Parameter(negative=())] = (),
    format: Annotated[Literal["text", "json"], Parameter(name=["--format", "-f"])] = "text",  # noqa: A002 - see graph
) -> int:
    """Look for mistakes in the resolvers of a server's tools.

    The exit code is 0 if there are none, 1 if there are some, and 2 if that could not be found out. A comment
    `# askback: ignore[code]` on the line of a resolver's def, or of its question, silences a finding there.

    Args:
        server: The server: module:attribute, path/to/file.py:attribute, or a module or file with a server called mcp,
            server or app.
        ignore: A code of findings to leave out; may be given several times.
        format: Text for people, or JSON for programs.
    """
    try:
        loaded = load_server(server)
    except RefusedError as refused:
        findings, checked = [_refusal(refused)], "it could not be loaded"
    else:
        _say_what_is_left_out(server, loaded)
        found = merged(finding for rule in RULES for finding in rule(loaded))
        findings = [each for each in found if each.code not in {*ignore, *each.place.ignored}]
        resolvers = {identity(plan.fn) for _, plan in loaded.resolvers}
        checked = f"{_count(loaded.tools, 'tool')} and {_count(resolvers, 'resolver')} were checked"
    _print(findings, checked, as_json=format == "json")
    return 1 if findings else 0


def _say_what_is_left_out(server: str, loaded: LoadedServer) -> None:
    """Tell of tools that run elsewhere, as a proxy's do.

    Raises:
        CommandError: If that leaves nothing to look into.
    """
    if not loaded.tools:
        left_out = f"the tools of {server!r} {loaded.left_out}"
        raise CommandError(left_out if loaded.left_out else f"{server!r} has no tools")
    if loaded.left_out:
        sys.stderr.write(as_line(f"askback: some tools of {server!r} {loaded.left_out}") + "\n")


def _refusal(refused: RefusedError) -> Finding:
    """The finding that a tool's resolvers cannot be run at all."""
    resolvers = re.findall(r"resolver '([^']*)'", refused.reason)
    return Finding(
        "invalid-signature",
        tuple(re.findall(r"^Tool '([^']*)'", refused.reason)),
        resolvers[-1] if resolvers else "",
        Place(refused.file, refused.line),
        f"The tool is refused when it is registered: {refused.reason}.",
        "Mend that first: nothing else can be checked before.",
    )


def _print(findings: Sequence[Finding], checked: str, *, as_json: bool) -> None:
    file = sys.stdout
    if as_json:
        file.write(json.dumps({"findings": [_as_json(each) for each in findings]}, indent=2) + "\n")
        return
    for each in findings:
        tools = f" of {', '.join(each.tools)}" if each.tools else ""
        lines = (f"{_shown(each.place)}: {each.code}: {each.resolver}{tools}", each.problem, each.remedy)
        file.write("\n    ".join(map(as_line, lines)) + "\n")
    file.write(f"{_count(findings, 'finding')}; {checked}.\n")


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
