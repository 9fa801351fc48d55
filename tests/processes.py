"""Processes that tests start."""

import sys

HEED = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"


def heeding_ctrl_c(*arguments: str) -> list[str]:
    """The command that runs Python with these arguments, also where the tests run in the background.

    Whoever is started there ignores Ctrl-C, and so do all who are started by them.
    """
    return [sys.executable, "-c", HEED, sys.executable, *arguments]
