"""What `askback check` finds."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from askback.cli.source import Place

IgnorableCode = Literal[
    "changing-default",
    "changing-question",
    "colliding-keys",
    "secret-in-form",
    "unaskable-form",
    "unreached-resolver",
]
Code = IgnorableCode | Literal["invalid-signature"]


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a resolver."""

    code: Code
    tools: tuple[str, ...]
    """The tools that it is wrong for."""
    resolver: str
    place: Place
    problem: str
    """One sentence: what is wrong."""
    remedy: str
    """One sentence: what to do."""


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for what is wrong in the same way for several tools, in the order of files and lines."""
    found: dict[Finding, dict[str, None]] = {}
    for each in findings:
        found.setdefault(replace(each, tools=()), {}).update(dict.fromkeys(each.tools))
    together = [replace(each, tools=tuple(tools)) for each, tools in found.items()]
    return sorted(together, key=lambda each: (each.place.file, each.place.line, each.code))
