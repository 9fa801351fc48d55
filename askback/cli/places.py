"""Where a function is written, and which findings its author has silenced there."""

import inspect
import re
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from askback.integration.engine.annotations import function_behind

LIBRARIES = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib"))

IGNORE = re.compile(r"#\s*askback:\s*ignore\[([^\]]*)\]")


@dataclass(frozen=True)
class Place:
    """A line of a file, and the codes of findings that are silenced there."""

    file: str
    line: int
    ignored: frozenset[str] = frozenset()


def place_of(fn: Callable[..., Any]) -> Place:
    """The line of a function's `def`, with the codes of the `# askback: ignore[code]` comments in the function."""
    function = function_behind(fn)
    code = getattr(function, "__code__", None)
    if code is None:
        return Place("<built-in>", 0)
    lines = source_lines(function)
    decorators = next((number for number, line in enumerate(lines) if re.match(r"\s*(async\s+)?def\s", line)), 0)
    comments = [comment for line in lines for comment in IGNORE.findall(line)]
    ignored = frozenset(name.strip() for comment in comments for name in comment.split(","))
    return Place(code.co_filename, code.co_firstlineno + decorators, ignored)


def source_lines(function: Any) -> list[str]:
    """The source of a function, decorators included; empty if it is not available."""
    try:
        return inspect.getsourcelines(function)[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return []


def is_library(path: str) -> bool:
    """Whether a file belongs to Python or to an installed package, which its user cannot fix."""
    return any(Path(path).resolve().is_relative_to(library) for library in LIBRARIES)
