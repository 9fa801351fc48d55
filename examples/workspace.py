"""A tool that touches only the directories that its caller allows.

`ListRoots` asks the client for them. Whichever folder the model names, a folder outside of them is rejected. Each run
allows its own directories, so one agent can work for many users.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated
from urllib.request import url2pathname

import fastmcp
from fastmcp.exceptions import ToolError
from mcp_types import ListRootsResult
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ToolCallPart

from askback import ListRoots, Resolve
from askback.integration import FastMCP
from askback.testing import ScriptedModel
from askback.toolsets import ResolverToolset
from examples.command_line import Options, expect, parser_for, run
from examples.narration import narrate, show_answer

mcp = FastMCP("Broom")


async def ask_roots() -> ListRoots:
    """Ask which directories are allowed."""
    return ListRoots()


def allowed_folder(folder: str, roots: Annotated[ListRootsResult, Resolve(ask_roots)]) -> Path:
    """The folder, with links and dots resolved, if it is in one of them."""
    path = Path(folder).resolve()
    allowed = [Path(url2pathname(root.uri.path or "")).resolve() for root in roots.roots]
    if not any(path.is_relative_to(each) for each in allowed):
        raise ToolError(f"{path.name!r} is not in a directory that you allow. Nothing was touched.")
    return path


@mcp.tool
def remove_backups(folder: str, path: Annotated[Path, Resolve(allowed_folder)]) -> str:
    """Remove the backup files in a folder."""
    backups = sorted(path.glob("*.bak"))
    for backup in backups:
        backup.unlink()
    return f"Removed {', '.join(each.name for each in backups) or 'nothing'} from {path.name!r}."


def own_folder(ctx: RunContext[Path]) -> list[Path]:
    """The directories that a run allows: the folder of its user."""
    return [ctx.deps]


async def story(options: Options) -> None:
    """Work for Ada, whose model also tries Bob's folder."""
    with TemporaryDirectory() as temporary:
        ada, bob = Path(temporary, "ada"), Path(temporary, "bob")
        for folder in (ada, bob):
            folder.mkdir()
            for name in ("essay.txt", "essay.bak"):
                (folder / name).touch()
        await tidy_up(ada, [ada, bob, ada / ".." / "bob"], options)
        left = {folder.name: sorted(each.name for each in folder.iterdir()) for folder in (ada, bob)}
    print(f"\nAda has: {', '.join(left['ada'])}")
    print(f"Bob has: {', '.join(left['bob'])}")
    expect(left, {"ada": ["essay.txt"], "bob": ["essay.bak", "essay.txt"]})


async def tidy_up(owner: Path, folders: list[Path], options: Options) -> None:
    """Have an agent remove the backups from these folders, on behalf of the owner of one of them."""
    client = fastmcp.Client(mcp, mode=options.mode)
    toolset = ResolverToolset[Path](client, id="broom", roots_from=own_folder, on_answer=show_answer)
    scripted = ScriptedModel(
        *(ToolCallPart("remove_backups", {"folder": str(folder)}) for folder in folders), says="I did what I could."
    )
    agent = Agent(options.model or scripted, deps_type=Path, toolsets=[toolset], retries=len(folders))
    async with agent:
        print(f"On protocol {client.protocol_version}\n")
        prompt = f"Remove the backups from each of these folders: {', '.join(map(str, folders))}"
        result = await agent.run(prompt, deps=owner, event_stream_handler=narrate)
    print(f"The agent says: {result.output}")


if __name__ == "__main__":
    run(parser_for("workspace", __doc__, model=True), story)
