"""Where commands print, and how they print text that others have written.

A server chooses its names, messages and results, and a terminal obeys some characters: they move its cursor, change its
title, write to the clipboard or reverse a line. None of them reaches it.
"""

import os
from typing import IO

from rich.console import Console

from askback.exchange.text import printable

UNBROKEN = 10_000
"""The width of output that is not a terminal, so that no line is wrapped."""


def output_console(file: IO[str] | None = None) -> Console:
    """A console that styles its output at a terminal, unless `NO_COLOR` is set, and nowhere else."""
    color_system = None if os.environ.get("NO_COLOR") else "auto"
    console = Console(file=file, highlight=False, markup=False, emoji=False, color_system=color_system)
    if not console.is_terminal:
        console.width = UNBROKEN
    return console


def as_text(written: str) -> str:
    """Foreign text, with its line breaks and tabs."""
    return "".join(each if each in "\n\t" else printable(each) for each in written.replace("\r\n", "\n"))


def as_line(written: str) -> str:
    """Foreign text on one line."""
    return printable(" ".join(line.strip() for line in written.splitlines() if line.strip()))
