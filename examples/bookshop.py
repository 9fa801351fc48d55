"""A shop whose tool looks up its stock, and asks before it backorders a book.

The model is told of one argument, the title. The stock comes from the shop's own records, and the confirmation from a
person, who is asked only when it matters. The same server answers both protocol generations.
"""

import asyncio
import logging
from typing import Annotated, Any, Literal

import fastmcp
from fastmcp.client.elicitation import ElicitResult
from pydantic import BaseModel, Field

from askback import Elicit, Resolve
from askback.integration import FastMCP

mcp = FastMCP("Bookshop")
INVENTORY = {"Dune": 7, "Neuromancer": 0}


class Stock(BaseModel):
    """What the shop has of a title."""

    title: str
    copies: int


class Backorder(BaseModel):
    """What a customer says about waiting."""

    confirm: bool = Field(description="Order anyway and wait?")


async def check_stock(title: str) -> Stock:
    """Look it up: nothing the model says can change it."""
    return Stock(title=title, copies=INVENTORY.get(title, 0))


async def confirm_backorder(title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> Backorder | Elicit[Backorder]:
    """Ask, but only where there is something to ask."""
    if stock.copies > 0:
        return Backorder(confirm=True)
    return Elicit(f"{title!r} is out of stock (2-3 weeks). Order anyway?", Backorder)


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


class Customer:
    """Somebody at the client, with one thing to say."""

    def __init__(self, answer: bool | None) -> None:
        self.answer = answer

    async def __call__(self, message: str, *_: Any) -> Any:
        """Hear a question out, and answer it."""
        said = "(declines)" if self.answer is None else f"confirm={self.answer}"
        print(f"      asked     {message}")
        print(f"      answered  {said}")
        return ElicitResult(action="decline") if self.answer is None else {"confirm": self.answer}


async def visit(mode: Literal["auto", "legacy"]) -> None:
    """Order four times over one connection generation."""
    print(f"\n{'2026-07-28' if mode == 'auto' else '2025-11-25'}")
    orders = [("Dune", True), ("Neuromancer", True), ("Neuromancer", False), ("Neuromancer", None)]
    for title, answer in orders:
        async with fastmcp.Client(mcp, mode=mode, elicitation_handler=Customer(answer)) as client:
            print(f"   order_book(title={title!r})")
            result = await client.call_tool("order_book", {"title": title}, raise_on_error=False)
            print(f"      {'failed' if result.is_error else 'said  '}    {getattr(result.content[0], 'text', '')}")


async def main() -> None:
    """Show what the model is told, then order on both generations."""
    logging.getLogger("fastmcp").setLevel(logging.CRITICAL)
    async with fastmcp.Client(mcp) as client:
        (tool,) = await client.list_tools()
    print(f"The model is told that {tool.name} takes: {', '.join(tool.input_schema['properties'])}")
    await visit("auto")
    await visit("legacy")


if __name__ == "__main__":
    asyncio.run(main())
