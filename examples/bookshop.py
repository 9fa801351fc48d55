"""A shop whose tools look things up, and ask before they backorder a book.

Each of the three tools adds a step: a value that is looked up, a value that depends on another, and a question that is
asked only when it matters. Whatever else a tool needs, the model sees one argument, the title.
"""

from typing import Annotated

import fastmcp
from pydantic import BaseModel, Field

from askback import Elicit, Resolve
from askback.integration import FastMCP
from examples.command_line import Options, expect, parser_for, run
from examples.conversation import Person, call

mcp = FastMCP("Bookshop")
INVENTORY = {"Dune": 7, "Neuromancer": 0}
lookups: list[str] = []


class Stock(BaseModel):
    """How many copies of a title the shop has."""

    title: str
    copies: int


class Backorder(BaseModel):
    """Whether a customer is willing to wait."""

    confirm: bool = Field(description="Order anyway and wait?")


async def check_stock(title: str) -> Stock:
    """Look it up; nothing the model says can change it."""
    lookups.append(title)
    return Stock(title=title, copies=INVENTORY.get(title, 0))


async def estimate_delivery(stock: Annotated[Stock, Resolve(check_stock)]) -> str:
    """Derive it from the value of another resolver."""
    return "tomorrow" if stock.copies > 0 else "in 2-3 weeks"


async def confirm_backorder(title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> Backorder | Elicit[Backorder]:
    """Ask, but only if the book is out of stock."""
    if stock.copies > 0:
        return Backorder(confirm=True)
    return Elicit(f"{title!r} is out of stock (2-3 weeks). Order anyway?", Backorder)


@mcp.tool
async def reserve_book(title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> str:
    """Reserve a copy of a book."""
    if stock.copies == 0:
        return f"{title!r} is out of stock."
    return f"Reserved {title!r} ({stock.copies - 1} copies left)."


@mcp.tool
async def promise_delivery(
    title: str, stock: Annotated[Stock, Resolve(check_stock)], delivery: Annotated[str, Resolve(estimate_delivery)]
) -> str:
    """Say when a book would arrive."""
    return f"{title!r} would arrive {delivery}; {stock.copies} copies are in stock."


@mcp.tool
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


async def story(options: Options) -> None:
    """Show what the model sees, then go through the three steps."""
    customer = Person({"confirm": True}, {"confirm": False}, "decline")
    async with fastmcp.Client(mcp, mode=options.mode, elicitation_handler=customer) as client:
        print(f"On protocol {client.protocol_version}")
        for tool in await client.list_tools():
            print(f"The model sees that {tool.name} takes: {', '.join(tool.input_schema['properties'])}")
            expect(list(tool.input_schema["properties"]), ["title"])

        print("\n1. The stock is looked up. A value that the client sends is ignored.")
        expect(await call(client, "reserve_book", title="Dune"), "Reserved 'Dune' (6 copies left).")
        made_up = await call(client, "reserve_book", title="Dune", stock={"title": "Dune", "copies": 100})
        expect(made_up, "Reserved 'Dune' (6 copies left).")

        print("\n2. The delivery depends on the stock. The tool needs both, and there is one lookup.")
        lookups.clear()
        promised = await call(client, "promise_delivery", title="Neuromancer")
        print(f"   lookups   {len(lookups)}")
        expect(
            (promised, lookups), ("'Neuromancer' would arrive in 2-3 weeks; 0 copies are in stock.", ["Neuromancer"])
        )

        print("\n3. The customer is asked, but only if the book is out of stock.")
        expect(await call(client, "order_book", title="Dune"), "Ordered 'Dune'.")
        expect(customer.asked, [])
        backordered = "Backordered 'Neuromancer'; it ships in 2-3 weeks."
        expect(await call(client, "order_book", title="Neuromancer"), backordered)
        expect(await call(client, "order_book", title="Neuromancer"), "No order placed.")
        refused = "failed: Resolver for parameter 'backorder' could not resolve: elicitation was decline. "
        expect((await call(client, "order_book", title="Neuromancer"))[: len(refused)], refused)
        expect(len(customer.asked), 3)


if __name__ == "__main__":
    run(parser_for("bookshop", __doc__), story)
