"""A server with everything that `askback check` finds, and next to each the same done right."""

import functools
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

import askback
from askback import Elicit, Resolve
from askback.integration import FastMCP
from tests.cli import lending

mcp = FastMCP("Faults")
PROMPT = "Your password, please."


class Yes(BaseModel):
    ok: bool


class Words(BaseModel):
    words: str


class Login(BaseModel):
    user: str
    password: str
    code: str = Field(title="Card number")


class Nested(BaseModel):
    inner: Yes


def log_in() -> Elicit[Login]:
    return Elicit("Who are you?", Login)


def constant_message() -> Elicit[Words]:
    return Elicit(PROMPT, Words)


def formatted_message(title: str) -> Elicit[Words]:
    text = "The key of {}" if title else "Nothing"
    text = text + "!"
    return Elicit(text.format(title), schema=Words)


def harmless_message(title: str) -> Elicit[Words]:
    shown: dict[str, str] = {}
    shown["password"] = title
    return Elicit(message=f"Delete {shown['password']}?", schema=Words)


def silenced_login() -> Elicit[Login]:  # askback: ignore[secret-in-form, unaskable-form]
    return Elicit("Who are you?", Login)


def silenced_message() -> Elicit[Words]:
    return Elicit(
        "Your token?",
        Words,
    )  # askback: ignore[secret-in-form]


def undeclared() -> Any:
    return Elicit("Nested?", Nested)


def not_a_model() -> Any:
    return askback.Elicit[int]("A number?", int)


def unknowable(model: Annotated[Any, Resolve(lambda: Yes)]) -> Any:
    return Elicit("It depends.", model)


def empty_cell():
    def ask_later() -> Elicit[Yes]:
        return Elicit(later, Yes)

    if TYPE_CHECKING:
        later = ""
    return ask_later


def asker(question: str):
    def ask() -> Elicit[Yes]:
        return Elicit(question, Yes)

    return ask


def looker(value: int):
    def look() -> int:
        return value

    return look


first, second = asker("One?"), asker("Two?")


def partly(question: str) -> Elicit[Yes]:
    return Elicit(question, Yes)


class Asking:
    def __call__(self) -> Elicit[Yes]:
        return Elicit("An instance?", Yes)

    text = "A method?"

    def helper(self) -> Elicit[Yes]:
        return Elicit(ASKING.text, Yes)


class Empty:
    pass


ASKING = Asking()


def never_used() -> Elicit[Yes]:
    return helper()


def never_used_either(said: Annotated[Yes, Resolve(never_used)]) -> bool:
    return said.ok


def silenced_unused() -> Elicit[Yes]:  # askback: ignore[unreached-resolver]
    return Elicit("Never asked.", Yes)


def helper() -> Elicit[Yes]:
    return Elicit("Asked by another.", Yes)


def asks_by_another() -> Elicit[Yes]:
    def inner() -> Elicit[Yes]:
        return helper() if plain_function() else unreadable_too(3)

    return inner()


def unreadable() -> "NoSuchName":  # noqa: F821  # pyright: ignore
    return None


def unreadable_too(parameter: "NoSuchName") -> Any:  # noqa: F821  # pyright: ignore
    return parameter


def plain_function() -> int:
    return 3


@mcp.tool
def secret(
    title: str,
    a: Annotated[Login, Resolve(log_in)],
    b: Annotated[Words, Resolve(constant_message)],
    c: Annotated[Words, Resolve(formatted_message)],
    d: Annotated[Words, Resolve(harmless_message)],
    e: Annotated[Login, Resolve(silenced_login)],
    f: Annotated[Words, Resolve(silenced_message)],
) -> str:
    return f"{title}{a}{b}{c}{d}{e}{f}"


@mcp.tool
def secret_again(a: Annotated[Login, Resolve(log_in)]) -> str:
    return f"{a}"


def may_be_text() -> str | Elicit[Yes]:
    return "certainly"


def after_text(text: Annotated[str, Resolve(may_be_text)]) -> str:
    return text


@mcp.tool
def doubtful(a: Annotated[str, Resolve(may_be_text)], b: Annotated[str, Resolve(after_text)]) -> str:
    return f"{a}{b}"


@mcp.tool
def unaskable(
    a: Annotated[Any, Resolve(undeclared)],
    b: Annotated[Any, Resolve(not_a_model)],
    c: Annotated[Any, Resolve(unknowable)],
) -> str:
    return f"{a}{b}{c}"


@mcp.tool
def reaching(
    a: Annotated[Yes, Resolve(ASKING)],
    b: Annotated[Yes, Resolve(ASKING.helper)],
    c: Annotated[Yes, Resolve(asks_by_another)],
    d: Annotated[Any, Resolve(lending.borrow)],
    e: Annotated[Any, Resolve(lambda: Elicit("Your token?", Words))],
    f: Annotated[Any, Resolve(Empty)],
    g: Annotated[Yes, Resolve(empty_cell())],
) -> str:
    return f"{a}{b}{c}{d}{e}{f}{g}"


@mcp.tool
def colliding(
    a: Annotated[Yes, Resolve(first)],
    b: Annotated[Yes, Resolve(second)],
    c: Annotated[int, Resolve(looker(1))],
    d: Annotated[int, Resolve(looker(2))],
    e: Annotated[Yes, Resolve(functools.partial(partly, question="One?"))],
    f: Annotated[Yes, Resolve(functools.partial(partly, question="Two?"))],
) -> str:
    return f"{a}{b}{c}{d}{e}{f}"
