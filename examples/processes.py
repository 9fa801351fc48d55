"""Other processes that an example starts: their output is printed, and none is left behind."""

import sys

import anyio
from anyio.streams.text import TextReceiveStream

from examples.command_line import StoryError


async def output_of(module: str, *arguments: str, kill_at: str | None = None) -> str:
    """Run a module in its own process, with the options of this one, and print its output as it arrives.

    The process is killed as soon as it has printed `kill_at`.

    Raises:
        StoryError: If it fails, or ends before it can be killed.
    """
    output = ""
    command = [sys.executable, "-m", module, *sys.argv[1:], *arguments]
    async with await anyio.open_process(command, stderr=None) as process:
        assert process.stdout is not None
        try:
            async for text in TextReceiveStream(process.stdout):
                print(text, end="", flush=True)
                output += text
                if kill_at is not None and kill_at in output:
                    process.kill()
                    return output
            await process.wait()
        except BaseException:
            # After Ctrl-C, nobody wants to wait for it.
            if process.returncode is None:
                process.kill()
            raise
    if process.returncode != 0 or kill_at is not None:
        raise StoryError(f"{module} ended early.")
    return output
