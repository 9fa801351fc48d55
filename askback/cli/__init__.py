"""The command line: `askback graph`, `askback check` and `askback call`.

Each command is a function in the module of the same name, which is imported when the command, or its help, is wanted.
"""

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import NoReturn

from askback.cli.errors import CommandError

COMMANDS = ("graph", "check", "call")

FAILED = 2
"""The exit code of a command that could not do its work, as of one with wrong options."""


def main(tokens: Sequence[str] | None = None) -> None:
    """Run the command in `tokens`, by default the arguments of the process, and exit with its code."""
    try:
        from cyclopts import App

        app = App("askback", help="Inspect and call MCP servers whose tools ask back.", version=version("askback"))
        for name in COMMANDS:
            app.command(f"askback.cli.{name}:{name}", name=name)
        try:
            app(sys.argv[1:] if tokens is None else tokens)
        finally:
            sys.stdout.flush()
    except CommandError as error:
        from askback.cli.screen import as_line

        _fail(as_line(str(error)))
    except ImportError as error:
        missing = error.__cause__ if isinstance(error.__cause__, ImportError) else error
        _fail(f"the command line needs {missing.name}: pip install 'askback[cli]'")
    except BrokenPipeError:
        # The reader has closed the pipe, as `head` does. Otherwise Python would try to flush the rest, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)


def _fail(sentence: str) -> NoReturn:
    sys.stderr.write(f"askback: {sentence}\n")
    sys.exit(FAILED)
