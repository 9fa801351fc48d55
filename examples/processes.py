"""Examples that start other processes: each is heard out, or killed, and none is left behind."""

import sys

import anyio
from anyio.streams.text import TextReceiveStream

from examples.command_line import StoryError


async def heard(module: str, *arguments: str, kill_at: str | None = None) -> str:
    """Run a module in a process of its own, with the options of this one, and print what it says as it says it.

    It is killed once it has said `kill_at`.

    Raises:
        StoryError: If it fails, or ends before it was to be killed.
    """
    said = ""
    command = [sys.executable, "-m", module, *sys.argv[1:], *arguments]
    async with await anyio.open_process(command, stderr=None) as process:
        assert process.stdout is not None
        try:
            async for text in TextReceiveStream(process.stdout):
                print(text, end="", flush=True)
                said += text
                if kill_at is not None and kill_at in said:
                    process.kill()
                    return said
            await process.wait()
        except BaseException:
            # Whoever presses Ctrl-C does not want to wait for it.
            if process.returncode is None:
                process.kill()
            raise
    if process.returncode != 0 or kill_at is not None:
        raise StoryError(f"{module} ended early.")
    return said
