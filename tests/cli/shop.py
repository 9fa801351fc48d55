"""A server with a graph worth drawing: sharing, every kind of question, outcomes, and names that are too long."""

from typing import Annotated, Any, Literal

from fastmcp import Context
from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel, Field

from askback import Elicit, ElicitationResult, ListRoots, Resolve, Sample
from askback.integration import FastMCP

mcp = FastMCP("Shop")
NOT_A_SERVER = {"Dune": 7}


class Backorder(BaseModel):
    confirm: bool
    tags: list[Literal["gift", "urgent"]] = Field(default_factory=list[Literal["gift", "urgent"]])


class Address(BaseModel):
    street: str
    country: Literal["Germany", "France", "The Independent and Sovereign Republic of Somewhere"] = "Germany"
    email: str = Field(json_schema_extra={"format": "email"})


class Gift(BaseModel):
    wrap: bool


def check_stock(title: str) -> int:
    return len(title)


def customer(ctx: Context) -> str:
    return ctx.request_id


def price(stock: Annotated[int, Resolve(check_stock)], who: Annotated[str, Resolve(customer)]) -> int:
    return stock * len(who)


async def confirm_backorder(title: str, stock: Annotated[int, Resolve(check_stock)]) -> Backorder | Elicit[Backorder]:
    return Elicit(f"{title!r} is out of stock ({stock}). Order anyway?", Backorder)


async def shipping_address(
    who: Annotated[str, Resolve(customer)],
    backorder: Annotated[ElicitationResult[Backorder], Resolve(confirm_backorder)],
) -> Address | Elicit[Address]:
    return Elicit(f"Where to, {who}? {backorder.action}", Address)


def folders() -> ListRoots:
    return ListRoots()


def opinion(title: str, roots: Annotated[ListRootsResult, Resolve(folders)]) -> Sample:
    text = f"Is {title} good? {len(roots.roots)}"
    return Sample([SamplingMessage(role="user", content=TextContent(type="text", text=text))], max_tokens=5)


def gift(address: Annotated[Address, Resolve(shipping_address)], cost: Annotated[int, Resolve(price)]) -> Any:
    return Elicit(f"Wrap it for {cost}, to {address.country}?", Gift)


def a_resolver_whose_name_is_so_much_longer_than_anybody_would_ever_want_to_read_or_write(
    stock: Annotated[int, Resolve(check_stock)],
):
    return stock


@mcp.tool
async def order_book(
    title: str,
    copies: int,
    cost: Annotated[int, Resolve(price)],
    backorder: Annotated[Backorder, Resolve(confirm_backorder)],
    address: Annotated[Address, Resolve(shipping_address)],
    wrapping: Annotated[Gift, Resolve(gift)],
    review: Annotated[CreateMessageResult, Resolve(opinion)],
    a_parameter_with_a_name_that_does_not_fit_into_one_line: Annotated[
        int, Resolve(a_resolver_whose_name_is_so_much_longer_than_anybody_would_ever_want_to_read_or_write)
    ],
) -> str:
    return f"{title} {copies} {cost} {backorder} {address} {wrapping} {review} " + str(
        a_parameter_with_a_name_that_does_not_fit_into_one_line
    )


@mcp.tool
def look_up(title: str, stock: Annotated[int, Resolve(check_stock)]) -> str:
    return f"{title}: {stock}"


@mcp.tool
def hello() -> str:
    return "hello"
