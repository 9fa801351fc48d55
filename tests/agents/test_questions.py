"""Questions, and what can be said to them."""

import copy
import dataclasses
import re
from enum import Enum
from types import MappingProxyType
from typing import Any, Literal
from unittest.mock import patch

import pytest
from jsonschema import Draft202012Validator
from mcp_types import CreateMessageRequestParams, SamplingMessage, TextContent
from pydantic import BaseModel, Field, ValidationError, create_model

from askback.agents import Accept, Answers, Cancel, Decline, Defer, PolicyError, Question, rules_from, when
from askback.exchange.form import ContentError, Form
from askback.exchange.secrecy import asks_for_secrets


class Scope(BaseModel):
    """A title and description of its own."""

    full: bool = Field(description="All of it?")
    sku: str = "none"


@dataclasses.dataclass
class ScopeAsDataclass:
    full: bool
    sku: str = "other"


class Other(BaseModel):
    full: str
    sku: str = ""


FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"sku": {"type": "string"}, "full": {"type": "boolean", "title": "Anything"}},
    "required": ["full"],
}


def question(**given: Any) -> Question:
    known: dict[str, Any] = {
        "kind": "elicitation",
        "server": "desk",
        "tool": "refund_order",
        "arguments": {"order": "ORD-1"},
        "message": "Refund all of ORD-1?",
        "mode": "form",
        "schema": FORM,
        "key": "desk:ask",
    }
    return Question(**(known | given))


SAMPLING = question(
    kind="sampling",
    mode=None,
    schema=None,
    sampling=CreateMessageRequestParams(
        messages=[SamplingMessage(role="user", content=TextContent(text="Well?"))], max_tokens=3
    ),
)


@pytest.mark.parametrize(
    "asked", [question(), question(server=None), SAMPLING, question(kind="roots", mode=None, schema=None, message="")]
)
def test_a_question_goes_through_json_both_ways(asked: Question) -> None:
    assert Question.from_json(asked.to_json()) == asked
    with pytest.raises(ValidationError):
        Question.from_json('{"kind": "riddle"}')


def test_a_fingerprint_stands_for_what_is_asked_and_not_for_when() -> None:
    same = question(key="another", round=7)
    assert same.fingerprint() == question().fingerprint()
    for different in (
        question(message="Another?"),
        question(schema={**FORM, "required": []}),
        question(tool="another"),
        question(arguments={"order": "ORD-2"}),
        question(server="another"),
        question(mode="url", schema=None, url="https://example.com"),
        SAMPLING,
    ):
        assert different.fingerprint() != question().fingerprint()


def test_a_question_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        question().message = "Another?"  # pyright: ignore


def test_a_question_asks_for_a_model_whatever_its_wording() -> None:
    assert question().asks(Scope)
    assert question().asks(ScopeAsDataclass)
    assert not question().asks(Other)
    assert not SAMPLING.asks(Scope)
    with pytest.raises(TypeError, match="is made of a pydantic model or a dataclass"):
        question().asks(int)


def test_enumerations_and_optional_fields_are_what_they_stand_for() -> None:
    class Colour(Enum):
        RED = "red"
        BLUE = "blue"

    class Painted(BaseModel):
        colour: Colour
        size: int | None = None

    inlined = {
        "type": "object",
        "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}, "size": {"type": "integer"}},
        "required": ["colour"],
    }
    assert question(schema=inlined).asks(Painted)
    other = {**inlined, "properties": {**inlined["properties"], "colour": {"$ref": "#/$defs/Colour"}}}  # pyright: ignore
    other["$defs"] = {"Colour": {"type": "string", "enum": ["launch", "abort"]}}
    assert not question(schema=other).asks(Painted)


def test_a_field_may_be_called_like_a_keyword() -> None:
    class Titled(BaseModel):
        title: str
        description: str

    schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    assert not question(schema=schema).asks(Titled)
    schema["properties"]["description"] = {"type": "string", "title": "D"}  # pyright: ignore
    schema["required"] = ["description", "title"]
    assert question(schema=schema).asks(Titled)


def test_answers_have_no_opinion_on_sampling_and_roots() -> None:
    for answer in (Accept({}), Decline(), Cancel(), Defer()):
        assert answer(None, question()) is answer
        assert answer(None, SAMPLING) is None


@pytest.mark.parametrize(
    ("narrowed", "asked", "matches"),
    [
        ({"kind": "elicitation"}, question(), True),
        ({"kind": "sampling"}, question(), False),
        ({"mode": "url"}, question(), False),
        ({"tool": "refund_*"}, question(), True),
        ({"tool": "refund"}, question(), False),
        ({"server": "desk"}, question(), True),
        ({"server": "desk"}, question(server=None), False),
        ({"key": "desk:*"}, question(), True),
        ({"message": "(?i)REFUND all"}, question(), True),
        ({"message": "^all"}, question(), False),
        ({"url": "example"}, question(mode="url", schema=None, url="https://example.com"), True),
        ({"url": "example"}, question(), False),
        ({"schema": Scope}, question(), True),
        ({"schema": Other}, question(), False),
    ],
)
def test_when_narrows_a_policy(narrowed: dict[str, Any], asked: Question, matches: bool) -> None:
    def policy(ctx: Any, question: Question) -> Decline:
        return Decline()

    narrow = when(policy, **narrowed)
    assert narrow(None, asked) == (Decline() if matches else None)  # pyright: ignore
    assert narrow.__name__ == "policy"
    assert when(Decline(), tool="x").__name__ == "Decline"


def test_answers_go_by_message_or_schema() -> None:
    policy = Answers({"(?i)gift": Decline(), Scope: Scope(full=True), "": Cancel()})
    assert policy(None, question(message="A GIFT?")) == Decline()  # pyright: ignore
    assert policy(None, question()) == Accept(Scope(full=True))  # pyright: ignore
    assert policy(None, question(schema={"type": "object", "properties": {}})) == Cancel()  # pyright: ignore
    assert policy(None, SAMPLING) is None  # pyright: ignore
    assert Answers({})(None, question()) is None  # pyright: ignore


def test_rules_come_from_a_file(tmp_path: Any) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(
        """
        [[rule]]
        tool = "refund_*"
        message = "(?i)gift"
        answer = "accept"
        content = { full = true }

        [[rule]]
        server = "desk"
        answer = "decline"
        """
    )
    rules = rules_from(path)
    assert rules(None, question(message="A gift?")) == Accept({"full": True})  # pyright: ignore
    assert rules(None, question()) == Decline()  # pyright: ignore
    assert rules(None, question(server="elsewhere")) is None  # pyright: ignore
    assert rules(None, SAMPLING) is None  # pyright: ignore


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[rule]]\nanswer = 'accept'\nanwser = 1", "rule 1, key 'anwser': Extra inputs are not permitted"),
        ("[[rule]]\nanswer = 'decline'\n[[rule]]\ntool = 'x'", "rule 2, key 'answer': Field required"),
        ("[[rule]]\nanswer = 'maybe'", "rule 1, key 'answer': Input should be"),
        ("[[rule]]\nanswer = 'decline'\ncontent = {}", "rule 1, key 'content': Value error, goes with answer"),
        ("[[rule]]\nanswer = 'accept'\nkind = 'roots'", "rule 1, key 'kind': Value error, a roots request cannot be"),
        (
            "[[rule]]\nanswer = 'decline'\nkind = 'sampling'\nmode = 'form'",
            "rule 1, key 'mode': Value error, only elicitations",
        ),
        (
            "[[rule]]\nanswer = 'accept'\nmode = 'url'\ncontent = {}",
            "rule 1, key 'content': Value error, a URL question is",
        ),
        ("[[rule]]\nanswer = 'decline'\nmessage = '('", "rule 1, key 'message': Value error, not a regular expression"),
        ("[[rules]]\nanswer = 'decline'", "key 'rule': Field required"),
        ("rule = []", "key 'rule': List should have at least 1 item"),
        ("[[rule]\n", "Expected ']]'"),
    ],
)
def test_rules_that_are_wrong_say_where(tmp_path: Any, text: str, problem: str) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match="rules.toml: ") as caught:
        rules_from(path)
    assert problem in str(caught.value)


def test_a_policy_error_names_policy_and_question() -> None:
    error = PolicyError("mine", question(message="m" * 1000), "raised")
    assert "The policy mine raised, when tool 'refund_order' of server 'desk' asked: 'mmm" in str(error)
    assert len(str(error)) < 400


FIELDS: dict[str, Any] = {
    "name": {"type": "string", "minLength": 2, "maxLength": 4, "default": "Anna"},
    "age": {"type": "integer", "minimum": 1, "maximum": 9},
    "size": {"type": "string", "enum": ["S", "M"]},
    "paper": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]},
    "extras": {"type": "array", "items": {"anyOf": [{"const": "x"}, {"const": "y"}]}, "minItems": 1, "maxItems": 2},
    "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
    "mail": {"type": "string", "format": "email"},
    "link": {"type": "string", "format": "uri"},
    "day": {"type": "string", "format": "date"},
    "time": {"type": "string", "format": "date-time"},
    "code": {"type": "string", "pattern": "^(a+)+$"},
}


@pytest.mark.parametrize(
    "content",
    [
        {"name": "Bo"},
        {"age": 9},
        {"size": "S", "paper": "b"},
        {"extras": ["x", "y"], "tags": ["a"]},
        {"mail": "a@b.c", "link": "https://x.y", "day": "2026-11-18", "time": "2026-11-18T08:00:00Z"},
        {},
        {"code": "a" * 40 + "!"},
    ],
)
def test_content_that_fits_is_sent_with_its_defaults(content: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": FIELDS}
    assert Form(schema).checked(content) == {"name": "Anna", **content}


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({"name": "B"}, "name"),
        ({"name": "Bobby"}, "name"),
        ({"age": 0}, "age"),
        ({"age": "3"}, "age"),
        ({"age": 1.5}, "age"),
        ({"size": "L"}, "size"),
        ({"paper": "green"}, "paper"),
        ({"extras": []}, "extras"),
        ({"extras": ["x", "y", "x"]}, "extras"),
        ({"extras": ["z"]}, "extras.0"),
        ({"tags": ["c"]}, "tags.0"),
        ({"mail": "nobody"}, "mail"),
        ({"mail": 3}, "mail"),
        ({"link": "no address"}, "link"),
        ({"link": 3}, "link"),
        ({"day": "tomorrow"}, "day"),
        ({"day": 3}, "day"),
        ({"time": "2026-11-18"}, "time"),
        ({"time": "T"}, "time"),
        ({"time": 3}, "time"),
        ({"day": "20261118"}, "day"),
        ({"time": "2026-11-18T10:00:00"}, "time"),
        ({"mail": "a b@@c"}, "mail"),
        ({"link": "http://[bad"}, "link"),
        ({"link": "a:b c <>"}, "link"),
        ({"age": float("nan")}, "age"),
        ({"more": {"a": 1}}, "more"),
        ({"more": [1]}, "more"),
    ],
)
def test_content_that_does_not_fit_names_the_field(content: dict[str, Any], field: str) -> None:
    with pytest.raises(ContentError, match=rf"^{field}: "):
        Form({"type": "object", "properties": FIELDS}).checked(content)


def test_a_missing_field_is_named_and_models_are_content_too() -> None:
    schema = {"type": "object", "properties": FIELDS, "required": ["age"]}
    with pytest.raises(ContentError, match="'age' is a required property"):
        Form(schema).checked({})
    assert Form(FORM).checked(ScopeAsDataclass(full=True)) == {"full": True, "sku": "other"}
    assert Form(FORM).checked(Scope(full=True)) == {"full": True, "sku": "none"}
    assert Form(FORM).checked(MappingProxyType({"full": True})) == {"full": True}
    assert Form({"properties": {"x": {"type": "string", "default": None}}}).checked({}) == {}
    with pytest.raises(ContentError, match="not ModelMetaclass"):
        Form(FORM).checked(Scope)
    circular: dict[str, Any] = {"full": True}
    circular["x"] = circular
    for content in ({"full": object()}, {"full": b"\xff"}, circular):
        with pytest.raises(ContentError, match="it cannot be written as JSON"):
            Form(FORM).checked(content)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (None, "not a JSON object"),
        ({"properties": []}, "its schema is not valid JSON Schema"),
        ({"properties": {"x": {"type": "nonsense"}}}, "its schema is not valid JSON Schema"),
        ({"properties": {f"{n}": {} for n in range(101)}}, "more than 100 fields"),
        ({"properties": {"x": {}}, "required": ["y"]}, "requires a field that it does not have"),
        ({"properties": {"x": True}}, "'x' has no schema of its own"),
        ({"properties": {"x": {"oneOf": [True]}}}, "a bare boolean"),
        ({"properties": {"x": {"type": "array", "items": False}}}, "a bare boolean"),
        (
            {"properties": {"x": {"type": "array", "items": {"anyOf": [{"$ref": "#"}]}}}},
            r"has \$ref, which forms cannot have",
        ),
        ({"properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": {}}}, r"has \$ref"),
        ({"properties": {"x": {"allOf": [{"enum": ["a"]}]}}}, "has allOf"),
        ({"properties": {"x": {"type": "object", "properties": {}}}}, "has properties"),
        ({"properties": {"x": {"enum": ["a"], "enumNames": 5}}}, "not have as many names as choices"),
        ({"properties": {"x": {"enum": ["a"], "enumNames": []}}}, "not have as many names as choices"),
        ({"properties": {"x": {"type": "integer", "default": "x"}}}, "a default that does not fit"),
        ({"properties": {"x": [[[[[[[[[[[[[]]]]]]]]]]]]]}}, "nested too deeply"),
    ],
)
def test_a_form_that_cannot_be_shown_says_why(schema: Any, reason: str) -> None:
    problem = Form(schema).problem
    assert problem is not None
    assert re.search(reason, problem)


def test_a_form_that_can_be_shown_is_checked_once() -> None:
    schema = {"properties": {"checked once": {"type": "string"}}}
    with patch.object(Draft202012Validator, "check_schema") as check:
        assert [Form(schema).problem for _ in range(3)] == [None] * 3
    assert check.call_count == 1


@pytest.mark.parametrize(
    ("spelling", "several"),
    [
        ({"type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"]}, False),
        ({"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]}, False),
        ({"anyOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]}, False),
        (
            {"type": "array", "items": {"anyOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]}},
            True,
        ),
        ({"type": "array", "items": {"type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"]}}, True),
    ],
)
def test_choices_are_read_in_every_spelling(spelling: dict[str, Any], several: bool) -> None:
    model: Any = create_model("Paper", paper=list[Literal["r", "b"]] if several else Literal["r", "b"])
    schema = {"type": "object", "properties": {"paper": spelling}, "required": ["paper"]}
    field = Form(schema).fields["paper"]
    assert [(choice.value, choice.title) for choice in field.choices] == [("r", "Red"), ("b", "Blue")]
    assert (field.several, field.required, field.takes_text) == (several, True, False)
    assert field.takes == ("some of r | b" if several else "r | b")
    assert question(schema=schema).asks(model)


def test_choices_without_a_title_show_their_value() -> None:
    spellings: list[dict[str, Any]] = [
        {"enum": ["x", 1]},
        {"oneOf": [{"const": "x"}, {"const": 1}, {"type": "string"}]},
        {"enum": ["x", 1], "enumNames": [""]},
    ]
    for spelling in spellings:
        choices = Form({"properties": {"a": spelling}}).fields["a"].choices
        assert [(choice.value, choice.title) for choice in choices] == [("x", "x"), (1, "1")]
    assert [each.value for each in Form({"properties": {"a": {"const": "x", "title": "A"}}}).fields["a"].choices] == [
        "x"
    ]


def test_a_field_says_what_it_takes() -> None:
    field = {"type": "string", "maxLength": 3, "format": "date", "title": "T", "description": "D", "default": "d"}
    form = Form(
        {"properties": {"a": field, "b": {"type": ["integer", "null"]}, "c": {}, "d": {"anyOf": [{"type": "string"}]}}}
    )
    a, b, c, d = form.fields.values()
    assert (a.title, a.description, a.format, a.default, a.limits, a.takes) == (
        "T",
        "D",
        "date",
        "d",
        {"maxLength": 3},
        "date",
    )
    assert (a.takes_text, b.takes_text, c.takes_text, d.takes_text) == (True, False, False, True)
    assert (b.takes, c.takes, d.takes) == ("integer | null", "anything", "string")


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {"properties": 3, "required": 3, "$defs": 3},
        {"properties": {"a": True, "b": {"type": 3, "enum": 3, "oneOf": [3], "anyOf": 3, "items": 3, "title": 3}}},
        {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}, "required": [3, "a"]},
        {"properties": {"a": {"enum": [None, {}, 1.5, [], True]}}},
    ],
)
def test_whatever_a_server_sends_can_be_read(schema: Any) -> None:
    form = Form(schema)
    for field in form.fields.values():
        assert (field.title, field.description, field.format) == ("", "", "")
        assert isinstance(field.takes, str)
    assert form.shape == Form(copy.deepcopy(schema)).shape


@pytest.mark.parametrize(
    "field",
    [
        "password",
        "user_password",
        "api_key",
        "apiKey",
        "access_token",
        "client_secret",
        "card_number",
        "card",
        "cvv",
        "pin",
        "private_key",
        "passphrase",
        "otp",
        "pwd",
        "creditCard",
        "userPin",
        "key",
        "securityCode",
    ],
)
def test_secrets_are_recognised(field: str) -> None:
    spaced = field.replace("_", " ")
    assert asks_for_secrets(question(schema={"properties": {field: {"type": "string"}}}))
    assert asks_for_secrets(question(schema={"properties": {"x": {"type": "string", "title": spaced}}}))
    assert asks_for_secrets(question(schema={"properties": {"x": {"type": "string", "description": f"Your {spaced}"}}}))
    assert asks_for_secrets(question(message=f"Enter your {spaced}"))


def test_other_fields_are_no_secrets() -> None:
    names = ("sku", "reason", "amount", "keyboard", "spinning", "discard", "postcard_text", "email")
    assert not asks_for_secrets(question(schema={"properties": {name: {"type": "string"} for name in names}}))
    assert asks_for_secrets(question(schema={"properties": {"x": {"type": "string", "format": "password"}}}))
    assert not asks_for_secrets(question(schema=None))


def test_forms_that_only_confirm_are_recognised() -> None:
    assert Form({"properties": {"a": {"type": "boolean"}, "b": {"type": "boolean"}}}).only_confirms
    assert Form({}).only_confirms
    for field in (
        {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        {"type": ["boolean", "null"]},
        {"enum": [True, False]},
        {"const": True},
    ):
        assert Form({"properties": {"a": field}}).only_confirms
    for field in ({"type": "string"}, {"enum": ["yes"]}, {"anyOf": [{"type": "string"}]}, {}, {"type": ["string"]}):
        assert not Form({"properties": {"a": field}}).only_confirms
    assert not Form(FORM).only_confirms
