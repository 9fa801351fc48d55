"""The server that agents are measured with: one tool that asks nothing, and one with a question."""

from typing import Annotated

from pydantic import BaseModel

from askback import Elicit, Resolve
from askback.integration import FastMCP


class Confirm(BaseModel):
    """The form of the question."""

    confirm: bool


async def ask(title: str) -> Elicit[Confirm]:
    """The question."""
    return Elicit(f"Order {title}?", Confirm)


mcp = FastMCP("Bookshop")


@mcp.tool
async def plain(title: str) -> str:
    """A tool that asks nothing."""
    return title


@mcp.tool
async def order(title: str, sure: Annotated[Confirm, Resolve(ask)]) -> str:
    """A tool with one question."""
    return f"{title} {sure.confirm}"
