"""The server: a tool that pays an invoice, once somebody has approved it."""

from typing import Annotated

from fastmcp.exceptions import ToolError
from mcp.server.request_state import RequestStateSecurity
from pydantic import BaseModel, Field

from askback import Elicit, Resolve
from askback.integration import FastMCP

# Every process of the server has the same key, so that one can go on where another stopped. Keep a real one secret.
KEY = "only for this example, not secret"

mcp = FastMCP("Accounts", request_state_security=RequestStateSecurity(keys=[KEY], ttl=7 * 24 * 3600))
INVOICES = {"INV-31": "1,200 to the paper mill", "INV-32": "48,000 to a friend of the boss"}


class Approval(BaseModel):
    """Whether a person approves a payment."""

    approved: bool = Field(description="Pay it?")


async def ask_approval(number: str) -> Elicit[Approval]:
    """Ask someone who may spend money."""
    if number not in INVOICES:
        raise ToolError(f"There is no invoice {number}.")
    return Elicit(f"Pay {INVOICES[number]} for {number}?", Approval)


@mcp.tool
async def pay_invoice(number: str, approval: Annotated[Approval, Resolve(ask_approval)]) -> str:
    """Pay an invoice."""
    return f"Paid {INVOICES[number]}." if approval.approved else f"Did not pay {number}."
