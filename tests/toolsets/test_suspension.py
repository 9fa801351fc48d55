"""A run that waits for a person is a JSON document, and goes on elsewhere."""

import json
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import anyio
import fastmcp
import pytest
from fastmcp_tasks import TasksExtension
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied, UserError
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.messages import ToolCallPart

from askback import Elicit, Resolve
from askback.agents import (
    Accept,
    AnswerRecord,
    Answers,
    Cancel,
    Decline,
    Defer,
    PendingQuestion,
    Question,
    pending_questions,
    resume_with,
    run_until_done,
    when,
)
from askback.integration import FastMCP
from askback.testing import Conversation, Generation, Rehearsal, ScriptedModel, calls
from tests.agency import toolset
from tests.stopping import Name, Sure, desk, loaded, stoppable, stored

KEY = "k" * 32


async def stop(agent: Agent[Any, Any], **options: Any) -> tuple[list[Any], DeferredToolRequests]:
    """Run until it stops, and read back what was put away."""
    result = await agent.run("please", **options)
    assert isinstance(result.output, DeferredToolRequests), result.output
    return loaded(stored(result))


def by_message(requests: DeferredToolRequests) -> dict[str, PendingQuestion]:
    return {pending.question.message: pending for pending in pending_questions(requests)}


async def go_on(agent: Agent[Any, Any], messages: list[Any], results: DeferredToolResults) -> Any:
    return await agent.run(message_history=messages, deferred_tool_results=results)


async def test_a_run_stops_and_goes_on_with_another_toolset_and_replica() -> None:
    messages, requests = await stop(stoppable(toolset(desk(KEY), policies=[Defer()])))
    (pending,) = pending_questions(requests)
    assert pending.question.asks(Sure)
    assert (pending.question.server, pending.question.tool) == ("desk", "refund")
    assert PendingQuestion.from_json(pending.to_json()) == pending

    elsewhere = stoppable(toolset(desk(KEY), policies=[Defer()]))
    again = await go_on(elsewhere, messages, resume_with(requests, {pending.id: Accept({"ok": True})}))
    messages, requests = loaded(stored(again))
    (pending,) = pending_questions(requests)
    assert (pending.question.asks(Name), pending.question.round) == (True, 2)

    third = stoppable(toolset(desk(KEY), policies=[Defer()]))
    done = await go_on(third, messages, resume_with(requests, {pending.id: Accept(Name(name="Ada"))}))
    assert done.output == "refunded ORD-1 for Ada (True)"


@pytest.mark.parametrize("lost", ["key", "expired"])
async def test_a_server_that_has_forgotten_is_called_from_the_start(lost: str) -> None:
    ttl = 0.05 if lost == "expired" else 600
    server = desk(KEY, ttl)
    messages, requests = await stop(
        stoppable(toolset(server, policies=[when(Accept({"ok": True}), schema=Sure), Defer()]))
    )
    (pending,) = pending_questions(requests)
    assert pending.question.asks(Name)
    await anyio.sleep(0.1)
    asked: list[AnswerRecord] = []
    another = server if lost == "expired" else desk("z" * 32)
    agent = stoppable(toolset(another, policies=[Decline()], on_answer=asked.append))
    done = await go_on(agent, messages, resume_with(requests, {pending.id: Accept(Name(name="Ada"))}))
    assert done.output == "refunded ORD-1 for Ada (True)"
    assert [record.policy for record in asked] == ["(answered later)"]


async def test_a_reworded_question_is_asked_again_and_no_other() -> None:
    policies = [when(Accept({"ok": True}), schema=Sure), Defer()]
    messages, requests = await stop(stoppable(toolset(desk(KEY), policies=policies)))
    (pending,) = pending_questions(requests)
    asked: list[AnswerRecord] = []
    person = Answers({"Certain": {"ok": False}})
    agent = stoppable(toolset(desk("z" * 32, wording="Certain"), policies=[person], on_answer=asked.append))
    done = await go_on(agent, messages, resume_with(requests, {pending.id: Accept(Name(name="Ada"))}))
    assert done.output == "refunded ORD-1 for Ada (False)"
    assert [(record.question.message, record.policy) for record in asked] == [
        ("Whose?", "(answered later)"),
        ("Certain about ORD-1?", "Answers"),
    ]


@pytest.mark.askback("2026-07-28")
async def test_a_live_run_outlives_the_servers_state_too(askback: Rehearsal) -> None:
    async def slow(ctx: Any, question: Question) -> Accept:
        if question.asks(Name):
            await anyio.sleep(0.1)
            return Accept({"name": "Ada"})
        return Accept({"ok": True})

    run = await askback.play(stoppable(toolset(desk(KEY, 0.05), policies=[slow])))
    assert run.output == "refunded ORD-1 for Ada (True)"
    assert len(run.answers) == 2


def three_questions() -> FastMCP[Any]:
    server = FastMCP("three")

    def asks(message: str) -> Any:
        async def ask() -> Elicit[Name]:
            return Elicit(message, Name)

        return ask

    @server.tool
    async def refund(
        order: str,
        a: Annotated[Name, Resolve(asks("One?"))],
        b: Annotated[Name, Resolve(asks("Two?"))],
        c: Annotated[Name, Resolve(asks("Three?"))],
    ) -> str:
        return f"{order}: {a.name} {b.name} {c.name}"

    return server


async def test_what_policies_answered_is_kept_and_partial_answers_too() -> None:
    server = three_questions()
    asked: list[AnswerRecord] = []
    agent = stoppable(
        toolset(server, policies=[Answers({"One": {"name": "first"}, "": Defer()})], on_answer=asked.append)
    )
    messages, requests = await stop(agent)
    pending = by_message(requests)
    assert set(pending) == {"Two?", "Three?"}
    again = await go_on(agent, messages, resume_with(requests, {pending["Two?"].id: Accept({"name": "second"})}))
    messages, requests = loaded(stored(again))
    pending = by_message(requests)
    assert set(pending) == {"Three?"}
    deferred = await go_on(agent, messages, resume_with(requests, {pending["Three?"].id: Defer()}))
    messages, requests = loaded(stored(deferred))
    assert set(by_message(requests)) == {"Three?"}
    done = await go_on(agent, messages, resume_with(requests, {pending["Three?"].id: Accept({"name": "third"})}))
    assert done.output == "ORD-1: first second third"
    assert [record.policy for record in asked] == ["Answers"] * 3 + ["(answered later)"] * 2


@pytest.mark.parametrize(("answer", "action"), [(Decline(), "decline"), (Cancel(), "cancel")])
async def test_declining_is_an_answer(askback: Rehearsal, answer: Any, action: str) -> None:
    run = await askback.play(stoppable(toolset(desk(), policies=[Defer()], restartable=True)))
    done = await run.resume({"Sure about ORD-1": answer})
    assert done.output.startswith(
        f"Resolver for parameter 'sure' could not resolve: elicitation was {action}. The user "
    )


async def test_a_bare_approval_leaves_the_questions_pending_and_a_denial_abandons_the_call() -> None:
    called: list[str] = []

    async def hook(ctx: Any, call_tool: Any, name: str, args: dict[str, Any]) -> Any:
        called.append(name)
        return await call_tool(name, args)

    agent = stoppable(toolset(desk(), policies=[Defer()], process_tool_call=hook))
    messages, requests = await stop(agent)
    (pending,) = pending_questions(requests)
    approved = await go_on(agent, messages, DeferredToolResults(approvals={pending.tool_call_id: True}))
    assert set(by_message(approved.output)) == {"Sure about ORD-1?"}
    assert len(called) == 2
    denial = DeferredToolResults(approvals={pending.tool_call_id: ToolDenied("Not today")})
    assert (await go_on(agent, messages, denial)).output == "Not today"
    assert len(called) == 2


async def test_several_calls_servers_and_approvals_of_the_application_stop_at_once() -> None:
    def transfer(cents: int) -> str:
        return f"sent {cents}"

    from pydantic_ai import Tool

    desks = [toolset(desk(KEY), id=name, policies=[Defer()]).prefixed(name) for name in ("a", "b")]
    agent = stoppable(
        desks,
        ScriptedModel(
            [
                ToolCallPart("a_refund", {"order": "1"}),
                ToolCallPart("b_refund", {"order": "2"}),
                ToolCallPart("a_refund", {"order": "3"}),
                ToolCallPart("transfer", {"cents": 5}),
            ]
        ),
        tools=[Tool(transfer, requires_approval=True)],
    )
    messages, requests = await stop(agent)
    pending = by_message(requests)
    assert {message: each.question.server for message, each in pending.items()} == {
        "Sure about 1?": "a",
        "Sure about 2?": "b",
        "Sure about 3?": "a",
    }
    results = resume_with(requests, {each.id: Accept({"ok": True}) for each in pending.values()})
    own = requests.approvals[-1].tool_call_id
    assert own not in results.approvals
    results.update(DeferredToolResults(approvals={own: True}))
    again = await go_on(agent, messages, results)
    messages, requests = loaded(stored(again))
    answers = {each.id: Accept({"name": each.question.arguments["order"]}) for each in pending_questions(requests)}
    assert len(answers) == 3
    done = await go_on(agent, messages, resume_with(requests, answers))
    refunds = "refunded 1 for 1 (True) | refunded 2 for 2 (True) | refunded 3 for 3 (True)"
    assert done.output == f"{refunds} | sent 5"


async def test_a_hook_that_catches_everything_does_not_swallow_a_stop(askback: Rehearsal) -> None:
    async def hook(ctx: Any, call_tool: Any, name: str, args: dict[str, Any]) -> Any:
        try:
            return await call_tool(name, args)
        except BaseException:
            return "swallowed"

    tools = toolset(desk(), policies=[Defer()], process_tool_call=hook, restartable=True)
    run = await askback.play(stoppable(tools))
    assert [pending.question.message for pending in run.pending] == ["Sure about ORD-1?"]


async def test_streams_iter_and_capabilities_see_the_stop() -> None:
    tools = toolset(desk(), policies=[Defer()])
    agent = stoppable(tools)
    async with agent.iter("please") as run:
        async for _ in run:
            pass
    assert run.result is not None
    assert set(by_message(run.result.output)) == {"Sure about ORD-1?"}
    async with agent.run_stream("please") as stream:
        output = await stream.get_output()
    assert set(by_message(output)) == {"Sure about ORD-1?"}

    seen: list[str] = []

    async def handle(ctx: Any, requests: DeferredToolRequests) -> DeferredToolResults:
        (pending,) = pending_questions(requests)
        seen.append(pending.question.message)
        return resume_with(requests, {pending.id: Accept({"ok": True})})

    handling = stoppable(tools, capabilities=[HandleDeferredToolCalls(handle)])
    _, requests = await stop(handling)
    assert seen == ["Sure about ORD-1?"]
    assert set(by_message(requests)) == {"Whose?"}


async def test_answers_are_checked_when_they_are_given() -> None:
    _, requests = await stop(stoppable(toolset(desk(), policies=[Defer()])))
    (pending,) = pending_questions(requests)
    with pytest.raises(ValueError, match=r"does not fit the question 'Sure about ORD-1\?': ok: 'yes' is not of type"):
        resume_with(requests, {pending.id: Accept({"ok": "yes"})})
    with pytest.raises(ValueError, match="for no question of these requests: other"):
        resume_with(requests, {"other": Decline()})
    with pytest.raises(ValueError, match="True is not an answer"):
        resume_with(requests, {pending.id: True})  # pyright: ignore
    assert pending_questions(DeferredToolRequests(approvals=[ToolCallPart("x", {}, "1")])) == []


async def test_an_address_can_wait_too() -> None:
    from mcp_types import ElicitRequest, ElicitRequestURLParams, InputRequiredResult

    server = fastmcp.FastMCP("visits")

    @server.tool
    async def refund(order: str, ctx: fastmcp.Context) -> Any:
        if ctx.input_responses is None:
            params = ElicitRequestURLParams(message="Pay?", url="https://example.com/pay", elicitation_id="1")
            return InputRequiredResult(input_requests={"pay": ElicitRequest(params=params)})
        return ctx.input_responses["pay"].action  # pyright: ignore

    agent = stoppable(toolset(server, policies=[Defer()]))
    messages, requests = await stop(agent)
    (pending,) = pending_questions(requests)
    assert pending.question.url == "https://example.com/pay"
    assert (await go_on(agent, messages, resume_with(requests, {pending.id: Accept()}))).output == "accept"


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda kept: {"version": 2}, "another release of askback: its format is 2, not 1"),
        (lambda kept: [], "its format is None"),
        (lambda kept: {"version": 1}, "is damaged"),
        (lambda kept: {**kept, "questions": 3}, "is damaged"),
        (lambda kept: {**kept, "round": "x"}, "is damaged"),
        (lambda kept: {**kept, "version": True}, "its format is True"),
        (
            lambda kept: {
                **kept,
                "questions": {k: {**q, "response": {"action": "yes"}} for k, q in kept["questions"].items()},
            },
            "is damaged",
        ),
    ],
)
async def test_what_cannot_be_read_is_a_clear_error(damage: Any, reason: str) -> None:
    agent = stoppable(toolset(desk(), policies=[Defer()]))
    messages, requests = await stop(agent)
    (call,) = requests.approvals
    requests.metadata[call.tool_call_id] = {"askback": damage(requests.metadata[call.tool_call_id]["askback"])}
    with pytest.raises(UserError, match=reason):
        pending_questions(requests)
    results = DeferredToolResults(approvals={call.tool_call_id: True}, metadata=requests.metadata)
    with pytest.raises(UserError, match=reason):
        await go_on(agent, messages, results)


async def test_answers_for_another_call_are_refused(askback: Rehearsal) -> None:
    agent = stoppable(toolset(desk(KEY), mode=askback.mode, policies=[Defer()], restartable=True))
    messages, requests = await stop(agent)
    (pending,) = pending_questions(requests)
    results = resume_with(requests, {pending.id: Accept({"ok": True})})
    overridden = DeferredToolResults(
        approvals={pending.tool_call_id: ToolApproved(override_args={"order": "ORD-9"})}, metadata=results.metadata
    )
    with pytest.raises(UserError, match="the answers are not for this call"):
        await go_on(agent, messages, overridden)
    elsewhere = stoppable(toolset(desk(KEY), id="another", policies=[Defer()]))
    with pytest.raises(UserError, match="was suspended by the toolset 'desk', but is resumed by 'another'"):
        await go_on(elsewhere, messages, results)


async def test_a_call_that_has_gone_on_already_is_refused() -> None:
    tools = toolset(desk(KEY), policies=[Defer()])
    agent = stoppable(tools)
    messages, requests = await stop(agent)
    (pending,) = pending_questions(requests)
    results = resume_with(requests, {pending.id: Decline()})
    finished = (await go_on(agent, messages, results)).all_messages()
    with pytest.raises(UserError):
        await go_on(agent, finished, results)

    from pydantic_ai import RunContext, RunUsage
    from pydantic_ai.models.test import TestModel

    ctx = RunContext[Any](
        deps=None,
        model=TestModel(),
        usage=RunUsage(),
        messages=finished,
        tool_call_id=pending.tool_call_id,
        tool_call_approved=True,
        tool_call_metadata=results.metadata[pending.tool_call_id],
    )
    async with tools:
        tool = (await tools.get_tools(ctx))["refund"]
        with pytest.raises(UserError, match="was resumed before: the messages hold its result"):
            await tools.call_tool("refund", {"order": "ORD-1"}, ctx, tool)


async def test_an_older_connection_starts_over_where_it_may() -> None:
    server = desk()
    policies = [when(Accept({"ok": True}), schema=Sure), Defer()]
    answered: list[AnswerRecord] = []
    tools = toolset(server, mode="legacy", policies=policies, restartable=True, on_answer=answered.append)
    agent = stoppable(tools)
    messages, requests = await stop(agent)
    (pending,) = pending_questions(requests)
    assert pending.question.asks(Name)
    assert [record.action for record in answered] == ["accept", "defer"]
    with anyio.fail_after(10):
        done = await go_on(agent, messages, resume_with(requests, {pending.id: Accept({"name": "Ada"})}))
    assert done.output == "refunded ORD-1 for Ada (True)"
    assert [record.action for record in answered] == ["accept", "defer", "accept"]
    assert answered[-1].policy == "(answered later)"


@pytest.mark.parametrize(("before", "after"), [("2025-11-25", "2026-07-28"), ("2026-07-28", "2025-11-25")])
async def test_a_run_may_go_on_over_a_connection_of_the_other_generation(before: Generation, after: Generation) -> None:
    policies = [when(Accept({"ok": True}), schema=Sure), Defer()]
    messages, requests = await stop(
        stoppable(toolset(desk(KEY), mode=Rehearsal(before).mode, policies=policies, restartable=True))
    )
    (pending,) = pending_questions(requests)
    asked: list[AnswerRecord] = []
    agent = stoppable(toolset(desk(KEY), mode=Rehearsal(after).mode, policies=[Decline()], on_answer=asked.append))
    done = await go_on(agent, messages, resume_with(requests, {pending.id: Accept({"name": "Ada"})}))
    assert done.output == "refunded ORD-1 for Ada (True)"
    assert [record.policy for record in asked] == ["(answered later)"]


@pytest.mark.askback("2025-11-25")
async def test_an_older_connection_says_what_to_set(askback: Rehearsal) -> None:
    with pytest.raises(UserError, match="pass `restartable=True` to the toolset"):
        await askback.play(stoppable(toolset(desk(), policies=[Defer()])))


async def test_a_server_that_does_not_withdraw_its_question_gets_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askback.agents.drivers.WITHDRAWAL_TIMEOUT", 0.01)
    server = fastmcp.FastMCP("stubborn")
    errors: list[str] = []

    @server.tool
    async def refund(order: str, ctx: fastmcp.Context) -> str:
        with anyio.CancelScope(shield=True):
            try:
                await ctx.elicit("Sure?", bool)
            except Exception as error:
                errors.append(str(error))
        return "went on"

    tools = toolset(server, mode="legacy", policies=[Defer()], restartable=True)
    async with tools:
        await stop(stoppable(tools))
        with anyio.fail_after(5):
            while not errors:  # noqa: ASYNC110 - it is another's doing
                await anyio.sleep(0.01)
    assert errors == ["The call that caused this was cancelled"]


@pytest.mark.askback("2026-07-28")
async def test_background_tasks_cannot_be_stopped(askback: Rehearsal) -> None:
    server = FastMCP("tasks")
    server.add_extension(TasksExtension())

    async def ask() -> Elicit[Sure]:
        return Elicit("Sure?", Sure)

    @server.tool(task=True)
    async def refund(order: str, sure: Annotated[Sure, Resolve(ask)]) -> str:
        return "never"

    with pytest.raises(UserError, match="a background task does not end"):
        await askback.play(stoppable(toolset(policies=[Defer()])), server=server)


async def test_run_until_done_goes_through_any_number_of_stops() -> None:
    asked: list[str] = []

    async def ask(pending: PendingQuestion) -> Accept:
        asked.append(pending.question.message)
        return Accept({"ok": True} if pending.question.asks(Sure) else {"name": "Ada"})

    agent = stoppable(toolset(desk(), policies=[Defer()]))
    assert (await run_until_done(agent, "please", ask=ask)).output == "refunded ORD-1 for Ada (True)"
    assert asked == ["Sure about ORD-1?", "Whose?"]
    declined = await run_until_done(agent, "please", ask=lambda pending: Decline())
    assert "elicitation was decline. The user" in declined.output


async def test_run_until_done_needs_somebody_for_the_rest() -> None:
    from pydantic_ai import Tool

    def transfer() -> str:
        return "sent"

    agent = stoppable([], calls("transfer"), tools=[Tool(transfer, requires_approval=True)])
    with pytest.raises(UserError, match="pass `others`"):
        await run_until_done(agent, "please", ask=lambda pending: Decline())

    async def approves(requests: DeferredToolRequests) -> DeferredToolResults:
        return requests.build_results(approve_all=True)

    for others in (approves, lambda requests: requests.build_results(approve_all=True)):
        done = await run_until_done(agent, "please", ask=lambda pending: Decline(), others=others)
        assert done.output == "sent"
    both = stoppable(
        toolset(desk(), policies=[Defer()]),
        ScriptedModel([ToolCallPart("transfer", {}), ToolCallPart("refund", {"order": "1"})]),
        tools=[Tool(transfer, requires_approval=True)],
    )
    done = await run_until_done(both, "please", ask=lambda pending: Decline(), others=approves)
    assert "elicitation was decline. The user" in done.output


@pytest.mark.parametrize("tools", [["x"], []], ids=["a tool", "no tools, but said so"])
async def test_sampling_answered_before_a_stop_is_kept(tools: list[str]) -> None:
    from mcp_types import (
        CreateMessageResult,
        CreateMessageResultWithTools,
        ListRootsResult,
        SamplingMessage,
        TextContent,
        Tool,
    )

    from askback import ListRoots, Sample

    server = FastMCP("all kinds")
    message = SamplingMessage(role="user", content=TextContent(text="Well?"))

    async def sample() -> Sample:
        return Sample([message], max_tokens=3)

    async def sample_with_tools() -> Sample:
        return Sample(
            [message], max_tokens=3, tools=[Tool(name=name, input_schema={"type": "object"}) for name in tools]
        )

    async def roots() -> ListRoots:
        return ListRoots()

    async def ask() -> Elicit[Sure]:
        return Elicit("Sure?", Sure)

    @server.tool
    async def refund(
        order: str,
        a: Annotated[CreateMessageResult, Resolve(sample)],
        b: Annotated[CreateMessageResultWithTools, Resolve(sample_with_tools)],
        c: Annotated[ListRootsResult, Resolve(roots)],
        d: Annotated[Sure, Resolve(ask)],
    ) -> str:
        return f"{getattr(a.content, 'text', '')} {len(b.content_as_list)} {len(c.roots)} {d.ok}"

    sampled: list[int] = []

    def choose(ctx: Any, params: Any) -> str:
        sampled.append(1)
        return "test"

    answering = toolset(server, policies=[Defer()], sampling_from=choose, roots_from=lambda ctx: ["/a"])
    agent = stoppable(answering)
    messages, requests = await stop(agent)
    (pending,) = pending_questions(requests)
    done = await go_on(agent, messages, resume_with(requests, {pending.id: Accept({"ok": True})}))
    assert done.output == "success (no tool calls) 1 1 True"
    assert len(sampled) == 2


async def test_what_was_answered_later_is_seen_when_the_run_goes_on(askback: Rehearsal) -> None:
    conversation = Conversation()
    waiting = toolset(desk(), mode=askback.mode, policies=[Defer()], restartable=True, on_answer=conversation)
    agent = stoppable(waiting)
    messages, requests = await stop(agent)
    assert [each.action for each in conversation.exchanges] == ["defer"]
    (pending,) = pending_questions(requests)
    result = await go_on(agent, messages, resume_with(requests, {pending.id: Accept({"ok": True})}))
    messages, requests = loaded(stored(result))
    (pending,) = pending_questions(requests)
    await go_on(agent, messages, resume_with(requests, {pending.id: Decline()}))
    answered = [(each.question.message, each.action, each.content, each.answered_by) for each in conversation.exchanges]
    assert answered == [
        ("Sure about ORD-1?", "accept", {"ok": True}, "(answered later)"),
        ("Whose?", "decline", None, "(answered later)"),
    ]
    assert {each.question.arguments["order"] for each in conversation.exchanges} == {"ORD-1"}


async def test_what_is_stored_is_small_and_holds_no_secret() -> None:
    async def hook(ctx: Any, call_tool: Any, name: str, args: dict[str, Any]) -> Any:
        return await call_tool(name, {"order": f"{args['order']} sk-SECRET {'x' * 10_000}"})

    server = three_questions()
    agent = stoppable(toolset(server, policies=[Defer()], process_tool_call=hook))
    result = await agent.run("please")
    assert "sk-SECRET" not in stored(result)
    messages, requests = loaded(stored(result))
    (metadata,) = requests.metadata.values()
    kept = metadata["askback"]
    own = len(json.dumps(kept)) - sum(len(json.dumps(kept[name])) for name in ("state", "questions", "given"))
    assert own < 1024
    pending = pending_questions(requests)
    assert pending[0].question.arguments == {"order": "ORD-1"}
    done = await go_on(agent, messages, resume_with(requests, {each.id: Accept({"name": "Ada"}) for each in pending}))
    assert done.output.endswith(": Ada Ada Ada")


async def test_equal_arguments_cannot_be_recognised_in_what_is_stored() -> None:
    digests: set[str] = set()
    for _ in range(2):
        _, requests = await stop(stoppable(toolset(desk(), policies=[Defer()])))
        (metadata,) = requests.metadata.values()
        salt, _, digest = metadata["askback"]["arguments"].partition(":")
        assert len(salt) == 16
        digests.add(digest)
    assert len(digests) == 2


async def test_questions_of_the_same_wording_keep_their_own_answers() -> None:
    server = FastMCP("twins")

    def asks() -> Any:
        async def ask() -> Elicit[Name]:
            return Elicit("Name?", Name)

        return ask

    first, second = asks(), asks()

    async def ask_last(x: Annotated[Name, Resolve(first)], y: Annotated[Name, Resolve(second)]) -> Elicit[Sure]:
        return Elicit("Sure?", Sure)

    @server.tool
    async def refund(
        order: str,
        x: Annotated[Name, Resolve(first)],
        y: Annotated[Name, Resolve(second)],
        sure: Annotated[Sure, Resolve(ask_last)],
    ) -> str:
        return f"from {x.name} to {y.name}"

    agent = stoppable(toolset(server, policies=[Defer()]))
    messages, requests = await stop(agent)
    one, two = pending_questions(requests)
    partial = await go_on(agent, messages, resume_with(requests, {one.id: Accept({"name": "Ada"})}))
    messages, requests = loaded(stored(partial))
    assert [pending.id for pending in pending_questions(requests)] == [two.id]
    last = await go_on(agent, messages, resume_with(requests, {two.id: Accept({"name": "Bob"})}))
    messages, requests = loaded(stored(last))
    (sure,) = pending_questions(requests)
    # Another server object has another key: the call starts over.
    results = resume_with(requests, {sure.id: Accept({"ok": True})})
    assert (await go_on(agent, messages, results)).output == "from Ada to Bob"
    (suspension,) = results.metadata.values()
    suspension["askback"]["state"] = "v1.forgotten"
    assert (await go_on(agent, messages, results)).output == "from Ada to Bob"


async def test_a_question_asked_again_is_asked_again() -> None:
    from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

    server = fastmcp.FastMCP("pins")
    form = ElicitRequestFormParams(
        message="PIN?", requested_schema={"type": "object", "properties": {"pin": {"type": "string"}}}
    )

    @server.tool
    async def refund(order: str, ctx: fastmcp.Context) -> Any:
        response: Any = (ctx.input_responses or {}).get("pin")
        if response is not None and response.content == {"pin": "42"}:
            return "right"
        return InputRequiredResult(input_requests={"pin": ElicitRequest(params=form)}, request_state="s")

    guesses = iter(["1", "42"])
    agent = stoppable(toolset(server, policies=[Defer()]))
    done = await run_until_done(agent, "please", ask=lambda pending: Accept({"pin": next(guesses)}))
    assert done.output == "right"


async def test_an_older_connection_gives_each_answer_once() -> None:
    server = fastmcp.FastMCP("items")

    @server.tool
    async def refund(order: str, ctx: fastmcp.Context) -> str:
        got: list[str] = []
        while len(got) < 3:
            got.append((await ctx.elicit("Next?", Name)).data.name)  # pyright: ignore
        return " ".join(got)

    names = iter(["a", "b", "c"])
    agent = stoppable(toolset(server, mode="legacy", policies=[Defer()], restartable=True))
    done = await run_until_done(agent, "please", ask=lambda pending: Accept({"name": next(names)}))
    assert done.output == "a b c"


async def test_nothing_is_sent_in_the_name_of_a_run_that_stops(askback: Rehearsal) -> None:
    bodies: list[str] = []
    server = desk()

    @server.tool
    async def other(order: str) -> str:
        bodies.append("other")
        return "other"

    async def hook(ctx: Any, call_tool: Any, name: str, args: dict[str, Any]) -> Any:
        try:
            return await call_tool(name, args)
        except BaseException:
            return await call_tool("other", args)

    tools = toolset(server, policies=[Defer()], process_tool_call=hook, restartable=True)
    run = await askback.play(stoppable(tools))
    assert len(run.pending) == 1
    assert bodies == []


async def test_a_hook_may_call_another_tool_first() -> None:
    server = desk(KEY)
    server.tool(lambda order: "checked", name="check")

    async def hook(ctx: Any, call_tool: Any, name: str, args: dict[str, Any]) -> Any:
        await call_tool("check", args)
        return await call_tool(name, args)

    agent = stoppable(
        toolset(server, policies=[when(Accept({"ok": True}), schema=Sure), Defer()], process_tool_call=hook)
    )
    done = await run_until_done(agent, "please", ask=lambda pending: Accept({"name": "Ada"}))
    assert done.output == "refunded ORD-1 for Ada (True)"

    async def forgets(ctx: Any, call_tool: Any, name: str, args: dict[str, Any]) -> Any:
        return await call_tool("check", args)

    messages, requests = await stop(stoppable(toolset(server, policies=[Defer()])))
    (pending,) = pending_questions(requests)
    forgetful = stoppable(toolset(server, policies=[Defer()], process_tool_call=forgets))
    with pytest.raises(UserError, match="'refund' was suspended, but was not called when the run was resumed"):
        await go_on(forgetful, messages, resume_with(requests, {pending.id: Accept({"ok": True})}))


async def test_starting_over_takes_as_many_rounds_again() -> None:
    policies = [when(Accept({"ok": True}), schema=Sure), Defer()]
    messages, requests = await stop(stoppable(toolset(desk(KEY), policies=policies, max_rounds=2)))
    (pending,) = pending_questions(requests)
    agent = stoppable(toolset(desk("z" * 32), policies=[Decline()], max_rounds=2))
    done = await go_on(agent, messages, resume_with(requests, {pending.id: Accept({"name": "Ada"})}))
    assert done.output == "refunded ORD-1 for Ada (True)"


@pytest.mark.askback("2026-07-28")
async def test_a_server_that_always_forgets_is_given_up(askback: Rehearsal) -> None:
    agent = stoppable(toolset(policies=[when(Accept({"ok": True}), schema=Sure)], max_rounds=2))
    run = await askback.play(agent, server=desk(KEY, 1e-9))
    assert "Invalid or expired requestState" in run.output


async def test_a_late_answer_to_an_old_wording_is_for_no_question() -> None:
    messages, requests = await stop(stoppable(toolset(desk(KEY), policies=[Defer()])))
    (old,) = pending_questions(requests)
    reworded = stoppable(toolset(desk("z" * 32, wording="Certain"), policies=[Defer()]))
    again = await go_on(reworded, messages, resume_with(requests, {old.id: Accept({"ok": True})}))
    (new,) = pending_questions(again.output)
    assert (new.question.message, new.id == old.id) == ("Certain about ORD-1?", False)
    with pytest.raises(ValueError, match="for no question of these requests"):
        resume_with(again.output, {old.id: Accept({"ok": True})})


async def test_a_toolset_without_an_id_cannot_stop(askback: Rehearsal) -> None:
    with pytest.raises(UserError, match="has no `id` by which to recognise it"):
        await askback.play(stoppable(toolset(desk(), id=None, policies=[Defer()], restartable=True)))


async def test_only_people_can_be_waited_for(askback: Rehearsal) -> None:
    from tests.agency import desk as everything

    def defers(ctx: Any, question: Question) -> Defer:
        return Defer()

    tools = toolset(everything, policies=[defers], sampling_from="test")
    with pytest.raises(UserError, match="deferred a sampling request, which cannot wait"):
        await askback.play(stoppable(tools), calls("judge", order="x"))


async def test_a_tool_call_id_may_come_again_in_a_later_turn() -> None:
    from pydantic_ai.messages import ModelRequest, ModelResponse, ToolReturnPart, UserPromptPart

    agent = stoppable(toolset(desk(KEY), policies=[Defer()]))
    messages, requests = await stop(agent)
    (pending,) = pending_questions(requests)
    before = [
        ModelRequest(parts=[UserPromptPart("before")]),
        ModelResponse(parts=[ToolCallPart("refund", {"order": "0"}, pending.tool_call_id)]),
        ModelRequest(parts=[ToolReturnPart("refund", "done", pending.tool_call_id)]),
    ]
    done = await go_on(agent, [*before, *messages], resume_with(requests, {pending.id: Decline()}))
    assert "elicitation was decline. The user" in done.output


async def test_an_engine_that_carries_only_some_of_the_run_is_enough() -> None:
    from pydantic_ai.durable_exec import DurableRunContext
    from pydantic_ai.toolsets import WrapperToolset

    class Unit(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            carried = DurableRunContext(deps=ctx.deps, **DurableRunContext.serialize_run_context(ctx))
            return await super().call_tool(name, tool_args, carried, tool)

    agent = stoppable(Unit(toolset(desk(KEY), policies=[Defer()])))
    done = await run_until_done(
        agent, "please", ask=lambda pending: Accept({"ok": True} if pending.question.asks(Sure) else {"name": "Ada"})
    )
    assert done.output == "refunded ORD-1 for Ada (True)"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@asynccontextmanager
async def worker(key: str, ttl: float = 600) -> AsyncGenerator[str]:
    port = free_port()
    command = [sys.executable, "-m", "tests.stopping", "serve", f"{port}", key, f"{ttl}"]
    async with await anyio.open_process(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        with anyio.fail_after(30):
            while True:
                try:
                    stream = await anyio.connect_tcp("127.0.0.1", port)
                    break
                except OSError:
                    await anyio.sleep(0.05)
        await stream.aclose()
        yield f"http://127.0.0.1:{port}/mcp"
        process.terminate()


async def process(*arguments: str) -> str:
    command = [sys.executable, "-m", "tests.stopping", *arguments]
    with anyio.fail_after(60):
        ran = await anyio.run_process(command, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    return ran.stdout.decode().strip()


@pytest.mark.processes
async def test_across_processes_and_workers(tmp_path: Path) -> None:
    file = str(tmp_path / "run.json")
    async with worker(KEY) as one, worker(KEY) as two, worker("z" * 32) as forgetful:
        assert await process("start", one, file) == "stopped: Sure about ORD-1?"
        assert await process("resume", two, file) == "stopped: Whose?"
        waiting = await anyio.Path(file).read_text()
        assert (await process("resume", one, file)).startswith("finished: refunded ORD-1 for process ")
        await anyio.Path(file).write_text(waiting)
        # It has lost the key: the call starts over there, and nobody is asked anything again.
        assert (await process("resume", forgetful, file)).startswith("finished: refunded ORD-1 for process ")


@pytest.mark.processes
async def test_across_processes_after_the_state_has_expired(tmp_path: Path) -> None:
    file = str(tmp_path / "run.json")
    async with worker(KEY, 0.2) as server:
        assert await process("start", server, file) == "stopped: Sure about ORD-1?"
        assert await process("resume", server, file) == "stopped: Whose?"
        assert (await process("resume", server, file)).startswith("finished: refunded ORD-1 for process ")
