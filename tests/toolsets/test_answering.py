"""A run's policies answer what its tools ask, on both generations."""

import json
from typing import Annotated, Any

import anyio
import fastmcp
import pytest
from mcp.server import MCPServer
from mcp_types import CreateMessageResult, ListRootsResult, Root, TextContent
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import FileUrl
from pydantic_ai import Agent, InstrumentationSettings, ModelRetry, RunContext, UsageLimits, UserError
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.exceptions import ModelHTTPError, UsageLimitExceeded
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from askback import Elicit, Resolve
from askback.agents import (
    Accept,
    AnswerRecord,
    Answers,
    Cancel,
    Decline,
    PolicyError,
    Question,
    QuestionAnswered,
    QuestionAsked,
)
from askback.integration import FastMCP
from askback.testing import Rehearsal, ScriptedModel, calls
from tests.agency import Scope, Script, Wrap, agent, refund, toolset

WRAP = calls("wrap", order="ORD-1")
JUDGE = calls("judge", order="ORD-1")
BROWSE = calls("browse")
DECLINED = "Resolver for parameter 'scope' could not resolve: elicitation was decline. The user "


async def test_a_policy_answers_from_the_run(askback: Rehearsal) -> None:
    policy = Script({"Refund all": Accept(Scope(full=True))})
    run = await askback.play(agent(toolset(policies=[policy]), deps_type=str), prompt="please", deps="me")
    assert run.output == "refunded ORD-1, full=True, sku="
    (question,), (ctx,) = policy.asked, policy.contexts
    assert [(record.question, record.policy) for record in run.answers] == [(question, "Script")]
    assert question == Question(
        kind="elicitation",
        server="desk",
        tool="refund",
        arguments={"order": "ORD-1"},
        message="Refund all of ORD-1?",
        mode="form",
        schema=question.schema,
        key="tests.agency:ask_scope" if askback.generation == "2026-07-28" else None,
        round=1,
    )
    assert question.asks(Scope)
    assert (ctx.deps, ctx.tool_name, ctx.prompt) == ("me", "refund", "please")
    assert ctx.messages[0].parts[0].content == "please"  # pyright: ignore


async def test_the_sdks_own_server_is_answered_too(askback: Rehearsal) -> None:
    server = MCPServer("sdk")
    server.tool()(refund)
    run = await askback.play(agent(toolset()), server=server, answers={"Refund all": Scope(full=True)})
    assert run.output == "refunded ORD-1, full=True, sku="
    assert [record.question.asks(Scope) for record in run.answers] == [True]


async def test_rounds_go_on_until_there_is_a_result(askback: Rehearsal) -> None:
    policy = Answers({"Refund all": {"full": True}, "Which paper": {"paper": "red"}})
    run = await askback.play(agent(toolset(policies=[policy])), WRAP)
    assert run.output == "wrapped ORD-1 in red"
    first, second = (record.question for record in run.answers)
    assert (first.round, second.round) == ((1, 2) if askback.generation == "2026-07-28" else (1, 1))
    assert second.asks(Wrap)


async def test_the_first_answer_wins_and_nobody_means_no(askback: Rehearsal) -> None:
    silent, first, second = Script({}), Script({"": Accept({"full": True})}), Script({"": Decline()})
    answered = await askback.play(agent(toolset(policies=[silent, first, second])))
    assert answered.output == "refunded ORD-1, full=True, sku="
    assert (len(silent.asked), len(first.asked), len(second.asked)) == (1, 1, 0)
    declined = await askback.play(agent(toolset(policies=[silent])))
    assert declined.output.startswith(DECLINED)
    assert [record.action for record in declined.answers] == ["decline"]


@pytest.mark.parametrize(("answer", "action"), [(Decline(), "decline"), (Cancel(), "cancel")])
async def test_answers_are_policies_too(askback: Rehearsal, answer: Any, action: str) -> None:
    run = await askback.play(agent(toolset(policies=[answer])))
    assert run.output.startswith(
        f"Resolver for parameter 'scope' could not resolve: elicitation was {action}. The user "
    )


async def test_a_sync_policy_does_as_well(askback: Rehearsal) -> None:
    def yes(ctx: RunContext[Any], question: Question) -> Accept:
        return Accept({"full": True})

    assert (await askback.play(agent(toolset(policies=[yes])))).output.startswith("refunded")


async def test_defaults_are_filled_in_before_the_answer_leaves(askback: Rehearsal) -> None:
    async def handler(message: str, response_type: Any, params: Any, context: Any) -> Any:
        raise AssertionError("a policy answers before")

    def yes(ctx: RunContext[Any], question: Question) -> Accept:
        return Accept({"full": True})

    run = await askback.play(agent(toolset(policies=[yes], elicitation_handler=handler)))
    assert run.output == "refunded ORD-1, full=True, sku="
    assert [record.content for record in run.answers] == [{"full": True, "sku": ""}]


async def test_the_handler_is_asked_after_all_policies(askback: Rehearsal) -> None:
    silent = Script({})

    async def handler(message: str, response_type: Any, params: Any, context: Any) -> Any:
        assert len(silent.asked) == 1
        return {"full": False}

    tools = toolset(policies=[silent], elicitation_handler=handler)
    assert (await askback.play(agent(tools))).output == "refunded ORD-1, full=False, sku="

    async def fails(*_: Any) -> Any:
        raise RuntimeError("the window is closed")

    failed = await askback.play(agent(toolset(elicitation_handler=fails)))
    assert "the window is closed" in failed.output


def raises(ctx: RunContext[Any], question: Question) -> None:
    raise ZeroDivisionError("oops")


def returns_nonsense(ctx: RunContext[Any], question: Question) -> Any:
    return True


def misfits(ctx: RunContext[Any], question: Question) -> Accept:
    return Accept({"full": True, "sku": "x" * 11})


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (raises, "raised ZeroDivisionError: oops"),
        (returns_nonsense, "returned True, which is not an answer"),
        (misfits, "accepted with content that does not fit (sku: "),
        (Accept(3), "accepted with content that does not fit (a form takes a mapping, a pydantic model or a dataclass"),
        (Accept({"full": True, "x": {"y": 1}}), "accepted with content that does not fit (x: a form takes texts"),
    ],
)
async def test_a_policy_that_is_wrong_ends_the_run(askback: Rehearsal, policy: Any, reason: str) -> None:
    async def swallow(ctx: Any, call_tool: Any, name: str, args: dict[str, Any]) -> Any:
        try:
            return await call_tool(name, args)
        except Exception:
            return "swallowed"

    name = getattr(policy, "__name__", type(policy).__name__)
    for hook in (None, swallow):
        tools = toolset(policies=[policy], process_tool_call=hook)
        with pytest.raises(PolicyError) as caught:
            await askback.play(agent(tools))
        assert f"The policy {name} {reason}" in str(caught.value)
        assert "when tool 'refund' of server 'desk' asked: 'Refund all of ORD-1?'" in str(caught.value)
        assert caught.value.question.tool == "refund"


async def test_a_failure_survives_a_hook_that_turns_everything_into_a_retry(askback: Rehearsal) -> None:
    async def hook(ctx: Any, call_tool: Any, name: str, args: dict[str, Any]) -> Any:
        try:
            return await call_tool(name, args)
        except BaseException:
            raise ModelRetry("again") from None

    with pytest.raises(PolicyError, match="raised ZeroDivisionError"):
        await askback.play(agent(toolset(policies=[raises], process_tool_call=hook)))


async def test_the_first_of_two_failures_ends_the_run() -> None:
    ready = [anyio.Event(), anyio.Event()]
    failed: list[str] = []

    async def raises_late(ctx: RunContext[Any], question: Question) -> None:
        number = int(question.message)
        ready[number].set()
        for event in ready:
            await event.wait()
        try:
            await anyio.sleep(0.01 * number)
        finally:
            failed.append(question.message)
            raise ValueError(f"failed {number}")

    with pytest.raises(PolicyError, match="failed 0"):
        await agent(toolset(asking_twice(), policies=[raises_late])).run("please")
    assert sorted(failed) == ["0", "1"]


def asking_twice() -> FastMCP[Any]:
    server = FastMCP("two")

    def asks(number: int) -> Any:
        async def ask() -> Elicit[Scope]:
            return Elicit(f"{number}", Scope)

        return ask

    @server.tool
    async def refund(order: str, a: Annotated[Scope, Resolve(asks(0))], b: Annotated[Scope, Resolve(asks(1))]) -> str:
        return f"{a.full} {b.full}"

    return server


@pytest.mark.askback("2026-07-28")
async def test_what_is_remembered_is_bounded(askback: Rehearsal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askback.agents.refusals.MAX_REFUSALS", 1)
    monkeypatch.setattr("askback.agents.refusals.MAX_RUNS", 1)
    tools = toolset(policies=[Decline()])
    model = ScriptedModel([ToolCallPart("refund", {"order": "A"}), ToolCallPart("refund", {"order": "B"})])
    for _ in range(2):
        run = await askback.play(agent(tools), model)
        asked = [(record.question.arguments["order"], record.policy) for record in run.answers]
        assert asked == [("A", "Decline"), ("B", "Decline")]
    refusals: Any = tools._answering.decider._refusals._by_run  # pyright: ignore
    assert [len(refused) for refused in refusals.values()] == [1]


async def test_a_model_that_fails_outside_a_run_fails_the_call(askback: Rehearsal) -> None:
    def fails(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise ConnectionError("no network")

    tools = toolset(mode=askback.mode, sampling_model=FunctionModel(fails))
    async with tools:
        with pytest.raises(Exception, match="no network"):
            await tools.direct_call_tool("judge", {"order": "x"})


async def test_a_refusal_is_remembered_for_the_run(askback: Rehearsal) -> None:
    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) < 6:
            return ModelResponse(parts=[ToolCallPart("refund", {"order": "ORD-1" if len(messages) < 5 else "ORD-2"})])
        return ModelResponse(parts=[TextPart("gave up")])

    running = Agent(FunctionModel(model), toolsets=[toolset(policies=[Decline()])], retries=5)
    first, second = [await askback.play(running) for _ in range(2)]
    assert (first.output, second.output) == ("gave up", "gave up")
    for run in (first, second):
        assert [(record.question.message, record.policy) for record in run.answers] == [
            ("Refund all of ORD-1?", "Decline"),
            ("Refund all of ORD-1?", "(refused before)"),
            ("Refund all of ORD-2?", "Decline"),
        ]


async def test_an_answer_that_takes_too_long_is_cancelled(askback: Rehearsal) -> None:
    async def slow(ctx: RunContext[Any], question: Question) -> Accept:
        await anyio.sleep_forever()
        return Accept({"full": True})

    run = await askback.play(agent(toolset(policies=[slow], answer_timeout=0.01)))
    assert "elicitation was cancel. The user" in run.output
    assert [(record.action, record.policy) for record in run.answers] == [("cancel", "(answer_timeout)")]


async def test_a_question_that_timed_out_is_asked_again(askback: Rehearsal) -> None:
    asked: list[str] = []

    async def slow_at_first(ctx: RunContext[Any], question: Question) -> Accept:
        asked.append(question.message)
        if len(asked) == 1:
            await anyio.sleep_forever()
        return Accept({"full": True})

    again = ScriptedModel([ToolCallPart("refund", {"order": "ORD-1"})], [ToolCallPart("refund", {"order": "ORD-1"})])
    run = await askback.play(agent(toolset(policies=[slow_at_first], answer_timeout=0.05)), again)
    assert run.output == "refunded ORD-1, full=True, sku="
    assert [(record.action, record.policy) for record in run.answers] == [
        ("cancel", "(answer_timeout)"),
        ("accept", "slow_at_first"),
    ]
    assert asked == ["Refund all of ORD-1?"] * 2


async def test_sampling_that_takes_too_long_fails_the_call(askback: Rehearsal) -> None:
    async def slow(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        await anyio.sleep_forever()
        return opinion(messages, info)

    run = await askback.play(agent(toolset(sampling_from=FunctionModel(slow), answer_timeout=0.01)), JUDGE)
    assert "A sampling request of the tool was declined" in run.output
    assert [(record.action, record.policy) for record in run.answers] == [("cancel", "(answer_timeout)")]


@pytest.mark.askback("2026-07-28")
async def test_a_call_may_take_so_many_rounds_and_no_more(askback: Rehearsal) -> None:
    run = await askback.play(agent(toolset(max_rounds=1)), WRAP, answers={"Refund all": {"full": True}})
    assert "asked for more than 1 rounds" in run.output


async def test_the_questions_of_a_round_are_answered_at_the_same_time() -> None:
    both = [anyio.Event(), anyio.Event()]

    async def together(ctx: RunContext[Any], question: Question) -> Accept:
        both[int(question.message)].set()
        for event in both:
            await event.wait()
        return Accept({"full": True})

    with anyio.fail_after(10):
        output = (await agent(toolset(asking_twice(), policies=[together])).run("please")).output
    assert output == "True True"


async def test_calls_that_belong_to_no_run_are_declined(askback: Rehearsal) -> None:
    policy = Script({"": Accept({"full": True})})
    tools = toolset(mode=askback.mode, policies=[policy], tool_error_behavior="failed")
    async with tools:
        for call in (
            tools.direct_call_tool("refund", {"order": "ORD-1"}),
            tools.call_tool_for_app("refund", {"order": "ORD-1"}),
        ):
            try:
                outcome = str(await call)
            except Exception as error:
                outcome = str(error)
            assert DECLINED in outcome
    assert policy.asked == []


async def test_prompts_and_resources_that_ask_are_declined(askback: Rehearsal) -> None:
    server = fastmcp.FastMCP("asks everywhere")
    actions: list[str] = []

    async def elicited(ctx: fastmcp.Context) -> Any:
        from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

        if askback.generation == "2025-11-25":
            actions.append((await ctx.elicit("Sure?", bool)).action)
            return "read"
        if ctx.input_responses is None:
            form = ElicitRequestFormParams(message="Sure?", requested_schema={"type": "object", "properties": {}})
            return InputRequiredResult(input_requests={"sure": ElicitRequest(params=form)})
        actions.append(ctx.input_responses["sure"].action)  # pyright: ignore
        return "read"

    server.prompt(elicited, name="asks")
    server.resource("asks://all")(elicited)
    policy = Script({"": Accept({"value": True})})
    tools = toolset(server, mode=askback.mode, policies=[policy])
    async with tools:
        await tools.get_prompt("asks")
        await tools.read_resource("asks://all")
    assert actions == ["decline", "decline"]
    assert policy.asked == []


async def test_an_address_is_accepted_without_content(askback: Rehearsal) -> None:
    server = fastmcp.FastMCP("visits")
    seen: list[str] = []

    @server.tool
    async def refund(order: str, ctx: fastmcp.Context) -> Any:
        from mcp_types import ElicitRequest, ElicitRequestURLParams, InputRequiredResult

        url = "https://example.com/pay"
        if askback.generation == "2025-11-25":
            result = await ctx.session.elicit_url("Pay?", url, "1", related_request_id=ctx.request_id)
            return f"{result.action} {result.content}"
        if ctx.input_responses is None:
            params = ElicitRequestURLParams(message="Pay?", url=url, elicitation_id="1")
            return InputRequiredResult(input_requests={"pay": ElicitRequest(params=params)})
        response: Any = ctx.input_responses["pay"]
        return f"{response.action} {response.content}"

    def visit(ctx: RunContext[Any], question: Question) -> Accept:
        assert (question.mode, question.schema) == ("url", None)
        seen.append(question.url or "")
        return Accept()

    assert (await askback.play(agent(toolset(server, policies=[visit])))).output == "accept None"
    assert seen == ["https://example.com/pay"]


def opinion(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=[TextPart("rather odd")])


@pytest.mark.parametrize("choice", ["model", "callable", "async callable", "run"])
async def test_sampling_comes_from_a_model_and_counts_in_the_run(askback: Rehearsal, choice: str) -> None:
    model = FunctionModel(opinion)

    async def choose(ctx: RunContext[Any], params: Any) -> Any:
        assert params.max_tokens == 20
        return model

    def run_model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if messages[0].parts[0].part_kind == "system-prompt":
            assert (info.model_settings or {}).get("max_tokens") == 20
            return opinion(messages, info)
        return JUDGE.function(messages, info)  # pyright: ignore

    source = {"model": model, "callable": lambda ctx, params: model, "async callable": choose, "run": "run"}[choice]
    run = await askback.play(agent(toolset(sampling_from=source)), FunctionModel(run_model))
    assert run.output == "ORD-1: rather odd"
    assert run.usage.requests == 3
    by_name = await askback.play(agent(toolset(sampling_from="test")), JUDGE)
    assert by_name.output == "ORD-1: success (no tool calls)"


async def test_sampling_keeps_to_the_runs_limits(askback: Rehearsal) -> None:
    running = agent(toolset(sampling_from=FunctionModel(opinion)))
    with pytest.raises(UsageLimitExceeded, match="request_limit of 1"):
        await askback.play(running, JUDGE, usage_limits=UsageLimits(request_limit=1))
    with pytest.raises(UsageLimitExceeded, match="output_tokens_limit"):
        await askback.play(running, JUDGE, usage_limits=UsageLimits(output_tokens_limit=6))


async def test_the_stock_ways_to_sample_still_work(askback: Rehearsal) -> None:
    with_model = agent(toolset(sampling_model=FunctionModel(opinion)))
    assert (await askback.play(with_model, JUDGE)).output == "ORD-1: rather odd"

    async def handler(messages: Any, params: Any, context: Any) -> str:
        return "handled"

    with_handler = toolset(mode=askback.mode, sampling_handler=handler)
    assert (await askback.play(agent(with_handler), JUDGE)).output == "ORD-1: handled"
    with_handler.set_sampling_model(FunctionModel(opinion))
    assert (await askback.play(agent(with_handler), JUDGE)).output == "ORD-1: rather odd"
    assert await with_handler.direct_call_tool("judge", {"order": "ORD-2"}) == "ORD-2: rather odd"


async def test_policies_see_sampling_and_roots_first(askback: Rehearsal, tmp_path: Any) -> None:
    def answers(ctx: RunContext[Any], question: Question) -> Any:
        return Accept("from a policy") if question.kind == "sampling" else Accept([tmp_path, "file:///b"])

    tools = toolset(policies=[answers], sampling_from=FunctionModel(opinion), roots_from=lambda ctx: ["file:///never"])
    sampled, listed = await askback.play(agent(tools), JUDGE), await askback.play(agent(tools), BROWSE)
    assert sampled.output == "ORD-1: from a policy"
    assert listed.output == json.dumps([tmp_path.as_uri(), "file:///b"])
    asked = [record.question for record in sampled.answers + listed.answers]
    assert [(question.kind, question.message) for question in asked] == [("sampling", "Is ORD-1 odd?"), ("roots", "")]


@pytest.mark.parametrize(
    ("given", "model", "output"),
    [
        (CreateMessageResult(role="assistant", content=TextContent(text="whole"), model="m"), JUDGE, "ORD-1: whole"),
        (ListRootsResult(roots=[Root(uri=FileUrl("file:///r"))]), BROWSE, '["file:///r"]'),
    ],
)
async def test_policies_may_give_whole_results(askback: Rehearsal, given: Any, model: Any, output: str) -> None:
    def gives(ctx: RunContext[Any], question: Question) -> Accept:
        return Accept(given)

    tools = toolset(policies=[gives], sampling_from="run", roots_from=lambda ctx: [])
    assert (await askback.play(agent(tools), model)).output == output


@pytest.mark.parametrize("model", [JUDGE, BROWSE])
async def test_a_policy_that_gives_nonsense_for_a_result_ends_the_run(askback: Rehearsal, model: Any) -> None:
    def gives(ctx: RunContext[Any], question: Question) -> Accept:
        return Accept(3)

    tools = toolset(policies=[gives], sampling_from="run", roots_from=lambda ctx: [])
    with pytest.raises(PolicyError, match="whole result, not int"):
        await askback.play(agent(tools), model)


async def test_what_the_toolset_was_told_wrongly_is_said(askback: Rehearsal) -> None:
    for roots in ("/tmp", ["https://x/y"], [object()]):
        tools = toolset(roots_from=lambda ctx, roots=roots: roots)
        with pytest.raises(UserError, match="`roots_from` returned"):
            await askback.play(agent(tools), BROWSE)
    with pytest.raises(UserError, match="`sampling_from` returned 5, not a model"):
        await askback.play(agent(toolset(sampling_from=lambda ctx, params: 5)), JUDGE)


async def test_a_model_that_fails_fails_the_call_in_words(askback: Rehearsal) -> None:
    def fails(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise ModelHTTPError(503, "busy")

    for tools in (toolset(sampling_from=FunctionModel(fails)), toolset(sampling_model=FunctionModel(fails))):
        assert "503" in (await askback.play(agent(tools), JUDGE)).output


async def test_a_policy_may_do_what_it_likes_with_its_question(askback: Rehearsal) -> None:
    def redacts(ctx: RunContext[Any], question: Question) -> Accept:
        question.arguments["order"] = "***"
        return Accept({"full": True})

    assert (await askback.play(agent(toolset(policies=[redacts])))).output.startswith("refunded ORD-1")


async def test_a_policy_that_edits_its_question_does_not_change_the_call(askback: Rehearsal) -> None:
    server = FastMCP("lists")

    async def ask(order: list[str]) -> Elicit[Scope]:
        return Elicit(f"Refund {order}?", Scope)

    @server.tool
    async def refund(
        order: list[str], scope: Annotated[Scope, Resolve(ask)], again: Annotated[Scope, Resolve(ask)]
    ) -> str:
        return f"refunded {order}"

    def edits(ctx: RunContext[Any], question: Question) -> Accept:
        question.arguments["order"].append("everything")
        return Accept({"full": True})

    run = await askback.play(agent(toolset(server, policies=[edits])), calls("refund", order=["one"]))
    assert run.output == "refunded ['one']"
    assert {record.question.message for record in run.answers} == {"Refund ['one']?"}


async def test_spans_say_nothing_of_an_error_that_may_repeat_the_answer(askback: Rehearsal) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    settings = InstrumentationSettings(tracer_provider=provider, include_content=False)
    running = agent(toolset(policies=[misfits]), capabilities=[Instrumentation(settings)])
    with pytest.raises(PolicyError):
        await askback.play(running)
    ours = [span for span in exporter.get_finished_spans() if span.name.startswith("answer ")]
    assert ours
    for span in ours:
        assert span.events == ()
        assert span.status.description is None


@pytest.mark.parametrize(("model", "kind"), [(JUDGE, "sampling"), (BROWSE, "roots")])
async def test_declining_sampling_or_roots_fails_the_call_in_words(askback: Rehearsal, model: Any, kind: str) -> None:
    def declines(ctx: RunContext[Any], question: Question) -> Decline:
        return Decline()

    tools = toolset(mode=askback.mode, policies=[declines], sampling_from="run", roots_from=lambda ctx: [])
    assert f"A {kind} request of the tool was declined" in (await agent(tools, model).run("please")).output
    async with tools:
        with pytest.raises(Exception, match=f"A {kind} request of the tool was declined"):
            await tools.direct_call_tool(
                "judge" if kind == "sampling" else "browse", {"order": "x"} if kind == "sampling" else {}
            )


async def test_roots_come_from_the_run(askback: Rehearsal) -> None:
    async def roots(ctx: RunContext[Any]) -> list[Any]:
        return [ctx.deps, Root(uri=FileUrl("file:///whole"))]

    run = await askback.play(agent(toolset(roots_from=roots), deps_type=str), BROWSE, deps="/home/me")
    assert run.output == '["file:///home/me", "file:///whole"]'
    stock = await askback.play(agent(toolset(roots=["file:///fixed"])), BROWSE)
    assert stock.output == '["file:///fixed"]'


async def test_a_capability_is_declared_only_where_somebody_answers(askback: Rehearsal) -> None:
    server = fastmcp.FastMCP("curious")

    @server.tool
    async def refund(order: str, ctx: fastmcp.Context) -> str:
        declared = ctx.session.client_capabilities
        assert declared is not None
        tools = declared.sampling is not None and declared.sampling.tools is not None
        return (
            f"{declared.elicitation is not None} {declared.sampling is not None} {tools} {declared.roots is not None}"
        )

    async def handler(*_: Any) -> Any:
        raise AssertionError

    expected: list[tuple[dict[str, Any], str]] = [
        ({}, "False False False False"),
        ({"policies": [Decline()]}, "True False False False"),
        ({"elicitation_handler": handler}, "True False False False"),
        ({"sampling_from": "run"}, "False True True False"),
        ({"sampling_handler": handler}, "False True False False"),
        ({"roots_from": lambda ctx: []}, "False False False True"),
        ({"roots": ["file:///a"]}, "False False False True"),
    ]
    for options, declared in expected:
        assert (await askback.play(agent(toolset(server, **options)))).output == declared


async def test_the_event_stream_shows_questions_and_answers(askback: Rehearsal) -> None:
    policy = Script({"Refund all": Accept({"full": True})})
    events: list[Any] = []
    async with agent(toolset(mode=askback.mode, policies=[policy])).run_stream_events("please") as stream:
        events += [event async for event in stream if isinstance(event, QuestionAsked | QuestionAnswered)]
    asked, answered = events
    assert (asked.question, asked.tool_name) == (policy.asked[0], "refund")
    assert (answered.question, answered.action, answered.policy) == (policy.asked[0], "accept", "Script")


@pytest.mark.parametrize("content", [True, False])
async def test_a_span_for_each_question_nests_under_the_tool_call(askback: Rehearsal, content: bool) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    settings = InstrumentationSettings(tracer_provider=provider, include_content=content)
    running = agent(toolset(policies=[Accept({"full": True})]), capabilities=[Instrumentation(settings)])
    await askback.play(running)
    spans = {span.name: span for span in exporter.get_finished_spans()}
    span = spans["answer elicitation"]
    assert span.attributes is not None
    expected = {
        "gen_ai.tool.name": "refund",
        "askback.question.kind": "elicitation",
        "askback.question.mode": "form",
        "askback.question.server": "desk",
        "askback.round": 1,
        "askback.answer.action": "accept",
        "askback.answer.policy": "Accept",
    }
    assert {name: span.attributes[name] for name in expected} == expected
    assert ("askback.question.message" in span.attributes) is content
    parents = {each.context.span_id: each for each in spans.values() if each.context is not None}
    names: list[str] = []
    while span.parent is not None and span.parent.span_id in parents:
        span = parents[span.parent.span_id]
        names.append(span.name)
    assert "execute_tool refund" in names
    assert ("answer round 1" in names) is (askback.generation == "2026-07-28")


async def test_on_answer_may_be_async_and_tells_everything(askback: Rehearsal) -> None:
    records: list[AnswerRecord] = []

    async def note(record: AnswerRecord) -> None:
        records.append(record)

    policy = Script({"Refund all": Accept({"full": True})})
    result = await agent(toolset(mode=askback.mode, policies=[policy], on_answer=note)).run("please")
    (record,) = records
    assert (record.question, record.action, record.policy) == (policy.asked[0], "accept", "Script")
    assert record.run_id == result.run_id
    assert record.tool_call_id == policy.contexts[0].tool_call_id
    assert record.seconds >= 0


async def test_nothing_warns_that_a_handler_is_never_called(askback: Rehearsal, recwarn: Any) -> None:
    async def handler(*_: Any) -> Any:
        return {"full": True}

    tools = toolset(elicitation_handler=handler, sampling_model=FunctionModel(opinion), roots=["file:///a"])
    assert (await askback.play(agent(tools))).output.startswith("refunded")
    assert [str(each.message) for each in recwarn] == []
