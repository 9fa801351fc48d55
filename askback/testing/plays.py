"""Runs of agents in tests, with a scripted model, the real toolsets and policies, and any server."""

import copy
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, cast

from mcp_types import ElicitResult
from pydantic import TypeAdapter
from pydantic_ai import Agent, AgentRunResult, DeferredToolRequests, RunContext, RunUsage, UserError
from pydantic_ai.messages import ModelMessagesTypeAdapter, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.toolsets import AbstractToolset

from askback.agents.errors import PolicyError
from askback.agents.policies import Policy
from askback.agents.suspension import PendingQuestion
from askback.exchange.answer import ANSWERS, Accept, Answer, Cancel, Decline
from askback.exchange.question import Question
from askback.exchange.transcript import AnswerRecord, Conversation, ConversationError, Exchange, OnAnswer, ToolCall
from askback.testing.generations import Generation, GenerationClient, mode_of
from askback.testing.hosting import Over, transport_to
from askback.testing.scripts import (
    NotScriptedError,
    Script,
    ScriptLike,
    check_unchanged,
    check_used,
    reply_of,
    script_of,
    unanswered,
)
from askback.toolsets import ResolverToolset
from askback.toolsets.deferral import pending_questions, resume_with

OutputT = TypeVar("OutputT")

REQUESTS = TypeAdapter(DeferredToolRequests)


@dataclass(kw_only=True)
class Play(Generic[OutputT]):
    """A run of an agent, and what it was asked and answered on the way."""

    result: AgentRunResult[OutputT]
    answers: list[AnswerRecord]
    """Each question, its answer and which policy gave it, in the order of the answers."""
    conversation: Conversation
    stage: "Stage[OutputT]" = field(repr=False)
    scripted: bool = field(repr=False)
    """Whether a script answered instead of the policies."""

    @property
    def output(self) -> OutputT:
        """The agent's output, or the `DeferredToolRequests` of a suspended run."""
        return self.result.output

    @property
    def usage(self) -> RunUsage:
        """The usage of the run, including what policies and sampling used."""
        return self.result.usage

    @property
    def pending(self) -> list[PendingQuestion]:
        """The questions that a suspended run waits for."""
        output = cast("object", self.output)
        return pending_questions(output) if isinstance(output, DeferredToolRequests) else []

    async def resume(self, answers: ScriptLike, **options: Any) -> "Play[OutputT]":
        """Resume a suspended run with a script that answers what is pending; see `ScriptedClient`.

        The run goes through JSON first, as a stored one does, and its usage is carried over. If a script answered
        instead of the policies, the new one does so from here on. `deps` and the other options stay the same unless
        they are given again.

        Raises:
            ConversationError: If the script does not answer what is pending.
            UserError: If nothing is pending.
        """
        if not isinstance(cast("object", self.output), DeferredToolRequests):
            raise UserError("The run is over: there is nothing to resume")
        script = script_of(answers)
        given: dict[str, Answer] = {}
        for each in self.pending:
            call = ToolCall(tool=each.question.tool, arguments=each.question.arguments)
            given[each.id] = await _answer_from(script, self.conversation, call, each.question)
        if not self.scripted:
            check_used(script, self.conversation)
        requests = REQUESTS.validate_json(REQUESTS.dump_json(cast("DeferredToolRequests", self.output)))
        results = resume_with(requests, given)
        history = ModelMessagesTypeAdapter.validate_json(self.result.all_messages_json())
        stage = replace(self.stage, options={**self.stage.options, **options})
        again = {"message_history": history, "deferred_tool_results": results, "usage": copy.copy(self.usage)}
        return await stage.run(None, script if self.scripted else None, **again)


@dataclass
class Stage(Generic[OutputT]):
    """An agent, and what it is run with."""

    generation: Generation
    over: Over
    agent: Agent[Any, OutputT]
    model: Model | None
    server: Any
    options: dict[str, Any]
    conversations: list[Conversation]
    """Where the conversation of each run is added."""

    async def run(self, prompt: str | None, script: Script | None, **again: Any) -> Play[OutputT]:
        """Run the agent once, until it ends or is suspended."""
        conversation, records = Conversation(), list[AnswerRecord]()
        self.conversations.append(conversation)

        def see(record: AnswerRecord) -> None:
            records.append(record)
            conversation(record)

        with self._set(see, _Scripted(script, conversation) if script is not None else None):
            try:
                result = await self.agent.run(prompt, **{**self.options, **again})
            except PolicyError as error:
                if isinstance(error.__cause__, ConversationError):
                    raise error.__cause__ from None
                raise
        _note_results(conversation, result)
        if script is not None:
            check_used(script, conversation)
        else:
            _check_unchanged(conversation)
        return Play(result=result, answers=records, conversation=conversation, stage=self, scripted=script is not None)

    @contextmanager
    def _set(self, see: OnAnswer, policy: Policy[Any] | None) -> Generator[None]:
        """The agent with the model, servers, policies and observer of the test."""
        toolsets = _answering_toolsets(self.agent)
        servers = self._servers(toolsets)
        with ExitStack() as stack:
            if self.model is not None:
                stack.enter_context(self.agent.override(model=self.model))
            for toolset in toolsets:
                server = servers.get(toolset.id)
                stack.enter_context(
                    toolset.override(
                        client=self._client_of(server) if server is not None else None,
                        mode=mode_of(self.generation),
                        policies=[policy] if policy is not None else None,
                        on_answer=see,
                    )
                )
            yield

    def _client_of(self, server: Any) -> GenerationClient:
        return GenerationClient(transport_to(server, self.over), generation=self.generation)

    def _servers(self, toolsets: list[ResolverToolset[Any]]) -> Mapping[str | None, Any]:
        ids = [toolset.id for toolset in toolsets]
        server: object = self.server
        if not toolsets:
            raise UserError("The agent has no ResolverToolset to answer what its tools ask")
        if isinstance(server, Mapping):
            servers = cast("Mapping[str | None, Any]", server)
            unknown = [each for each in servers if each not in ids]
            if unknown:
                raise UserError(f"The agent has no toolset with the id {unknown[0]!r}; it has {ids}")
            return servers
        if len(toolsets) > 1 and server is not None:
            raise UserError(f"The agent has several ResolverToolsets, {ids}: give a mapping of their ids to servers")
        return {ids[0]: server}


class _Scripted:
    """A script, as a policy."""

    def __init__(self, script: Script, conversation: Conversation) -> None:
        self.__name__ = "the script"
        self._script = script
        self._conversation = conversation

    async def __call__(self, ctx: RunContext[Any], question: Question) -> Answer:
        call = self._conversation.call_that_asks(question, ctx.tool_call_id)
        return await _answer_from(self._script, self._conversation, call, question)


async def _answer_from(script: Script, conversation: Conversation, call: ToolCall, question: Question) -> Answer:
    """The answer of a script, as a policy would give it.

    Raises:
        ConversationError: If it has no answer.
    """
    try:
        answer, _ = await reply_of(script, call, question)
    except NotScriptedError as missing:
        call.exchanges.append(Exchange(question=question))
        raise unanswered(conversation, question, missing) from None
    if isinstance(answer, ElicitResult) and answer.action != "accept":
        return Decline() if answer.action == "decline" else Cancel()
    if isinstance(answer, ANSWERS):
        return answer
    return Accept(answer.content if isinstance(answer, ElicitResult) else answer)


def _answering_toolsets(agent: Agent[Any, Any]) -> list[ResolverToolset[Any]]:
    found: list[ResolverToolset[Any]] = []

    def visit(toolset: AbstractToolset[Any]) -> None:
        if isinstance(toolset, ResolverToolset):
            found.append(toolset)  # pyright: ignore[reportUnknownArgumentType]

    for toolset in agent.toolsets:
        toolset.apply(visit)
    return found


def _check_unchanged(conversation: Conversation) -> None:
    """Fail if a resolver changed its question between two rounds, whichever policy answered both."""
    for call in conversation.calls:
        for exchange in call.exchanges:
            try:
                check_unchanged(call, exchange.question)
            except NotScriptedError as changed:
                raise unanswered(conversation, exchange.question, changed) from None


def _note_results(conversation: Conversation, result: AgentRunResult[Any]) -> None:
    parts = [part for message in result.all_messages() for part in message.parts]
    for call in conversation.calls:
        for part in parts:
            if isinstance(part, ToolReturnPart) and part.tool_call_id == call.id:
                call.result = part.model_response_str()
