"""Answers, in the form in which a server receives them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mcp_types import (
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitResult,
    InputResponse,
    ListRootsResult,
    Root,
    TextContent,
)
from pydantic import FileUrl

from askback.exchange.answer import Accept, Cancel, Decline
from askback.exchange.form import ContentError
from askback.exchange.question import Question, offers_tools

Directories = Sequence[str | Path | Root]


def response_to(question: Question, answer: Accept | Decline | Cancel, by: str) -> InputResponse | None:
    """The response that carries an answer; None for a no to sampling or roots, for which the protocol has no response.

    Raises:
        ContentError: If the accepted content does not fit the question.
    """
    if question.kind == "elicitation":
        return elicit_result(question, answer)
    if not isinstance(answer, Accept):
        return None
    return _listed(answer.content) if question.kind == "roots" else _completed(answer.content, by)


def elicit_result(question: Question, answer: Accept | Decline | Cancel) -> ElicitResult:
    """The response to an elicitation.

    Raises:
        ContentError: If the accepted content does not fit the form.
    """
    if isinstance(answer, Decline):
        return ElicitResult(action="decline")
    if isinstance(answer, Cancel):
        return ElicitResult(action="cancel")
    if question.form is None:
        if answer.content is not None:
            raise ContentError("a URL question is accepted without content")
        return ElicitResult(action="accept")
    return ElicitResult(action="accept", content=question.form.checked(answer.content))


def content_of(response: InputResponse) -> Any:
    """The content of a response, as JSON."""
    return response.content if isinstance(response, ElicitResult) else wire(response)


def wire(response: InputResponse) -> dict[str, Any]:
    """A response as JSON."""
    return response.model_dump(mode="json", by_alias=True, exclude_none=True)


def recorded(question: Question, response: Mapping[str, Any]) -> InputResponse:
    """A stored response to a question, read back as its own type.

    Raises:
        pydantic.ValidationError: If it is not a response to such a question.
    """
    if question.kind == "elicitation":
        return ElicitResult.model_validate(response)
    if question.kind == "roots":
        return ListRootsResult.model_validate(response)
    with_tools = question.sampling is not None and offers_tools(question.sampling)
    return (CreateMessageResultWithTools if with_tools else CreateMessageResult).model_validate(response)


def roots_result(directories: Directories) -> ListRootsResult:
    """The response that lists directories.

    Raises:
        TypeError: If it is not a list of directories.
        ValueError: If one of them is a URL of another scheme than `file`.
    """
    if isinstance(directories, str):
        raise TypeError("expected a list of directories, not a string")
    return ListRootsResult(roots=[each if isinstance(each, Root) else Root(uri=_url(each)) for each in directories])


def _completed(content: Any, by: str) -> CreateMessageResult | CreateMessageResultWithTools:
    if isinstance(content, CreateMessageResult | CreateMessageResultWithTools):
        return content
    if isinstance(content, str):
        return CreateMessageResult(role="assistant", content=TextContent(text=content), model=by)
    raise ContentError(f"a completion is a text or a whole result, not {type(content).__name__}")


def _listed(content: Any) -> ListRootsResult:
    try:
        return content if isinstance(content, ListRootsResult) else roots_result(content)
    except (TypeError, ValueError):
        raise ContentError(
            f"a roots request takes directories or a whole result, not {type(content).__name__}"
        ) from None


def _url(directory: str | Path) -> FileUrl:
    return FileUrl(str(directory) if "://" in str(directory) else Path(directory).absolute().as_uri())
