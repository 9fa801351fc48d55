"""An `MCPToolset` that answers what its server asks."""

import ssl
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from inspect import isawaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypedDict, Unpack, cast

from fastmcp.client import Client
from fastmcp.client.elicitation import (
    ElicitationHandler,
    create_elicitation_callback,  # pyright: ignore[reportUnknownVariableType]
)
from fastmcp.client.logging import LogHandler
from fastmcp.client.messages import MessageHandlerT
from fastmcp.client.progress import ProgressHandler
from fastmcp.client.roots import (
    RootsHandler,
    RootsList,
    create_roots_callback,  # pyright: ignore[reportUnknownVariableType]
)
from fastmcp.client.sampling import (
    SamplingHandler,
    create_sampling_callback,  # pyright: ignore[reportUnknownVariableType]
)
from fastmcp.client.transports import ClientTransport
from mcp.client.session import ClientRequestContext, SamplingFnT
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestParams,
    ErrorData,
    Implementation,
    LoggingLevel,
    SamplingCapability,
    SamplingToolsCapability,
)
from pydantic import AnyUrl
from pydantic_ai import ApprovalRequired, RunContext, UserError
from pydantic_ai.mcp import MCPHeadersFunc, MCPToolset, ProcessToolCallback, load_mcp_toolsets
from pydantic_ai.messages import ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.tools import AgentDepsT
from pydantic_ai.toolsets import AbstractToolset, PrefixedToolset, ToolsetTool

from askback.agents.answering import CANNOT_SUSPEND, Answering
from askback.agents.calls import Call, Failure, Stop, current_run_call, unwinding
from askback.agents.decide import Decider, Handlers, RootsFrom
from askback.agents.errors import AnsweringError
from askback.agents.observe import Observer
from askback.agents.policies import Policy
from askback.agents.suspension import Suspension
from askback.exchange.transcript import AnswerRecord, OnAnswer
from askback.toolsets.errors import as_user_error, user_errors
from askback.toolsets.runs import PydanticRunCall
from askback.toolsets.sampling import SamplingFrom, SamplingSource, sample
from askback.toolsets.sessions import AnsweringTransport
from askback.transports import NEVER_CALLED

if TYPE_CHECKING:
    from fastmcp import FastMCP
    from mcp.server import MCPServer

Connectable: TypeAlias = "Client[Any] | ClientTransport | FastMCP[Any] | MCPServer | AnyUrl | Path | str"
"""What a toolset can connect to: a URL, a script, a server in this process, a transport, or a client."""


class StockOptions(TypedDict, total=False):
    """The options of `MCPToolset` that keep their meaning."""

    id: str | None
    max_retries: int | None
    tool_error_behavior: Literal["retry", "error", "failed"]
    process_tool_call: ProcessToolCallback | None
    prefer_tasks: bool
    cache_tools: bool
    cache_resources: bool
    cache_prompts: bool
    include_instructions: bool
    include_return_schema: bool | None
    log_handler: LogHandler | None
    log_level: LoggingLevel | None
    progress_handler: ProgressHandler | None
    message_handler: MessageHandlerT | None
    client_info: Implementation | None
    init_timeout: float | None
    read_timeout: float | None
    auth: Any
    verify: ssl.SSLContext | bool | str | None
    headers: dict[str, str] | MCPHeadersFunc[Any] | None
    http_client: Any


class ResolverToolset(MCPToolset[AgentDepsT]):
    """An `MCPToolset` that answers its server's questions from the run that caused them.

        toolset = ResolverToolset("http://localhost:8000/mcp", policies=[small_refunds, Console()])
        agent = Agent("openai:gpt-5", toolsets=[toolset])

    Each question goes to the policies in order. The first answer counts; a question that nobody answers is declined.
    On 2026-07-28 the toolset drives the rounds of a call; on older connections it answers the server's own requests.
    """

    def __init__(
        self,
        client: Connectable,
        *,
        policies: Sequence[Policy[AgentDepsT]] = (),
        sampling_from: SamplingFrom | None = None,
        roots_from: RootsFrom | None = None,
        max_rounds: int = 10,
        restartable: bool = False,
        answer_timeout: float | None = None,
        on_answer: OnAnswer | None = None,
        elicitation_handler: ElicitationHandler[Any, Any] | None = None,
        sampling_model: Model | None = None,
        sampling_handler: SamplingHandler[Any, Any] | None = None,
        roots: RootsList | RootsHandler[Any] | None = None,
        **options: Unpack[StockOptions],
    ) -> None:
        """Build a toolset that answers.

        Args:
            client: How to connect, as for `MCPToolset`. A pre-built `fastmcp.Client` must have no handlers of its own
                for elicitation, sampling and roots, and not be connected yet.
            policies: The policies, in the order in which they are asked.
            sampling_from: The model for the server's sampling requests: a model, its name, `"run"` for the run's own,
                or a function of the run context and the request that chooses one.
            roots_from: A function of the run context that returns the directories to list to the server.
            max_rounds: How many rounds of questions a call may take.
            restartable: Whether a call may be cancelled and made again from the start. `Defer()` needs it on
                connections before 2026-07-28, where it repeats what the tool did before it asked.
            answer_timeout: How many seconds a question may wait for its answer before it is cancelled.
            on_answer: Called with an `AnswerRecord` for each question that was answered in a run.
            elicitation_handler: Asked after all policies, and for calls outside any run.
            sampling_model: As for `MCPToolset`; cannot be combined with `sampling_from`.
            sampling_handler: As for `MCPToolset`; cannot be combined with `sampling_from`.
            roots: As for `MCPToolset`; cannot be combined with `roots_from`.
            **options: All other options of `MCPToolset`.

        Raises:
            ValueError: If two options would answer the same question, or a pre-built client has handlers of its own.
        """
        if sampling_from is not None and (sampling_model is not None or sampling_handler is not None):
            raise ValueError(
                "Pass either `sampling_from`, or one of `sampling_model` and `sampling_handler`, not both."
            )
        if sampling_model is not None and sampling_handler is not None:
            raise ValueError("Pass either `sampling_model` or `sampling_handler`, not both.")
        if roots_from is not None and roots is not None:
            raise ValueError("Pass either `roots_from` or `roots`, not both.")
        if max_rounds < 1:
            raise ValueError("`max_rounds` must be at least 1.")
        if isinstance(client, Client):
            _check_has_no_handlers(client)
        super().__init__(client, **options)  # pyright: ignore[reportUnknownMemberType]
        self.sampling_model = sampling_model
        self._is_overridden = False
        self._connects_per_run = any(callable(options.get(name)) for name in ("auth", "headers"))
        self._answering = Answering(
            decider=Decider(
                policies=policies,
                roots_from=roots_from,
                sampling=SamplingSource(sampling_from) if sampling_from is not None else None,
                handlers=Handlers(
                    elicitation=create_elicitation_callback(elicitation_handler)
                    if elicitation_handler is not None
                    else None,
                    sampling=self._sampling_callback(sampling_handler),
                    roots=create_roots_callback(roots) if roots is not None else None,
                ),
            ),
            observer=Observer(on_answer, answer_timeout),
            max_rounds=max_rounds,
            restartable=restartable,
            server=lambda: self.id,
        )
        self._install()

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> Self:
        """The toolset for a run: a copy with its own connection where `auth` or `headers` depend on the run."""
        toolset = await super().for_run(ctx)
        if toolset is not self:
            toolset._install()
        return toolset

    @contextmanager
    def override(
        self,
        *,
        client: Client[Any] | None = None,
        mode: str | None = None,
        policies: Sequence[Policy[AgentDepsT]] | None = None,
        on_answer: OnAnswer | None = None,
    ) -> Generator[None]:
        """For a test: connect elsewhere or in another mode, ask other policies, and see the answers too.

        Everything that is not given stays as it is; `on_answer` is called before the toolset's own. Nothing is left
        behind: the overridden toolset connects through a copy of the client. (A stdio server that is kept alive between
        connections remembers what it was told first; use `keep_alive=False`.)

        Raises:
            UserError: If the toolset is connected, already overridden, or connects as the user of each run.
        """
        reasons = {
            "it is connected": self.is_running,
            "it is overridden already": self._is_overridden,
            "its `auth` or `headers` depend on the run": self._connects_per_run,
        }
        for reason, holds in reasons.items():
            if holds:
                raise UserError(f"The toolset {self.id!r} cannot be overridden: {reason}")
        answering, own = self._answering, self.client
        decider, observer = answering.decider, answering.observer
        before = decider.policies, observer.on_answer
        self._is_overridden = True
        try:
            decider.policies = before[0] if policies is None else policies
            observer.on_answer = _both(on_answer, before[1])
            # A copy, since what is declared on a client cannot be taken back.
            self.client = (client or own).new()
            self.client.mode = mode or self.client.mode
            if client is not None:
                self._install()
            else:
                self._declare()
            yield
        finally:
            self._is_overridden = False
            self.client = own
            decider.policies, observer.on_answer = before

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call a tool for a run, and answer its questions from the run.

        Raises:
            PolicyError: If a policy did something that policies may not do.
            ApprovalRequired: If a question is to be answered later. Pydantic AI suspends the run.
        """
        run = PydanticRunCall(ctx, self._resumption(ctx))
        token = current_run_call.set(run)
        result: Any = None
        try:
            result = await super().call_tool(name, tool_args, ctx, tool)
        except Exception:
            if run.ended is None:
                raise
        finally:
            current_run_call.reset(token)
        if isinstance(run.ended, Stop):
            raise ApprovalRequired(metadata=run.ended.suspension.to_metadata())
        if isinstance(run.ended, Failure):
            raise as_user_error(run.ended.error) from run.ended.error.__cause__
        if run.resumption is not None:
            raise UserError(
                f"The tool {run.resumption.tool!r} was suspended, but was not called when the run was resumed"
            )
        return result

    def _resumption(self, ctx: RunContext[Any]) -> Suspension | None:
        """Where a suspended tool call resumes.

        Raises:
            UserError: If it was suspended by another toolset, or was resumed before.
        """
        if not ctx.tool_call_approved:
            return None
        with user_errors():
            suspension = Suspension.from_metadata(ctx.tool_call_metadata)
        if suspension is None:
            return None
        if suspension.server != self.id:
            raise UserError(
                f"The tool call was suspended by the toolset {suspension.server!r}, but is resumed by {self.id!r}: "
                "give toolsets an `id` that stays the same"
            )
        if _has_result(ctx):
            raise UserError(f"The tool call {ctx.tool_call_id!r} was resumed before: the messages hold its result")
        return suspension

    def set_sampling_model(self, model: Model) -> None:
        """Use `model` for sampling from the next connection on, instead of whatever was given before."""
        self.sampling_model = model
        decider = self._answering.decider
        decider.sampling = None
        decider.handlers = replace(decider.handlers, sampling=self._sampling_callback(None))
        self._declare()

    def _install(self) -> None:
        """Have the client's sessions answer."""
        self.client.transport = AnsweringTransport(self.client.transport, self._answering)
        self._declare()

    def _declare(self) -> None:
        """Declare to the server the capabilities for which there is somebody to answer.

        Only the first of these callbacks is ever called, by background tasks.
        """
        decider = self._answering.decider
        if decider.policies or decider.handlers.elicitation is not None:
            self.client.set_elicitation_callback(self._answer_task)  # pyright: ignore[reportUnknownMemberType]
        if decider.sampling is not None or decider.handlers.sampling is not None:
            # A handler of the application may not support tools; the models here do.
            supports_tools = decider.sampling is not None or self.sampling_model is not None
            capability = SamplingCapability(tools=SamplingToolsCapability() if supports_tools else None)
            self.client.set_sampling_callback(NEVER_CALLED, capability)  # pyright: ignore[reportUnknownMemberType]
        if decider.roots_from is not None or decider.handlers.roots is not None:
            self.client.set_roots(NEVER_CALLED)  # pyright: ignore[reportUnknownMemberType]

    async def _answer_task(self, message: str, response_type: Any, params: ElicitRequestParams, context: Any) -> Any:
        """Answer a question of a background task, which belongs to the latest request of its run."""
        run = current_run_call.get()
        call = run.last if run is not None and run.last is not None else Call()
        request = ElicitRequest(params=params)
        question = self._answering.question(call, request)
        outcome = await self._answering.answer(call, question, request, cast("ClientRequestContext", context))
        if not isinstance(outcome, Failure) and outcome.response is None:
            outcome = Failure(AnsweringError(CANNOT_SUSPEND))
        if isinstance(outcome, Failure):
            raise unwinding(run, outcome)
        if isinstance(outcome.response, ErrorData):
            raise MCPError.from_error_data(outcome.response)
        return outcome.response

    def _sampling_callback(self, handler: SamplingHandler[Any, Any] | None) -> SamplingFnT | None:
        if handler is not None:
            return create_sampling_callback(handler)
        if self.sampling_model is None:
            return None

        async def complete(context: ClientRequestContext, params: CreateMessageRequestParams) -> Any:
            assert self.sampling_model is not None
            try:
                return await sample(self.sampling_model, params, None)
            except Exception as error:
                return ErrorData(code=INTERNAL_ERROR, message=str(error))

        return complete


def load_resolver_toolsets(
    config_path: str | Path, *, policies: Sequence[Policy[Any]] = (), **options: Any
) -> list[AbstractToolset[Any]]:
    """Load a toolset that answers for each server of an MCP configuration file.

    The file format, environment variables, prefixes and errors are those of `load_mcp_toolsets`; `policies` and the
    other options are those of `ResolverToolset`, for each server.
    """
    toolsets: list[AbstractToolset[Any]] = []
    for prefixed in load_mcp_toolsets(config_path):
        assert isinstance(prefixed, PrefixedToolset)
        assert isinstance(prefixed.wrapped, MCPToolset)
        stock = prefixed.wrapped
        toolset = ResolverToolset[Any](stock.client.transport, id=stock.id, policies=policies, **options)
        toolsets.append(toolset.prefixed(prefixed.prefix))
    return toolsets


def _both(first: OnAnswer | None, second: OnAnswer | None) -> OnAnswer:
    async def call_both(record: AnswerRecord) -> None:
        for on_answer in (first, second):
            seen = on_answer(record) if on_answer is not None else None
            if isawaitable(seen):
                await seen

    return call_both


def _has_result(ctx: RunContext[Any]) -> bool:
    """Whether the messages hold the tool call's result already. Not every durable engine carries them."""
    try:
        messages = ctx.messages
    except UserError:
        return False
    parts = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart | ToolCallPart)]
    of_this_call = [part for part in parts if part.tool_call_id == ctx.tool_call_id]
    return isinstance(of_this_call[-1], ToolReturnPart) if of_this_call else False


def _check_has_no_handlers(client: Client[Any]) -> None:
    """Reject a client whose own handlers would never be called again.

    FastMCP has no public way to read them; tests/toolsets/test_toolset.py notices if this one is gone.
    """
    if client.is_connected():
        raise ValueError("A pre-built `fastmcp.Client` must not be connected before its toolset is made.")
    settings: dict[str, Any] = dict(client._session_kwargs)  # pyright: ignore[reportPrivateUsage]
    names = {
        "elicitation_callback": "elicitation_handler",
        "sampling_callback": "sampling_handler",
        "list_roots_callback": "roots",
    }
    found = [name for key, name in names.items() if settings.get(key) is not None]
    if found:
        raise ValueError(
            f"The `fastmcp.Client` has handlers of its own ({', '.join(found)}), which the toolset would replace. "
            "Leave them out, and pass policies, `sampling_from` or `roots_from` to the toolset."
        )
