"""The bookshop of the SDK's Dependencies tutorial, step by step, with only its imports changed."""

from typing import Annotated

import pytest
from pydantic import BaseModel, Field

from askback import Elicit, ElicitationResult, Resolve
from askback.integration import FastMCP
from tests.conversation import Generation, Person, call, properties

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


async def test_a_resolver_fills_a_parameter(generation: Generation) -> None:
    assert await call(mcp, generation, "reserve_book", title="Dune") == "Reserved 'Dune' (6 copies left)."
    assert await call(mcp, generation, "reserve_book", title="Neuromancer") == "'Neuromancer' is out of stock."


async def test_the_model_is_told_only_of_its_own_argument() -> None:
    for tool in ("reserve_book", "deliver_book", "order_book"):
        assert list(await properties(mcp, tool)) == ["title"]


async def test_two_consumers_share_one_lookup(generation: Generation) -> None:
    lookups.clear()
    assert await call(mcp, generation, "deliver_book", title="Dune") == "Ordered 'Dune'; it arrives tomorrow."
    assert lookups == ["Dune"]


async def test_nobody_is_asked_what_can_be_looked_up(generation: Generation) -> None:
    person = Person()
    assert await call(mcp, generation, "order_book", person=person, title="Dune") == "Ordered 'Dune'."
    assert person.asked == []


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ({"confirm": True}, "Backordered 'Neuromancer'; it ships in 2-3 weeks."),
        ({"confirm": False}, "No order placed."),
        ("decline", "failed: Resolver for parameter 'backorder' could not resolve: elicitation was decline"),
        ("cancel", "failed: Resolver for parameter 'backorder' could not resolve: elicitation was cancel"),
    ],
)
async def test_a_person_decides_what_cannot(generation: Generation, reply: dict[str, bool], outcome: str) -> None:
    person = Person({"Order anyway?": reply})
    assert await call(mcp, generation, "order_book", person=person, title="Neuromancer") == outcome
    assert person.asked == ["'Neuromancer' is out of stock (2-3 weeks). Order anyway?"]


@pytest.mark.parametrize(
    ("reply", "action"), [({"confirm": True}, "accept"), ("decline", "decline"), ("cancel", "cancel")]
)
async def test_a_tool_may_take_the_outcome_instead(generation: Generation, reply: dict[str, bool], action: str) -> None:
    person = Person({"Order anyway?": reply})
    assert await call(mcp, generation, "suggest_book", person=person, title="Neuromancer") == action
