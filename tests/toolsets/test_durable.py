"""Under DBOS a run survives its process, and a person is asked once."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import anyio
import pytest


async def until(path: anyio.Path, lines: int) -> None:
    """Wait until something has been written down so often."""
    with anyio.fail_after(60):
        while not await path.exists() or len((await path.read_text()).splitlines()) < lines:  # noqa: ASYNC110
            await anyio.sleep(0.05)


async def killed_when(folder: Path, name: str, lines: int, *answer: str) -> None:
    """Run the program, and kill it once it has got so far."""
    command = [sys.executable, "-m", "tests.durable", str(folder), *answer]
    async with await anyio.open_process(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        await until(anyio.Path(folder, name), lines)
        process.kill()


@pytest.mark.skipif(
    sys.version_info >= (3, 12) and sqlite3.sqlite_version_info < (3, 42),
    reason="from Python 3.12 on, DBOS needs SQLite 3.42 for unixepoch('subsec')",
)
@pytest.mark.processes
async def test_a_killed_run_goes_on_and_asks_nobody_twice(tmp_path: Path) -> None:
    # Not before the step is over: one that was under way when the process died is done again.
    await killed_when(tmp_path, "waiting", 1)
    await killed_when(tmp_path, "answering", 1, '{"ok": true}')
    await killed_when(tmp_path, "finished", 1)
    assert (tmp_path / "finished").read_text() == "refunded ORD-1 for Ada (True)\n"
    assert (tmp_path / "asked").read_text() == "Sure about ORD-1?\n"
    # What was being answered when the process died is answered again: its step had not been recorded.
    assert (tmp_path / "answering").read_text() == "Whose?\nWhose?\n"
