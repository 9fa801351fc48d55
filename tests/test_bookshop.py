"""The bookshop of the SDK's Dependencies tutorial, step by step, with only its imports changed."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from askback import Elicit, ElicitationResult, Resolve
from askback.agents import Cancel, Decline
from askback.integration import FastMCP
from askback.testing import Rehearsal

INVENTORY = {"Dune": 7, "Neuromancer": 0}
lookups: list[str] = []


class Stock(BaseModel):
    title: str
    copies: int


class Backorder(BaseModel):
    confirm: bool = Field(description="Order anyway and wait?")


async def check_stock(title: str) -> Stock:
    lookups.append(title)
    return Stock(title=title, copies=INVENTORY.get(title, 0))


async def estimate_delivery(stock: Annotated[Stock, Resolve(check_stock)]) -> str:
    return "tomorrow" if stock.copies > 0 else "in 2-3 weeks"


async def confirm_backorder(
    title: str,
    stock: Annotated[Stock, Resolve(check_stock)],
) -> Backorder | Elicit[Backorder]:
    if stock.copies > 0:
        return Backorder(confirm=True)  # in stock: nothing to ask
    return Elicit(f"{title!r} is out of stock (2-3 weeks). Order anyway?", Backorder)


mcp = FastMCP("Bookshop")


@mcp.tool()
async def reserve_book(title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> str:
    """Reserve a copy of a book."""
    if stock.copies == 0:
        return f"{title!r} is out of stock."
    return f"Reserved {title!r} ({stock.copies - 1} copies left)."


@mcp.tool()
async def deliver_book(
    title: str,
    stock: Annotated[Stock, Resolve(check_stock)],
    delivery: Annotated[str, Resolve(estimate_delivery)],
) -> str:
    """Order a book from the shop."""
    if stock.copies == 0:
        return f"{title!r} is on backorder; it would arrive {delivery}."
    return f"Ordered {title!r}; it arrives {delivery}."


@mcp.tool()
async def order_book(
    title: str,
    stock: Annotated[Stock, Resolve(check_stock)],
    backorder: Annotated[Backorder, Resolve(confirm_backorder)],
) -> str:
    """Order a book from the shop."""
    if not backorder.confirm:
        return "No order placed."
    if stock.copies == 0:
        return f"Backordered {title!r}; it ships in 2-3 weeks."
    return f"Ordered {title!r}."


@mcp.tool()
async def suggest_book(
    title: str, backorder: Annotated[ElicitationResult[Backorder], Resolve(confirm_backorder)]
) -> str:
    """Order a book, or suggest another."""
    return backorder.action


async def test_a_resolver_fills_a_parameter(askback: Rehearsal) -> None:
    call = await askback.call(mcp, "reserve_book", {"title": "Dune"})
    assert (call.result, call.failed) == ("Reserved 'Dune' (6 copies left).", False)
    call = await askback.call(mcp, "reserve_book", {"title": "Neuromancer"})
    assert (call.result, call.failed) == ("'Neuromancer' is out of stock.", False)


async def test_the_model_is_told_only_of_its_own_argument(askback: Rehearsal) -> None:
    async with askback.connect(mcp) as client:
        told = {tool.name: list(tool.input_schema["properties"]) for tool in await client.list_tools()}
    assert told == {tool: ["title"] for tool in ("reserve_book", "deliver_book", "order_book", "suggest_book")}


async def test_two_consumers_share_one_lookup(askback: Rehearsal) -> None:
    lookups.clear()
    call = await askback.call(mcp, "deliver_book", {"title": "Dune"})
    assert (call.result, call.failed) == ("Ordered 'Dune'; it arrives tomorrow.", False)
    assert lookups == ["Dune"]


async def test_nobody_is_asked_what_can_be_looked_up(askback: Rehearsal) -> None:
    call = await askback.call(mcp, "order_book", {"title": "Dune"})
    assert (call.result, call.failed, call.exchanges) == ("Ordered 'Dune'.", False, [])


def refused(action: str, done: str) -> str:
    return (
        f"Resolver for parameter 'backorder' could not resolve: elicitation was {action}. The user {done} the question "
        "\"'Neuromancer' is out of stock (2-3 weeks). Order anyway?\"; calling the tool again with the same arguments "
        "will not change that."
    )


@pytest.mark.parametrize(
    ("answer", "result", "failed"),
    [
        ({"confirm": True}, "Backordered 'Neuromancer'; it ships in 2-3 weeks.", False),
        ({"confirm": False}, "No order placed.", False),
        (Decline(), refused("decline", "declined"), True),
        (Cancel(), refused("cancel", "cancelled"), True),
    ],
)
async def test_a_person_decides_what_cannot(askback: Rehearsal, answer: Any, result: str, failed: bool) -> None:
    call = await askback.call(mcp, "order_book", {"title": "Neuromancer"}, {"Order anyway": answer})
    assert (call.result, call.failed) == (result, failed)
    (exchange,) = call.exchanges
    assert exchange.question.message == "'Neuromancer' is out of stock (2-3 weeks). Order anyway?"


@pytest.mark.parametrize(
    ("answer", "action"), [({"confirm": True}, "accept"), (Decline(), "decline"), (Cancel(), "cancel")]
)
async def test_a_tool_may_take_the_outcome_instead(askback: Rehearsal, answer: Any, action: str) -> None:
    call = await askback.call(mcp, "suggest_book", {"title": "Neuromancer"}, {"Order anyway": answer})
    assert (call.result, call.failed) == (action, False)
