"""Answering what a server asks, from the run that made it ask."""

import copy
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import Any, NoReturn, TypeVar, cast

import anyio
from fastmcp.exceptions import ToolError
from mcp.client.session import ClientRequestContext, ElicitationFnT, ListRootsFnT, SamplingFnT
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitResult,
    ErrorData,
    InputRequest,
    InputRequiredResult,
    InputResponse,
)
from pydantic_ai import ApprovalRequired, RunContext, UserError
from pydantic_ai.exceptions import AgentRunError, RunCancelled, UsageLimitExceeded
from pydantic_ai.models import Model

from askback.agents.policies import Policy, PolicyError, first_answer
from askback.agents.sampling import SamplingError, sample
from askback.agents.suspension import Asked, Given, Suspension, digest_of
from askback.exchange.answer import Action, Answer, Defer
from askback.exchange.form import ContentError
from askback.exchange.question import Question, question_of
from askback.exchange.response import Directories, content_of, recorded, response_to, roots_result
from askback.exchange.transcript import AnswerRecord, OnAnswer
from askback.toolsets.calls import Call, current_call, current_run_call
from askback.toolsets.events import QuestionAnswered, QuestionAsked
from askback.toolsets.refusals import Refusals
from askback.toolsets.telemetry import attributes_of, emit, shows_content, span_for

LONGEST_MESSAGE = 20_000
MOST_QUESTIONS = 100

SamplingChoice = Model | str
SamplingFrom = (
    SamplingChoice | Callable[[RunContext[Any], CreateMessageRequestParams], SamplingChoice | Awaitable[SamplingChoice]]
)
RootsFrom = Callable[[RunContext[Any]], Directories | Awaitable[Directories]]

CANNOT_STOP = (
    "A question was deferred during a call that cannot be stopped: on connections before 2026-07-28 the server waits "
    "for the answer, and a background task does not end. On such a connection a call can be given up and made again "
    "from the start, which repeats what the tool did before it asked. If that is harmless, pass `restartable=True` to "
    "the toolset"
)

NEEDS_ID = "A question was deferred, and its toolset has no `id` to be recognised by when the run goes on: give it one"

NOBODY = "(nobody)"
TOO_LATE = "(answer_timeout)"
TOO_LATE_RESULT = ElicitResult(action="cancel")
UNUSABLE = "(unusable question)"
BEFORE = "(refused before)"
LATER = "(answered later)"


ResponseT = TypeVar("ResponseT", bound=InputResponse | ErrorData)


class UnusableFormError(ValueError):
    """A question that nobody can be shown."""


class DeferredError(Exception):
    """A question is to be answered later, by somebody else."""

    def __init__(self, question: Question) -> None:
        self.question = question


@dataclass(frozen=True)
class Handlers:
    """What an application has for whatever no policy answers, in the shape of the SDK's callbacks."""

    elicitation: ElicitationFnT | None = None
    sampling: SamplingFnT | None = None
    roots: ListRootsFnT | None = None


@dataclass(kw_only=True)
class Answering:
    """Who answers for a toolset."""

    policies: Sequence[Policy[Any]]
    handlers: Handlers
    sampling_from: SamplingFrom | None
    roots_from: RootsFrom | None
    max_rounds: int
    restartable: bool
    answer_timeout: float | None
    on_answer: OnAnswer | None
    server: Callable[[], str | None]

    def __post_init__(self) -> None:
        self._refusals = Refusals()

    async def answer_round(
        self, call: Call, asked: InputRequiredResult, number: int, context: ClientRequestContext
    ) -> dict[str, InputResponse]:
        """Answer the questions of a round, at the same time.

        Raises:
            ApprovalRequired: If one is to be answered later.
            ToolError: If one has no answer that could be sent.
            MCPError: If a handler of the application failed.
            Exception: What ends the run.
        """
        requests, state = asked.input_requests or {}, asked.request_state
        if len(requests) > MOST_QUESTIONS:
            raise ToolError(
                f"The server asked {len(requests)} questions at once; more than {MOST_QUESTIONS} are refused"
            )
        questions = {key: self._question(call, each, key, number) for key, each in requests.items()}
        responses: dict[str, InputResponse] = {}
        deferred: set[str] = set()
        failures: dict[str, Exception] = {}

        async def answer(key: str, request: InputRequest) -> None:
            try:
                response = await self.answer(call, questions[key], request, context)
                if isinstance(response, ErrorData):
                    raise MCPError.from_error_data(response)
                responses[key] = response
            except DeferredError:
                deferred.add(key)
            except Exception as error:
                failures[key] = error
                group.cancel_scope.cancel()

        before = len(call.answered)
        with span_for(call, f"answer round {number}", {"askback.round": number, "askback.questions": len(requests)}):
            async with anyio.create_task_group() as group:
                for key, request in requests.items():
                    group.start_soon(answer, key, request)
        for key in requests:
            if key in failures:
                raise failures[key]
        if deferred:
            kept = {key: Asked.of(question, responses.get(key)) for key, question in questions.items()}
            self.stop(call, kept, call.all_given(of_the_first=before), state, number)
        return responses

    def stop(
        self, call: Call, questions: dict[str, Asked], given: list[Given], state: str | None, number: int
    ) -> NoReturn:
        """Stop the call, and the run with it, until somebody has answered.

        Raises:
            ApprovalRequired: Pydantic AI's way to stop, with all that is needed to go on.
            UserError: If the toolset has no `id` to be recognised by.
        """
        server = self.server()
        if server is None:
            raise call.failed(UserError(NEEDS_ID))
        suspension = Suspension(
            server=server,
            tool=call.tool,
            arguments=digest_of(call.arguments, secrets.token_hex(8)),
            round=number,
            state=state,
            questions=questions,
            given=given,
        )
        raise call.failed(ApprovalRequired(metadata=suspension.to_metadata()))

    def stop_waiting(self, call: Call, question: Question) -> None:
        """Stop a call during which the server waits for the answer, if it may be made again from the start."""
        if not self.restartable:
            call.failed(UserError(CANNOT_STOP))
            return
        asked = Asked.of(question)
        with suppress(ApprovalRequired, UserError):
            self.stop(call, {asked.fingerprint: asked}, call.all_given(), None, 0)

    async def answer_request(
        self, call: Call, request: InputRequest, context: ClientRequestContext
    ) -> InputResponse | ErrorData:
        """Answer a question that has come as a request of its own, as `answer` does."""
        return await self.answer(call, self._question(call, request), request, context)

    async def answer(
        self, call: Call, question: Question, request: InputRequest, context: ClientRequestContext
    ) -> InputResponse | ErrorData:
        """Answer one question.

        Raises:
            DeferredError: If it is to be answered later.
            ToolError: If sampling or roots are refused: there is no other way to say no to them.
            Exception: What ends the run.
        """
        # Whoever answers has this call to answer, and none of its own: what they call in turn is no part of the run.
        current_call.set(call)
        current_run_call.set(None)
        before = call.replayed(question) if call.replay else None
        if before is not None:
            return self._answered(call, question, before)
        try:
            if isinstance(request, ElicitRequest):
                response = await self._elicitation(call, question, request, context)
            else:
                response = await self._result(call, question, request, context)
            return self._answered(call, question, response)
        except (ToolError, DeferredError):
            raise
        except Exception as error:
            raise call.failed(error) from error.__cause__

    def has_handler_for(self, request: InputRequest) -> bool:
        """Whether the application itself answers such a question, whoever caused it."""
        if isinstance(request, ElicitRequest):
            return self.handlers.elicitation is not None
        return (
            self.handlers.sampling if isinstance(request, CreateMessageRequest) else self.handlers.roots
        ) is not None

    def _question(self, call: Call, request: InputRequest, key: str | None = None, number: int = 1) -> Question:
        arguments = copy.deepcopy(dict(call.arguments))
        return question_of(request, server=self.server(), tool=call.tool, arguments=arguments, key=key, round=number)

    def _answered(self, call: Call, question: Question, response: ResponseT) -> ResponseT:
        if not isinstance(response, ErrorData):
            call.answered.append((question, response))
        return response

    async def _elicitation(
        self, call: Call, question: Question, request: ElicitRequest, context: ClientRequestContext
    ) -> ElicitResult | ErrorData:
        async def decide() -> tuple[InputResponse | ErrorData | None, Action, str]:
            try:
                self._check_usable(question)
            except UnusableFormError:
                return ElicitResult(action="decline"), "decline", UNUSABLE
            refused = self._refusals.of(call, question)
            if refused is not None:
                return refused, refused.action, BEFORE
            answered = await first_answer(self.policies, call.run.ctx, question) if call.run is not None else None
            if answered is not None:
                answer, policy = answered
                return _given(answer, policy, question), answer.action, policy
            if self.handlers.elicitation is not None:
                result = await self.handlers.elicitation(context, request.params)
                return result, "decline" if isinstance(result, ErrorData) else result.action, "elicitation_handler"
            return ElicitResult(action="decline"), "decline", NOBODY

        result, action = await self._decided(call, question, decide, TOO_LATE_RESULT)
        if action == "defer":
            raise DeferredError(question)
        if isinstance(result, ElicitResult) and action in ("decline", "cancel") and result is not TOO_LATE_RESULT:
            self._refusals.add(call, question, result)
        return result

    async def _result(
        self, call: Call, question: Question, request: InputRequest, context: ClientRequestContext
    ) -> InputResponse | ErrorData:
        """Sampling and roots: the answer is a result, or the call fails."""

        async def decide() -> tuple[InputResponse | ErrorData | None, Action, str]:
            self._check_usable(question)
            answered = await first_answer(self.policies, call.run.ctx, question) if call.run is not None else None
            if answered is not None:
                answer, policy = answered
                if isinstance(answer, Defer):
                    raise PolicyError(policy, question, f"deferred a {question.kind} request, which cannot wait")
                return _given(answer, policy, question), answer.action, policy
            if isinstance(request, CreateMessageRequest):
                return await self._completion(call, request.params, context)
            return await self._roots(call, context)

        try:
            result, _ = await self._decided(call, question, decide, None)
        except (SamplingError, UnusableFormError) as refused:
            raise ToolError(f"A {question.kind} request of the tool was refused: {refused}") from None
        if result is None:
            raise ToolError(f"A {question.kind} request of the tool was declined")
        return result

    async def _completion(
        self, call: Call, params: CreateMessageRequestParams, context: ClientRequestContext
    ) -> tuple[InputResponse | ErrorData | None, Action, str]:
        chosen = self.sampling_from
        if chosen is not None and call.run is not None:
            ctx = call.run.ctx
            if callable(chosen) and not isinstance(chosen, Model):
                choice = chosen(ctx, params)
                chosen = await choice if isawaitable(choice) else choice
            if not isinstance(cast("object", chosen), Model | str):
                raise UserError(f"`sampling_from` gave {chosen!r}, which is no model")
            model = cast("Model | str", ctx.model if chosen == "run" else chosen)
            try:
                return await sample(model, params, ctx), "accept", "sampling_from"
            except (UsageLimitExceeded, RunCancelled):
                raise
            except AgentRunError as error:
                raise SamplingError(f"the model failed: {error}") from error
        if self.handlers.sampling is not None:
            return await self.handlers.sampling(context, params), "accept", "sampling_handler"
        return None, "decline", NOBODY

    async def _roots(
        self, call: Call, context: ClientRequestContext
    ) -> tuple[InputResponse | ErrorData | None, Action, str]:
        if self.roots_from is not None and call.run is not None:
            directories = self.roots_from(call.run.ctx)
            if isawaitable(directories):
                directories = await directories
            try:
                return roots_result(directories), "accept", "roots_from"
            except (TypeError, ValueError) as error:
                raise UserError(f"`roots_from` gave {directories!r}, which are no directories: {error}") from None
        if self.handlers.roots is not None:
            return await self.handlers.roots(context), "accept", "roots"
        return None, "decline", NOBODY

    def _check_usable(self, question: Question) -> None:
        """Refuse to show anybody what is not fit to be shown.

        Raises:
            UnusableFormError: If the message is too long, or the form is none.
        """
        if len(question.message) > LONGEST_MESSAGE:
            raise UnusableFormError(f"its message is longer than {LONGEST_MESSAGE} characters")
        problem = question.form.problem if question.form is not None else None
        if problem is not None:
            raise UnusableFormError(problem)

    async def _decided(
        self, call: Call, question: Question, decide: Callable[[], Awaitable[tuple[Any, Action, str]]], late: Any
    ) -> tuple[Any, Action]:
        """Decide within the time there is, and show what was asked and answered to whoever wants to see it."""
        await emit(call, QuestionAsked(question=question))
        started = time.perf_counter()
        with span_for(call, f"answer {question.kind}", attributes_of(question)) as span:
            result, action, policy = late, "cancel", TOO_LATE
            with anyio.move_on_after(self.answer_timeout):
                result, action, policy = await decide()
            span.set_attributes({"askback.answer.action": action, "askback.answer.policy": policy})
            if span.is_recording() and shows_content(call):
                span.set_attribute("askback.question.message", question.message)
                span.set_attribute("askback.answer.content", str(getattr(result, "content", None)))
        response = None if isinstance(result, ErrorData) else result
        await self._note(call, question, action, policy, response, time.perf_counter() - started)
        return result, action

    async def note_later_answers(self, call: Call, resumption: Suspension) -> None:
        """Let what was answered while a call was stopped be seen as any other answer, now that it goes on."""
        for asked in resumption.questions.values():
            if asked.later and asked.response is not None:
                question = replace(asked.question, arguments=copy.deepcopy(dict(call.arguments)))
                response = recorded(asked.question, asked.response)
                action: Action = response.action if isinstance(response, ElicitResult) else "accept"
                await self._note(call, question, action, LATER, response, 0.0)

    async def _note(
        self,
        call: Call,
        question: Question,
        action: Action,
        policy: str,
        response: InputResponse | None,
        seconds: float,
    ) -> None:
        run = call.run
        if run is None:
            return
        await emit(call, QuestionAnswered(question=question, action=action, policy=policy))
        if self.on_answer is not None:
            record = AnswerRecord(
                question=question,
                action=action,
                policy=policy,
                content=content_of(response) if response is not None else None,
                seconds=seconds,
                run_id=run.ctx.run_id,
                tool_call_id=run.ctx.tool_call_id,
            )
            seen = self.on_answer(record)
            if isawaitable(seen):
                await seen


def _given(answer: Answer, policy: str, question: Question) -> InputResponse | None:
    """What a policy answered, as it is sent; None where it is to be answered later, or the call fails.

    Raises:
        PolicyError: If it accepted with content that does not fit.
    """
    try:
        return None if isinstance(answer, Defer) else response_to(question, answer, policy)
    except ContentError as error:
        raise PolicyError(policy, question, f"accepted with content that does not fit ({error})") from None
