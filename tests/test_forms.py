"""What can be asked for, and what is taken for an answer."""

import json
import logging
from datetime import date
from enum import Enum
from itertools import chain, repeat
from typing import Annotated, Any, Literal, Optional

import pytest
from mcp_types import ElicitResult
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    create_model,
    field_validator,
)

from askback import Elicit, ElicitationResult, InvalidSignature, Resolve
from askback.integration import FastMCP, Limits, resolved
from askback.testing import Rehearsal, ScriptedClient
from tests.conversation import Readable, accept, one_round, state_in, state_of


class Sure(BaseModel):
    ok: bool


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Painted(BaseModel):
    colour: Colour


class Tree(BaseModel):
    child: Optional["Tree"] = None


class Names(RootModel[list[str]]):
    pass


class Path(BaseModel):
    name: str = Field(validation_alias=AliasPath("names", 0))


class OptionalPath(BaseModel):
    name: str = Field(default="", validation_alias=AliasPath("names", 0))


class Nested(BaseModel):
    sure: Sure


def tool_asking_for(model: Any) -> Any:
    async def ask() -> Elicit[model]:  # pyright: ignore
        return Elicit("Which?", model)

    async def tool(answer: Annotated[Any, Resolve(ask)]) -> str:
        return f"{answer!r}"

    return tool


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Names, "a form has named fields, which a RootModel has not"),
        (Tree, "it contains itself; a form asks for text"),
        (list[int], r"cannot ask for list\[int\]: a question is answered with a pydantic model"),
        (Literal["a", "b"], "put it into one, as in class Answer"),
        (int | None, "a question is answered with a pydantic model"),
        (Painted, r"its field 'colour' is an Enum; write Literal\['red', 'blue'\] instead"),
        (Path, "its field 'name' has an alias that an answer cannot carry"),
        (OptionalPath, "has an alias that an answer cannot carry"),
        (Nested, r"its field 'sure' is <class '.*Sure'>; a form asks for text"),
    ],
)
def test_what_no_form_can_ask_is_refused_when_the_tool_is_registered(model: Any, reason: str) -> None:
    mcp = FastMCP("shop")
    for register in (mcp.tool, resolved):
        with pytest.raises(InvalidSignature, match=reason) as refused:
            register(tool_asking_for(model))
        invalid = refused.value
        assert (invalid.tool, invalid.parameter, invalid.resolver) == ("tool", "answer", "ask")
        assert str(invalid) == f"Tool 'tool': parameter 'answer', resolver 'ask': {invalid.reason}"


class Choice(BaseModel):
    name: str = Field(validation_alias=AliasChoices("first", AliasPath("names", 0)))
    note: str = Field(default="", alias="remark")
    model_config = ConfigDict(populate_by_name=True)


async def test_an_alias_with_a_plain_name_can_be_answered(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    mcp.tool(tool_asking_for(Choice))
    call = await askback.call(mcp, "tool", {}, {"Which": accept(first="Ana", remark="now")})
    assert call.result == "Choice(name='Ana', note='now')"


async def test_a_form_can_be_made_for_each_call(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")

    async def ask_which(names: list[str]) -> Elicit[BaseModel]:
        return Elicit("Which?", create_model("Choice", order=(Literal[tuple(names)], ...)))  # pyright: ignore

    @mcp.tool
    async def cancel_order(names: list[str], choice: Annotated[Any, Resolve(ask_which)]) -> str:
        return choice.order

    call = await askback.call(mcp, "cancel_order", {"names": ["A-1", "B-2"]}, {"Which": {"order": "B-2"}})
    assert (call.result, call.failed) == ("B-2", False)
    call = await askback.call(mcp, "cancel_order", {"names": ["A-1"]}, {"Which": accept(order="B-2")})
    assert call.result == "Resolver 'ask_which': the accepted content does not fit the question"


async def test_a_strict_model_takes_what_json_can_say(askback: Rehearsal) -> None:
    class Strict(BaseModel):
        model_config = ConfigDict(strict=True)
        day: date
        copies: int

    mcp = FastMCP("shop")
    mcp.tool(tool_asking_for(Strict))
    call = await askback.call(mcp, "tool", {}, {"Which": {"day": "2026-11-18", "copies": 2}})
    assert call.result == "Strict(day=datetime.date(2026, 11, 18), copies=2)"
    call = await askback.call(mcp, "tool", {}, {"Which": accept(day="2026-11-18", copies="2")})
    assert call.failed


SECRET = "hunter2"


class Careless(BaseModel):
    word: str

    @field_validator("word")
    @classmethod
    def check(cls, word: str) -> str:
        raise KeyError(word)


@pytest.mark.parametrize("masked", [True, False])
async def test_what_a_validator_raises_is_repeated_nowhere(
    askback: Rehearsal, masked: bool, caplog: pytest.LogCaptureFixture
) -> None:
    logging.disable(logging.NOTSET)
    mcp = FastMCP("shop", mask_error_details=masked)
    mcp.tool(tool_asking_for(Careless))
    with caplog.at_level(logging.DEBUG):
        call = await askback.call(mcp, "tool", {}, {"Which": {"word": SECRET}})
    assert call.result == "Resolver 'ask': the accepted content does not fit the question"
    server_side = [record for record in caplog.records if record.name.startswith(("askback", "fastmcp.server"))]
    assert any("raised KeyError" in record.getMessage() for record in server_side)
    assert not any(SECRET in record.getMessage() or record.exc_info for record in server_side)


@pytest.mark.askback("2026-07-28")
async def test_a_recorded_answer_that_a_validator_now_refuses_is_asked_for_again() -> None:
    mcp = FastMCP("shop", request_state_security=Readable.security())
    strictness = chain([False, True], repeat(False))

    class Moody(BaseModel):
        word: str

        @field_validator("word")
        @classmethod
        def check(cls, word: str) -> str:
            if next(strictness):
                raise KeyError(word)
            return word

    async def ask_word() -> Elicit[Moody]:
        return Elicit("Word?", Moody)

    async def ask_sure(word: Annotated[Moody, Resolve(ask_word)]) -> Elicit[Sure]:
        return Elicit("Sure?", Sure)

    @mcp.tool
    async def buy(sure: Annotated[Sure, Resolve(ask_sure)]) -> str:
        return "bought"

    async with ScriptedClient(mcp, [{"word": "a"}, {"ok": True}, {"word": "a"}, {"ok": True}]) as client:
        assert (await client.call_tool("buy")).data == "bought"
    assert [question.message for question in client.asked] == ["Word?", "Sure?", "Word?", "Sure?"]


async def ask_twice_first() -> Elicit[Sure]:
    return Elicit("First?", Sure)


async def ask_twice_second(first: Annotated[ElicitationResult[Sure], Resolve(ask_twice_first)]) -> Elicit[Sure]:
    return Elicit("Second?", Sure)


@pytest.mark.askback("2026-07-28")
async def test_only_what_was_asked_for_is_kept() -> None:
    mcp = FastMCP("shop", request_state_security=Readable.security())

    @mcp.tool
    async def buy(sure: Annotated[Sure, Resolve(ask_twice_second)]) -> str:
        return "bought"

    flood: dict[str, Any] = {f"key{number}": number for number in range(10_000)}
    async with ScriptedClient(mcp) as client:
        first = await one_round(client, "buy", {})
        answers = {"tests.test_forms:ask_twice_first": ElicitResult(action="accept", content={"ok": True, **flood})}
        second = await one_round(client, "buy", {}, answers=answers, state=state_of(first))
    (kept,) = state_in(second)["answers"].values()
    assert json.loads(kept[2]) == {"ok": True}
    assert len(state_of(second)) < 1_000


class Text(BaseModel):
    text: str


async def test_a_long_answer_is_refused(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    mcp.tool(tool_asking_for(Text))
    call = await askback.call(mcp, "tool", {}, {"Which": {"text": "x" * 1_000_001}})
    assert call.result == "Resolver 'ask': the answer is longer than 1000000 characters"
    mcp.limits = Limits(answer=10)
    call = await askback.call(mcp, "tool", {}, {"Which": {"text": "x"}})
    assert call.result == "Resolver 'ask': the answer is longer than 10 characters"


@pytest.mark.askback("2026-07-28")
async def test_answers_are_refused_when_they_are_too_long_together(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    mcp.limits = Limits(state=500)

    async def ask_text() -> Elicit[Text]:
        return Elicit("Text?", Text)

    async def ask_more(text: Annotated[Text, Resolve(ask_text)]) -> Elicit[Text]:
        return Elicit("More?", Text)

    @mcp.tool
    async def write(more: Annotated[Text, Resolve(ask_more)]) -> str:
        return "written"

    call = await askback.call(mcp, "write", {}, {"Text": {"text": "x" * 1000}})
    assert call.result == "The answers of this call are longer than 500 characters together"


async def test_a_message_that_is_no_text_is_the_authors_mistake(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")

    async def ask() -> Elicit[Sure]:
        return Elicit(None, Sure)  # pyright: ignore

    @mcp.tool
    async def buy(sure: Annotated[Sure, Resolve(ask)]) -> str:
        return "bought"

    call = await askback.call(mcp, "buy")
    sentence = "Resolver 'ask' cannot ask: the message of a question is a string, not NoneType"
    assert call.result == f"Error calling tool 'buy': {sentence}"


@pytest.mark.askback("2026-07-28")
async def test_a_question_that_changes_between_rounds_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    logging.disable(logging.NOTSET)
    mcp = FastMCP("shop")
    wording = iter(["Sure at 1?", "Sure at 2?", "Sure at 2?"])

    async def ask() -> Elicit[Sure]:
        return Elicit(next(wording), Sure)

    @mcp.tool
    async def buy(sure: Annotated[Sure, Resolve(ask)]) -> str:
        return "bought"

    with caplog.at_level(logging.WARNING, "askback"):
        async with ScriptedClient(mcp, [{"ok": True}, {"ok": True}]) as client:
            await client.call_tool("buy")
    (record,) = [each for each in caplog.records if each.name.startswith("askback")]
    assert "The question of resolver 'ask' of tool" in record.getMessage()
    assert "Sure at" not in record.getMessage()
