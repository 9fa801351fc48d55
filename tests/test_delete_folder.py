"""The folder example of the pull request that brought resolvers to the input_required flow."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from askback import (
    AcceptedElicitation,
    CancelledElicitation,
    DeclinedElicitation,
    Elicit,
    ElicitationResult,
    Resolve,
)
from askback.agents import Cancel, Decline
from askback.integration import FastMCP
from askback.testing import Rehearsal

mcp = FastMCP("Folders")
FILES = {"/empty": [], "/photos": ["a.jpg", "b.jpg"]}


class Confirm(BaseModel):
    ok: bool


def list_files(path: str) -> list[str]:
    return FILES[path]


async def confirm_delete(path: str) -> Confirm | Elicit[Confirm]:
    if not list_files(path):
        return Confirm(ok=True)  # empty folder: no question, no round-trip
    return Elicit(f"{path} has files. Delete?", Confirm)


@mcp.tool()
async def delete_folder(path: str, confirm: Annotated[ElicitationResult[Confirm], Resolve(confirm_delete)]) -> str:
    match confirm:
        case AcceptedElicitation(data=Confirm(ok=True)):
            return f"deleted {path}"
        case AcceptedElicitation():
            return f"kept {path}"
        case DeclinedElicitation():
            return "declined"
        case CancelledElicitation():
            return "cancelled"


async def test_an_empty_folder_is_deleted_without_a_question(askback: Rehearsal) -> None:
    call = await askback.call(mcp, "delete_folder", {"path": "/empty"})
    assert (call.result, call.failed) == ("deleted /empty", False)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ({"ok": True}, "deleted /photos"),
        ({"ok": False}, "kept /photos"),
        (Decline(), "declined"),
        (Cancel(), "cancelled"),
    ],
)
async def test_each_outcome_reaches_the_body(askback: Rehearsal, answer: Any, outcome: str) -> None:
    call = await askback.call(mcp, "delete_folder", {"path": "/photos"}, {"/photos has files. Delete": answer})
    assert (call.result, call.failed) == (outcome, False)
    assert len(call.exchanges) == 1
