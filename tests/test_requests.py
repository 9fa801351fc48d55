"""2025-11-25: a question is a request of its own, while the call waits."""

from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from typing import Annotated, Any

import anyio
import pytest
from fastmcp.client.transports import FastMCPTransport
from fastmcp.exceptions import ToolError
from mcp import ClientSession
from mcp_types import (
    CreateMessageResult,
    ElicitResult,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel

from askback import Elicit, ElicitationResult, Resolve, Sample
from askback.integration import FastMCP
from tests.conversation import Person, accept, call, connect, said


class Sure(BaseModel):
    ok: bool


@asynccontextmanager
async def sdk_session(server: FastMCP[Any], answer: Any) -> AsyncGenerator[ClientSession]:
    """The SDK's client, which sends whatever its callback returns."""
    async with FastMCPTransport(server).connect_session(elicitation_callback=answer) as session:
        await session.initialize()
        yield session


class Slow(Person):
    """Takes a while to answer, and must not be disturbed meanwhile."""

    busy = False

    async def __call__(self, message: str, *rest: Any) -> Any:
        assert not self.busy, "two questions at once"
        self.busy = True
        await anyio.sleep(0.01)
        self.busy = False
        return await super().__call__(message, *rest)


async def test_people_are_asked_one_question_at_a_time_in_declaration_order() -> None:
    mcp = FastMCP("shop")
    last_is_ready = anyio.Event()

    async def ask_first() -> Elicit[Sure]:
        await last_is_ready.wait()
        return Elicit("First?", Sure)

    async def ask_second(first: Annotated[Sure, Resolve(ask_first)]) -> Elicit[Sure]:
        return Elicit("Second?", Sure)

    async def look_up() -> int:
        return 1

    async def third() -> Elicit[Sure]:
        return Elicit("Third?", Sure)

    def ask_third(found: Annotated[int, Resolve(look_up)]) -> Awaitable[Elicit[Sure]]:
        return third()

    async def ask_fourth() -> Any:
        last_is_ready.set()
        return Elicit("Fourth?", Sure)

    @mcp.tool
    async def ask_all(
        second: Annotated[Sure, Resolve(ask_second)],
        third: Annotated[Sure, Resolve(ask_third)],
        fourth: Annotated[Sure, Resolve(ask_fourth)],
        first: Annotated[Sure, Resolve(ask_first)],
    ) -> str:
        return "asked"

    person = Slow({"?": {"ok": True}})
    assert await call(mcp, "legacy", "ask_all", person=person) == "asked"
    assert person.asked == ["First?", "Second?", "Third?", "Fourth?"]


async def test_a_question_that_was_not_announced_waits_for_its_turn_too() -> None:
    mcp = FastMCP("shop")
    asking = anyio.Event()

    async def ask_first() -> str:
        await asking.wait()
        return Elicit("First?", Sure)  # pyright: ignore

    async def ask_second() -> Elicit[Sure]:
        return Elicit("Second?", Sure)

    @mcp.tool
    async def ask_all(first: Annotated[Any, Resolve(ask_first)], second: Annotated[Sure, Resolve(ask_second)]) -> str:
        return "asked"

    class Asked(Slow):
        async def __call__(self, message: str, *rest: Any) -> Any:
            asking.set()
            return await super().__call__(message, *rest)

    person = Asked({"?": {"ok": True}})
    assert await call(mcp, "legacy", "ask_all", person=person) == "asked"
    assert person.asked == ["Second?", "First?"]


async def test_a_question_does_not_wait_for_what_asks_nobody() -> None:
    mcp = FastMCP("shop")
    answered = anyio.Event()

    async def slow_lookup() -> int:
        await answered.wait()
        return 3

    async def ask() -> Elicit[Sure]:
        return Elicit("Sure?", Sure)

    @mcp.tool
    async def buy(count: Annotated[int, Resolve(slow_lookup)], sure: Annotated[Sure, Resolve(ask)]) -> str:
        return f"{count}"

    class Answers(Person):
        async def __call__(self, *args: Any) -> Any:
            answered.set()
            return await super().__call__(*args)

    assert await call(mcp, "legacy", "buy", person=Answers({"Sure?": {"ok": True}})) == "3"


async def test_what_needs_no_person_does_not_wait_for_one() -> None:
    mcp = FastMCP("shop")
    sampled, looked_up = anyio.Event(), anyio.Event()

    async def ask() -> Elicit[Sure]:
        return Elicit("Sure?", Sure)

    async def sample() -> Sample:
        return Sample([SamplingMessage(role="user", content=TextContent(text="Well?"))], max_tokens=5)

    async def look_up(sampled: Annotated[CreateMessageResult, Resolve(sample)]) -> int:
        looked_up.set()
        return 1

    @mcp.tool
    async def buy(sure: Annotated[Sure, Resolve(ask)], found: Annotated[int, Resolve(look_up)]) -> str:
        return f"{sure.ok} {found}"

    async def person(*_: Any) -> Any:
        await looked_up.wait()
        return {"ok": True}

    async def model(*_: Any) -> str:
        sampled.set()
        return "well"

    async with connect(mcp, "legacy", person, sampling_handler=model) as client:
        assert said(await client.call_tool("buy")) == "True 1"


async def test_after_a_decline_that_ends_the_call_nobody_is_asked_anything_more() -> None:
    mcp = FastMCP("shop")

    def asks(message: str) -> Any:
        async def ask() -> Elicit[Sure]:
            return Elicit(message, Sure)

        return ask

    @mcp.tool
    async def buy(
        first: Annotated[ElicitationResult[Sure], Resolve(asks("First?"))],
        second: Annotated[Sure, Resolve(asks("Second?"))],
        third: Annotated[Sure, Resolve(asks("Third?"))],
        fourth: Annotated[Sure, Resolve(asks("Fourth?"))],
    ) -> str:
        raise AssertionError("somebody declined")

    person = Slow({"First?": "decline", "Second?": "decline"})
    sentence = "failed: Resolver for parameter 'second' could not resolve: elicitation was decline"
    assert await call(mcp, "legacy", "buy", person=person) == sentence
    assert person.asked == ["First?", "Second?"]


async def test_a_failure_withdraws_an_open_question() -> None:
    mcp = FastMCP("shop")
    asked, withdrawn = anyio.Event(), anyio.Event()

    async def ask() -> Elicit[Sure]:
        return Elicit("Sure?", Sure)

    async def fails() -> int:
        await asked.wait()
        raise ToolError("no such book")

    @mcp.tool
    async def buy(sure: Annotated[Sure, Resolve(ask)], found: Annotated[int, Resolve(fails)]) -> str:
        raise AssertionError("a resolver failed")

    async def person(*_: Any) -> Any:
        try:
            asked.set()
            await anyio.sleep_forever()
        finally:
            withdrawn.set()

    async with connect(mcp, "legacy", person) as client:
        result = await client.call_tool("buy", raise_on_error=False)
        assert said(result) == "failed: no such book"
        with anyio.fail_after(10):
            await withdrawn.wait()


WRONG: list[tuple[Any, str]] = [
    (ElicitResult(action="accept"), "the answer was accepted without content"),
    (accept(ok="perhaps"), "the accepted content does not fit the question"),
]


@pytest.mark.parametrize(("response", "sentence"), WRONG)
async def test_a_response_that_does_not_answer_is_one_stable_sentence(response: Any, sentence: str) -> None:
    mcp = FastMCP("shop", mask_error_details=True)

    async def ask() -> Elicit[Sure]:
        return Elicit("Sure?", Sure)

    @mcp.tool
    async def buy(sure: Annotated[Sure, Resolve(ask)]) -> str:
        raise AssertionError("nobody answered")

    async def answer(context: Any, params: Any) -> Any:
        return response

    async with sdk_session(mcp, answer) as session:
        assert said(await session.call_tool("buy", {})) == f"failed: Resolver 'ask': {sentence}"


async def test_a_client_that_fails_to_answer_is_an_error_of_the_tool() -> None:
    mcp = FastMCP("shop")

    async def ask() -> Elicit[Sure]:
        return Elicit("Sure?", Sure)

    @mcp.tool
    async def buy(sure: Annotated[Sure, Resolve(ask)]) -> str:
        raise AssertionError("nobody answered")

    async def person(*_: Any) -> Any:
        raise RuntimeError("the window is closed")

    async with connect(mcp, "legacy", person) as client:
        result = await client.call_tool("buy", raise_on_error=False)
    assert said(result) == "failed: Error calling tool 'buy': the window is closed"


async def test_the_sdks_client_is_served_too() -> None:
    mcp = FastMCP("shop")

    async def ask() -> Elicit[Sure]:
        return Elicit("Sure?", Sure)

    @mcp.tool
    async def buy(sure: Annotated[Sure, Resolve(ask)]) -> str:
        return f"{sure.ok}"

    async def answer(context: Any, params: Any) -> ElicitResult:
        return accept(ok=True)

    async with sdk_session(mcp, answer) as session:
        assert said(await session.call_tool("buy", {})) == "True"
