"""Questions: what a resolver's marker looks like on the wire, who can answer it, and what an answer to it means."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
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
from pydantic import BaseModel, ValidationError
from typing_extensions import TypeIs, override

from askback.integration.engine.annotations import is_class_of
from askback.markers import (
    CancelledElicitation,
    DeclinedElicitation,
    ListRoots,
    Sample,
    SDKElicit,
)

Marker = SDKElicit[Any] | Sample | ListRoots
MARKERS = (SDKElicit, Sample, ListRoots)

WRONG_KIND = "the response is not an answer to its question"
MISFIT = "the accepted content does not fit the question"

Refusal = DeclinedElicitation | CancelledElicitation
Action = Literal["accept", "decline", "cancel"]


def is_marker(value: object) -> TypeIs[Marker]:
    """Whether a resolver returned a question rather than a value."""
    return isinstance(value, MARKERS)


class Accepted(NamedTuple):
    """A question's accepted outcome: the value a consumer gets."""

    value: Any


class Answer(NamedTuple):
    """An answer as the client sent it, and the digest of what it answers."""

    digest: str
    action: Action
    content: Any


@dataclass(frozen=True, slots=True)
class Form:
    """A model as the form a client shows, rendered once."""

    schema: dict[str, Any]
    fingerprint: bytes
    choices: dict[str, frozenset[str]]
    """The texts to choose from, where the form says so."""

    def answered(self, content: object) -> dict[str, Any]:
        """What of `content` was asked for. Where the form forbids anything else, that is left in, for the model to see.

        Raises:
            ValueError: If it is no mapping, or a choice is none of those that were offered.
        """
        if not isinstance(content, dict):
            raise ValueError(MISFIT)
        content = cast("dict[str, Any]", content)
        for name, offered in self.choices.items():
            chosen = content.get(name)
            several = cast("list[Any]", chosen) if isinstance(chosen, list) else [chosen]
            if any(isinstance(each, str) and each not in offered for each in several):
                raise ValueError(MISFIT)
        if self.schema.get("additionalProperties") is False:
            return content
        return {name: value for name, value in content.items() if name in self.schema["properties"]}


class Forms:
    """The forms of one tool's questions."""

    def __init__(self) -> None:
        # A resolver may make a model for each call: its form goes when the model does.
        self._rendered: WeakKeyDictionary[type[BaseModel], Form] = WeakKeyDictionary()

    def of(self, model: type[BaseModel]) -> Form:
        """The form for `model`, rendered when it is first needed.

        Raises:
            TypeError: If it is not a pydantic model, or has a field the protocol cannot ask for.
        """
        form = self._rendered.get(model)
        if form is None:
            if not is_class_of(model, BaseModel):
                raise TypeError(f"a question takes a pydantic model for its answer, not {model!r}")
            schema = render_elicitation_schema(model)
            form = self._rendered[model] = Form(schema, _fingerprint(schema), _choices(schema))
        return form


class Question(ABC):
    """What a resolver asks, rendered."""

    result_type: type[ElicitResult | CreateMessageResult | CreateMessageResultWithTools | ListRootsResult]

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
    def answer(self, response: InputResponse) -> Answer:
        """Read a response.

        Raises:
            ValueError: If it is no answer to this question, with a sentence fit for anyone to read.
        """

    @abstractmethod
    def outcome(self, answer: Answer) -> Accepted | Refusal:
        """What an answer means to the consumers.

        Raises:
            ValueError: If its content does not fit the question.
        """


def question_of(marker: Marker, forms: Forms) -> Question:
    """The question that a resolver's marker stands for.

    Raises:
        TypeError: If the marker asks for something the protocol cannot ask.
    """
    if isinstance(marker, SDKElicit):
        return _FormQuestion(marker.message, marker.schema, forms.of(marker.schema))
    if isinstance(marker, Sample):
        return _SampleQuestion(marker)
    return _RootsQuestion()


def outcome_of(question: Question, response: InputResponse, resolver: str) -> tuple[Answer, Accepted | Refusal]:
    """Read a response that has just arrived: the answer to keep, and what it means.

    Raises:
        ToolError: If it does not answer the question. The sentence says nothing of what was sent.
    """
    try:
        answer = question.answer(response)
        return answer, question.outcome(answer)
    except ValidationError:
        raise ToolError(f"Resolver {resolver!r}: {MISFIT}") from None
    except ValueError as error:
        raise ToolError(f"Resolver {resolver!r}: {error}") from None


class _FormQuestion(Question):
    result_type = ElicitResult

    def __init__(self, message: str, model: type[BaseModel], form: Form) -> None:
        self.message = message
        self.model = model
        self.form = form

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
    def answer(self, response: InputResponse) -> Answer:
        if not isinstance(response, ElicitResult):
            raise ValueError(WRONG_KIND)
        if response.action == "accept" and response.content is None:
            raise ValueError("the answer was accepted without content")
        return Answer(self.digest(), response.action, response.content)

    @override
    def outcome(self, answer: Answer) -> Accepted | Refusal:
        if answer.action == "decline":
            return DeclinedElicitation()
        if answer.action == "cancel":
            return CancelledElicitation()
        return Accepted(self.model.model_validate(self.form.answered(answer.content)))


class _ResultQuestion(Question):
    """A question without a decline arm: its answer is the result itself."""

    @override
    def answer(self, response: InputResponse) -> Answer:
        content = response.model_dump(mode="json", by_alias=True, exclude_none=True)
        try:
            self.result_type.model_validate(content)
        except ValidationError:
            raise ValueError(WRONG_KIND) from None
        return Answer(self.digest(), "accept", content)

    @override
    def outcome(self, answer: Answer) -> Accepted:
        return Accepted(self.result_type.model_validate(answer.content))


class _SampleQuestion(_ResultQuestion):
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
    fields: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
    offered = {name: [*_offered(field), *_offered(field.get("items", {}))] for name, field in fields.items()}
    return {name: frozenset(values) for name, values in offered.items() if values}


def _offered(field: Mapping[str, Any]) -> list[Any]:
    titled = [*field.get("oneOf", ()), *field.get("anyOf", ())]
    return field.get("enum") or [each["const"] for each in titled if "const" in each]


def _fingerprint(value: Any) -> bytes:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
