"""Functions whose annotations are strings when they are registered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel

from askback import Elicit, Resolve
from askback.integration import resolved

if TYPE_CHECKING:
    from nowhere import Missing  # pyright: ignore[reportMissingImports, reportUnknownVariableType]


class Stock(BaseModel):
    copies: int


def check_stock(title: str) -> Stock:
    return Stock(copies=len(title))


async def order(title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> str:
    return f"{stock.copies} of {title}"


def make_closure(resolver: Any) -> Any:
    async def order_by(title: str, found: Annotated[Any, Resolve(resolver)]) -> str:
        return f"{found} {resolver.__name__}"

    return order_by


def register_locally(register: Any) -> None:
    """Everything the annotations name is local to this function."""

    class Shelf(BaseModel):
        name: str

    class Sure(BaseModel):
        ok: bool

    def find_shelf(title: str) -> Shelf:
        return Shelf(name=title[0])

    async def make_sure(shelf: Annotated[Shelf, Resolve(find_shelf)]) -> Sure | Elicit[Sure]:
        return Elicit(f"Shelf {shelf.name}?", Sure)

    @register
    async def order_local(
        title: str, shelf: Annotated[Shelf, Resolve(find_shelf)], sure: Annotated[Sure, Resolve(make_sure)]
    ) -> str:
        return f"{shelf.name} {sure.ok}"

    class Desk:
        @staticmethod
        def nested() -> Any:
            async def order_nested(shelf: Annotated[Shelf, Resolve(find_shelf)], title: str = "Emma") -> str:
                return shelf.name

            return order_nested

    register(Desk.nested())


def register_for_others(register: Any) -> None:
    """A function that stands at the top of the module, with a name that only its registrar knows."""
    Anything = Stock  # noqa: N806

    register(named_by_the_registrar)
    del Anything


async def named_by_the_registrar(
    title: str,
    found: Annotated[Anything, Resolve(check_stock)],  # noqa: F821  # pyright: ignore
) -> str:
    return f"{found.copies}"


async def unreadable_marker(title: str, stock: Annotated[Missing, Resolve(check_stock)]) -> str:
    return title


async def unreadable_argument(title: Missing) -> str:
    return title


async def unreadable_return(title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> Missing:
    return title


def unreadable_resolver(title: Missing) -> Stock:
    raise AssertionError("never registered")


async def with_unreadable_resolver(title: str, stock: Annotated[Stock, Resolve(unreadable_resolver)]) -> str:
    return title


def register_in_a_class_body(register: Any) -> None:
    class Shop:
        def check(title: str) -> int:  # noqa: N805  # pyright: ignore
            return len(title)

        @register
        @resolved
        async def order_in_class(title: str, copies: Annotated[int, Resolve(check)]) -> str:  # noqa: N805  # pyright: ignore
            return f"{copies}"

    del Shop
