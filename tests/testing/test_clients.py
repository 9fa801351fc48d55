"""A server's questions, answered from a script, over every connection and both generations."""

import itertools
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import anyio
import fastmcp
import pytest
from fastmcp.client.transports import infer_transport
from fastmcp.exceptions import ToolError
from fastmcp_tasks import TasksExtension
from mcp import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
    TextContent,
)
from pydantic import Field, create_model

from askback import Elicit, ListRoots, Resolve, Sample
from askback.agents import Accept, Cancel, Decline, Defer, Question
from askback.integration import FastMCP
from askback.testing import ConversationError, Rehearsal, ScriptedClient
from askback.transports import SessionTransport
from tests.testing.shop import Paper, Scope, mcp

WRAP = {"order": "ORD-1"}
ANSWERS = {"Refund": {"full": True}, "paper": {"paper": "red"}, "note": {"paper": "blue"}}
WRAPPED = "wrapped ORD-1 in red, with a blue note"


WELL = ElicitRequestFormParams(message="Well?", requested_schema={"type": "object", "properties": {}})


def asks_by_hand(
    params: ElicitRequestFormParams | ElicitRequestURLParams, state: str | None = None
) -> InputRequiredResult:
    """What a tool returns that drives its rounds itself."""
    return InputRequiredResult(input_requests={"q": ElicitRequest(params=params)}, request_state=state)


async def test_a_test_of_a_server_takes_four_lines(askback: Rehearsal) -> None:
    async with askback.connect(mcp, {"Refund all": {"full": True}}) as client:
        result = await client.call_tool("refund", {"order": "ORD-1"})
    assert result.data == "refunded ORD-1, full=True"


@pytest.mark.askback(over=["memory", "http", "stdio"])
async def test_a_server_is_reached_over_every_connection(askback: Rehearsal) -> None:
    call = await askback.call(mcp, "wrap", WRAP, ANSWERS)
    assert call.result == WRAPPED
    assert len(call.exchanges) == 3


@pytest.mark.parametrize(
    "answers",
    [
        ANSWERS,
        {re.compile("(?i)REFUND"): Scope(full=True), "paper": Paper(paper="red"), Paper: Accept({"paper": "blue"})},
        {Elicit: ElicitResult(action="accept", content={"full": True, "paper": "red"})},
    ],
    ids=["patterns", "models", "kinds"],
)
async def test_answers_are_scripted_by_message_by_form_and_by_kind(askback: Rehearsal, answers: Any) -> None:
    call = await askback.call(mcp, "wrap", WRAP, answers)
    assert not call.failed
    assert {exchange.question.message for exchange in call.exchanges} == {
        "Refund all of ORD-1?",
        "Which paper?",
        "Which note?",
    }


async def test_answers_are_scripted_in_order(askback: Rehearsal) -> None:
    red, blue = {"paper": "red"}, {"paper": "blue"}
    # Rounds ask what can be asked now; older connections ask in the order of declaration.
    in_order = [{"full": True}, blue, red] if askback.generation == "2026-07-28" else [{"full": True}, red, blue]
    assert (await askback.call(mcp, "wrap", WRAP, in_order)).result == WRAPPED
    assert (await askback.call(mcp, "wrap", WRAP, tuple(in_order))).result == WRAPPED


async def test_models_and_directories_are_scripted_too(askback: Rehearsal) -> None:
    call = await askback.call(mcp, "judge", WRAP, {Sample: "Quite.", ListRoots: ["/srv"]})
    assert call.result == "Quite. ['file:///srv']"
    completion = CreateMessageResult(role="assistant", content=TextContent(text="No."), model="m")
    call = await askback.call(mcp, "judge", WRAP, {"Is ORD-1 odd": completion, ListRoots: [Path("/a")]})
    assert call.result == "No. ['file:///a']"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [(Decline(), "was decline"), (Cancel(), "was cancel"), (ElicitResult(action="decline"), "decline")],
)
async def test_a_script_refuses(askback: Rehearsal, answer: Any, sentence: str) -> None:
    call = await askback.call(mcp, "refund", WRAP, [answer])
    assert call.failed
    assert sentence in (call.result or "")
    async with askback.connect(mcp, [answer]) as client:
        with pytest.raises(ToolError, match=sentence):
            await client.call_tool("refund", WRAP)


async def test_declining_a_sampling_request_fails_the_call_and_not_the_test(askback: Rehearsal) -> None:
    call = await askback.call(mcp, "judge", WRAP, {Sample: Decline(), ListRoots: []})
    assert call.failed
    assert (call.result or "").endswith("The sampling request was declined")


async def test_a_policy_is_a_script(askback: Rehearsal) -> None:
    async def person(ctx: None, question: Question) -> Accept | None:
        return Accept({"full": False}) if question.asks(Scope) else None

    assert (await askback.call(mcp, "refund", WRAP, Accept({"full": True}))).result == "refunded ORD-1, full=True"
    call = await askback.call(mcp, "refund", WRAP, person)
    assert (call.result, call.exchanges[0].answered_by) == ("refunded ORD-1, full=False", "person")
    with pytest.raises(ConversationError, match=r"'wrap' asked 'Which (paper|note)\?'\. person has no opinion on it"):
        await askback.call(mcp, "wrap", WRAP, person)


async def test_a_policy_that_breaks_fails_the_test(askback: Rehearsal) -> None:
    def broken(ctx: None, question: Question) -> Accept:
        raise KeyError("nothing")

    with pytest.raises(ConversationError, match=r"The script failed: KeyError\('nothing'\)"):
        await askback.call(mcp, "refund", WRAP, broken)


@pytest.mark.askback("2026-07-28")
async def test_a_background_task_is_answered_too(askback: Rehearsal) -> None:
    server = FastMCP("tasks")
    server.add_extension(TasksExtension())

    async def ask() -> Elicit[Scope]:
        return Elicit("All?", Scope)

    @server.tool(task=True)
    async def go(scope: Annotated[Scope, Resolve(ask)]) -> bool:
        return scope.full

    async with askback.connect(server, {"All": {"full": True}}) as client:
        assert (await client.call_tool("go")).data is True
    assert client.messages == ["All?"]
    with pytest.raises(ConversationError, match=r"asked 'All\?'. No question was expected"):
        await askback.call(server, "go")


async def test_a_client_knows_what_was_asked(askback: Rehearsal) -> None:
    async with askback.connect(mcp, ANSWERS) as client:
        await client.call_tool("wrap", WRAP)
        await client.call_tool("refund", {"order": "ORD-2"})
    rounds = {question.message: (question.round, question.key) for question in client.asked}
    if askback.generation == "2026-07-28":
        assert client.messages == ["Refund all of ORD-1?", "Which note?", "Which paper?", "Refund all of ORD-2?"]
        assert rounds == {
            "Refund all of ORD-1?": (1, "tests.testing.shop:ask_scope"),
            "Which note?": (1, "tests.testing.shop:ask_note"),
            "Which paper?": (2, "tests.testing.shop:ask_paper"),
            "Refund all of ORD-2?": (1, "tests.testing.shop:ask_scope"),
        }
    else:
        assert client.messages == ["Refund all of ORD-1?", "Which paper?", "Which note?", "Refund all of ORD-2?"]
        assert set(rounds.values()) == {(1, None)}
    assert [question.tool for question in client.asked] == ["wrap", "wrap", "wrap", "refund"]
    assert client.asked[0].asks(Scope)


@pytest.mark.askback(over=["memory", "http"])
async def test_questions_of_calls_at_the_same_time_are_told_apart(askback: Rehearsal) -> None:
    client = askback.connect(mcp, {"ORD-1": {"full": True}, "ORD-2": {"full": False}})
    async with client, anyio.create_task_group() as group:
        for order in ("ORD-1", "ORD-2"):
            group.start_soon(client.call_tool, "refund", {"order": order})
    said = {call.arguments["order"]: (call.messages, call.result) for call in client.conversation.calls}
    assert said == {
        "ORD-1": (["Refund all of ORD-1?"], "refunded ORD-1, full=True"),
        "ORD-2": (["Refund all of ORD-2?"], "refunded ORD-2, full=False"),
    }


async def test_a_question_nobody_expected_shows_the_conversation(askback: Rehearsal) -> None:
    with pytest.raises(ConversationError) as failure:
        await askback.call(mcp, "wrap", WRAP, {"Refund": {"full": True}, "note": {"paper": "red"}})
    lines = str(failure.value).splitlines()
    assert lines[0] == "'wrap' asked 'Which paper?'. The script has no answer for it, only for 'Refund', 'note'"
    assert lines[2] == "wrap(order='ORD-1')"
    if askback.generation == "2026-07-28":
        assert lines[3:] == [
            "  round 1",
            "    asks   tests.testing.shop:ask_scope: Refund all of ORD-1?",
            "           full: boolean",
            "    gets   accepted {\"full\": true}  (by 'Refund')",
            "    asks   tests.testing.shop:ask_note: Which note?",
            "           paper: string of ['red', 'blue']",
            '    gets   accepted {"paper": "red"}  (by \'note\')',
            "  round 2",
            "    asks   tests.testing.shop:ask_paper: Which paper?",
            "           paper: string of ['red', 'blue']",
            "    gets   no answer",
        ]
    else:
        assert lines[6:9] == [
            "    asks   a person: Which paper?",
            "           paper: string of ['red', 'blue']",
            "    gets   no answer",
        ]


async def test_no_script_expects_no_question(askback: Rehearsal) -> None:
    assert (await askback.call(mcp, "plain", WRAP)).result == "plain ORD-1"
    with pytest.raises(ConversationError, match="asked 'Refund all of ORD-1\\?'. No question was expected"):
        await askback.call(mcp, "refund", WRAP)
    with pytest.raises(
        ConversationError, match="'judge' asked (for roots|'Is ORD-1 odd\\?'). The script has no answer"
    ):
        await askback.call(mcp, "judge", WRAP, {"never": 1})


async def test_a_script_that_is_too_short_says_so(askback: Rehearsal) -> None:
    with pytest.raises(ConversationError, match="All answers of the script have been given"):
        await askback.call(mcp, "wrap", WRAP, [{"full": True}])


@pytest.mark.parametrize(
    ("answers", "complaint"),
    [
        ({"Refund": {"full": "maybe"}}, "The answer from the script ('Refund') does not fit: full: 'maybe' is not of"),
        ([{}], "The answer from the script (answer 1) does not fit: 'full' is a required property"),
        ([{"full": True, "ful": 1}], "does not fit: the form has no 'ful', only full"),
        ([3], "does not fit: a form takes a mapping, a pydantic model or a dataclass, not int"),
        ({Elicit: Defer()}, "The script defers it, but only an agent can"),
    ],
)
async def test_a_script_that_does_not_fit_the_form_says_where(askback: Rehearsal, answers: Any, complaint: str) -> None:
    with pytest.raises(ConversationError, match=re.escape(complaint)):
        await askback.call(mcp, "refund", WRAP, answers)


async def test_nonsense_can_be_sent_on_purpose(askback: Rehearsal) -> None:
    call = await askback.call(mcp, "refund", WRAP, [ElicitResult(action="accept", content={"full": "maybe"})])
    assert (call.failed, call.result) == (True, "Resolver 'ask_scope': the accepted content does not fit the question")


async def test_an_answer_that_was_never_used_fails(askback: Rehearsal) -> None:
    leftover = "The conversation is over, but the script has answers that were never used: 'gift', Paper"
    with pytest.raises(ConversationError, match=leftover) as failure:
        await askback.call(mcp, "refund", WRAP, {"Refund": {"full": True}, "gift": {}, Paper: {}})
    assert "refunded ORD-1, full=True" in str(failure.value)
    with pytest.raises(ConversationError, match="never used: answer 2, answer 3"):
        await askback.call(mcp, "refund", WRAP, [{"full": True}, 2, 3])


async def test_a_server_that_never_asks_is_reported_as_such(askback: Rehearsal) -> None:
    with pytest.raises(ConversationError, match="Nothing was asked, but the script has .* 'Refund'"):
        await askback.call(mcp, "plain", WRAP, {"Refund": {"full": True}})
    with pytest.raises(ConversationError, match="never used: Accept"):
        await askback.call(mcp, "plain", WRAP, Accept({"full": True}))
    with pytest.raises(ConversationError, match=r"never used: answer 1\n\n\(nothing was called\)"):
        async with askback.connect(mcp, [1]):
            pass


async def test_a_tool_that_does_not_exist_is_named_with_those_that_do(askback: Rehearsal) -> None:
    with pytest.raises(
        ConversationError, match="There is no tool 'refnd': did you mean 'refund'\\? The server has refu"
    ):
        await askback.call(mcp, "refnd", WRAP, {"Refund": {"full": True}})
    with pytest.raises(ConversationError, match="There is no tool 'xyz': The server has no tools"):
        await askback.call(FastMCP("empty"), "xyz")


async def test_a_failure_inside_the_test_is_not_hidden_by_a_leftover(askback: Rehearsal) -> None:
    with pytest.raises(ZeroDivisionError):
        async with askback.connect(mcp, [1]):
            raise ZeroDivisionError


@pytest.mark.askback("2026-07-28")
async def test_a_question_asked_twice_in_one_call_fails(askback: Rehearsal) -> None:
    server = fastmcp.FastMCP("forgetful")

    @server.tool
    async def nag() -> Any:
        return asks_by_hand(WELL, state="again")

    with pytest.raises(
        ConversationError, match="It was asked twice in one call. If that is intended, give the answers in order"
    ):
        await askback.call(server, "nag", {}, {"Well": {}})


def changing(question: Callable[[int], Elicit[Any]]) -> FastMCP[Any]:
    """A server whose resolver gets another number each time it runs."""
    server, numbers = FastMCP("clock"), itertools.count()

    async def ask() -> Elicit[Any]:
        return question(next(numbers))

    @server.tool
    async def go(scope: Annotated[Any, Resolve(ask)]) -> bool:
        return scope.full

    return server


@pytest.mark.parametrize(
    "answers",
    [{"Sure": {"full": True}}, [{"full": True}], Accept({"full": True})],
    ids=["patterns", "in order", "a policy"],
)
@pytest.mark.askback("2026-07-28")
async def test_a_question_that_changes_when_its_resolver_runs_again_is_shown_in_both_wordings(
    askback: Rehearsal, answers: Any
) -> None:
    with pytest.raises(
        ConversationError,
        match=r"The resolver tests\..*\.ask asked 'Sure 0\?' in round 1 and 'Sure 1\?' in round 2\. Resolvers run",
    ):
        await askback.call(changing(lambda number: Elicit(f"Sure {number}?", Scope)), "go", {}, answers)


@pytest.mark.askback("2026-07-28")
async def test_a_list_may_have_an_answer_for_a_question_that_changes(askback: Rehearsal) -> None:
    server = changing(lambda number: Elicit(f"Sure {min(number, 1)}?", Scope))
    call = await askback.call(server, "go", {}, [{"full": True}, {"full": False}])
    assert (call.messages, call.result) == (["Sure 0?", "Sure 1?"], "false")


@pytest.mark.askback("2026-07-28")
async def test_a_form_that_changes_when_its_resolver_runs_again_is_shown(askback: Rehearsal) -> None:
    server = changing(lambda number: Elicit("Sure?", create_model("Scope", full=(bool, Field(title=f"All {number}")))))
    with pytest.raises(ConversationError, match=r'asked the form(?s:.*)"title": "All 0"(?s:.*)"title": "All 1"'):
        await askback.call(server, "go", {}, Accept({"full": True}))


@pytest.mark.askback("2026-07-28")
async def test_a_tool_that_asks_by_hand_may_ask_different_questions_under_one_key(askback: Rehearsal) -> None:
    server = fastmcp.FastMCP("by hand")

    @server.tool
    async def go(ctx: fastmcp.Context) -> Any:
        number = int(ctx.request_state or 0)
        return (
            "done" if number == 2 else asks_by_hand(WELL.model_copy(update={"message": f"{number}?"}), f"{number + 1}")
        )

    call = await askback.call(server, "go", {}, [{}, {}])
    assert (call.result, call.messages) == ("done", ["0?", "1?"])


async def test_two_questions_with_the_same_wording_are_one_too_many(askback: Rehearsal) -> None:
    server = FastMCP("twins")

    def asks() -> Any:
        async def ask() -> Elicit[Scope]:
            return Elicit("Sure?", Scope)

        return ask

    @server.tool
    async def go(one: Annotated[Scope, Resolve(asks())], other: Annotated[Scope, Resolve(asks())]) -> bool:
        return one.full and other.full

    with pytest.raises(ConversationError, match="It was asked twice in one call"):
        await askback.call(server, "go", {}, {"Sure": {"full": True}})
    assert (await askback.call(server, "go", {}, [{"full": True}, {"full": True}])).result == "true"


async def test_the_same_question_in_the_next_call_is_another(askback: Rehearsal) -> None:
    async with askback.connect(mcp, {"Refund": {"full": True}}) as client:
        await client.call_tool("refund", WRAP)
        await client.call_tool("refund", WRAP)
    assert len(client.asked) == 2


@pytest.mark.askback("2025-11-25")
async def test_what_is_asked_outside_any_call_is_seen_too(askback: Rehearsal) -> None:
    server = fastmcp.FastMCP("curious")

    @server.resource("data://x")
    async def read(ctx: fastmcp.Context) -> str:
        result = await ctx.elicit("Who reads?", str)
        return str(getattr(result, "data", None))

    async with askback.connect(server, {"Who": {"value": "Ada"}}) as client:
        (content,) = await client.read_resource("data://x")
    assert getattr(content, "text", None) == "Ada"
    assert client.messages == ["Who reads?"]


async def test_a_question_nobody_expected_cannot_be_swallowed(askback: Rehearsal) -> None:
    async def swallow() -> None:
        async with askback.connect(mcp) as client:
            for order in ("ORD-1", "ORD-2"):
                with suppress(ConversationError):
                    await client.call_tool("refund", {"order": order})
            assert (await client.call_tool("plain", WRAP)).data == "plain ORD-1"

    with pytest.raises(ConversationError, match="asked 'Refund all of ORD-1"):
        await swallow()


@pytest.mark.askback("2025-11-25")
async def test_a_failure_that_the_test_swallowed_comes_back_at_the_end(askback: Rehearsal) -> None:
    server = fastmcp.FastMCP("curious")

    @server.resource("data://x")
    async def read(ctx: fastmcp.Context) -> str:
        return str(await ctx.elicit("Who reads?", str))

    async def swallow() -> None:
        async with askback.connect(server) as client:
            with suppress(MCPError):
                await client.read_resource("data://x")

    with pytest.raises(ConversationError, match="Who reads"):
        await swallow()


@pytest.mark.askback("2026-07-28")
async def test_rounds_are_counted_without_a_state_too(askback: Rehearsal) -> None:
    server = fastmcp.FastMCP("guard")

    @server.tool
    async def guard(ctx: fastmcp.Context) -> Any:
        return "done" if ctx.input_responses else asks_by_hand(WELL)

    async with askback.connect(server, {"Well": {}}) as client:
        for _ in range(3):
            await client.call_tool("guard")
    assert [question.round for question in client.asked] == [1, 1, 1]


@pytest.mark.askback("2026-07-28")
async def test_a_url_question_is_accepted_without_content(askback: Rehearsal) -> None:
    server = fastmcp.FastMCP("visits")

    @server.tool
    async def visit(ctx: fastmcp.Context) -> Any:
        there = ElicitRequestURLParams(message="Go there", url="https://a.example", elicitation_id="1")
        return "visited" if ctx.input_responses else asks_by_hand(there, state="s")

    assert (await askback.call(server, "visit", {}, [Accept()])).result == "visited"
    with pytest.raises(ConversationError, match="a URL question is accepted without content"):
        await askback.call(server, "visit", {}, [{"ok": True}])


def test_an_invalid_script_is_rejected() -> None:
    with pytest.raises(TypeError, match="a mapping of patterns or models, a list in order, a policy.*not 'yes'"):
        ScriptedClient(mcp, "yes")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="not <class '.*Decline'>"):
        ScriptedClient(mcp, Decline)
    with pytest.raises(TypeError, match="a script's keys are patterns, models, or Elicit, Sample and ListRoots, not 3"):
        ScriptedClient(mcp, {3: {}})
    with pytest.raises(ValueError, match=r"the pattern 'Refund \(' of the script is not a valid regular expression"):
        ScriptedClient(mcp, {"Refund (": {}})


def test_a_server_that_cannot_be_reached_over_a_connection_is_rejected() -> None:
    with pytest.raises(ValueError, match="'local' must be a global of a module"):
        Rehearsal(over="stdio").connect(FastMCP("local"))
    with pytest.raises(
        ValueError, match="Over http, the test starts the server itself, which must be a FastMCP: 'x.py' is not"
    ):
        Rehearsal(over="http").connect("x.py")
    with pytest.raises(ValueError, match="over 'memory', 'http' or 'stdio', not over 'pigeon'"):
        Rehearsal(over="pigeon").connect(mcp)  # pyright: ignore[reportArgumentType]


def test_there_are_two_generations() -> None:
    with pytest.raises(ValueError, match="The generations are 2026-07-28 and 2025-11-25, not '2026-07-29'"):
        Rehearsal("2026-07-29")  # pyright: ignore[reportArgumentType]


async def test_a_server_of_the_other_generation_is_not_tried_in_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    old = SessionTransport(infer_transport(mcp), ClientSession)
    old.legacy_only = True
    with pytest.raises(RuntimeError, match="The server speaks 2025-11-25, but the test needs 2026-07-28"):
        await Rehearsal("2026-07-28").call(old, "plain", WRAP)
    assert (await Rehearsal("2025-11-25").call(old, "plain", WRAP)).result == "plain ORD-1"


@pytest.mark.askback(over="http")
async def test_a_client_takes_what_fastmcps_takes(askback: Rehearsal) -> None:
    async with askback.connect(mcp, {"Refund": {"full": True}}, auth="a-token", name="tester") as client:
        assert (await client.call_tool("refund", WRAP)).data == "refunded ORD-1, full=True"
    assert client.name == "tester"


async def test_a_server_that_does_not_start_says_so() -> None:
    @asynccontextmanager
    async def broken(server: Any) -> AsyncGenerator[None]:
        raise RuntimeError("no database")
        yield

    with pytest.raises(RuntimeError, match="its log says why"):
        async with Rehearsal(over="http").connect(FastMCP("down", lifespan=broken)):
            pass


async def test_resolvers_of_a_plain_server_are_seen(askback: Rehearsal) -> None:
    from askback.integration import resolved

    server = fastmcp.FastMCP("plain")

    async def ask() -> Elicit[Scope]:
        return Elicit("All?", Scope)

    @server.tool
    @resolved
    async def go(scope: Annotated[Scope, Resolve(ask)]) -> bool:
        return scope.full

    async with askback.connect(server, [{"full": True}]) as client:
        assert (await client.call_tool("go")).data is True


async def test_a_server_over_http_answers_without_delay() -> None:
    async with Rehearsal(over="http").connect(mcp) as client:
        await client.call_tool("plain", WRAP)
        took = [await _seconds(client.call_tool, "plain", WRAP) for _ in range(9)]
    # Waiting for a delayed acknowledgement takes 40 ms.
    assert min(took) < 0.03


async def _seconds(call: Callable[..., Awaitable[Any]], *args: Any) -> float:
    begun = time.perf_counter()
    await call(*args)
    return time.perf_counter() - begun
