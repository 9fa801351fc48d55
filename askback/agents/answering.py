"""Answering one question of a call, from the run that made the call."""

import copy
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from mcp.client.session import ClientRequestContext
from mcp_types import ErrorData, InputRequest

from askback.agents.calls import Call, Failure, Stop, current_call, current_run_call
from askback.agents.decide import LATER, Decider, Decision, Refusal
from askback.agents.errors import AnsweringError
from askback.agents.observe import Observer
from askback.agents.suspension import Given, SuspendedQuestion, Suspension, digest_of
from askback.exchange.question import Question, question_of
from askback.exchange.response import recorded

CANNOT_SUSPEND = (
    "A question was deferred during a call that cannot be suspended: on connections before 2026-07-28 the server waits "
    "for the answer, and a background task does not end. On such a connection a call can be cancelled and made again "
    "from the start, which repeats what the tool did before it asked. If that is harmless, pass `restartable=True` to "
    "the toolset"
)

NEEDS_ID = "A question was deferred, but its toolset has no `id` by which to recognise it on resumption: give it one"


@dataclass(kw_only=True)
class Answering:
    """Everything a connection needs to answer its server."""

    decider: Decider = field(default_factory=Decider)
    observer: Observer = field(default_factory=Observer)
    max_rounds: int = 10
    restartable: bool = False
    server: Callable[[], str | None] = lambda: None
    """The id by which this side knows the server."""

    def question(self, call: Call, request: InputRequest, key: str | None = None, number: int = 1) -> Question:
        """The question in a request of the server. Its arguments are a copy, so that a policy may change them."""
        arguments = copy.deepcopy(dict(call.arguments))
        return question_of(request, server=self.server(), tool=call.tool, arguments=arguments, key=key, round=number)

    async def answer(
        self, call: Call, question: Question, request: InputRequest, context: ClientRequestContext
    ) -> Decision | Failure:
        """Answer one question. Whatever goes wrong is a `Failure`, which ends the run."""
        replayed = call.replayed(question) if call.replay else None
        if replayed is not None:
            call.answered.append((question, replayed))
            return Decision.of(replayed, LATER)
        # Whoever answers has this call's question to answer. Calls they make in turn are not part of the run.
        tokens = current_call.set(call), current_run_call.set(None)
        try:
            decide = partial(self.decider.decide, call, question, request, context)
            decision = await self.observer.decided(call, question, decide)
        except Exception as error:
            return Failure(error)
        finally:
            current_call.reset(tokens[0])
            current_run_call.reset(tokens[1])
        self.decider.remember(call, question, decision)
        if not isinstance(decision.response, ErrorData | Refusal | None):
            call.answered.append((question, decision.response))
        return decision

    def suspend(
        self, call: Call, questions: dict[str, SuspendedQuestion], given: list[Given], state: str | None, number: int
    ) -> Stop | Failure:
        """Suspend a call until its open questions are answered."""
        server = self.server()
        if server is None:
            return Failure(AnsweringError(NEEDS_ID))
        return Stop(
            Suspension(
                server=server,
                tool=call.tool,
                arguments=digest_of(call.arguments, secrets.token_hex(8)),
                round=number,
                state=state,
                questions=questions,
                given=given,
            )
        )

    async def resumption(self, call: Call) -> Suspension | Stop | Failure | None:
        """Where a call resumes that was suspended before; None where it was not.

        The answers given meanwhile are shown like any others. A call with questions that are still open stops again.
        """
        suspension = call.run.resumption if call.run is not None else None
        if call.run is None or suspension is None or suspension.tool != call.tool:
            return None
        call.run.resumption = None
        if not suspension.is_of(call.arguments):
            return Failure(
                AnsweringError(
                    f"The call of tool {call.tool!r} was suspended with other arguments than it is resumed with: the "
                    "answers are not for this call"
                )
            )
        if len(suspension.responses()) < len(suspension.questions):
            return Stop(suspension)
        for asked in suspension.questions.values():
            if asked.later and asked.response is not None:
                question = replace(asked.question, arguments=copy.deepcopy(dict(call.arguments)))
                response = recorded(asked.question, asked.response)
                await self.observer.record(call, question, Decision.of(response, LATER))
        return suspension
