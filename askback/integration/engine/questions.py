"""Questions: what a resolver's marker looks like on the wire, who can answer it, and what an answer to it means."""

import hashlib
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, NamedTuple, cast
from weakref import WeakKeyDictionary

from mcp.server.elicitation import render_elicitation_schema
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitationCapability,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    FormElicitationCapability,
    InputRequest,
    InputResponse,
    ListRootsRequest,
    ListRootsResult,
    RootsCapability,
    SamplingCapability,
    SamplingToolsCapability,
)
from pydantic import AliasChoices, BaseModel, RootModel, ValidationError, create_model
from pydantic.fields import FieldInfo
from typing_extensions import TypeIs, override

from askback.exchange.form import Form
from askback.integration.engine.annotations import arms, is_class_of
from askback.integration.engine.host import Kind, Limits
from askback.markers import (
    CancelledElicitation,
    DeclinedElicitation,
    ListRoots,
    Sample,
    SDKElicit,
)

logger = logging.getLogger(__name__)

Marker = SDKElicit[Any] | Sample | ListRoots
MARKERS = (SDKElicit, Sample, ListRoots)

WRONG_KIND = "the response is not an answer to its question"
MISFIT = "the accepted content does not fit the question"

Refusal = DeclinedElicitation | CancelledElicitation
REFUSALS = (DeclinedElicitation, CancelledElicitation)
Action = Literal["accept", "decline", "cancel"]


def is_marker(value: object) -> TypeIs[Marker]:
    """Whether a resolver returned a question rather than a value."""
    return isinstance(value, MARKERS)


class Accepted(NamedTuple):
    """A question's accepted outcome: the value a consumer gets."""

    value: Any


class RecordedAnswer(NamedTuple):
    """What a client answered of what it was asked, and the digest of the question."""

    digest: str
    action: Action
    content: str | None
    """What was accepted, as JSON text."""


@dataclass(frozen=True, slots=True)
class RenderedForm:
    """A model as the form a client shows, rendered once."""

    schema: dict[str, Any]
    fingerprint: bytes
    choices: dict[str, frozenset[str]]
    """The texts to choose from, where the form says so."""

    def answered(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """What of `content` was asked for.

        Raises:
            ValueError: If a choice is not one of those offered, or the form forbids other fields and there are some.
        """
        fields: Mapping[str, Any] = self.schema["properties"]
        asked_for = {name: content[name] for name in fields if name in content}
        if len(asked_for) < len(content) and self.schema.get("additionalProperties") is False:
            raise ValueError(MISFIT)
        for name, offered in self.choices.items():
            chosen = asked_for.get(name)
            several = cast("list[Any]", chosen) if isinstance(chosen, list) else [chosen]
            if any(isinstance(each, str) and each not in offered for each in several):
                raise ValueError(MISFIT)
        return asked_for


class RenderedForms:
    """The forms of one tool's questions."""

    def __init__(self) -> None:
        # A resolver may make a model for each call: its form goes when the model does.
        self._rendered: WeakKeyDictionary[type[BaseModel], RenderedForm] = WeakKeyDictionary()

    def of(self, model: type[BaseModel]) -> RenderedForm:
        """The form for `model`, rendered when it is first needed.

        Raises:
            TypeError: If it is not a pydantic model, or has a field that a form cannot ask for.
        """
        if not is_class_of(model, BaseModel):
            raise TypeError(
                f"a question is answered with a pydantic model, not {model!r}; put it into one, as in class "
                "Answer(BaseModel): value: ..."
            )
        form = self._rendered.get(model)
        if form is None:
            schema = _schema(model)
            form = self._rendered[model] = RenderedForm(schema, _fingerprint(schema), _choices(schema))
        return form


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    """A model as a flat form, every field of which can be asked for and answered."""
    if issubclass(model, RootModel):
        raise TypeError("a form has named fields, which a RootModel has not; use a BaseModel with a field for it")
    fields = model.model_fields
    for name, field in fields.items():
        members = [arm for arm in arms(field.annotation) if is_class_of(arm, Enum)]
        if members:
            values = ", ".join(repr(each.value) for each in members[0])
            raise TypeError(f"its field {name!r} is an Enum; write Literal[{values}] instead")
    try:
        schema = render_elicitation_schema(model)
    except TypeError:
        raise TypeError(f"{_unaskable(model)}; {CAN_ASK}") from None
    if "properties" not in schema:
        # A model that contains itself is rendered as a reference to its own definition.
        raise TypeError(f"it contains itself; {CAN_ASK}")
    asked: set[str] = set(schema["properties"])
    taken = {name: _names(name, field.validation_alias, model) for name, field in fields.items()}
    lost = [name for name, names in taken.items() if fields[name].is_required() and not names & asked]
    lost += asked.difference(*taken.values())
    if lost:
        raise TypeError(
            f"its field {lost[0]!r} has an alias that an answer cannot carry; use a plain name as the alias"
        )
    return schema


CAN_ASK = (
    "a form asks for text, numbers, yes or no, dates, one choice (Literal['a', 'b']) or several "
    "(list[Literal['a', 'b']])"
)


def _unaskable(model: type[BaseModel]) -> str:
    """Which fields of a model a form cannot ask for, in words."""
    fields = {name: field for name, field in model.model_fields.items() if not _can_be_asked(name, field)}
    return ", ".join(f"its field {name!r} is {field.annotation!r}" for name, field in fields.items())


def _can_be_asked(name: str, field: FieldInfo) -> bool:
    try:
        render_elicitation_schema(create_model("Alone", **{name: (field.annotation, field)}))  # pyright: ignore[reportCallIssue, reportArgumentType, reportUnknownArgumentType]
    except TypeError:
        return False
    return True


def _names(name: str, alias: object, model: type[BaseModel]) -> set[str]:
    """The names under which a field takes its value."""
    config = model.model_config
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    names = {each for each in choices if isinstance(each, str)} if config.get("validate_by_alias", True) else set[str]()
    if alias is None or config.get("validate_by_name") or config.get("populate_by_name"):
        names.add(name)
    return names


class RenderedQuestion(ABC):
    """What a resolver asks, rendered."""

    kind: Kind
    result_type: type[ElicitResult | CreateMessageResult | CreateMessageResultWithTools | ListRootsResult]

    @property
    def text(self) -> str:
        """What a person is asked, where it is a person who is asked."""
        return ""

    @abstractmethod
    def digest(self) -> str:
        """Stands for exactly what the client is shown: a question reworded or reshaped has another."""

    @abstractmethod
    def request(self) -> InputRequest:
        """The question on the wire, the same for both generations."""

    @abstractmethod
    def needs(self, declared: ClientCapabilities | None) -> ClientCapabilities | None:
        """The capability a client that declared `declared` lacks, None where it can be asked."""

    @abstractmethod
    def answer(self, response: InputResponse) -> RecordedAnswer:
        """Read a response.

        Raises:
            ValueError: If it does not answer this question, with a sentence fit for anyone to read.
        """

    @abstractmethod
    def outcome(self, answer: RecordedAnswer) -> Accepted | Refusal:
        """What an answer means to the consumers.

        Raises:
            ValueError: If its content does not fit the question.
        """


def question_of(marker: Marker, forms: RenderedForms) -> RenderedQuestion:
    """The question that a resolver's marker stands for.

    Raises:
        TypeError: If the marker asks for something the protocol cannot ask.
    """
    if isinstance(marker, SDKElicit):
        if not isinstance(marker.message, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"the message of a question is a string, not {type(marker.message).__name__}")
        return _FormQuestion(marker.message, marker.schema, forms.of(marker.schema))
    if isinstance(marker, Sample):
        return _SampleQuestion(marker)
    return _RootsQuestion()


def outcome_of(
    question: RenderedQuestion, response: InputResponse, resolver: str, limits: Limits
) -> tuple[RecordedAnswer, Accepted | Refusal]:
    """Read a response that has just arrived: the answer to keep, and what it means.

    Raises:
        ToolError: If it does not answer the question. The sentence repeats nothing of what was sent.
    """
    try:
        answer = question.answer(response)
        if answer.content is not None and len(answer.content) > limits.answer:
            raise ValueError(f"the answer is longer than {limits.answer} characters")
        return answer, question.outcome(answer)
    except ValidationError:
        reason = MISFIT
    except ValueError as error:
        reason = str(error)
    except Exception as error:
        # A validator of the author's has a bug. What it raises may repeat the answer, so it goes nowhere.
        logger.warning("A validator of the form that resolver %r asks for raised %s", resolver, type(error).__name__)
        reason = MISFIT
    raise ToolError(f"Resolver {resolver!r}: {reason}")


class _FormQuestion(RenderedQuestion):
    kind = "elicitation"
    result_type = ElicitResult

    def __init__(self, message: str, model: type[BaseModel], form: RenderedForm) -> None:
        self.message = message
        self.model = model
        self.form = form

    @property
    @override
    def text(self) -> str:
        return self.message

    @override
    def digest(self) -> str:
        # Of fixed length, the fingerprint cannot run into the message; no text a server writes fails to encode.
        return _short(self.form.fingerprint + self.message.encode("utf-8", "surrogatepass"))

    @override
    def request(self) -> InputRequest:
        return ElicitRequest(
            params=ElicitRequestFormParams(message=self.message, requested_schema=self.form.schema),
        )

    @override
    def needs(self, declared: ClientCapabilities | None) -> ClientCapabilities | None:
        elicitation = declared.elicitation if declared is not None else None
        # Before there were modes, `elicitation: {}` was the only way to declare forms.
        if elicitation is not None and (elicitation.form is not None or elicitation.url is None):
            return None
        return ClientCapabilities(elicitation=ElicitationCapability(form=FormElicitationCapability()))

    @override
    def answer(self, response: InputResponse) -> RecordedAnswer:
        if not isinstance(response, ElicitResult):
            raise ValueError(WRONG_KIND)
        if response.action != "accept":
            return RecordedAnswer(self.digest(), response.action, None)
        if response.content is None:
            raise ValueError("the answer was accepted without content")
        return RecordedAnswer(self.digest(), "accept", json.dumps(self.form.answered(response.content)))

    @override
    def outcome(self, answer: RecordedAnswer) -> Accepted | Refusal:
        if answer.action == "decline":
            return DeclinedElicitation()
        if answer.action == "cancel":
            return CancelledElicitation()
        # As JSON, since that is what it is: a strict model takes a date from it, and none from a Python string.
        return Accepted(self.model.model_validate_json(answer.content or ""))


class _ResultQuestion(RenderedQuestion):
    """A question that cannot be declined: its answer is the result itself."""

    @override
    def answer(self, response: InputResponse) -> RecordedAnswer:
        content = response.model_dump_json(by_alias=True, exclude_none=True)
        try:
            self.result_type.model_validate_json(content)
        except ValidationError:
            raise ValueError(WRONG_KIND) from None
        return RecordedAnswer(self.digest(), "accept", content)

    @override
    def outcome(self, answer: RecordedAnswer) -> Accepted:
        return Accepted(self.result_type.model_validate_json(answer.content or ""))


class _SampleQuestion(_ResultQuestion):
    kind = "sampling"

    def __init__(self, sample: Sample) -> None:
        self.params = sample.params
        self.uses_tools = sample.params.tools is not None or sample.params.tool_choice is not None
        self.result_type = CreateMessageResultWithTools if self.uses_tools else CreateMessageResult

    @override
    def digest(self) -> str:
        return _short(_fingerprint(self.params.model_dump(mode="json", by_alias=True, exclude_none=True)))

    @override
    def request(self) -> InputRequest:
        return CreateMessageRequest(params=self.params)

    @override
    def needs(self, declared: ClientCapabilities | None) -> ClientCapabilities | None:
        sampling = declared.sampling if declared is not None else None
        if sampling is not None and (sampling.tools is not None or not self.uses_tools):
            return None
        tools = SamplingToolsCapability() if self.uses_tools else None
        return ClientCapabilities(sampling=SamplingCapability(tools=tools))


class _RootsQuestion(_ResultQuestion):
    kind = "roots"
    result_type = ListRootsResult

    @override
    def digest(self) -> str:
        return "roots"

    @override
    def request(self) -> InputRequest:
        return ListRootsRequest()

    @override
    def needs(self, declared: ClientCapabilities | None) -> ClientCapabilities | None:
        if declared is not None and declared.roots is not None:
            return None
        return ClientCapabilities(roots=RootsCapability())


def _choices(schema: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    fields = Form(schema).fields.values()
    offered = {field.name: {each.value for each in field.choices if isinstance(each.value, str)} for field in fields}
    return {name: frozenset(values) for name, values in offered.items() if values}


def _fingerprint(value: Any) -> bytes:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
