"""What `askback check` reports."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from askback.cli.places import Place

IgnorableCode = Literal["colliding-keys", "doubtful-type", "secret-in-form", "unaskable-form", "unreached-resolver"]
Code = IgnorableCode | Literal["invalid-signature"]


@dataclass(frozen=True)
class Finding:
    """A problem with a resolver."""

    code: Code
    tools: tuple[str, ...]
    """The tools that it affects."""
    resolver: str
    place: Place
    problem: str
    """One sentence: what is wrong."""
    remedy: str
    """One sentence: how to fix it."""


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """The findings sorted by file and line, those that differ only in their tools merged into one."""
    tools_of: dict[Finding, dict[str, None]] = {}
    for each in findings:
        tools_of.setdefault(replace(each, tools=()), {}).update(dict.fromkeys(each.tools))
    together = [replace(each, tools=tuple(tools)) for each, tools in tools_of.items()]
    return sorted(together, key=lambda each: (each.place.file, each.place.line, each.code))
