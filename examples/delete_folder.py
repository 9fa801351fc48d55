"""A tool that asks before it deletes, and makes something of every answer: yes, no, a refusal, a dismissal.

`ElicitationResult[Confirm]` hands the outcome to the tool, which decides what a refusal means. An empty folder is
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
    """What somebody says about losing their files."""

    ok: bool = Field(description="Delete them?")


async def confirm_delete(path: str) -> Confirm | Elicit[Confirm]:
    """Ask whoever would lose something."""
    if path not in folders:
        raise ToolError(f"There is no folder {path!r}.")
    if not folders[path]:
        return Confirm(ok=True)
    return Elicit(f"{path!r} holds {', '.join(folders[path])}. Delete it all the same?", Confirm)


@mcp.tool
async def delete_folder(path: str, confirm: Annotated[ElicitationResult[Confirm], Resolve(confirm_delete)]) -> str:
    """Delete a folder and all that is in it."""
    match confirm:
        case AcceptedElicitation(data=Confirm(ok=True)):
            del folders[path]
            return f"Deleted {path!r}."
        case AcceptedElicitation():
            return f"Kept {path!r}, as you wish."
        case DeclinedElicitation():
            return f"Kept {path!r}: you would not say."
        case _:
            return f"Kept {path!r}: you closed the question."


async def story(options: Options) -> None:
    """Delete an empty folder, then give all four answers about others."""
    owner = Person({"ok": True}, {"ok": False}, "decline", "cancel")
    async with fastmcp.Client(mcp, mode=options.mode, elicitation_handler=owner) as client:
        print(f"On protocol {client.protocol_version}")
        print("\nNothing to lose, nothing to ask.")
        expect(await call(client, "delete_folder", path="drafts"), "Deleted 'drafts'.")
        expect(owner.asked, [])

        print("\nSomething to lose, and the four things one can say to a question.")
        expect(await call(client, "delete_folder", path="letters"), "Deleted 'letters'.")
        expect(await call(client, "delete_folder", path="photos"), "Kept 'photos', as you wish.")
        expect(await call(client, "delete_folder", path="photos"), "Kept 'photos': you would not say.")
        expect(await call(client, "delete_folder", path="photos"), "Kept 'photos': you closed the question.")
    expect((len(owner.asked), list(folders)), (4, ["photos"]))
    print(f"\nWhat is left: {', '.join(folders)}")


if __name__ == "__main__":
    run(parser_for("delete_folder", __doc__), story)
