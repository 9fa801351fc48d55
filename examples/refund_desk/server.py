"""The server: a tool whose amount is computed from the order, and whose questions go to a person.

load_order -> refund_scope -> refund_amount  (the tool's `cents`)
                           -> ask_restock    (the tool's `restock`)
"""

from typing import Annotated

from fastmcp.exceptions import ToolError
from mcp.server.request_state import RequestStateSecurity
from pydantic import BaseModel, Field

from askback import AcceptedElicitation, Elicit, ElicitationResult, Resolve
from askback.integration import FastMCP

# Every process of the server has the same key, so that one can go on where another stopped. Keep a real one secret.
KEY = "only for this example, not secret"

mcp = FastMCP("Refund desk", request_state_security=RequestStateSecurity(keys=[KEY]))


class Order(BaseModel):
    """An order in the shop's records."""

    id: str
    cents_by_sku: dict[str, int]
    shipped: bool


class Scope(BaseModel):
    """How much of an order to refund."""

    full: bool = Field(description="Refund the whole order?")
    sku: str = Field(default="", description="If not, which line?")


class Restock(BaseModel):
    """Whether to sell the returned goods again."""

    restock: bool = Field(description="Put it back on the shelf?")


class Refund(BaseModel):
    """The receipt."""

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
    """The whole order if it has one line; otherwise, ask."""
    if len(order.cents_by_sku) == 1:
        return Scope(full=True)
    return Elicit(f"{order.id} has {', '.join(order.cents_by_sku)}. Refund all of it, or one line?", Scope)


async def refund_amount(
    order: Annotated[Order, Resolve(load_order)], scope: Annotated[Scope, Resolve(refund_scope)]
) -> int:
    """The price of the lines in scope. Without a scope there is no amount, and no refund."""
    return sum(order.cents_by_sku[sku] for sku in lines_in(scope, order))


async def ask_restock(
    order: Annotated[Order, Resolve(load_order)], scope: Annotated[Scope, Resolve(refund_scope)]
) -> Restock | Elicit[Restock]:
    """Ask about the goods, if they were shipped at all."""
    if not order.shipped:
        return Restock(restock=False)
    return Elicit(f"Put {' and '.join(lines_in(scope, order))} back on the shelf?", Restock)


def lines_in(scope: Scope, order: Order) -> list[str]:
    """The SKUs to refund. What a person typed is checked against the order."""
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
    # Without an answer about the goods, the customer still gets the money.
    restocked = isinstance(restock, AcceptedElicitation) and restock.data.restock
    return Refund(order_id=order_id, cents=cents, restocked=restocked)
