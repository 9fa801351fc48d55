"""What a consumer gets of a question: the value inside, or the outcome."""

import gc
import weakref
from typing import Annotated, Any, Literal

import pytest
from fastmcp import Context
from fastmcp.server.elicitation import AcceptedElicitation as FastMCPAccepted
from fastmcp.server.elicitation import CancelledElicitation as FastMCPCancelled
from fastmcp.server.elicitation import DeclinedElicitation as FastMCPDeclined
from pydantic import BaseModel, Field, create_model
from pydantic.json_schema import SkipJsonSchema

from askback import (
    AcceptedElicitation,
    CancelledElicitation,
    DeclinedElicitation,
    Elicit,
    ElicitationResult,
    Resolve,
)
from askback.agents import Answer, Cancel, Decline
from askback.integration import FastMCP
from askback.testing import Rehearsal
from tests.conversation import accept


class Sure(BaseModel):
    ok: bool


async def ask() -> Elicit[Sure]:
    return Elicit("Sure?", Sure)


async def know() -> Sure:
    return Sure(ok=True)


OUTCOMES = [
    pytest.param(ElicitationResult[Sure], id="ElicitationResult[T]"),
    pytest.param(ElicitationResult, id="bare ElicitationResult"),
    pytest.param(AcceptedElicitation[Sure], id="one member"),
    pytest.param(DeclinedElicitation, id="another member"),
    pytest.param(AcceptedElicitation[Sure] | DeclinedElicitation | CancelledElicitation, id="a union"),
    pytest.param(FastMCPAccepted[Sure] | FastMCPDeclined | FastMCPCancelled, id="FastMCP's classes"),
    pytest.param(FastMCPAccepted[Sure], id="FastMCP's accepted class"),
]


@pytest.mark.parametrize("annotation", OUTCOMES)
@pytest.mark.parametrize("resolver", [ask, know])
async def test_an_accepted_outcome_is_every_class_of_that_name(
    askback: Rehearsal, annotation: Any, resolver: Any
) -> None:
    mcp = FastMCP("shop")
    got: list[Any] = []

    @mcp.tool
    async def buy(sure: Annotated[annotation, Resolve(resolver)]) -> None:
        got.append(sure)

    await askback.call(mcp, "buy", {}, {Sure: Sure(ok=True)} if resolver is ask else None)
    assert isinstance(got[0], AcceptedElicitation)
    assert isinstance(got[0], FastMCPAccepted)
    assert (got[0].action, got[0].data) == ("accept", Sure(ok=True))
    assert got[0] == AcceptedElicitation(data=Sure(ok=True))
    assert FastMCPAccepted(data=Sure(ok=True)) == got[0]
    assert got[0] != DeclinedElicitation()


@pytest.mark.parametrize("annotation", OUTCOMES)
@pytest.mark.parametrize(
    ("answer", "classes"),
    [(Decline(), (DeclinedElicitation, FastMCPDeclined)), (Cancel(), (CancelledElicitation, FastMCPCancelled))],
)
async def test_a_refusal_is_an_outcome_too(
    askback: Rehearsal, annotation: Any, answer: Answer, classes: tuple[type, ...]
) -> None:
    mcp = FastMCP("shop")
    got: list[Any] = []

    @mcp.tool
    async def buy(sure: Annotated[annotation, Resolve(ask)]) -> None:
        got.append(sure)

    await askback.call(mcp, "buy", {}, {Sure: answer})
    assert all(isinstance(got[0], each) for each in classes)


async def test_resolvers_take_outcomes_as_tools_do(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")

    async def price(sure: Annotated[ElicitationResult[Sure], Resolve(ask)]) -> str:
        return sure.action

    @mcp.tool
    async def buy(said: Annotated[str, Resolve(price)]) -> str:
        return said

    call = await askback.call(mcp, "buy", {}, {Sure: Decline()})
    assert (call.result, call.failed) == ("decline", False)


async def test_a_refusal_names_the_first_parameter_that_needs_the_value(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")

    async def price(agreed: Annotated[Sure, Resolve(ask)]) -> int:
        raise AssertionError("nobody agreed")

    @mcp.tool
    async def buy(
        outcome: Annotated[ElicitationResult[Sure], Resolve(ask)],
        cents: Annotated[int, Resolve(price)],
        sure: Annotated[Sure, Resolve(ask)],
    ) -> str:
        raise AssertionError("nobody agreed")

    call = await askback.call(mcp, "buy", {}, {Sure: Decline()})
    sentence = (
        "Resolver for parameter 'agreed' could not resolve: elicitation was decline. The user declined the question "
        "'Sure?'; calling the tool again with the same arguments will not change that."
    )
    assert (call.result, call.failed) == (sentence, True)
    assert call.messages == ["Sure?"]


class Sized(BaseModel):
    size: str = Field(json_schema_extra={"enum": ["S", "M"]})
    colour: Literal["red", "blue"] = "red"
    admin: SkipJsonSchema[bool] = False


class Several(BaseModel):
    toppings: list[str] = Field(
        json_schema_extra={
            "items": {"anyOf": [{"const": "nuts", "title": "Nuts"}, {"const": "cream", "title": "Cream"}]}
        }
    )


class Strict(BaseModel, extra="forbid"):
    ok: bool


@pytest.mark.parametrize(
    ("model", "content", "result", "failed"),
    [
        (Sized, {"size": "S"}, "size='S' colour='red' admin=False", False),
        (Sized, {"size": "S", "admin": True, "more": 1}, "size='S' colour='red' admin=False", False),
        (Sized, {"size": "XXL"}, "Resolver 'ask_for': the accepted content does not fit the question", True),
        (Several, {"toppings": ["nuts", "cream"]}, "toppings=['nuts', 'cream']", False),
        (
            Several,
            {"toppings": ["nuts", "bones"]},
            "Resolver 'ask_for': the accepted content does not fit the question",
            True,
        ),
        (Strict, {"ok": True, "more": 1}, "Resolver 'ask_for': the accepted content does not fit the question", True),
    ],
)
async def test_content_is_what_the_form_asked_for(
    askback: Rehearsal, model: type[BaseModel], content: dict[str, Any], result: str, failed: bool
) -> None:
    mcp = FastMCP("shop")

    async def ask_for() -> Elicit[Any]:
        return Elicit("Which?", model)

    @mcp.tool
    async def buy(answer: Annotated[Any, Resolve(ask_for)]) -> str:
        return str(answer)

    call = await askback.call(mcp, "buy", {}, {"Which": accept(**content)})
    assert (call.result, call.failed) == (result, failed)


@pytest.mark.askback("2025-11-25")
async def test_a_form_goes_with_its_model(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    models: list[weakref.ref[Any]] = []

    async def ask_for() -> Any:
        model = create_model("Choice", pick=(Literal["a", "b"], ...))
        models.append(weakref.ref(model))
        return Elicit("Which?", model)

    @mcp.tool
    async def buy(answer: Annotated[Any, Resolve(ask_for)]) -> str:
        return answer.pick

    call = await askback.call(mcp, "buy", {}, {"Which": {"pick": "a"}})
    assert (call.result, call.failed) == ("a", False)
    gc.collect()
    assert models[0]() is None


PASSED_ON = pytest.mark.parametrize("answer", [{"ok": True}, Decline(), Cancel()], ids=["accept", "decline", "cancel"])


@PASSED_ON
async def test_an_outcome_that_a_resolver_returns_is_that_outcome(askback: Rehearsal, answer: Any) -> None:
    mcp = FastMCP("shop")

    async def ask() -> Elicit[Sure]:
        return Elicit("Sure?", Sure)

    async def passes_on(outcome: Annotated[ElicitationResult[Sure], Resolve(ask)]) -> ElicitationResult[Sure]:
        return outcome

    async def takes_it(sure: Annotated[Sure, Resolve(passes_on)]) -> str:
        return f"{sure.ok}"

    @mcp.tool
    async def outcome(passed: Annotated[ElicitationResult[Sure], Resolve(passes_on)]) -> str:
        return f"{passed.action} {getattr(passed, 'data', None)!r}"

    @mcp.tool
    async def value(passed: Annotated[Sure, Resolve(passes_on)]) -> str:
        return f"{passed!r}"

    @mcp.tool
    async def dependent(word: Annotated[str, Resolve(takes_it)]) -> str:
        return word

    results = {name: await askback.call(mcp, name, {}, {Sure: answer}) for name in ("outcome", "value", "dependent")}
    if isinstance(answer, dict):
        said = [results[name].result for name in results]
        assert said == ["accept Sure(ok=True)", "Sure(ok=True)", "True"]
    else:
        assert results["outcome"].result == f"{answer.action} None"
        for name, parameter in (("value", "passed"), ("dependent", "sure")):
            assert results[name].failed
            start = (
                f"Resolver for parameter {parameter!r} could not resolve: elicitation was {answer.action}. The user "
            )
            assert results[name].result.startswith(start)


@pytest.mark.askback("2025-11-25")
@PASSED_ON
async def test_what_a_resolver_asked_by_itself_is_an_outcome_too(askback: Rehearsal, answer: Any) -> None:
    mcp = FastMCP("shop")

    async def asks_by_itself(ctx: Context) -> Any:
        return await ctx.elicit("Sure?", Sure)

    @mcp.tool
    async def buy(
        outcome: Annotated[ElicitationResult[Sure], Resolve(asks_by_itself)],
    ) -> str:
        return f"{outcome.action} {getattr(outcome, 'data', None)!r}"

    call = await askback.call(mcp, "buy", {}, {"Sure": answer})
    assert call.result == ("accept Sure(ok=True)" if isinstance(answer, dict) else f"{answer.action} None")
