"""What an agent is asked while one of its tools runs."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, Literal, cast

from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequest,
    TextContent,
)
from pydantic import BaseModel, TypeAdapter
from pydantic.dataclasses import dataclass

from askback.exchange.document import Document

Kind = Literal["elicitation", "sampling", "roots"]
Mode = Literal["form", "url"]


@dataclass(frozen=True, kw_only=True)
class Question(Document):
    """Everything a policy may want to know of what a server asks.

    It is what the server says, and the server may be lying: only `server`, `tool`, `arguments` and `round` are known to
    this side.
    """

    kind: Kind
    """Whether a person, a model or the directories are asked for."""
    server: str | None = None
    """The toolset's `id`: whatever a server calls itself is not here."""
    tool: str
    """The tool's own name, without the prefixes of wrappers around its toolset."""
    arguments: dict[str, Any]
    """What the tool was called with."""
    message: str = ""
    """What the server wants to be shown; for sampling, the last text of its messages."""
    mode: Mode | None = None
    """For elicitation: a form to fill in, or an address to visit."""
    schema: dict[str, Any] | None = None
    """For forms: the JSON schema of the answer."""
    url: str | None = None
    """For addresses: where to. Nothing opens it by itself."""
    sampling: CreateMessageRequestParams | None = None
    """For sampling: the whole request."""
    key: str | None = None
    """The server's name for the question, the same in every round; None on connections before 2026-07-28."""
    round: int = 1
    """Which round of the call asks it; always 1 on connections before 2026-07-28."""

    def asks(self, model: type[Any]) -> bool:
        """Whether the form asks for just the fields of `model`, a pydantic model or a dataclass.

        Types, choices, formats, limits and which fields are required count; titles, descriptions and defaults do not.
        """
        return self.schema is not None and _shape(self.schema) == _shape(_schema_of(model))

    def matches(self, asked: str | re.Pattern[str] | type[Any]) -> bool:
        """Whether it is meant by `asked`: a regular expression for its message, or a model that its form asks for."""
        return self.asks(asked) if isinstance(asked, type) else re.search(asked, self.message) is not None

    def fingerprint(self) -> str:
        """Stands for what is asked, by which tool of which server, called with what: not for when it is asked."""
        asked: dict[str, Any] = self.adapter().dump_python(self, mode="json", by_alias=True, exclude={"key", "round"})
        if self.schema is not None:
            # Only older connections carry the title of a whole form.
            asked["schema"] = {name: value for name, value in asked["schema"].items() if name != "title"}
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:32]


def question_of(request: InputRequest, **known: Any) -> Question:
    """A server's request, as the question that it is; `known` is what the request itself does not say."""
    if isinstance(request, CreateMessageRequest):
        return Question(kind="sampling", message=_last_text(request.params), sampling=request.params, **known)
    if not isinstance(request, ElicitRequest):
        return Question(kind="roots", **known)
    params = request.params
    if isinstance(params, ElicitRequestFormParams):
        known |= {"mode": "form", "schema": params.requested_schema}
    else:
        known |= {"mode": "url", "url": params.url}
    return Question(kind="elicitation", message=params.message, **known)


def _last_text(params: CreateMessageRequestParams) -> str:
    texts = [
        block.text for message in params.messages for block in message.content_as_list if isinstance(block, TextContent)
    ]
    return texts[-1] if texts else ""


def offers_tools(sampling: CreateMessageRequestParams) -> bool:
    """Whether a completion may call tools, which makes its result another type."""
    return sampling.tools is not None or sampling.tool_choice is not None


WORDING = frozenset({"title", "description", "default", "$schema", "additionalProperties", "enumNames"})


def _schema_of(model: type[Any]) -> dict[str, Any]:
    if issubclass(model, BaseModel) or is_dataclass(cast("object", model)):
        return TypeAdapter[Any](model).json_schema()
    raise TypeError(f"asks() takes a pydantic model or a dataclass, not {model!r}")


def _shape(schema: Any) -> Any:
    """A form without its wording, so that two that ask for the same compare equal."""
    form = cast("Mapping[str, Any]", schema)
    definitions: Mapping[str, Any] = form.get("$defs", {})
    fields: Mapping[str, Any] = form.get("properties", {})
    shape = {key: value for key, value in form.items() if key not in WORDING and key != "$defs"}
    return shape | {
        "properties": {name: _field_shape(field, definitions) for name, field in fields.items()},
        "required": sorted(form.get("required") or ()),
    }


def _field_shape(field: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(field, list):
        return [_field_shape(each, definitions) for each in cast("list[Any]", field)]
    if not isinstance(field, Mapping):
        return field
    given = cast("Mapping[str, Any]", field)
    # Pydantic puts enumerations beside the form, and says that a field may be left out by admitting null.
    name = str(given.get("$ref", "")).rpartition("/")[2]
    if name in definitions:
        given = definitions[name]
    some = [each for each in given.get("anyOf", ()) if each != {"type": "null"}]
    if len(some) == 1:
        return _field_shape(some[0], definitions)
    return {key: _field_shape(value, definitions) for key, value in given.items() if key not in WORDING}
