"""A run that survives its process, with DBOS: killed while it waits for a person, it goes on when it is started again.

Completed steps are in a database, here SQLite in a temporary folder. The person is asked once, even if the process that
asked is killed.
"""

import sqlite3
import sys
from importlib.util import find_spec
from tempfile import TemporaryDirectory

from examples.command_line import Options, StoryError, expect, parser_for, run
from examples.processes import output_of

WORK = "examples.durable.work"


async def story(options: Options) -> None:
    """Kill a waiting process, and let another one finish."""
    check_dbos()
    with TemporaryDirectory() as folder:
        print("A process starts the run.")
        before = await output_of(WORK, folder, kill_at=" waits for the answer\n")
        print("   (killed)\n\nAnother one is started, with the person's answer.")
        after = await output_of(WORK, folder, '{"approved": true}')
    expect((before + after).count(" asks: "), 1)
    expect("is done: " in after, True)


def check_dbos() -> None:
    """Check what DBOS needs, before it fails with a less helpful error.

    Raises:
        StoryError: If something is missing.
    """
    if find_spec("dbos") is None:
        raise StoryError("This example needs DBOS: pip install 'pydantic-ai-slim[dbos]'")
    if sys.version_info >= (3, 12) and sqlite3.sqlite_version_info < (3, 42):
        raise StoryError(
            f"From Python 3.12 on, DBOS needs SQLite 3.42 or newer, but this Python has {sqlite3.sqlite_version}: use "
            "a Python with a newer SQLite, or Python 3.11."
        )


if __name__ == "__main__":
    run(parser_for("durable", __doc__, model=True), story)
