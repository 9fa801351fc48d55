"""Where commands print to."""

import os
from typing import IO

from rich.console import Console

UNBROKEN = 10_000
"""The width where nobody looks: lines are then as long as what they say."""


def output_console(file: IO[str] | None = None) -> Console:
    """A console that styles what a person sees at a terminal, and nothing where it is not one or `NO_COLOR` is set."""
    console = Console(file=file, highlight=False, color_system=None if os.environ.get("NO_COLOR") else "auto")
    if not console.is_terminal:
        console.width = UNBROKEN
    return console
