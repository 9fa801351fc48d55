"""Between what a server sends and what a policy sees, and back."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequest,
    InputResponse,
    ListRootsResult,
    Root,
    TextContent,
)
from pydantic import FileUrl

from askback.agents.answers import Accept, Answer, Cancel, Decline, Defer, elicit_result
from askback.agents.content import ContentError
from askback.agents.policies import PolicyError
from askback.agents.questions import Question
from askback.agents.records import Action
from askback.toolsets.calls import Call

Directories = Sequence[str | Path | Root]

ACTIONS: dict[type, Action] = {Accept: "accept", Decline: "decline", Cancel: "cancel", Defer: "defer"}


def question_of(server: str | None, call: Call, request: InputRequest, key: str | None, number: int) -> Question:
    """A server's request, as the question that policies see."""
    known: dict[str, Any] = {
        "server": server,
        "tool": call.tool,
        "arguments": copy.deepcopy(dict(call.arguments)),
        "key": key,
        "round": number,
    }
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


def answer_given(answer: Answer, policy: str, question: Question) -> ElicitResult | None:
    """What a policy answered to an elicitation, as its result; None where it is to be answered later.

    Raises:
        PolicyError: If it accepted with content that does not fit.
    """
    try:
        return None if isinstance(answer, Defer) else elicit_result(answer, question)
    except ContentError as error:
        raise PolicyError(policy, question, f"accepted with content that does not fit ({error})") from None


def result_given(content: Any, policy: str, question: Question) -> InputResponse:
    """What a policy gave for a sampling or roots request, as its result.

    Raises:
        PolicyError: If it is none.
    """
    if question.kind == "roots":
        try:
            return content if isinstance(content, ListRootsResult) else roots_result(content)
        except (TypeError, ValueError):
            pass
    elif isinstance(content, CreateMessageResult | CreateMessageResultWithTools):
        return content
    elif isinstance(content, str):
        return CreateMessageResult(role="assistant", content=TextContent(text=content), model=policy)
    raise PolicyError(policy, question, f"accepted a {question.kind} request with {type(content).__name__}")


def roots_result(directories: Directories) -> ListRootsResult:
    """Directories, as the server is told of them.

    Raises:
        TypeError: If they are none.
        ValueError: If one has an address that is no directory's.
    """
    if isinstance(directories, str):
        raise TypeError("a list of directories is wanted, not a text")
    return ListRootsResult(roots=[each if isinstance(each, Root) else Root(uri=_address(each)) for each in directories])


def _address(directory: str | Path) -> FileUrl:
    return FileUrl(str(directory) if "://" in str(directory) else Path(directory).absolute().as_uri())
