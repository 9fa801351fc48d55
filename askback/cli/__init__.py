"""The command line: `askback graph`, `askback check` and `askback call`.

A command is a function in a module of its own, both of its name.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import NoReturn

from askback.cli.errors import CommandError

COMMANDS = ("graph", "check", "call")

COULD_NOT = 2
"""The exit code of a command that could not do its work, as of one that was called wrongly."""


def main(tokens: Sequence[str] | None = None) -> None:
    """Run the command that `tokens`, or else the arguments of the process, spell out; exit with its code."""
    try:
        from cyclopts import App

        from askback.cli.console import as_line

        commands = [getattr(import_module(f"askback.cli.{name}"), name) for name in COMMANDS]
    except ModuleNotFoundError as missing:
        _fail(f"the command line needs {missing.name}: pip install 'askback[cli]'")
    app = App("askback", help="Look into MCP servers whose tools ask back, and call them.", version=version("askback"))
    for command in commands:
        app.command(command)
    try:
        try:
            app(sys.argv[1:] if tokens is None else tokens)
        finally:
            sys.stdout.flush()
    except CommandError as error:
        _fail(as_line(str(error)))
    except BrokenPipeError:
        # Whoever reads the output has had enough, as `head` has. Python would still write the rest, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(COULD_NOT)


def _fail(sentence: str) -> NoReturn:
    sys.stderr.write(f"askback: {sentence}\n")
    sys.exit(COULD_NOT)
