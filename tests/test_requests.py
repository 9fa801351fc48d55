"""2025-11-25: a question is a request of its own, while the call waits."""

from collections.abc import Awaitable, Mapping
from typing import Annotated, Any

import anyio
import fastmcp
import pytest
from fastmcp.client.transports import FastMCPTransport
from fastmcp.exceptions import ToolError
from mcp_types import (
    CreateMessageResult,
    ElicitResult,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel

from askback import Elicit, ElicitationResult, Resolve, Sample
from askback.agents import Accept, Answer, Decline, Question
from askback.integration import FastMCP
from askback.testing import Rehearsal
from tests.conversation import accept, said

pytestmark = pytest.mark.askback("2025-11-25")


class Sure(BaseModel):
    ok: bool


async def ask() -> Elicit[Sure]:
    return Elicit("Sure?", Sure)


class OneAtATime:
    """Takes a while to answer, and must not be disturbed meanwhile."""

    def __init__(self, answers: Mapping[str, Answer] | None = None) -> None:
        self.answers = answers or {}
        self.busy = False

    async def __call__(self, ctx: None, question: Question) -> Answer:
        assert not self.busy, "two questions at once"
        self.busy = True
        await anyio.sleep(0.01)
        self.busy = False
        return self.answers.get(question.message, Accept(Sure(ok=True)))


async def test_people_are_asked_one_question_at_a_time_in_declaration_order(askback: Rehearsal) -> None:
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

    async with askback.connect(mcp, OneAtATime()) as client:
        assert (await client.call_tool("ask_all")).data == "asked"
    assert client.messages == ["First?", "Second?", "Third?", "Fourth?"]


async def test_a_question_that_was_not_announced_waits_for_its_turn_too(askback: Rehearsal) -> None:
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

    one_at_a_time = OneAtATime()

    async def person(ctx: None, question: Question) -> Answer:
        asking.set()
        return await one_at_a_time(ctx, question)

    async with askback.connect(mcp, person) as client:
        assert (await client.call_tool("ask_all")).data == "asked"
    assert client.messages == ["Second?", "First?"]


async def test_a_question_does_not_wait_for_what_asks_nobody(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    answered = anyio.Event()

    async def slow_lookup() -> int:
        await answered.wait()
        return 3

    @mcp.tool
    async def buy(count: Annotated[int, Resolve(slow_lookup)], sure: Annotated[Sure, Resolve(ask)]) -> str:
        return f"{count}"

    def person(ctx: None, question: Question) -> Accept:
        answered.set()
        return Accept(Sure(ok=True))

    call = await askback.call(mcp, "buy", {}, person)
    assert (call.result, call.failed) == ("3", False)


async def test_what_needs_no_person_does_not_wait_for_one(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    looked_up = anyio.Event()

    async def sample() -> Sample:
        return Sample([SamplingMessage(role="user", content=TextContent(text="Well?"))], max_tokens=5)

    async def look_up(sampled: Annotated[CreateMessageResult, Resolve(sample)]) -> int:
        looked_up.set()
        return 1

    @mcp.tool
    async def buy(sure: Annotated[Sure, Resolve(ask)], found: Annotated[int, Resolve(look_up)]) -> str:
        return f"{sure.ok} {found}"

    async def client(ctx: None, question: Question) -> Accept:
        if question.kind == "sampling":
            return Accept("well")
        await looked_up.wait()
        return Accept(Sure(ok=True))

    call = await askback.call(mcp, "buy", {}, client)
    assert (call.result, call.failed) == ("True 1", False)


async def test_after_a_decline_that_ends_the_call_nobody_is_asked_anything_more(askback: Rehearsal) -> None:
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

    person = OneAtATime({"First?": Decline(), "Second?": Decline()})
    async with askback.connect(mcp, person) as client:
        with pytest.raises(
            ToolError,
            match="^Resolver for parameter 'second' could not resolve: elicitation was decline[.] ",
        ):
            await client.call_tool("buy")
    assert client.messages == ["First?", "Second?"]


async def test_a_failure_withdraws_an_open_question(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    asked, withdrawn = anyio.Event(), anyio.Event()

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

    async with askback.connect(mcp, person) as client:
        with pytest.raises(ToolError, match="^no such book$"):
            await client.call_tool("buy")
        with anyio.fail_after(10):
            await withdrawn.wait()


WRONG: list[tuple[Any, str]] = [
    (ElicitResult(action="accept"), "the answer was accepted without content"),
    (accept(ok="perhaps"), "the accepted content does not fit the question"),
]


@pytest.mark.parametrize(("response", "sentence"), WRONG)
async def test_a_response_that_does_not_answer_is_one_stable_sentence(
    askback: Rehearsal, response: Any, sentence: str
) -> None:
    mcp = FastMCP("shop", mask_error_details=True)

    @mcp.tool
    async def buy(sure: Annotated[Sure, Resolve(ask)]) -> str:
        raise AssertionError("nobody answered")

    call = await askback.call(mcp, "buy", {}, {"Sure": response})
    assert (call.result, call.failed) == (f"Resolver 'ask': {sentence}", True)


async def test_a_client_that_fails_to_answer_is_an_error_of_the_tool(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")

    @mcp.tool
    async def buy(sure: Annotated[Sure, Resolve(ask)]) -> str:
        raise AssertionError("nobody answered")

    async def person(*_: Any) -> Any:
        raise RuntimeError("the window is closed")

    async with fastmcp.Client(mcp, mode=askback.mode, elicitation_handler=person) as client:
        with pytest.raises(ToolError, match="^Error calling tool 'buy': the window is closed$"):
            await client.call_tool("buy")


async def test_the_sdks_client_is_served_too() -> None:
    mcp = FastMCP("shop")

    @mcp.tool
    async def buy(sure: Annotated[Sure, Resolve(ask)]) -> str:
        return f"{sure.ok}"

    async def answer(context: Any, params: Any) -> ElicitResult:
        return accept(ok=True)

    async with FastMCPTransport(mcp).connect_session(elicitation_callback=answer) as session:
        await session.initialize()
        assert said(await session.call_tool("buy", {})) == "True"
