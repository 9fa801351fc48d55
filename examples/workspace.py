"""A tool that touches only the directories its caller has opened to it.

`ListRoots` asks the client for them. The model may name any folder it likes: what lies outside is refused. Each run
opens its own directories, so that one agent can work for everybody.
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
    """Ask which directories are open."""
    return ListRoots()


def open_folder(folder: str, roots: Annotated[ListRootsResult, Resolve(ask_roots)]) -> Path:
    """The folder, if it lies in one of them, wherever its links and dots lead."""
    path = Path(folder).resolve()
    opened = [Path(url2pathname(root.uri.path or "")).resolve() for root in roots.roots]
    if not any(path.is_relative_to(each) for each in opened):
        raise ToolError(f"{path.name!r} is in none of the directories you opened. Nothing was touched.")
    return path


@mcp.tool
def remove_backups(folder: str, path: Annotated[Path, Resolve(open_folder)]) -> str:
    """Remove the backup files in a folder."""
    backups = sorted(path.glob("*.bak"))
    for backup in backups:
        backup.unlink()
    return f"Removed {', '.join(each.name for each in backups) or 'nothing'} from {path.name!r}."


def own_folder(ctx: RunContext[Path]) -> list[Path]:
    """What a run opens: the folder of whoever it works for."""
    return [ctx.deps]


async def story(options: Options) -> None:
    """Work for Ada, whose model reaches for Bob's folder as well."""
    with TemporaryDirectory() as temporary:
        ada, bob = Path(temporary, "ada"), Path(temporary, "bob")
        for folder in (ada, bob):
            folder.mkdir()
            for name in ("essay.txt", "essay.bak"):
                (folder / name).touch()
        await tidy_up(ada, [ada, bob, ada / ".." / "bob"], options)
        left = {folder.name: sorted(each.name for each in folder.iterdir()) for folder in (ada, bob)}
    print(f"\nLeft with Ada: {', '.join(left['ada'])}")
    print(f"Left with Bob: {', '.join(left['bob'])}")
    expect(left, {"ada": ["essay.txt"], "bob": ["essay.bak", "essay.txt"]})


async def tidy_up(owner: Path, folders: list[Path], options: Options) -> None:
    """Have an agent remove the backups of these folders, on behalf of somebody who owns one of them."""
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
