"""A question that a server asks while one of its tools runs."""

import hashlib
import json
import re
from functools import cached_property
from typing import Any, Literal

from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequest,
    TextContent,
)
from pydantic.dataclasses import dataclass

from askback.exchange.document import Document
from askback.exchange.form import Form

Kind = Literal["elicitation", "sampling", "roots"]
Mode = Literal["form", "url"]


@dataclass(frozen=True, kw_only=True)
class Question(Document):
    """Everything a policy may want to know about what a server asks.

    The server wrote most of it, and may be lying: only `server`, `tool`, `arguments` and `round` come from this side.
    """

    kind: Kind
    """Whether the server asks a person, a model or for directories."""
    server: str | None = None
    """The toolset's `id`, not the name that the server gives itself."""
    tool: str
    """The tool's own name, without the prefixes of wrappers around its toolset."""
    arguments: dict[str, Any]
    """The arguments of the tool call. A copy: changing them does not change the call."""
    message: str = ""
    """The text that the server wants to be shown; for sampling, the last text of its messages."""
    mode: Mode | None = None
    """For elicitation: a form to fill in, or a URL to visit."""
    schema: dict[str, Any] | None = None
    """For forms: the JSON schema of the answer."""
    url: str | None = None
    """For URL mode: the URL to visit. Nothing opens it automatically."""
    sampling: CreateMessageRequestParams | None = None
    """For sampling: the whole request."""
    key: str | None = None
    """The server's name for the question, the same in every round; None on connections before 2026-07-28."""
    round: int = 1
    """The round of the call that asks it; always 1 on connections before 2026-07-28."""

    @property
    def in_rounds(self) -> bool:
        """Whether it came in a round (2026-07-28 and later) rather than as a request of its own."""
        return self.key is not None

    @cached_property
    def form(self) -> Form | None:
        """For forms: the fields to fill in, read from `schema`."""
        return Form(self.schema) if self.schema is not None else None

    def asks(self, model: type[Any]) -> bool:
        """Whether the form asks for exactly the fields of `model`, a pydantic model or a dataclass.

        Types, choices, formats, limits and which fields are required count; titles, descriptions and defaults do not.
        """
        return self.form is not None and self.form.shape == Form.of(model).shape

    def matches(self, asked: str | re.Pattern[str] | type[Any]) -> bool:
        """Whether `asked`, a regular expression for the message or a model for the form, describes this question."""
        return self.asks(asked) if isinstance(asked, type) else re.search(asked, self.message) is not None

    def fingerprint(self) -> str:
        """Identifies what is asked, by which tool of which server, called with what; not when it is asked."""
        asked: dict[str, Any] = self.adapter().dump_python(self, mode="json", by_alias=True, exclude={"key", "round"})
        if self.schema is not None:
            # Only older connections carry the title of a whole form.
            asked["schema"] = {name: value for name, value in asked["schema"].items() if name != "title"}
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:32]


def question_of(request: InputRequest, **known: Any) -> Question:
    """The question in a server's request; `known` adds what the request itself does not say."""
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
    """Whether a completion may call tools, which gives its result another type."""
    return sampling.tools is not None or sampling.tool_choice is not None
