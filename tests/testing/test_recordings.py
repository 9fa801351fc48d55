"""Recorded conversations, replayed."""

import io
import os
import pty
from pathlib import Path
from typing import Annotated, Any

import anyio
import pytest

from askback import Elicit, ListRoots, Resolve, Sample
from askback.agents import Cancel, Console, Decline
from askback.integration import FastMCP
from askback.testing import Conversation, ConversationError, Rehearsal
from tests.testing.shop import Paper, Scope, ask_note, mcp, shop

ORDER = {"order": "ORD-1"}
ANSWERS = {"Refund": {"full": True}, "paper": {"paper": "red"}, "note": {"paper": "blue"}}


async def recording(askback: Rehearsal, path: Path) -> Path:
    async with askback.connect(mcp, ANSWERS) as client:
        await client.call_tool("wrap", ORDER)
        await client.call_tool("plain", ORDER)
    client.conversation.save(path)
    return path


async def test_a_conversation_is_replayed_from_its_file(askback: Rehearsal, tmp_path: Path) -> None:
    path = await recording(askback, tmp_path / "wrap.json")
    again = await askback.replay(mcp, path)
    assert [call.result for call in again.calls] == ["wrapped ORD-1 in red, with a blue note", "plain ORD-1"]
    assert Conversation.load(path).calls[0].exchanges[0].question.asks(Scope)
    assert again.exchanges[0].answered_by == "the recording"


async def test_what_a_person_typed_at_the_terminal_is_replayed(askback: Rehearsal) -> None:
    master, slave = pty.openpty()
    os.write(master, b"a\nyes\n")
    with os.fdopen(slave) as terminal, anyio.fail_after(20):
        async with askback.connect(mcp, Console(input=terminal, output=io.StringIO())) as client:
            await client.call_tool("refund", ORDER)
    os.close(master)
    assert client.conversation.exchanges[0].answered_by == "Console"
    again = await askback.replay(mcp, client.conversation)
    assert again.calls[0].result == "refunded ORD-1, full=True"


async def test_a_recording_replays_on_the_other_generation_in_any_order(askback: Rehearsal, tmp_path: Path) -> None:
    other = Rehearsal("2025-11-25" if askback.generation == "2026-07-28" else "2026-07-28")
    again = await other.replay(mcp, await recording(askback, tmp_path / "wrap.json"))
    assert again.calls[0].result == "wrapped ORD-1 in red, with a blue note"


async def test_every_kind_of_answer_is_recorded(askback: Rehearsal) -> None:
    async with askback.connect(
        mcp, {Sample: "Quite.", ListRoots: ["/srv"], "ORD-1": Decline(), "ORD-2": Cancel()}
    ) as client:
        await client.call_tool("judge", ORDER)
        await client.call_tool("refund", ORDER, raise_on_error=False)
        await client.call_tool("refund", {"order": "ORD-2"}, raise_on_error=False)
    kept = Conversation.from_json(client.conversation.to_json())
    again = await askback.replay(mcp, kept)
    assert [(call.result, call.failed) for call in again.calls] == [(call.result, call.failed) for call in kept.calls]
    assert [exchange.action for exchange in again.exchanges] == ["accept", "accept", "decline", "cancel"]


class Longer(Scope):
    why: str = ""


async def reworded(order: str) -> Elicit[Scope]:
    return Elicit(f"Refund everything of {order}?", Scope)


async def reshaped(order: str) -> Elicit[Longer]:
    return Elicit(f"Refund all of {order}?", Longer)


async def after_the_note(note: Annotated[Paper, Resolve(ask_note)]) -> Elicit[Paper]:
    return Elicit("Which paper?", Paper)


async def right_away() -> Elicit[Paper]:
    return Elicit("Which paper?", Paper)


async def silent() -> Paper:
    return Paper(paper="red")


@pytest.mark.parametrize(
    ("server", "differences"),
    [
        (
            shop(scope=reworded),
            ['-  "message": "Refund all of ORD-1?",', '+  "message": "Refund everything of ORD-1?",'],
        ),
        (shop(scope=reshaped), ['+      "why": {', "--- recorded", "+++ asked now"]),
    ],
    ids=["reworded", "another form"],
)
async def test_a_changed_question_is_shown_as_a_difference(
    askback: Rehearsal, tmp_path: Path, server: Any, differences: list[str]
) -> None:
    path = await recording(askback, tmp_path / "wrap.json")
    with pytest.raises(ConversationError, match="not what was asked when the conversation was recorded") as failure:
        await askback.replay(server, path)
    for difference in differences:
        assert difference in str(failure.value)


async def test_another_order_is_shown(askback: Rehearsal, tmp_path: Path) -> None:
    path = await recording(askback, tmp_path / "wrap.json")
    # In rounds, what depends on nothing moves up; one after another, what depends on the note moves behind it.
    moved = shop(paper=right_away if askback.generation == "2026-07-28" else after_the_note)
    with pytest.raises(ConversationError) as failure:
        await askback.replay(moved, path)
    if askback.generation == "2026-07-28":
        for difference in ('-  "round": 2,', '+  "round": 1,'):
            assert difference in str(failure.value)
    else:
        assert "When the conversation was recorded, 'Which paper?' was asked before it" in str(failure.value)


async def test_a_question_more_and_a_question_less_are_shown(askback: Rehearsal, tmp_path: Path) -> None:
    path = await recording(askback, tmp_path / "wrap.json")
    with pytest.raises(ConversationError, match=r"'Which paper\?' was asked before it|never used: 'Which paper\?'"):
        await askback.replay(shop(paper=silent), path)
    short = Conversation.load(path)
    del short.calls[0].exchanges[1:]
    with pytest.raises(ConversationError, match="It was not asked when the conversation was recorded"):
        await askback.replay(mcp, short)


def test_a_file_without_a_conversation_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"version": 2}')
    with pytest.raises(ValueError, match=r"x\.json holds no conversation: (?s:.*)version"):
        Conversation.load(path)
    for text in ('{"hello": 1}', "[]", "3", "no JSON"):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"x\.json holds no conversation"):
            Conversation.load(path)
    with pytest.raises(FileNotFoundError):
        Conversation.load(tmp_path / "nowhere.json")


async def test_another_call_that_asks_is_noticed(askback: Rehearsal) -> None:
    asks_about = "ORD-1"

    async def ask(order: str) -> Scope | Elicit[Scope]:
        return Elicit("Sure?", Scope) if order == asks_about else Scope(full=True)

    server = shop(scope=ask)
    async with askback.connect(server, {"Sure": {"full": True}}) as client:
        for order in ("ORD-1", "ORD-2", "ORD-2"):
            await client.call_tool("refund", {"order": order})
    await askback.replay(server, client.conversation)
    asks_about = "ORD-2"
    with pytest.raises(ConversationError, match="'refund' asked 'Sure\\?'. It was not asked when"):
        await askback.replay(server, client.conversation)
    asks_about = "nothing"
    with pytest.raises(ConversationError, match="Nothing was asked, .* never used: 'Sure\\?'"):
        await askback.replay(server, client.conversation)


async def test_the_same_call_made_twice_is_told_apart(askback: Rehearsal) -> None:
    asks = iter([True, False, False, True])

    async def ask(order: str) -> Scope | Elicit[Scope]:
        return Elicit("Sure?", Scope) if next(asks) else Scope(full=True)

    # On 2026-07-28 a resolver that asks runs again to take its answer.
    asks = iter([True, True, False, False, True] if askback.generation == "2026-07-28" else [True, False, False, True])
    server = shop(scope=ask)
    async with askback.connect(server, {"Sure": {"full": True}}) as client:
        await client.call_tool("refund", ORDER)
        await client.call_tool("refund", ORDER)
    with pytest.raises(ConversationError, match="It was not asked when the conversation was recorded"):
        await askback.replay(server, client.conversation)


async def test_answers_to_two_resolvers_with_the_same_wording_are_not_swapped(askback: Rehearsal) -> None:
    server = FastMCP("twins")

    async def ask_first() -> Elicit[Scope]:
        return Elicit("Sure?", Scope)

    async def ask_second() -> Elicit[Scope]:
        return Elicit("Sure?", Scope)

    @server.tool
    async def go(one: Annotated[Scope, Resolve(ask_first)], other: Annotated[Scope, Resolve(ask_second)]) -> str:
        return f"{one.full} {other.full}"

    async with askback.connect(server, [{"full": True}, {"full": False}]) as client:
        await client.call_tool("go")
    recorded = client.conversation
    assert (await askback.replay(server, recorded)).calls[0].result == recorded.calls[0].result == "True False"
    if askback.generation == "2026-07-28":
        # The questions of a round have no order, so neither have its exchanges in a recording.
        recorded.calls[0].exchanges.reverse()
        assert (await askback.replay(server, recorded)).calls[0].result == "True False"


async def test_what_was_asked_outside_a_call_cannot_be_replayed(askback: Rehearsal) -> None:
    async with askback.connect(mcp, {"Refund": {"full": True}}) as client:
        await client.call_tool("refund", ORDER)
    client.conversation.calls[0].tool = ""
    with pytest.raises(ConversationError, match="never used: 'Refund all of ORD-1"):
        await askback.replay(mcp, client.conversation)


async def test_a_recording_without_calls_is_rejected(askback: Rehearsal) -> None:
    with pytest.raises(ValueError, match="has no calls to replay"):
        await askback.replay(mcp, Conversation())


async def test_a_picture_shows_what_failed(askback: Rehearsal) -> None:
    call = await askback.call(mcp, "refund", ORDER, {"Refund": Decline()})
    picture = Conversation(calls=[call]).picture()
    assert "    gets   declined  (by 'Refund')" in picture
    failed = "  failed   Resolver for parameter 'scope' could not resolve: elicitation was decline. The user declined "
    assert picture.splitlines()[-1].startswith(failed)
