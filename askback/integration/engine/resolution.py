"""Running a tool's resolvers during a call."""

from collections import deque
from collections.abc import Hashable, Mapping
from functools import partial
from inspect import isawaitable
from textwrap import shorten
from typing import Any

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint, checkpoint_if_cancelled
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import InputRequiredResult

from askback.integration.engine.channels import Channel, open_channel, question_for
from askback.integration.engine.graph import ResolverPlan, identity
from askback.integration.engine.host import Host
from askback.integration.engine.questions import REFUSALS, Accepted, Refusal, is_marker
from askback.markers import SDKResolve


async def resolve_arguments(
    resolved_params: Mapping[str, tuple[SDKResolve, bool]],
    plans: Mapping[Hashable, ResolverPlan],
    tool_args: Mapping[str, Any],
    host: Host,
) -> dict[str, Any] | InputRequiredResult:
    """Fill a tool's resolved parameters for one call.

    Returns a value for each parameter, or, where a question is open and the call goes in rounds, the
    `InputRequiredResult` that asks everything that can be asked now; the tool's body is then not to be run. Every
    resolver runs at most once, and those that do not depend on each other run at the same time. Of several failures,
    the first in declaration order is raised, as it is, once everything that ran has ended.

    Raises:
        ToolError: If a question was declined or cancelled and a parameter needs its value, the client's response does
            not answer the question, or there is nobody to ask.
        MCPError: If the client did not declare that it can answer such a question.
    """
    run = _Resolution(tuple(plans.values()), tool_args, host)
    await run.complete()
    asked = run.channel.close() if run.channel is not None else None
    if asked is not None:
        return asked
    return {
        name: run.deliver(plans[identity(marker.fn)].index, takes_outcome)
        for name, (marker, takes_outcome) in resolved_params.items()
    }


class _Resolution:
    """One walk over the graph.

    `complete` runs what is ready in the task of the call as long as nothing else is ready beside it. Otherwise a task
    group is opened with a worker in it, and there is always one more scheduled behind those at work while anything is
    left to take up: it gets its turn only once a resolver really waits, so resolvers that never wait cost no task each,
    and those that do all wait at the same time. A resolver runs in one task from beginning to end, as its cancel scopes
    require.
    """

    def __init__(self, plans: tuple[ResolverPlan, ...], arguments: Mapping[str, Any], host: Host) -> None:
        self.channel: Channel | None = None
        self._plans = plans
        self._arguments = arguments
        self._host = host
        self._values: list[Any] = [None] * len(plans)
        self._refusals: dict[int, Refusal] = {}
        self._settled = [False] * len(plans)
        self._missing = [plan.waits_for for plan in plans]
        self._ready = deque([plan for plan in plans if not plan.waits_for])
        self._failures: dict[int, BaseException] = {}
        self._helper_is_scheduled = False

    async def complete(self) -> None:
        while self._ready:
            if len(self._ready) == 1:
                await self._run(self._ready.popleft())
            else:
                await self._run_together()
        # A thread cannot be cancelled, only waited for, and returns as if nothing had happened. No body, no dependent
        # resolver and no question may start once the call is cancelled, so each of them checks first.
        await checkpoint_if_cancelled()

    def deliver(self, index: int, takes_outcome: bool) -> Any:
        """What a consumer of a settled resolver gets."""
        if not takes_outcome:
            return self._values[index]
        refusal = self._refusals.get(index)
        if refusal is not None:
            return refusal
        accepted = self._plans[index].graph.types.accepted
        return accepted.model_construct(data=self._values[index])

    async def _run_together(self) -> None:
        async with anyio.create_task_group() as group:
            # The task of the call only hands out the work: what a resolver does to its own task must not harm it.
            self._helper_is_scheduled = True
            while self._ready and not self._failures:
                group.start_soon(self._work, group)
                await checkpoint()
            self._helper_is_scheduled = False
        if self._failures:
            raise self._failures[min(self._failures)]

    async def _work(self, group: TaskGroup) -> None:
        while self._ready and not self._failures:
            plan = self._ready.popleft()
            if self._ready and not self._helper_is_scheduled:
                self._helper_is_scheduled = True
                group.start_soon(self._help, group)
            try:
                await self._run(plan)
            except anyio.get_cancelled_exc_class():
                # Either the call is ending anyway, or the resolver raised this itself, which a task group would ignore.
                if not self._failures:
                    self._fail(plan, RuntimeError(f"Resolver {plan.name!r} cancelled itself"), group)
                raise
            except BaseException as error:
                self._fail(plan, error, group)

    async def _help(self, group: TaskGroup) -> None:
        self._helper_is_scheduled = False
        await self._work(group)

    def _fail(self, plan: ResolverPlan, error: BaseException, group: TaskGroup) -> None:
        self._failures[plan.index] = error
        group.cancel_scope.cancel()

    async def _run(self, plan: ResolverPlan) -> None:
        if plan.waits_for:
            await checkpoint_if_cancelled()
        given: dict[str, Any] = {name: self._arguments[name] for name in plan.arguments}
        for name, kind in plan.contexts:
            given[name] = self._host.context(kind)
        for name, dependency, takes_outcome in plan.links:
            given[name] = self.deliver(dependency, takes_outcome)
        if plan.is_async:
            value = await plan.fn(**given)
        else:
            value = await to_thread.run_sync(partial(plan.fn, **given))
            if isawaitable(value):
                value = await value
        if is_marker(value):
            await checkpoint_if_cancelled()
            if self.channel is None:
                self.channel = open_channel(self._host, self._plans, self._settled)
            question = question_for(plan, value)
            outcome = await self.channel.ask(plan, question)
            if outcome is None:
                return
            value = self._received(plan, outcome, question.text)
        elif not plan.graph.outcomes.isdisjoint(type(value).__mro__):
            # A resolver may pass on the outcome of another's question, or of one that it asked by itself.
            value = self._received(plan, value if isinstance(value, REFUSALS) else Accepted(value.data))
        self._settle(plan, value)

    def _received(self, plan: ResolverPlan, outcome: Accepted | Refusal, question: str = "") -> Any:
        """The accepted value; None where somebody said no, which is noted for those who take the outcome.

        Raises:
            ToolError: If somebody said no and a parameter needs the value. The first sentence is the SDK's.
        """
        if isinstance(outcome, Accepted):
            return outcome.value
        if plan.required_as is not None:
            raise ToolError(
                f"Resolver for parameter {plan.required_as!r} could not resolve: elicitation was {outcome.action}. "
                f"{_explained(outcome, question)}"
            )
        self._refusals[plan.index] = outcome
        return None

    def _settle(self, plan: ResolverPlan, value: Any) -> None:
        self._values[plan.index] = value
        self._settled[plan.index] = True
        if self.channel is not None:
            self.channel.settled(plan)
        for dependent in plan.dependents:
            self._missing[dependent] -= 1
            if not self._missing[dependent]:
                self._ready.append(self._plans[dependent])


def _explained(refusal: Refusal, question: str) -> str:
    """For the model that called the tool: what was refused, and that asking again will not help."""
    did = "declined" if refusal.action == "decline" else "cancelled"
    asked = f"The user {did} the question {shorten(question, 200)!r}" if question else f"The user {did}"
    return f"{asked}; calling the tool again with the same arguments will not change that."
