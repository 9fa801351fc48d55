"""A tool that asks before it deletes, and handles every answer: yes, no, declined and cancelled.

`ElicitationResult[Confirm]` gives the tool the outcome, so that it can decide what a refusal means. An empty folder is
deleted without a question.
"""

from typing import Annotated

import fastmcp
from fastmcp.exceptions import ToolError
from pydantic import BaseModel, Field

from askback import AcceptedElicitation, DeclinedElicitation, Elicit, ElicitationResult, Resolve
from askback.integration import FastMCP
from examples.command_line import Options, expect, parser_for, run
from examples.conversation import Person, call

mcp = FastMCP("Folders")
folders = {"drafts": list[str](), "letters": ["ada.txt"], "photos": ["sea.jpg", "sky.jpg"]}


class Confirm(BaseModel):
    """Whether the owner agrees to lose the files."""

    ok: bool = Field(description="Delete them?")


async def confirm_delete(path: str) -> Confirm | Elicit[Confirm]:
    """Ask, unless there is nothing to lose."""
    if path not in folders:
        raise ToolError(f"There is no folder {path!r}.")
    if not folders[path]:
        return Confirm(ok=True)
    return Elicit(f"{path!r} holds {', '.join(folders[path])}. Delete it anyway?", Confirm)


@mcp.tool
async def delete_folder(path: str, confirm: Annotated[ElicitationResult[Confirm], Resolve(confirm_delete)]) -> str:
    """Delete a folder and everything in it."""
    match confirm:
        case AcceptedElicitation(data=Confirm(ok=True)):
            del folders[path]
            return f"Deleted {path!r}."
        case AcceptedElicitation():
            return f"Kept {path!r}, as you wish."
        case DeclinedElicitation():
            return f"Kept {path!r}: you declined to answer."
        case _:
            return f"Kept {path!r}: you closed the question."


async def story(options: Options) -> None:
    """Delete an empty folder, then give all four answers for others."""
    owner = Person({"ok": True}, {"ok": False}, "decline", "cancel")
    async with fastmcp.Client(mcp, mode=options.mode, elicitation_handler=owner) as client:
        print(f"On protocol {client.protocol_version}")
        print("\nNothing to lose: no question.")
        expect(await call(client, "delete_folder", path="drafts"), "Deleted 'drafts'.")
        expect(owner.asked, [])

        print("\nSomething to lose: a question, and the four possible answers.")
        expect(await call(client, "delete_folder", path="letters"), "Deleted 'letters'.")
        expect(await call(client, "delete_folder", path="photos"), "Kept 'photos', as you wish.")
        expect(await call(client, "delete_folder", path="photos"), "Kept 'photos': you declined to answer.")
        expect(await call(client, "delete_folder", path="photos"), "Kept 'photos': you closed the question.")
    expect((len(owner.asked), list(folders)), (4, ["photos"]))
    print(f"\nLeft: {', '.join(folders)}")


if __name__ == "__main__":
    run(parser_for("delete_folder", __doc__), story)
