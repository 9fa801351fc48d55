"""The server: a tool whose amount is worked out from the order, and whose questions go to a person.

load_order -> refund_scope -> refund_amount  (the tool's `cents`)
                           -> ask_restock    (the tool's `restock`)
"""

from typing import Annotated

from fastmcp.exceptions import ToolError
from mcp.server.request_state import RequestStateSecurity
from pydantic import BaseModel, Field

from askback import AcceptedElicitation, Elicit, ElicitationResult, Resolve
from askback.integration import FastMCP

# A key that every process of the server knows, so that one goes on where another stopped. A real one is a secret.
KEY = "known to all who read this example"

mcp = FastMCP("Refund desk", request_state_security=RequestStateSecurity(keys=[KEY]))


class Order(BaseModel):
    """An order as the shop's records have it."""

    id: str
    cents_by_sku: dict[str, int]
    shipped: bool


class Scope(BaseModel):
    """How much of an order is to be refunded."""

    full: bool = Field(description="Refund the whole order?")
    sku: str = Field(default="", description="If not, which line?")


class Restock(BaseModel):
    """What becomes of what comes back."""

    restock: bool = Field(description="Put it back on the shelf?")


class Refund(BaseModel):
    """What was done."""

    order_id: str
    cents: int
    restocked: bool


ORDERS = {
    "ORD-7001": Order(id="ORD-7001", cents_by_sku={"MUG": 1250}, shipped=False),
    "ORD-7002": Order(id="ORD-7002", cents_by_sku={"MUG": 1250, "LAMP": 4900}, shipped=True),
}


async def load_order(order_id: str) -> Order:
    """The order, from the shop's own records."""
    if order_id not in ORDERS:
        raise ToolError(f"There is no order {order_id}.")
    return ORDERS[order_id]


async def refund_scope(order: Annotated[Order, Resolve(load_order)]) -> Scope | Elicit[Scope]:
    """All of it where there is one line; otherwise somebody has to say."""
    if len(order.cents_by_sku) == 1:
        return Scope(full=True)
    return Elicit(f"{order.id} has {', '.join(order.cents_by_sku)}. Refund all of it, or one line?", Scope)


async def refund_amount(
    order: Annotated[Order, Resolve(load_order)], scope: Annotated[Scope, Resolve(refund_scope)]
) -> int:
    """What the lines in question cost. Without a scope there is no amount, and no refund."""
    return sum(order.cents_by_sku[sku] for sku in lines_in(scope, order))


async def ask_restock(
    order: Annotated[Order, Resolve(load_order)], scope: Annotated[Scope, Resolve(refund_scope)]
) -> Restock | Elicit[Restock]:
    """Ask what becomes of the goods, unless they never left."""
    if not order.shipped:
        return Restock(restock=False)
    return Elicit(f"Put {' and '.join(lines_in(scope, order))} back on the shelf?", Restock)


def lines_in(scope: Scope, order: Order) -> list[str]:
    """The SKUs to refund. What a person typed is checked against the order before it counts."""
    if scope.full:
        return list(order.cents_by_sku)
    if scope.sku not in order.cents_by_sku:
        raise ToolError(f"{order.id} has no line {scope.sku!r}.")
    return [scope.sku]


@mcp.tool
async def refund_order(
    order_id: str,
    reason: str,
    cents: Annotated[int, Resolve(refund_amount)],
    restock: Annotated[ElicitationResult[Restock], Resolve(ask_restock)],
) -> Refund:
    """Refund an order, or a line of it."""
    # A refusal to say what becomes of the goods is no reason to keep the money.
    restocked = isinstance(restock, AcceptedElicitation) and restock.data.restock
    return Refund(order_id=order_id, cents=cents, restocked=restocked)
