"""The command line: `askback graph`, `askback check` and `askback call`.

Each command is a function in the module of the same name. Only the modules that a command needs are imported: imports
take longer than most commands do.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import NoReturn

from askback.cli.errors import CommandError

COMMANDS = ("graph", "check", "call")

FAILED = 2
"""The exit code of a command that could not do its work, as of one with wrong options."""


def main(tokens: Sequence[str] | None = None) -> None:
    """Run the command in `tokens`, by default the arguments of the process, and exit with its code."""
    typed = sys.argv[1:] if tokens is None else list(tokens)
    try:
        from cyclopts import App

        commands = [getattr(import_module(f"askback.cli.{name}"), name) for name in _needed(typed)]
    except ModuleNotFoundError as missing:
        _fail(f"the command line needs {missing.name}: pip install 'askback[cli]'")
    app = App("askback", help="Inspect and call MCP servers whose tools ask back.", version=version("askback"))
    for command in commands:
        app.command(command)
    try:
        try:
            app(typed)
        finally:
            sys.stdout.flush()
    except CommandError as error:
        from askback.cli.screen import as_line

        _fail(as_line(str(error)))
    except BrokenPipeError:
        # The reader has closed the pipe, as `head` does. Otherwise Python would try to flush the rest, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)


def _needed(typed: Sequence[str]) -> Sequence[str]:
    """The commands to import: the one that is typed, none for the version, and all to list them."""
    first = typed[0] if typed else ""
    if first in COMMANDS:
        return [first]
    return [] if first == "--version" else COMMANDS


def _fail(sentence: str) -> NoReturn:
    sys.stderr.write(f"askback: {sentence}\n")
    sys.exit(FAILED)
