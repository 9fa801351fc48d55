"""What a consumer gets of a question: the value inside, or the outcome."""

import gc
import weakref
from typing import Annotated, Any, Literal

import pytest
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
from askback.integration import FastMCP
from tests.conversation import Generation, Person, Reply, call


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
    generation: Generation, annotation: Any, resolver: Any
) -> None:
    mcp = FastMCP("shop")
    got: list[Any] = []

    @mcp.tool
    async def buy(sure: Annotated[annotation, Resolve(resolver)]) -> None:
        got.append(sure)

    await call(mcp, generation, "buy", person=Person({"Sure?": {"ok": True}}))
    assert isinstance(got[0], AcceptedElicitation)
    assert isinstance(got[0], FastMCPAccepted)
    assert (got[0].action, got[0].data) == ("accept", Sure(ok=True))
    assert got[0] == AcceptedElicitation(data=Sure(ok=True))
    assert FastMCPAccepted(data=Sure(ok=True)) == got[0]
    assert got[0] != DeclinedElicitation()


@pytest.mark.parametrize("annotation", OUTCOMES)
@pytest.mark.parametrize(
    ("reply", "classes"),
    [("decline", (DeclinedElicitation, FastMCPDeclined)), ("cancel", (CancelledElicitation, FastMCPCancelled))],
)
async def test_a_refusal_is_an_outcome_too(
    generation: Generation, annotation: Any, reply: Reply, classes: tuple[type, ...]
) -> None:
    mcp = FastMCP("shop")
    got: list[Any] = []

    @mcp.tool
    async def buy(sure: Annotated[annotation, Resolve(ask)]) -> None:
        got.append(sure)

    await call(mcp, generation, "buy", person=Person({"Sure?": reply}))
    assert all(isinstance(got[0], each) for each in classes)


async def test_resolvers_take_outcomes_as_tools_do(generation: Generation) -> None:
    mcp = FastMCP("shop")

    async def price(sure: Annotated[ElicitationResult[Sure], Resolve(ask)]) -> str:
        return sure.action

    @mcp.tool
    async def buy(said: Annotated[str, Resolve(price)]) -> str:
        return said

    assert await call(mcp, generation, "buy", person=Person({"Sure?": "decline"})) == "decline"


async def test_a_refusal_names_the_first_parameter_that_needs_the_value(generation: Generation) -> None:
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

    person = Person({"Sure?": "decline"})
    sentence = "failed: Resolver for parameter 'agreed' could not resolve: elicitation was decline"
    assert await call(mcp, generation, "buy", person=person) == sentence
    assert person.asked == ["Sure?"]


class Sized(BaseModel):
    size: str = Field(json_schema_extra={"enum": ["S", "M"]})
    colour: Literal["red", "blue"] = "red"
    admin: SkipJsonSchema[bool] = False


class Strict(BaseModel, extra="forbid"):
    ok: bool


@pytest.mark.parametrize(
    ("model", "content", "outcome"),
    [
        (Sized, {"size": "S"}, "size='S' colour='red' admin=False"),
        (Sized, {"size": "S", "admin": True, "more": 1}, "size='S' colour='red' admin=False"),
        (Sized, {"size": "XXL"}, "failed: Resolver 'ask_for': the accepted content does not fit the question"),
        (Strict, {"ok": True, "more": 1}, "failed: Resolver 'ask_for': the accepted content does not fit the question"),
    ],
)
async def test_content_is_what_the_form_asked_for(
    generation: Generation, model: type[BaseModel], content: dict[str, Any], outcome: str
) -> None:
    mcp = FastMCP("shop")

    async def ask_for() -> Elicit[Any]:
        return Elicit("Which?", model)

    @mcp.tool
    async def buy(answer: Annotated[Any, Resolve(ask_for)]) -> str:
        return str(answer)

    assert await call(mcp, generation, "buy", person=Person({"Which?": content})) == outcome


async def test_a_form_goes_with_its_model() -> None:
    mcp = FastMCP("shop")
    models: list[weakref.ref[Any]] = []

    async def ask_for() -> Any:
        model = create_model("Choice", pick=(Literal["a", "b"], ...))
        models.append(weakref.ref(model))
        return Elicit("Which?", model)

    @mcp.tool
    async def buy(answer: Annotated[Any, Resolve(ask_for)]) -> str:
        return answer.pick

    assert await call(mcp, "legacy", "buy", person=Person({"Which?": {"pick": "a"}})) == "a"
    gc.collect()
    assert models[0]() is None
