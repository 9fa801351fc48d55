"""Deciding: the sources of an answer, asked in order until one of them decides."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any

from mcp.client.session import ClientRequestContext, ElicitationFnT, ListRootsFnT, SamplingFnT
from mcp_types import CreateMessageRequest, ElicitRequest, ElicitResult, ErrorData, InputRequest, InputResponse

from askback.agents.calls import Call
from askback.agents.errors import AnsweringError, PolicyError
from askback.agents.policies import Policy, first_answer
from askback.agents.refusals import Refusals
from askback.exchange.answer import Action, Answer, Defer
from askback.exchange.form import ContentError
from askback.exchange.question import Question
from askback.exchange.response import Directories, content_of, response_to, roots_result

logger = logging.getLogger(__name__)

MAX_MESSAGE_CHARACTERS = 20_000

NOBODY = "(nobody)"
TIMEOUT = "(answer_timeout)"
UNUSABLE = "(unusable question)"
REFUSED_BEFORE = "(refused before)"
LATER = "(answered later)"

RootsFrom = Callable[[Any], Directories | Awaitable[Directories]]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A no for which the protocol has no response: the tool call fails with this sentence."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of a question, and who decided it."""

    response: InputResponse | ErrorData | Refusal | None
    """What the server gets: a response, or an error of the application's own handler. None if deferred."""
    action: Action
    by: str
    """The policy's name, or a word in parentheses where no policy decided."""

    @classmethod
    def of(cls, response: InputResponse | ErrorData, by: str) -> "Decision":
        """The decision that a response carries."""
        if isinstance(response, ErrorData):
            return cls(response, "decline", by)
        return cls(response, response.action if isinstance(response, ElicitResult) else "accept", by)

    @property
    def content(self) -> Any:
        """The accepted content, as sent to the server."""
        return None if isinstance(self.response, ErrorData | Refusal | None) else content_of(self.response)


Source = Callable[[Call, Question], Awaitable[Decision | None]]
"""Decides a question, or returns None to leave it to the next source."""


def declined(question: Question, by: str, why: str = "declined") -> Decision:
    """A no, in whichever way the protocol has for the kind of question."""
    if question.kind == "elicitation":
        return Decision(ElicitResult(action="decline"), "decline", by)
    return Decision(Refusal(f"A {question.kind} request of the tool was {why}"), "decline", by)


def timed_out(question: Question) -> Decision:
    """The decision when nobody has answered in time."""
    if question.kind == "elicitation":
        return Decision(ElicitResult(action="cancel"), "cancel", TIMEOUT)
    return Decision(declined(question, TIMEOUT).response, "cancel", TIMEOUT)


def problem_of(question: Question) -> str | None:
    """Why a question cannot be shown to anyone, as the end of a sentence; None where it can."""
    if len(question.message) > MAX_MESSAGE_CHARACTERS:
        return f"its message is longer than {MAX_MESSAGE_CHARACTERS} characters"
    return question.form.problem if question.form is not None else None


@dataclass(frozen=True)
class Handlers:
    """The application's own callbacks for questions that no policy answers, in the shape of the SDK's."""

    elicitation: ElicitationFnT | None = None
    sampling: SamplingFnT | None = None
    roots: ListRootsFnT | None = None

    def covers(self, request: InputRequest) -> bool:
        """Whether there is a callback for such a question, whichever call caused it."""
        if isinstance(request, ElicitRequest):
            return self.elicitation is not None
        return (self.sampling if isinstance(request, CreateMessageRequest) else self.roots) is not None

    async def answer(self, request: InputRequest, context: ClientRequestContext) -> Decision | None:
        """Have the callback for a request decide, if there is one."""
        if isinstance(request, ElicitRequest):
            if self.elicitation is None:
                return None
            return Decision.of(await self.elicitation(context, request.params), "elicitation_handler")
        if isinstance(request, CreateMessageRequest):
            if self.sampling is None:
                return None
            return Decision.of(await self.sampling(context, request.params), "sampling_handler")
        if self.roots is None:
            return None
        return Decision.of(await self.roots(context), "roots")


class Decider:
    """Asks the sources in their order. What none of them decides is declined, never accepted."""

    def __init__(
        self,
        *,
        policies: Sequence[Policy[Any]] = (),
        roots_from: RootsFrom | None = None,
        sampling: Source | None = None,
        handlers: Handlers | None = None,
    ) -> None:
        self.policies = policies
        self.roots_from = roots_from
        self.sampling = sampling
        """Has a model of the framework's complete what a server samples."""
        self.handlers = handlers or Handlers()
        self._refusals = Refusals()
        self._sources: tuple[Source, ...] = (
            self._unusable,
            self._refused_before,
            self._policies,
            self._sampling,
            self._roots,
        )

    async def decide(
        self, call: Call, question: Question, request: InputRequest, context: ClientRequestContext
    ) -> Decision:
        """Decide one question.

        Raises:
            PolicyError: If a policy did something that policies may not do.
            Exception: Anything else that ends the run.
        """
        for source in self._sources:
            decision = await source(call, question)
            if decision is not None:
                return decision
        decision = await self.handlers.answer(request, context)
        return decision if decision is not None else self._nobody(call, question)

    def remember(self, call: Call, question: Question, decision: Decision) -> None:
        """Remember a refusal for the rest of the run. A question that timed out was not refused by anyone."""
        response, refused = decision.response, decision.action in ("decline", "cancel")
        if refused and isinstance(response, ElicitResult) and decision.by not in (TIMEOUT, REFUSED_BEFORE):
            self._refusals.add(call, question, response)

    async def _unusable(self, call: Call, question: Question) -> Decision | None:
        problem = problem_of(question)
        if problem is None:
            return None
        logger.warning(
            "Declined a question of tool %r of server %r without asking anyone: it cannot be shown",
            question.tool,
            question.server,
        )
        logger.debug("The question cannot be shown: %s", problem)
        return declined(question, UNUSABLE, f"refused: {problem}")

    async def _refused_before(self, call: Call, question: Question) -> Decision | None:
        refused = self._refusals.of(call, question)
        return Decision.of(refused, REFUSED_BEFORE) if refused is not None else None

    async def _policies(self, call: Call, question: Question) -> Decision | None:
        if call.run is None:
            return None
        answered = await first_answer(self.policies, call.run.context, question, call.run.passing)
        return _decision_of(*answered, question) if answered is not None else None

    async def _sampling(self, call: Call, question: Question) -> Decision | None:
        if question.kind != "sampling" or self.sampling is None or call.run is None:
            return None
        return await self.sampling(call, question)

    async def _roots(self, call: Call, question: Question) -> Decision | None:
        if question.kind != "roots" or self.roots_from is None or call.run is None:
            return None
        directories = self.roots_from(call.run.context)
        if isawaitable(directories):
            directories = await directories
        try:
            return Decision.of(roots_result(directories), "roots_from")
        except (TypeError, ValueError) as error:
            raise AnsweringError(f"`roots_from` returned {directories!r}, not directories: {error}") from None

    def _nobody(self, call: Call, question: Question) -> Decision:
        logger.info(
            "Declined a question (%s) of tool %r of server %r: nobody answered it",
            question.kind,
            question.tool,
            question.server,
        )
        return declined(question, NOBODY)


def _decision_of(answer: Answer, policy: str, question: Question) -> Decision:
    """A policy's answer, checked.

    Raises:
        PolicyError: If it defers what cannot wait, or accepts with content that does not fit.
    """
    if isinstance(answer, Defer):
        if question.kind != "elicitation":
            raise PolicyError(policy, question, f"deferred a {question.kind} request, which cannot wait")
        return Decision(None, "defer", policy)
    try:
        response = response_to(question, answer, policy)
    except ContentError as error:
        raise PolicyError(policy, question, f"accepted with content that does not fit ({error})") from None
    return Decision(response or declined(question, policy).response, answer.action, policy)
