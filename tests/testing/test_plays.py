"""An agent's questions, with a scripted model, real policies and any server."""

import itertools
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_types import ElicitResult
from pydantic_ai import Agent, DeferredToolRequests, RunContext, ToolReturn, UserError
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models.test import TestModel

from askback import Elicit
from askback.agents import (
    Accept,
    AnswerRecord,
    Cancel,
    Decline,
    Defer,
    FromModel,
    PolicyError,
    Question,
    when,
)
from askback.testing import Conversation, ConversationError, Rehearsal, ScriptedModel, calls
from askback.toolsets import ResolverToolset
from tests.testing.shop import Paper, Scope, mcp, shop

NOWHERE = "http://127.0.0.1:9/mcp"
REFUND = calls("refund", order="ORD-1")


def trusted(ctx: RunContext[bool], question: Question) -> Accept | None:
    return Accept(Scope(full=True)) if ctx.deps and question.asks(Scope) else None


toolset = ResolverToolset[bool](NOWHERE, id="shop", policies=[trusted, Defer()], restartable=True)
agent = Agent("test", deps_type=bool, toolsets=[toolset], output_type=[str, DeferredToolRequests])


async def test_a_test_of_an_agent_takes_six_lines(askback: Rehearsal) -> None:
    run = await askback.play(agent, calls("refund", order="ORD-1"), mcp, deps=True)
    assert run.output == "refunded ORD-1, full=True"
    (answer,) = run.answers
    assert (answer.policy, answer.action, answer.content) == ("trusted", "accept", {"full": True})
    assert (run.pending, run.usage.requests, run.usage.tool_calls) == ([], 2, 1)


@pytest.mark.askback(over=["http", "stdio"])
async def test_an_agent_reaches_its_server_over_every_connection(askback: Rehearsal) -> None:
    run = await askback.play(agent, REFUND, mcp, deps=True)
    assert run.output == "refunded ORD-1, full=True"


async def test_a_deferred_question_is_pending_and_resumed(askback: Rehearsal) -> None:
    run = await askback.play(agent, calls("wrap", order="ORD-1"), mcp, deps=True)
    by_round = {"Which note?"} if askback.generation == "2026-07-28" else {"Which paper?"}
    assert {each.question.message for each in run.pending} == by_round
    while run.pending:
        run = await run.resume({Paper: Paper(paper="red")}, deps=True)
    assert run.output == "wrapped ORD-1 in red, with a red note"


async def test_a_script_that_does_not_answer_what_is_pending_says_why(askback: Rehearsal) -> None:
    run = await askback.play(agent, REFUND, mcp, deps=False)
    with pytest.raises(ConversationError, match="asked 'Refund all of ORD-1\\?'. The script has no answer for it"):
        await run.resume({"gift": {}})
    with pytest.raises(ConversationError, match="never used: answer 2"):
        await run.resume([{"full": True}, 2])
    declined = await run.resume([Decline()], deps=False)
    assert "elicitation was decline. The user" in str(declined.output)


async def test_a_script_answers_instead_of_the_policies(askback: Rehearsal) -> None:
    script = {
        Scope: Scope(full=False),
        "paper": ElicitResult(action="accept", content={"paper": "red"}),
        Paper: Paper(paper="blue"),
    }
    run = await askback.play(agent, calls("wrap", order="ORD-1"), mcp, script, deps=True)
    assert run.output == "wrapped ORD-1 in red, with a blue note"
    assert {answer.policy for answer in run.answers} == {"the script"}
    assert "said   wrapped ORD-1 in red, with a blue note" in run.conversation.picture()


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [(ElicitResult(action="decline"), "decline"), (ElicitResult(action="cancel"), "cancel"), (Cancel(), "cancel")],
)
async def test_a_script_refuses_for_an_agent(askback: Rehearsal, answer: Any, outcome: str) -> None:
    run = await askback.play(agent, REFUND, mcp, [answer], deps=True)
    assert f"elicitation was {outcome}. The user" in str(run.output)


async def test_a_question_that_the_script_does_not_answer_fails_with_the_conversation(askback: Rehearsal) -> None:
    with pytest.raises(ConversationError) as failure:
        await askback.play(agent, calls("wrap", order="ORD-1"), mcp, {Scope: {"full": True}}, deps=True)
    assert "'wrap' asked 'Which" in str(failure.value)
    assert 'gets   accepted {"full": true}  (by the script)' in str(failure.value)
    assert str(failure.value).endswith("gets   no answer")
    with pytest.raises(ConversationError, match="Nothing was asked"):
        await askback.play(agent, calls("plain", order="ORD-1"), mcp, {Scope: {"full": True}}, deps=True)


async def test_a_script_that_does_not_fit_says_where(askback: Rehearsal) -> None:
    with pytest.raises(
        ConversationError, match="The answer from the script .answer 1. does not fit: the form has no 'ful'"
    ):
        await askback.play(agent, REFUND, mcp, [{"full": True, "ful": True}], deps=True)
    run = await askback.play(agent, REFUND, mcp, deps=False)
    with pytest.raises(ConversationError, match="does not fit: full: 'x' is not of type 'boolean'"):
        await run.resume([{"full": "x"}])


async def test_a_policy_that_breaks_is_not_taken_for_the_script(askback: Rehearsal) -> None:
    def broken(ctx: Any, question: Question) -> Any:
        raise ValueError("broken")

    with pytest.raises(PolicyError, match="broken"):
        await askback.play(agent, REFUND, mcp, broken, deps=True)
    other = Agent("test", toolsets=[ResolverToolset(NOWHERE, id="shop", policies=[broken])])
    with pytest.raises(PolicyError, match="broken"):
        await askback.play(other, REFUND, mcp)


@pytest.mark.askback("2026-07-28")
async def test_a_question_that_changes_between_rounds_is_found_whichever_policy_answers(askback: Rehearsal) -> None:
    numbers = itertools.count()

    async def ask(order: str) -> Elicit[Scope]:
        return Elicit(f"Refund {order} as number {next(numbers)}?", Scope)

    with pytest.raises(
        ConversationError, match=r"'Refund ORD-1 as number 0\?' in round 1 and .* number 1\?' in round 2"
    ):
        await askback.play(agent, REFUND, shop(scope=ask), deps=True)
    with pytest.raises(ConversationError, match=r"asked 'Refund ORD-1 as number \d+\?' in round 1 and"):
        await askback.play(agent, REFUND, shop(scope=ask), Accept({"full": True}), deps=True)


async def test_a_play_leaves_the_agent_unchanged(askback: Rehearsal) -> None:
    before = toolset.client
    await askback.play(agent, REFUND, mcp, deps=True)
    assert toolset.client is before
    with pytest.raises(Exception, match="[Cc]onnect"):
        await agent.run("go", model=REFUND, deps=True)


async def test_an_agent_keeps_its_own_server_and_model(askback: Rehearsal) -> None:
    seen: list[AnswerRecord] = []

    async def note(record: AnswerRecord) -> None:
        seen.append(record)

    own = ResolverToolset(mcp, id="shop", policies=[Accept({"full": True})], on_answer=note)
    run = await askback.play(Agent(REFUND, toolsets=[own]))
    assert run.output == "refunded ORD-1, full=True"
    assert seen == run.answers
    assert (run.answers[0].question.key is None) == (askback.generation == "2025-11-25")


async def test_toolsets_inside_others_are_found_and_told_apart(askback: Rehearsal) -> None:
    one = ResolverToolset(NOWHERE, id="one", policies=[Accept({"full": True})])
    two = ResolverToolset(NOWHERE, id="two", policies=[Accept({"full": False})])
    both = Agent("test", toolsets=[one.prefixed("a"), two.prefixed("b")])
    model = ScriptedModel([ToolCallPart("a_refund", {"order": "1"}), ToolCallPart("b_refund", {"order": "2"})])
    run = await askback.play(both, model, {"one": mcp, "two": shop()})
    assert run.output == "refunded 1, full=True | refunded 2, full=False"
    assert [answer.question.server for answer in run.answers] == ["one", "two"]
    with pytest.raises(
        UserError, match=r"several ResolverToolsets, \['one', 'two'\]: give a mapping of their ids to servers"
    ):
        await askback.play(both, model, mcp)
    with pytest.raises(UserError, match="no toolset with the id 'three'"):
        await askback.play(both, model, {"three": mcp})


async def test_two_plays_of_one_agent_at_once_are_refused(askback: Rehearsal) -> None:
    begun, refused = anyio.Event(), anyio.Event()

    async def wait(ctx: Any, question: Question) -> Accept:
        begun.set()
        await refused.wait()
        return Accept({"full": True})

    slow = ResolverToolset(NOWHERE, id="shop", policies=[wait])
    waiting = Agent("test", toolsets=[slow])
    before = slow.client.transport
    async with anyio.create_task_group() as group:
        group.start_soon(askback.play, waiting, REFUND, mcp)
        await begun.wait()
        with pytest.raises(UserError, match="cannot be overridden: it is connected"):
            await askback.play(waiting, REFUND, mcp)
        refused.set()
    with slow.override(), pytest.raises(UserError, match="it is overridden already"):
        await askback.play(waiting, REFUND, mcp)
    assert slow.client.transport is before


async def test_what_cannot_be_overridden_says_why(askback: Rehearsal) -> None:
    with pytest.raises(UserError, match="has no ResolverToolset to answer"):
        await askback.play(Agent("test"), REFUND, mcp)
    per_run = ResolverToolset[None](NOWHERE, id="shop", headers=lambda ctx: {})
    with pytest.raises(UserError, match="'shop' cannot be overridden: its `auth` or `headers` depend on the run"):
        await askback.play(Agent("test", toolsets=[per_run]), REFUND, mcp)
    connected = ResolverToolset(mcp, id="shop", policies=[Decline()])
    async with connected:
        with pytest.raises(UserError, match="cannot be overridden: it is connected"):
            await askback.play(Agent("test", toolsets=[connected]), REFUND, mcp)


async def test_an_agents_conversation_is_recorded_and_replayed(askback: Rehearsal, tmp_path: Path) -> None:
    conversation = Conversation()
    recorder = ResolverToolset(mcp, id="shop", policies=[trusted, Accept({"paper": "red"})], on_answer=conversation)
    recorded = Agent(calls("wrap", order="ORD-1"), deps_type=bool, toolsets=[recorder])
    await askback.play(recorded, deps=True)
    conversation.save(tmp_path / "wrap.json")
    kept = Conversation.load(tmp_path / "wrap.json")
    assert [each.answered_by for each in kept.exchanges][:1] == ["trusted"]

    run = await askback.play(agent, calls("wrap", order="ORD-1"), mcp, kept, deps=True)
    assert run.output == "wrapped ORD-1 in red, with a red note"
    with pytest.raises(ConversationError, match="not what was asked when"):
        await askback.play(agent, calls("wrap", order="ORD-1"), shop(scope=ask_otherwise), kept, deps=True)
    with pytest.raises(ConversationError, match="It was not asked when the conversation was recorded"):
        await askback.play(agent, REFUND, mcp, kept, deps=True)


async def ask_otherwise(order: str) -> Any:
    return Elicit("Really?", Scope)


async def test_a_recording_does_not_depend_on_who_answers_first(askback: Rehearsal) -> None:
    conversation = Conversation()
    second = anyio.Event()

    async def first_is_slow(ctx: Any, question: Question) -> Accept:
        if question.asks(Scope):
            if askback.generation == "2026-07-28":
                await second.wait()
            return Accept({"full": True})
        second.set()
        return Accept({"paper": "red"})

    recorder = ResolverToolset(mcp, id="shop", policies=[first_is_slow], on_answer=conversation)
    both = ScriptedModel([ToolCallPart("wrap", {"order": order}) for order in ("ORD-1", "ORD-2")])
    await askback.play(Agent(both, toolsets=[recorder]))
    run = await askback.play(agent, both, mcp, conversation, deps=True)
    assert run.output == " | ".join(f"wrapped {order} in red, with a red note" for order in ("ORD-1", "ORD-2"))


async def test_a_suspended_run_is_replayed_to_its_end(askback: Rehearsal) -> None:
    conversation = Conversation()
    recorder = ResolverToolset(mcp, id="shop", policies=[Defer()], restartable=True, on_answer=conversation)
    recorded = Agent(REFUND, toolsets=[recorder], output_type=[str, DeferredToolRequests])
    run = await askback.play(recorded)
    run = await run.resume({Scope: {"full": True}})
    assert run.usage.requests == 2
    assert [each.policy for each in run.answers] == ["(answered later)"]
    replayed = await askback.play(agent, REFUND, mcp, conversation, deps=False)
    assert replayed.output == run.output == "refunded ORD-1, full=True"


async def test_a_scripted_model_answers_a_server_with_what_it_says(askback: Rehearsal) -> None:
    sampling = ResolverToolset(NOWHERE, id="shop", sampling_from="run", roots_from=lambda ctx: [])
    asking = Agent("test", toolsets=[sampling])
    silent = await askback.play(asking, ScriptedModel(calls("judge", order="ORD-1"), says="Quite."), mcp)
    assert silent.output == "Quite."
    assert silent.usage.requests == 3
    with pytest.raises(
        UserError, match="this request offers no tools, as when a server samples: give the model something to say"
    ):
        await askback.play(asking, calls("judge", order="ORD-1"), mcp)


async def test_a_resumed_run_keeps_its_script(askback: Rehearsal) -> None:
    def hesitant(ctx: Any, question: Question) -> Accept | Defer:
        return Defer() if question.asks(Scope) else Accept({"paper": "red"})

    def settled(ctx: Any, question: Question) -> Accept:
        return Accept({"full": True} if question.asks(Scope) else {"paper": "blue"})

    run = await askback.play(agent, calls("wrap", order="ORD-1"), mcp, hesitant, deps=True)
    run = await run.resume(settled)
    assert str(run.output).startswith("wrapped ORD-1 in blue")
    assert {answer.policy for answer in run.answers} == {"(answered later)", "the script"}
    with pytest.raises(UserError, match="The run is over: there is nothing to resume"):
        await run.resume([])


async def test_a_resumed_run_keeps_its_options(askback: Rehearsal) -> None:
    seen: list[str] = []

    def note(ctx: RunContext[str], question: Question) -> Accept | Defer:
        seen.append(ctx.deps)
        return Defer() if question.asks(Scope) else Accept({"paper": "red"})

    waiting = ResolverToolset[str](NOWHERE, id="shop", policies=[note], restartable=True)
    asking = Agent("test", deps_type=str, toolsets=[waiting], output_type=[str, DeferredToolRequests])
    run = await askback.play(asking, calls("wrap", order="ORD-1"), mcp, deps="me")
    run = await run.resume({Scope: {"full": True}})
    assert run.output == "wrapped ORD-1 in red, with a red note"
    assert set(seen) == {"me"}


async def test_a_deferral_is_replayed(askback: Rehearsal) -> None:
    stopped = await askback.play(agent, REFUND, mcp, deps=False)
    run = await askback.play(agent, REFUND, mcp, stopped.conversation, deps=True)
    assert len(run.pending) == 1


async def test_a_scripted_model_does_not_fill_in_forms(askback: Rehearsal) -> None:
    policies = [when(Accept({"full": True}), schema=Scope), FromModel()]
    asking = Agent("test", toolsets=[ResolverToolset(NOWHERE, id="shop", policies=policies)])
    run = await askback.play(asking, calls("wrap", order="ORD-1"), mcp)
    assert "elicitation was decline. The user" in run.output


async def test_what_policies_ask_of_models_is_counted(askback: Rehearsal) -> None:
    answering = TestModel(call_tools=[], custom_output_args={"paper": "red"})
    policies = [when(Accept({"full": True}), schema=Scope), FromModel(answering)]
    asking = Agent("test", toolsets=[ResolverToolset(NOWHERE, id="shop", policies=policies)])
    run = await askback.play(asking, calls("wrap", order="ORD-1"), mcp)
    assert run.output == "wrapped ORD-1 in red, with a red note"
    assert run.usage.requests == 4


async def test_a_scripted_model_takes_turns_and_says_what_it_is_told() -> None:
    async def add(a: int, b: int) -> int:
        return a + b

    async def show(it: str) -> ToolReturn:
        return ToolReturn({"it": it})

    first = [ToolCallPart("add", {"a": 1, "b": 2}), ToolCallPart("show", {"it": "x"})]
    talkative = Agent(ScriptedModel(first, ToolCallPart("add", {"a": 3, "b": 4}), says="Done."), tools=[add, show])
    result = await talkative.run("go")
    assert result.output == "Done."
    made = [part for message in result.all_messages() for part in message.parts if isinstance(part, ToolCallPart)]
    assert [part.tool_call_id for part in made] == ["add-1", "show-2", "add-3"]
    assert (await Agent(ScriptedModel(first), tools=[add, show]).run("go")).output == '3 | {"it": "x"}'
    async with Agent(ScriptedModel(first), tools=[add, show]).run_stream("go") as stream:
        assert await stream.get_output() == '3 | {"it": "x"}'
    assert (await Agent(ScriptedModel()).run("go")).output == "(nothing)"
    chained = ScriptedModel(calls("add", a=1, b=1), calls("add", a=2, b=2))
    assert (await Agent(chained, tools=[add]).run("go")).output == "4"
    talking = Agent(calls("add", a=1, b=2), tools=[add])
    first_time = await talking.run("go")
    again = await talking.run("again", message_history=first_time.all_messages())
    assert again.output == "3"
    ids = [
        part.tool_call_id for message in again.all_messages() for part in message.parts if part.part_kind == "tool-call"
    ]
    assert ids == ["add-1", "add-2"]
    with pytest.raises(TypeError, match=r"not 'Done'; use says=... for what it says in the end"):
        ScriptedModel(calls("add", a=1, b=1), "Done")  # pyright: ignore[reportArgumentType]


async def test_a_script_for_a_tool_that_does_not_exist_says_which_there_are() -> None:
    def add() -> int:
        return 1

    with pytest.raises(
        UserError, match="The script calls the tool 'ad', which the agent does not have; its tools: add"
    ):
        await Agent(calls("ad"), tools=[add]).run("go")
    with pytest.raises(UserError, match="The script should call the tool 'ad', but this request offers no tools"):
        await Agent(calls("ad")).run("go")
