"""Who answers a call from the command line: rules, options, the person at the terminal, and otherwise nobody."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import anyio
from mcp_types import CreateMessageRequestParams

from askback.agents import Accept, Answer, Cancel, Console, Decline, Defer, Policy, Question
from askback.agents.decide import NOBODY, UNUSABLE, problem_of
from askback.agents.policies import first_answer, name_of
from askback.cli.errors import CommandError
from askback.clients import Reply, reply_with
from askback.exchange.transcript import ToolCall

NO_RUN: Any = None
"""The run that policies are given: the command line has none."""

MAX_QUESTIONS = 100
MAX_CANCELLED = 3
"""How many cancelled questions in a row end the call."""

COMPLETION = {
    "type": "object",
    "properties": {"completion": {"type": "string", "description": "what the model says"}},
    "required": ["completion"],
}


class Answering:
    """Answers the questions of a call, and ends it if they do not stop or an answer does not fit."""

    def __init__(self, server: str, policies: Sequence[Policy[Any]], screen: TextIO) -> None:
        self._server = server
        self._console = Console(output=screen)
        self._policies = [*policies, TypedCompletions(self._console), self._console]
        self._asked = 0
        self._cancelled_in_a_row = 0
        self.scope = anyio.CancelScope()
        """Surrounds the call, and is cancelled to end it."""
        self.ended = ""
        """Why the call was ended, if it was."""

    async def reply(self, call: ToolCall, question: Question) -> Reply | None:
        """Answer a question. It is declined if nobody answers, or if it cannot be shown to anyone."""
        self._asked += 1
        if self._asked > MAX_QUESTIONS:
            self._end(f"it asked more than {MAX_QUESTIONS} questions")
        if self.ended:
            return None
        try:
            answer, by = await self._answer(replace(question, server=self._server))
            return reply_with(question, answer, by)
        except Exception as error:
            self._end(f"it asked {question.message or question.kind!r}, and the answer cannot be sent: {error}")
            return None

    async def _answer(self, question: Question) -> tuple[Accept | Decline | Cancel, str]:
        if problem_of(question) is not None:
            return Decline(), UNUSABLE
        answer, by = await first_answer(self._policies, NO_RUN, question) or (Decline(), NOBODY)
        if isinstance(answer, Defer):
            raise CommandError(f"{by} defers it, but only an agent can wait for an answer")
        self._count_cancelled(answer, by)
        return answer, by

    def _count_cancelled(self, answer: Answer, by: str) -> None:
        at_the_terminal = isinstance(answer, Cancel) and by == name_of(self._console)
        self._cancelled_in_a_row = self._cancelled_in_a_row + 1 if at_the_terminal else 0
        if self._cancelled_in_a_row == MAX_CANCELLED:
            self._end(f"{MAX_CANCELLED} of its questions in a row were cancelled")

    def _end(self, reason: str) -> None:
        self.ended = reason
        self.scope.cancel()


class Directories:
    """A policy that tells the server of the directories given with `--root`."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self.__name__ = "--root"
        self._roots = roots

    def __call__(self, ctx: Any, question: Question) -> Accept | None:
        """Give the directories, if there are any."""
        return Accept(self._roots) if question.kind == "roots" and self._roots else None


class ModelCompletions:
    """A policy that has a Pydantic AI model complete what the server samples.

    Raises:
        CommandError: If there is no such model, or it needs a package or a key that is missing.
    """

    def __init__(self, model: str) -> None:
        try:
            from pydantic_ai.models import infer_model

            self._model = infer_model(model)
        except Exception as error:
            raise CommandError(f"the model {model!r} cannot be used: {error}") from error
        self.__name__ = model

    async def __call__(self, ctx: Any, question: Question) -> Accept | None:
        """Complete a sampling request."""
        from askback.toolsets.sampling import sample

        return Accept(await sample(self._model, question.sampling, None)) if question.sampling is not None else None


class TypedCompletions:
    """A policy that has the person at the terminal type what a model would say."""

    def __init__(self, console: Console) -> None:
        self.__name__ = name_of(console)
        self._console = console

    async def __call__(self, ctx: Any, question: Question) -> Answer | None:
        """Show a sampling request as a form with one field."""
        if question.sampling is None:
            return None
        shown = replace(
            question,
            kind="elicitation",
            mode="form",
            message=_conversation(question.sampling),
            schema=COMPLETION,
            sampling=None,
        )
        answer = await self._console(ctx, shown)
        return Accept(answer.content["completion"]) if isinstance(answer, Accept) else answer


def _conversation(params: CreateMessageRequestParams) -> str:
    """The messages of a sampling request, one after another."""
    lines = ["The server wants a model to go on from here:"]
    if params.system_prompt:
        lines.append(f"system: {params.system_prompt}")
    for message in params.messages:
        texts = [getattr(block, "text", f"({block.type})") for block in message.content_as_list]
        lines.append(f"{message.role}: {' '.join(texts)}")
    return "\n".join(lines)
