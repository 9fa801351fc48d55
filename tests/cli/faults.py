"""A server with everything that `askback check` finds, and next to each the same done right."""

import contextlib
import datetime as dt
import functools
import random
import secrets
import time
import uuid
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4 as new_id

from mcp_types import SamplingMessage, TextContent
from pydantic import BaseModel, Field

import askback
from askback import Elicit, Resolve, Sample
from askback.integration import FastMCP
from tests.cli import lending

mcp = FastMCP("Faults")
GENERATOR = random.Random(7)
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


class Ticket(BaseModel):
    ok: bool
    number: str = Field(default_factory=lambda: new_id().hex)
    at: float = Field(default_factory=time.time)
    copies: int = Field(default_factory=int)


def rolling(schema: dict[str, Any]) -> None:
    schema["title"] = str(next(COUNTER))


COUNTER = iter(range(1_000))


class Rolling(BaseModel):
    model_config = {"json_schema_extra": rolling}

    ok: bool


def log_in() -> Elicit[Login]:
    return Elicit("Who are you?", Login)


def constant_message() -> Elicit[Words]:
    return Elicit(PROMPT, Words)


def formatted_message(title: str) -> Elicit[Words]:
    text = "The key of {}" if title else "Nothing"
    text = text + "!"
    return Elicit(text.format(title), schema=Words)


def harmless_message(title: str) -> Elicit[Words]:
    shown = {"password": title}
    return Elicit(message=f"Delete {shown['password']}?", schema=Words)


def silenced_login() -> Elicit[Login]:  # askback: ignore[secret-in-form, changing-question]
    return Elicit("Who are you?", Login)


def silenced_message() -> Elicit[Words]:
    return Elicit(
        "Your token?",
        Words,
    )  # askback: ignore[secret-in-form]


def undeclared() -> Any:
    return Elicit("Nested?", Nested)


def not_a_model() -> Any:
    model = int
    return askback.Elicit[int]("A number?", model)


def unknowable(model: Annotated[Any, Resolve(lambda: Yes)]) -> Any:
    return Elicit("It depends.", model)


def clock() -> Elicit[Yes]:
    now = dt.datetime.now(dt.UTC)
    stamp: str = now.isoformat()
    return Elicit(f"It is {stamp}.", Yes)


def day() -> Elicit[Yes]:
    return Elicit("Today is %s" % dt.date.today(), Yes)  # noqa: UP031


def alias() -> Elicit[Yes]:
    return Elicit("Order " + str(new_id()), Yes)


def local_import() -> Elicit[Yes]:
    import os.path
    from secrets import token_hex as token_of
    from uuid import no_such_thing  # pyright: ignore

    import not_installed_anywhere  # pyright: ignore

    from .lending import borrow

    for each in (os.path, borrow, no_such_thing, not_installed_anywhere):
        assert each
    return Elicit("Order {}".format(token_of(4)), Yes)  # noqa: UP032


def drawn() -> Elicit[Yes]:
    parts = ["Lot"]
    parts.append(str(random.randint(1, 6)))
    return Elicit(" ".join(parts), Yes)


def seeded_once() -> Elicit[Yes]:
    return Elicit(f"Lot {GENERATOR.random()}", Yes)


def seeded_each_time(title: str) -> Elicit[Yes]:
    return Elicit(f"Lot {random.Random(title).random()} {time.strftime('%H', time.gmtime(0))}", Yes)


def formatted_clock() -> Elicit[Yes]:
    with_hour = [f"{number}" for number in (time.strftime("%H"),)]
    return Elicit(f"{with_hour}", Yes)


def within() -> Elicit[Yes]:
    with contextlib.nullcontext(time.perf_counter()) as now:
        print(now)  # noqa: T201
        with contextlib.nullcontext():
            return Elicit(f"{now}", Yes)


def worded(message: str) -> Elicit[Words]:
    return Elicit(f"{message} {new_id()}", Words) if message else worded(PROMPT)


async def worded_later(number: float) -> Elicit[Yes]:
    return Elicit(f"{number}", Yes)


def delegates() -> Elicit[Words]:
    return worded("Your PIN?")


async def delegates_later() -> Any:
    return await worded_later(random.random())


def empty_cell():
    def ask_later() -> Elicit[Yes]:
        return Elicit(later, Yes)

    if TYPE_CHECKING:
        later = ""
    return ask_later


def sampled() -> Sample:
    text = f"{id(object())}"
    return Sample([SamplingMessage(role="user", content=TextContent(type="text", text=text))], max_tokens=5)


def order_number() -> str:
    return uuid.uuid4().hex


def by_way_of(number: Annotated[str, Resolve(order_number)]) -> Elicit[Yes]:
    return Elicit(f"Order {number}?", Yes)


def answered(said: Annotated[Yes, Resolve(alias)]) -> Elicit[Yes]:
    return Elicit(f"Really {said.ok}?", Yes)


def ticket() -> Elicit[Ticket]:
    return Elicit("A ticket?", Ticket)


def rolls() -> Elicit[Rolling]:
    return Elicit("Again?", Rolling)


def silenced_clock() -> Elicit[Yes]:
    return Elicit(f"{secrets.token_hex()}", Yes)  # askback: ignore[changing-question]


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
        return Elicit(f"At {time.monotonic()}?", Yes)

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


@mcp.tool
def unaskable(
    a: Annotated[Any, Resolve(undeclared)],
    b: Annotated[Any, Resolve(not_a_model)],
    c: Annotated[Any, Resolve(unknowable)],
) -> str:
    return f"{a}{b}{c}"


@mcp.tool
def changing(
    title: str,
    a: Annotated[Yes, Resolve(clock)],
    b: Annotated[Yes, Resolve(day)],
    c: Annotated[Yes, Resolve(alias)],
    d: Annotated[Yes, Resolve(local_import)],
    e: Annotated[Yes, Resolve(drawn)],
    f: Annotated[Yes, Resolve(seeded_once)],
    g: Annotated[Yes, Resolve(seeded_each_time)],
    h: Annotated[Yes, Resolve(formatted_clock)],
    i: Annotated[Any, Resolve(sampled)],
    j: Annotated[Yes, Resolve(by_way_of)],
    k: Annotated[Yes, Resolve(answered)],
    l: Annotated[Ticket, Resolve(ticket)],  # noqa: E741
    m: Annotated[Rolling, Resolve(rolls)],
    n: Annotated[Yes, Resolve(silenced_clock)],
    o: Annotated[Yes, Resolve(ASKING)],
    p: Annotated[Yes, Resolve(ASKING.helper)],
    q: Annotated[Yes, Resolve(asks_by_another)],
    r: Annotated[Any, Resolve(lending.borrow)],
    s: Annotated[Any, Resolve(lambda: Elicit(f"{time.time()}", Yes))],
    u: Annotated[Any, Resolve(Empty)],
    v: Annotated[Yes, Resolve(within)],
    w: Annotated[Yes, Resolve(empty_cell())],
    x: Annotated[Words, Resolve(delegates)],
    y: Annotated[Yes, Resolve(delegates_later)],
) -> str:
    return f"{title}{a}{b}{c}{d}{e}{f}{g}{h}{i}{j}{k}{l}{m}{n}{o}{p}{q}{r}{s}{u}{v}{w}{x}{y}"


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
