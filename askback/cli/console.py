"""Where commands print to, and how they print what others have written.

A server chooses its names, messages and results, and a terminal obeys some characters: it moves its cursor, changes its
title, fills the clipboard, turns the direction of a line. None of these reaches it.
"""

import os
from typing import IO

from rich.console import Console

from askback.agents.console import printable

UNBROKEN = 10_000
"""The width where nobody looks: lines are then as long as what they say."""


def output_console(file: IO[str] | None = None) -> Console:
    """A console that styles what a person sees at a terminal, and nothing where it is not one or `NO_COLOR` is set."""
    color_system = None if os.environ.get("NO_COLOR") else "auto"
    console = Console(file=file, highlight=False, markup=False, emoji=False, color_system=color_system)
    if not console.is_terminal:
        console.width = UNBROKEN
    return console


def as_text(written: str) -> str:
    """What somebody has written, with its lines and tabs."""
    return "".join(each if each in "\n\t" else printable(each) for each in written.replace("\r\n", "\n"))


def as_line(written: str) -> str:
    """What somebody has written, on one line."""
    return printable(" ".join(line.strip() for line in written.splitlines() if line.strip()))
