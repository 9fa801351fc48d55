"""Suspended runs in Pydantic AI's own terms: its deferred tool requests, and the results that resume them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import isawaitable
from typing import Any, TypeVar, cast

from pydantic_ai import Agent, AgentRunResult, DeferredToolRequests, DeferredToolResults, ToolApproved, UserError
from pydantic_ai.messages import UserContent

from askback.agents.suspension import PendingQuestion, Suspension
from askback.exchange.answer import Accept, Answer, Cancel, Decline, Defer
from askback.exchange.form import ContentError
from askback.exchange.response import elicit_result, wire
from askback.toolsets.errors import user_errors

OutputT = TypeVar("OutputT")


def pending_questions(requests: DeferredToolRequests) -> list[PendingQuestion]:
    """The questions that a suspended run waits for, of all its tool calls. The application's own approvals are not.

    A question's arguments are those with which the model called the tool.

    Raises:
        UserError: If the run was suspended by a release with another format.
    """
    return [
        pending for questions in _pending(requests, _suspensions(requests)).values() for pending in questions.values()
    ]


def resume_with(requests: DeferredToolRequests, answers: Mapping[str, Answer]) -> DeferredToolResults:
    """The results with which to resume a suspended run: answers to pending questions, by their ids.

    Questions without an answer, or answered with `Defer()`, are pending again when the run resumes. The results cover
    the calls of toolsets that answer; `update` them with those for the application's own calls.

    Raises:
        UserError: If the run was suspended by a release with another format.
        ValueError: If an answer belongs to none of these requests, or does not fit its question.
    """
    suspensions = _suspensions(requests)
    pending_by_id = {
        pending.id: (pending, suspensions[tool_call_id].questions[key])
        for tool_call_id, questions in _pending(requests, suspensions).items()
        for key, pending in questions.items()
    }
    unknown = sorted(set(answers) - set(pending_by_id))
    if unknown:
        raise ValueError(f"These answers are for no question of these requests: {', '.join(unknown)}")
    for question_id, answer in answers.items():
        pending, asked = pending_by_id[question_id]
        asked.response = _response(answer, pending)
        asked.later = asked.response is not None
    return DeferredToolResults(
        approvals={tool_call_id: ToolApproved() for tool_call_id in suspensions},
        metadata={tool_call_id: suspension.to_metadata() for tool_call_id, suspension in suspensions.items()},
    )


def _suspensions(requests: DeferredToolRequests) -> dict[str, Suspension]:
    with user_errors():
        found = {
            call.tool_call_id: Suspension.from_metadata(requests.metadata.get(call.tool_call_id))
            for call in requests.approvals
        }
    return {tool_call_id: suspension for tool_call_id, suspension in found.items() if suspension is not None}


def _pending(
    requests: DeferredToolRequests, suspensions: Mapping[str, Suspension]
) -> dict[str, dict[str, PendingQuestion]]:
    """The pending questions by tool call, and then by the server's keys."""
    arguments = {call.tool_call_id: call.args_as_dict() for call in requests.approvals}
    return {
        tool_call_id: suspension.pending(tool_call_id, arguments[tool_call_id])
        for tool_call_id, suspension in suspensions.items()
    }


def _response(answer: object, pending: PendingQuestion) -> dict[str, Any] | None:
    if isinstance(answer, Defer):
        return None
    if not isinstance(answer, Accept | Decline | Cancel):
        raise ValueError(f"{pending.id}: {answer!r} is not an answer")
    try:
        return wire(elicit_result(pending.question, answer))
    except ContentError as error:
        message = pending.question.message[:200]
        raise ValueError(f"{pending.id}: the answer does not fit the question {message!r}: {error}") from None


async def run_until_done(
    agent: Agent[Any, OutputT | DeferredToolRequests],
    prompt: str | Sequence[UserContent] | None = None,
    *,
    ask: Callable[[PendingQuestion], Answer | Awaitable[Answer]],
    others: Callable[[DeferredToolRequests], DeferredToolResults | Awaitable[DeferredToolResults]] | None = None,
    **options: Any,
) -> AgentRunResult[OutputT]:
    """Run an agent, resuming it each time it is suspended, with a person at hand.

    `ask` answers a pending question; `others` gives the results for deferred calls that are not ours, such as approvals
    of the application's own. The options are those of `Agent.run`, for every run.

    Raises:
        UserError: If a call was deferred that neither of them covers.
    """
    run = cast("Callable[..., Awaitable[AgentRunResult[Any]]]", agent.run)
    result = await run(prompt, **options)
    while isinstance(result.output, DeferredToolRequests):
        requests = result.output
        answers: dict[str, Answer] = {}
        for pending in pending_questions(requests):
            answer = ask(pending)
            answers[pending.id] = await answer if isawaitable(answer) else answer
        results = DeferredToolResults()
        if others is not None:
            given = others(requests)
            results = await given if isawaitable(given) else given
        results.update(resume_with(requests, answers))
        if requests.remaining(results) is not None:
            raise UserError("The run waits for calls that ask no question: pass `others` to give their results")
        options |= {"message_history": result.all_messages(), "deferred_tool_results": results}
        result = await run(**options)
    return result
