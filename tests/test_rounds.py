"""2026-07-28: questions end the call, and it comes back with the answers."""

from typing import Annotated, Any

import pytest
from fastmcp.exceptions import ToolError
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.server.request_state import RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types import CreateMessageResult, ElicitResult, InputRequiredResult, ListRootsResult, TextContent
from pydantic import BaseModel, Field

from askback import Elicit, ElicitationResult, Resolve
from askback.agents import Cancel, Decline
from askback.integration import FastMCP
from askback.testing import Rehearsal, ScriptedClient
from tests.conversation import Readable, accept, asked, forged, one_round, said, state_in, state_of

pytestmark = pytest.mark.askback("2026-07-28")


class Sure(BaseModel):
    ok: bool


class Count(BaseModel):
    copies: int = Field(alias="howMany", serialization_alias="number")


def shop(**options: Any) -> FastMCP[Any]:
    return FastMCP("shop", request_state_security=Readable.security(), **options)


async def ask_buy(title: str) -> Elicit[Sure]:
    return Elicit(f"Buy {title}?", Sure)


async def ask_count() -> Elicit[Count]:
    return Elicit("How many?", Count)


async def ask_wrap(buy: Annotated[Sure, Resolve(ask_buy)], count: Annotated[Count, Resolve(ask_count)]) -> Elicit[Sure]:
    return Elicit(f"Wrap {count.copies}?", Sure)


async def order(
    title: str,
    wrap: Annotated[ElicitationResult[Sure], Resolve(ask_wrap)],
    count: Annotated[Count, Resolve(ask_count)],
) -> str:
    return f"{count.copies} of {title}, {wrap.action}"


BUY, COUNT, WRAP = (f"tests.test_rounds:{name}" for name in ("ask_buy", "ask_count", "ask_wrap"))


@pytest.fixture
def mcp() -> FastMCP[Any]:
    server = shop()
    server.tool(order)
    return server


async def test_everything_that_can_be_asked_now_is_asked_in_one_round(mcp: FastMCP[Any]) -> None:
    async with ScriptedClient(mcp) as client:
        first = await one_round(client, "order", {"title": "Dune"})
        assert asked(first) == {BUY: "Buy Dune?", COUNT: "How many?"}
        assert list(asked(first)) == [BUY, COUNT]

        second = await one_round(
            client,
            "order",
            {"title": "Dune"},
            answers={BUY: accept(ok=True), COUNT: accept(howMany=3), "unknown": accept(x=1)},
            state=state_of(first),
        )
        assert asked(second) == {WRAP: "Wrap 3?"}

        third = await one_round(
            client, "order", {"title": "Dune"}, answers={WRAP: ElicitResult(action="decline")}, state=state_of(second)
        )
        assert said(third) == "3 of Dune, decline"


async def test_each_question_is_asked_once_however_many_rounds(askback: Rehearsal, mcp: FastMCP[Any]) -> None:
    answers = {"Buy": {"ok": True}, "How many": {"howMany": 3}, "Wrap": {"ok": True}}
    async with askback.connect(mcp, answers) as client:
        assert (await client.call_tool("order", {"title": "Dune"})).data == "3 of Dune, accept"
    assert sorted(client.messages) == ["Buy Dune?", "How many?", "Wrap 3?"]


async def test_only_asked_outcomes_are_kept_exactly_as_they_were_sent(mcp: FastMCP[Any]) -> None:
    async with ScriptedClient(mcp) as client:
        first = await one_round(client, "order", {"title": "Dune"})
        assert state_in(first)["answers"] == {}
        # Neither of them is what the model would give back: an alias of its own to read, and a text for a number.
        answers = {BUY: accept(ok="yes", extra=[]), COUNT: accept(howMany="3")}
        second = await one_round(client, "order", {"title": "Dune"}, answers=answers, state=state_of(first))
        kept = {key: content for key, (_, _, content) in state_in(second)["answers"].items()}
        assert kept == {BUY: '{"ok": "yes"}', COUNT: '{"howMany": "3"}'}
        third = await one_round(
            client, "order", {"title": "Dune"}, answers={WRAP: accept(ok=True)}, state=state_of(second)
        )
        assert said(third) == "3 of Dune, accept"


async def test_declines_and_cancels_are_kept_too(askback: Rehearsal) -> None:
    mcp = shop()

    async def ask_gift() -> Elicit[Sure]:
        return Elicit("A gift?", Sure)

    async def ask_more(gift: Annotated[ElicitationResult[Sure], Resolve(ask_gift)]) -> Elicit[Sure]:
        return Elicit(f"More, after {gift.action}?", Sure)

    @mcp.tool
    async def buy(
        gift: Annotated[ElicitationResult[Sure], Resolve(ask_gift)],
        more: Annotated[ElicitationResult[Sure], Resolve(ask_more)],
    ) -> str:
        return f"{gift.action} {more.action}"

    for first, second in [(Decline(), Cancel()), (Cancel(), Decline())]:
        async with askback.connect(mcp, {"A gift": first, "More": second}) as client:
            assert (await client.call_tool("buy")).data == f"{first.action} {second.action}"
        assert client.messages == ["A gift?", f"More, after {first.action}?"]


async def test_a_computed_value_wins_over_an_answer() -> None:
    mcp = shop()
    known: list[Sure] = []

    async def ask() -> Sure | Elicit[Sure]:
        return known[0] if known else Elicit("Sure?", Sure)

    async def ask_more(sure: Annotated[Sure, Resolve(ask)]) -> Elicit[Sure]:
        return Elicit("More?", Sure)

    @mcp.tool
    async def buy(sure: Annotated[Sure, Resolve(ask)], more: Annotated[Sure, Resolve(ask_more)]) -> str:
        return f"{sure.ok} {more.ok}"

    ask_key, more_key = (
        f"tests.test_rounds:test_a_computed_value_wins_over_an_answer.<locals>.{name}" for name in ("ask", "ask_more")
    )
    async with ScriptedClient(mcp) as client:
        first = await one_round(client, "buy")
        known.append(Sure(ok=False))
        second = await one_round(client, "buy", answers={ask_key: accept(ok=True)}, state=state_of(first))
        assert asked(second) == {more_key: "More?"}
        assert state_in(second)["answers"] == {}
        third = await one_round(client, "buy", answers={more_key: accept(ok=True)}, state=state_of(second))
        assert said(third) == "False True"


async def test_a_recorded_answer_wins_over_one_sent_again(mcp: FastMCP[Any]) -> None:
    async with ScriptedClient(mcp) as client:
        first = await one_round(client, "order", {"title": "Dune"})
        answers: dict[str, Any] = {BUY: accept(ok=True), COUNT: accept(howMany=3)}
        second = await one_round(client, "order", {"title": "Dune"}, answers=answers, state=state_of(first))
        changed = {COUNT: accept(howMany=99), WRAP: accept(ok=True)}
        third = await one_round(client, "order", {"title": "Dune"}, answers=changed, state=state_of(second))
        assert said(third) == "3 of Dune, accept"


async def test_an_answer_that_was_not_asked_for_is_not_taken(mcp: FastMCP[Any]) -> None:
    volunteered = {BUY: accept(ok=True), COUNT: accept(howMany=99), WRAP: accept(ok=True)}
    async with ScriptedClient(mcp) as client:
        first = await one_round(client, "order", {"title": "Dune"}, answers=volunteered)
        assert set(asked(first)) == {BUY, COUNT}
        second = await one_round(client, "order", {"title": "Dune"}, answers=volunteered, state=state_of(first))
        assert set(asked(second)) == {WRAP}


async def test_an_unanswered_question_is_asked_again(mcp: FastMCP[Any]) -> None:
    async with ScriptedClient(mcp) as client:
        first = await one_round(client, "order", {"title": "Dune"})
        second = await one_round(
            client, "order", {"title": "Dune"}, answers={COUNT: accept(howMany=3)}, state=state_of(first)
        )
        assert asked(second) == {BUY: "Buy Dune?"}
        third = await one_round(client, "order", {"title": "Dune"}, state=state_of(second))
        assert asked(third) == {BUY: "Buy Dune?"}


async def test_a_reworded_or_reshaped_question_is_asked_again() -> None:
    mcp = shop()
    wording: list[Any] = ["Sure?", Sure]

    class Surer(BaseModel):
        ok: bool
        why: str = ""

    async def ask() -> Elicit[Any]:
        return Elicit(*wording)

    async def ask_more(sure: Annotated[Any, Resolve(ask)]) -> Elicit[Sure]:
        return Elicit("More?", Sure)

    @mcp.tool
    async def buy(sure: Annotated[Any, Resolve(ask)], more: Annotated[Sure, Resolve(ask_more)]) -> str:
        return f"{sure.ok}"

    async with ScriptedClient(mcp) as client:
        first = await one_round(client, "buy")
        (key,) = asked(first)
        wording[0] = "Really sure?"
        second = await one_round(client, "buy", answers={key: accept(ok=True)}, state=state_of(first))
        assert asked(second) == {key: "Really sure?"}
        third = await one_round(client, "buy", answers={key: accept(ok=True)}, state=state_of(second))
        assert list(asked(third).values()) == ["More?"]
        wording[1] = Surer
        fourth = await one_round(client, "buy", state=state_of(third))
        assert asked(fourth) == {key: "Really sure?"}


STATES: list[Any] = [
    "no JSON",
    "[]",
    "null",
    "[" * 100_000,
    {},
    {"v": 0},
    {"v": 2, "t": "tests.test_rounds:order", "answers": {}, "asked": {}},
    {"v": 1, "t": "another:tool", "answers": "ANSWERS", "asked": "ASKED"},
    {"v": 1, "t": "tests.test_rounds:order", "answers": [], "asked": []},
    {"v": 1, "t": "tests.test_rounds:order", "answers": {BUY: 1, COUNT: None}, "asked": {BUY: 1}},
    {"v": 1, "t": "tests.test_rounds:order", "answers": {COUNT: ["COUNT", "accept", {"howMany": "many"}]}, "asked": {}},
    {"v": 1, "t": "tests.test_rounds:order", "answers": {COUNT: ["COUNT", "agree", {"howMany": 3}]}, "asked": {}},
    {"v": 1, "t": "tests.test_rounds:order", "answers": {COUNT: ["COUNT", "accept"]}, "asked": {}},
    {"v": 1, "t": "tests.test_rounds:order", "answers": {COUNT: ["COUNT", "accept", "three"]}, "asked": {}},
    {"v": 1, "t": "tests.test_rounds:order", "answers": {COUNT: [None, "accept", {"howMany": 3}]}, "asked": {}},
    {"v": 1, "t": "tests.test_rounds:order", "answers": {COUNT: ["0" * 32, "accept", {"howMany": 3}]}, "asked": {}},
]


@pytest.mark.parametrize("content", STATES)
async def test_what_is_wrong_in_the_state_is_asked_again(mcp: FastMCP[Any], content: Any) -> None:
    async with ScriptedClient(mcp) as client:
        first = await one_round(client, "order", {"title": "Dune"})
        answers = {BUY: accept(ok=True), COUNT: accept(howMany=3)}
        second = await one_round(client, "order", {"title": "Dune"}, answers=answers, state=state_of(first))
        digests = {key: entry[0] for key, entry in state_in(second)["answers"].items()}
        known = state_in(second)
        again = await one_round(
            client, "order", {"title": "Dune"}, state=forged(first, with_digests(content, digests, known))
        )
        assert asked(again) == {BUY: "Buy Dune?", COUNT: "How many?"}


def with_digests(content: Any, digests: dict[str, str], known: dict[str, Any]) -> Any:
    """A state whose entries belong to the questions that are really asked."""
    if isinstance(content, dict):
        return {key: with_digests(value, digests, known) for key, value in content.items()}  # pyright: ignore
    if isinstance(content, list):
        return [with_digests(each, digests, known) for each in content]  # pyright: ignore
    return {"COUNT": digests[COUNT], "ANSWERS": known["answers"], "ASKED": known["asked"]}.get(content, content)  # pyright: ignore


async def test_a_good_entry_beside_a_bad_one_is_kept(mcp: FastMCP[Any]) -> None:
    async with ScriptedClient(mcp) as client:
        first = await one_round(client, "order", {"title": "Dune"})
        answers = {BUY: accept(ok=True), COUNT: accept(howMany=3)}
        second = await one_round(client, "order", {"title": "Dune"}, answers=answers, state=state_of(first))
        content = state_in(second)
        content["answers"][BUY] = "garbage"
        third = await one_round(client, "order", {"title": "Dune"}, state=forged(second, content))
        assert asked(third) == {BUY: "Buy Dune?"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([BUY, COUNT, WRAP, "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=50)
@given(answers=JSON, asked_before=JSON)
async def test_no_forged_state_becomes_a_value_or_an_error(answers: Any, asked_before: Any) -> None:
    server = shop()
    server.tool(order)
    content = {"v": 1, "t": "tests.test_rounds:order", "answers": answers, "asked": asked_before}
    sent = {BUY: accept(ok=True), COUNT: accept(howMany=3), WRAP: accept(ok=True)}
    async with ScriptedClient(server) as client:
        first = await one_round(client, "order", {"title": "Dune"})
        again = await one_round(client, "order", {"title": "Dune"}, answers=sent, state=forged(first, content))
        assert set(asked(again)) == {BUY, COUNT}


async def test_text_that_is_no_unicode_survives_the_rounds() -> None:
    mcp = shop()

    class Name(BaseModel):
        name: str

    async def ask_name() -> Elicit[Name]:
        return Elicit("\ud800 name?", Name)

    async def ask_more(name: Annotated[ElicitationResult[Name], Resolve(ask_name)]) -> Elicit[Sure]:
        return Elicit("More?", Sure)

    @mcp.tool
    async def greet(more: Annotated[Sure, Resolve(ask_more)]) -> str:
        return "hello"

    from askback.integration.engine import build_resolver_plans, find_resolved_parameters, resolve_arguments
    from tests.test_engine import Rounds

    resolved = find_resolved_parameters(greet)
    plans = build_resolver_plans(resolved, set())
    first = await resolve_arguments(resolved, plans, {}, Rounds())
    assert isinstance(first, InputRequiredResult)
    answers = {key: ElicitResult(action="decline") for key in first.input_requests or {}}
    second = await resolve_arguments(resolved, plans, {}, Rounds(answers, first.request_state))
    assert list(asked(second).values()) == ["More?"]


def asker(number: int) -> Any:
    async def ask_numbered() -> Elicit[Sure]:
        return Elicit(f"Number {number}?", Sure)

    return ask_numbered


class Desk:
    def __init__(self, name: str) -> None:
        self.name = name

    async def ask(self) -> Elicit[Sure]:
        return Elicit(f"Desk {self.name}?", Sure)

    async def __call__(self) -> Elicit[Sure]:
        return Elicit(f"Called {self.name}?", Sure)


async def test_keys_are_the_same_in_every_worker() -> None:
    import functools

    def worker() -> FastMCP[Any]:
        mcp = shop()
        a, b = Desk("A"), Desk("B")

        @mcp.tool
        async def ask_all(
            one: Annotated[Sure, Resolve(asker(1))],
            two: Annotated[Sure, Resolve(asker(2))],
            three: Annotated[Sure, Resolve(a.ask)],
            four: Annotated[Sure, Resolve(b.ask)],
            five: Annotated[Sure, Resolve(a)],
            six: Annotated[Sure, Resolve(functools.partial(ask_buy, "Emma"))],
        ) -> str:
            return "asked"

        return mcp

    async with ScriptedClient(worker()) as client:
        first = await one_round(client, "ask_all")
    assert asked(first) == {
        "tests.test_rounds:asker.<locals>.ask_numbered": "Number 1?",
        "tests.test_rounds:asker.<locals>.ask_numbered#1": "Number 2?",
        "tests.test_rounds:Desk.ask": "Desk A?",
        "tests.test_rounds:Desk.ask#1": "Desk B?",
        "tests.test_rounds:Desk": "Called A?",
        BUY: "Buy Emma?",
    }
    async with ScriptedClient(worker()) as client:
        answers = {key: accept(ok=True) for key in asked(first)}
        assert said(await one_round(client, "ask_all", answers=answers, state=state_of(first))) == "asked"


async def test_another_worker_with_the_key_goes_on() -> None:
    def worker() -> FastMCP[Any]:
        mcp = FastMCP("shop", request_state_security=RequestStateSecurity(keys=["k" * 32]))
        mcp.tool(order)
        return mcp

    async with ScriptedClient(worker()) as client:
        first = await one_round(client, "order", {"title": "Dune"})
    answers = {BUY: accept(ok=True), COUNT: accept(howMany=3)}
    async with ScriptedClient(worker()) as client:
        second = await one_round(client, "order", {"title": "Dune"}, answers=answers, state=state_of(first))
        assert asked(second) == {WRAP: "Wrap 3?"}
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await one_round(client, "order", {"title": "Emma"}, answers=answers, state=state_of(first))


WRONG: list[tuple[Any, str]] = [
    (ElicitResult(action="accept"), "the answer was accepted without content"),
    (accept(ok="perhaps"), "the accepted content does not fit the question"),
    (accept(), "the accepted content does not fit the question"),
    (ListRootsResult(roots=[]), "the response is not an answer to its question"),
    (
        CreateMessageResult(role="assistant", content=TextContent(text="yes"), model="m"),
        "the response is not an answer to its question",
    ),
]


@pytest.mark.parametrize(("response", "sentence"), WRONG)
async def test_a_response_that_does_not_answer_is_one_stable_sentence(response: Any, sentence: str) -> None:
    mcp = shop(mask_error_details=True)

    @mcp.tool
    async def buy(title: str, sure: Annotated[Sure, Resolve(ask_buy)]) -> str:
        raise AssertionError("nobody answered")

    async with ScriptedClient(mcp) as client:
        first = await one_round(client, "buy", {"title": "Dune"})
        second = await one_round(client, "buy", {"title": "Dune"}, answers={BUY: response}, state=state_of(first))
        assert said(second) == f"failed: Resolver 'ask_buy': {sentence}"


async def test_a_chain_takes_as_many_rounds_as_it_is_long_plus_one(askback: Rehearsal) -> None:
    mcp = shop()
    bodies: list[int] = []

    def link(number: int, before: Any) -> Any:
        async def ask_link(last: Annotated[Sure, Resolve(before)]) -> Elicit[Sure]:
            return Elicit(f"Link {number}?", Sure)

        return ask_link

    async def ask_link() -> Elicit[Sure]:
        bodies.append(1)
        return Elicit("Link 0?", Sure)

    last: Any = ask_link
    for number in range(1, 9):
        last = link(number, last)

    @mcp.tool
    async def pull(sure: Annotated[Sure, Resolve(last)]) -> str:
        return "pulled"

    deeper = link(10, link(9, last))

    @mcp.tool
    async def pull_harder(sure: Annotated[Sure, Resolve(deeper)]) -> str:
        raise AssertionError("the client gives up before")

    async with askback.connect(mcp, {Sure: Sure(ok=True)}) as client:
        assert (await client.call_tool("pull")).data == "pulled"
        assert [(question.round, question.message) for question in client.asked] == [
            (number + 1, f"Link {number}?") for number in range(9)
        ]
        assert len(bodies) == 10
        with pytest.raises((MCPError, ToolError, RuntimeError), match="(?i)rounds"):
            await client.call_tool("pull_harder")
