"""In which order resolvers run, what runs at the same time, and how a failure ends a call."""

import asyncio
import contextlib
import threading
from typing import Annotated, Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from fastmcp.exceptions import ToolError
from fastmcp.server.middleware import Middleware
from mcp.server.mcpserver.exceptions import ToolError as SDKToolError
from pydantic import BaseModel, TypeAdapter

from askback import Elicit, ElicitationResult, Resolve
from askback.agents import Decline
from askback.integration import FastMCP
from askback.testing import Rehearsal


class Sure(BaseModel):
    ok: bool


async def test_independent_resolvers_run_at_the_same_time(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    on_loop = [anyio.Event() for _ in range(3)]
    in_threads = threading.Barrier(3)

    def waits_on_loop(number: int) -> Any:
        async def resolver() -> int:
            on_loop[number].set()
            for event in on_loop:
                await event.wait()
            return number

        return resolver

    def waits_in_thread(number: int) -> Any:
        def resolver() -> int:
            in_threads.wait(timeout=10)
            return number

        return resolver

    @mcp.tool
    async def gather(
        a: Annotated[int, Resolve(waits_on_loop(0))],
        b: Annotated[int, Resolve(waits_in_thread(1))],
        c: Annotated[int, Resolve(waits_on_loop(1))],
        d: Annotated[int, Resolve(waits_in_thread(2))],
        e: Annotated[int, Resolve(waits_on_loop(2))],
        f: Annotated[int, Resolve(waits_in_thread(3))],
    ) -> str:
        return f"{a}{b}{c}{d}{e}{f}"

    call = await askback.call(mcp, "gather")
    assert (call.result, call.failed) == ("011223", False)


async def test_a_resolver_runs_as_soon_as_its_own_dependencies_are_done(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    downstream = anyio.Event()

    async def quick() -> int:
        return 1

    async def after_quick(value: Annotated[int, Resolve(quick)]) -> int:
        downstream.set()
        return value + 1

    async def slow() -> int:
        await downstream.wait()
        return 5

    @mcp.tool
    async def add(
        a: Annotated[int, Resolve(slow)], b: Annotated[int, Resolve(after_quick)], c: Annotated[int, Resolve(quick)]
    ) -> str:
        return f"{a + b + c}"

    call = await askback.call(mcp, "add")
    assert (call.result, call.failed) == ("8", False)


async def test_what_becomes_ready_together_later_runs_at_the_same_time_too(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    taken_up = anyio.Event()
    reached = [anyio.Event() for _ in range(3)]

    async def base() -> int:
        await taken_up.wait()
        await anyio.lowlevel.checkpoint()
        return 1

    async def beside() -> int:
        taken_up.set()
        return 0

    def waits_for_the_others(number: int) -> Any:
        async def resolver(base: Annotated[int, Resolve(base)]) -> int:
            reached[number].set()
            for event in reached:
                await event.wait()
            return base

        return resolver

    @mcp.tool
    async def gather(
        a: Annotated[int, Resolve(waits_for_the_others(0))],
        b: Annotated[int, Resolve(waits_for_the_others(1))],
        c: Annotated[int, Resolve(waits_for_the_others(2))],
        d: Annotated[int, Resolve(beside)],
    ) -> str:
        return f"{a}{b}{c}{d}"

    call = await askback.call(mcp, "gather")
    assert (call.result, call.failed) == ("1110", False)


async def test_a_resolver_runs_once_however_many_want_it(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    runs: list[str] = []

    class Desk:
        async def base(self) -> int:
            runs.append("base")
            return 1

        async def left(self) -> int:
            raise NotImplementedError

        async def right(self) -> int:
            raise NotImplementedError

    desk, other = Desk(), Desk()

    async def left(base: Annotated[int, Resolve(desk.base)], again: Annotated[int, Resolve(desk.base)]) -> int:
        runs.append("left")
        return base + again

    async def right(base: Annotated[int, Resolve(desk.base)], left: Annotated[int, Resolve(left)]) -> int:
        runs.append("right")
        return base + left

    @mcp.tool
    async def add(
        r: Annotated[int, Resolve(right)],
        left_too: Annotated[int, Resolve(left)],
        base: Annotated[int, Resolve(desk.base)],
        elsewhere: Annotated[int, Resolve(other.base)],
    ) -> str:
        return f"{r} {left_too} {base} {elsewhere}"

    call = await askback.call(mcp, "add")
    assert (call.result, call.failed) == ("3 2 1 1", False)
    assert sorted(runs) == ["base", "base", "left", "right"]


async def test_a_builtin_method_is_one_resolver_however_often_it_is_named(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    titles = iter(["Dune", "Emma"])

    async def shout(title: Annotated[str, Resolve(titles.__next__)]) -> str:
        return title.upper()

    @mcp.tool
    async def read(title: Annotated[str, Resolve(titles.__next__)], loud: Annotated[str, Resolve(shout)]) -> str:
        return f"{title} {loud}"

    call = await askback.call(mcp, "read")
    assert (call.result, call.failed) == ("Dune DUNE", False)


async def test_a_failure_cancels_what_is_running(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    running, cancelled = anyio.Event(), anyio.Event()

    async def waits() -> int:
        try:
            running.set()
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        return 0

    async def fails() -> int:
        await running.wait()
        raise ToolError("no such book")

    async def never() -> int:
        raise AssertionError("its dependency never finished")

    async def after(a: Annotated[int, Resolve(waits)]) -> int:
        return await never()

    @mcp.tool
    async def add(
        a: Annotated[int, Resolve(waits)], b: Annotated[int, Resolve(fails)], c: Annotated[int, Resolve(after)]
    ) -> str:
        raise AssertionError("a resolver failed")

    call = await askback.call(mcp, "add")
    assert (call.result, call.failed) == ("no such book", True)
    assert cancelled.is_set()


async def test_a_failure_waits_for_threads(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    started, go, done = threading.Event(), threading.Event(), threading.Event()

    def works() -> Elicit[Sure]:
        started.set()
        go.wait(timeout=10)
        done.set()
        return Elicit("Nobody is asked this any more", Sure)

    async def fails() -> int:
        await anyio.to_thread.run_sync(started.wait)
        try:
            raise ToolError("no such book")
        finally:
            go.set()

    @mcp.tool
    async def add(a: Annotated[Sure, Resolve(works)], b: Annotated[int, Resolve(fails)]) -> str:
        raise AssertionError("a resolver failed")

    async with askback.connect(mcp) as client:
        with pytest.raises(ToolError, match="^no such book$"):
            await client.call_tool("add")
        assert done.is_set()
    assert client.asked == []


async def test_the_first_declared_of_several_failures_is_reported(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    running = anyio.Event()

    def fails_on_cancellation(name: str) -> Any:
        async def resolver() -> int:
            try:
                running.set()
                await anyio.sleep_forever()
            finally:
                raise ToolError(f"{name} failed while it was stopped")

        return resolver

    async def fails_first() -> int:
        await running.wait()
        raise ToolError("failed first")

    async def needs_both(
        one: Annotated[int, Resolve(fails_on_cancellation("one"))],
        two: Annotated[int, Resolve(fails_on_cancellation("two"))],
    ) -> int:
        raise AssertionError

    @mcp.tool
    async def add(a: Annotated[int, Resolve(needs_both)], b: Annotated[int, Resolve(fails_first)]) -> str:
        raise AssertionError("a resolver failed")

    for _ in range(5):
        running = anyio.Event()
        call = await askback.call(mcp, "add")
        assert (call.result, call.failed) == ("one failed while it was stopped", True)


async def test_nothing_is_started_after_a_failure(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")

    async def fails() -> int:
        raise ToolError("no such book")

    async def never() -> int:
        raise AssertionError("the call has failed before")

    @mcp.tool
    async def add(
        a: Annotated[int, Resolve(fails)],
        b: Annotated[int, Resolve(never)],
        c: Annotated[int, Resolve(lambda: never())],
    ) -> str:
        raise AssertionError("a resolver failed")

    call = await askback.call(mcp, "add")
    assert (call.result, call.failed) == ("no such book", True)


async def test_a_tool_error_reaches_the_client_whoevers_it_is(askback: Rehearsal) -> None:
    mcp = FastMCP("shop", mask_error_details=True)

    async def fails_with(kind: str) -> int:
        raise {"fastmcp": ToolError, "sdk": SDKToolError, "other": RuntimeError}[kind](f"{kind}: no such book")

    @mcp.tool
    async def find(kind: str, shelf: Annotated[int, Resolve(fails_with)]) -> str:
        raise AssertionError("a resolver failed")

    call = await askback.call(mcp, "find", {"kind": "fastmcp"})
    assert (call.result, call.failed) == ("fastmcp: no such book", True)
    call = await askback.call(mcp, "find", {"kind": "sdk"})
    assert (call.result, call.failed) == ("sdk: no such book", True)
    call = await askback.call(mcp, "find", {"kind": "other"})
    assert (call.result, call.failed) == ("Error calling tool 'find'", True)


async def test_any_other_error_is_what_fastmcp_makes_of_a_bodys(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")

    async def fails(kind: str) -> int:
        if kind == "validation":
            return TypeAdapter(int).validate_python("x")
        raise ExceptionGroup("several", [ValueError("one")])

    @mcp.tool
    async def find(kind: str, shelf: Annotated[int, Resolve(fails)]) -> str:
        raise AssertionError("a resolver failed")

    call = await askback.call(mcp, "find", {"kind": "validation"})
    assert (call.result or "").startswith("Error calling tool 'find': 1 ")
    assert call.failed
    call = await askback.call(mcp, "find", {"kind": "group"})
    assert (call.result, call.failed) == ("Error calling tool 'find': several (1 sub-exception)", True)


@pytest.mark.parametrize("waits", [True, False])
async def test_a_resolver_that_cancels_itself_fails_the_call(askback: Rehearsal, waits: bool) -> None:
    mcp = FastMCP("shop")

    async def gives_up() -> int:
        raise asyncio.CancelledError("gave up")

    async def other() -> int:
        if waits:
            await anyio.sleep_forever()
        return 0

    @mcp.tool
    async def add(a: Annotated[int, Resolve(other)], b: Annotated[int, Resolve(gives_up)]) -> str:
        raise AssertionError("a resolver gave up")

    @mcp.tool
    async def add_first(a: Annotated[int, Resolve(gives_up)], b: Annotated[int, Resolve(other)]) -> str:
        raise AssertionError("a resolver gave up")

    for tool in ("add", "add_first"):
        call = await askback.call(mcp, tool)
        assert (call.result or "").endswith("Resolver 'gives_up' cancelled itself")


async def test_a_resolver_that_fails_a_task_group_of_its_own_harms_nobody_else(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    failed = anyio.Event()

    async def fails() -> None:
        await anyio.lowlevel.checkpoint()
        raise ValueError("one")

    async def recovers() -> int:
        with contextlib.suppress(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                group.create_task(fails())
        failed.set()
        return 0

    async def fails_then() -> int:
        await failed.wait()
        raise ToolError("mine")

    async def waits() -> int:
        await anyio.sleep_forever()
        return 0

    @mcp.tool
    async def both(
        a: Annotated[int, Resolve(recovers)], b: Annotated[int, Resolve(fails_then)], c: Annotated[int, Resolve(waits)]
    ) -> str:
        raise AssertionError("a resolver failed")

    async with askback.connect(mcp) as client:
        for _ in range(2):
            failed = anyio.Event()
            with pytest.raises(ToolError, match="^mine$"):
                await client.call_tool("both")


async def test_cancelling_a_call_stops_its_resolvers(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    running, stopped = anyio.Event(), [anyio.Event(), anyio.Event()]

    def waits(number: int) -> Any:
        async def resolver() -> int:
            try:
                running.set()
                await anyio.sleep_forever()
            finally:
                stopped[number].set()
            return 0

        return resolver

    @mcp.tool
    async def add(a: Annotated[int, Resolve(waits(0))], b: Annotated[int, Resolve(waits(1))]) -> str:
        raise AssertionError("the call was cancelled")

    async with askback.connect(mcp) as client, anyio.create_task_group() as group:
        group.start_soon(client.call_tool, "add")
        await running.wait()
        group.cancel_scope.cancel()
    with anyio.fail_after(10):
        for each in stopped:
            await each.wait()


async def test_a_timeout_covers_the_resolvers(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")

    async def waits() -> int:
        await anyio.sleep_forever()
        return 0

    @mcp.tool(timeout=0.05)
    async def add(a: Annotated[int, Resolve(waits)]) -> str:
        raise AssertionError("it timed out")

    call = await askback.call(mcp, "add")
    assert "execution timed out after 0.05s" in (call.result or "")


async def test_cancel_scopes_of_resolvers_are_their_own(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")

    def gives_up_waiting(number: int) -> Any:
        async def resolver() -> int:
            with anyio.move_on_after(0.01):
                await anyio.sleep_forever()
            return number

        return resolver

    @mcp.tool
    async def add(
        a: Annotated[int, Resolve(gives_up_waiting(1))],
        b: Annotated[int, Resolve(gives_up_waiting(2))],
        c: Annotated[int, Resolve(gives_up_waiting(4))],
    ) -> str:
        return f"{a + b + c}"

    call = await askback.call(mcp, "add")
    assert (call.result, call.failed) == ("7", False)


async def test_a_body_is_not_run_until_every_question_is_answered(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    runs: list[str] = []

    async def ask(title: str) -> Elicit[Sure]:
        runs.append("ask")
        return Elicit(f"Buy {title}?", Sure)

    async def ask_again(sure: Annotated[Sure, Resolve(ask)]) -> Elicit[Sure]:
        runs.append("again")
        return Elicit("Really?", Sure)

    @mcp.tool
    async def buy(title: str, sure: Annotated[ElicitationResult[Sure], Resolve(ask_again)]) -> str:
        runs.append("body")
        return sure.action

    async with askback.connect(mcp, {"Buy": {"ok": True}, "Really": Decline()}) as client:
        assert (await client.call_tool("buy", {"title": "Dune"})).data == "decline"
    assert client.messages == ["Buy Dune?", "Really?"]
    assert runs.count("body") == 1
    assert runs[-1] == "body"


class Late:
    """A server whose resolver works in a thread until it is let go, and what ran after it."""

    def __init__(self, **options: Any) -> None:
        self.mcp = FastMCP("late")
        self.begun, self.let_go = threading.Event(), threading.Event()
        self.returned = anyio.Event()
        self.ran: list[str] = []

        def work() -> int:
            self.begun.set()
            self.let_go.wait(timeout=10)
            return 1

        async def work_elsewhere() -> int:
            return await anyio.to_thread.run_sync(work)

        async def after(value: Annotated[int, Resolve(work)]) -> int:
            self.ran.append("a dependent resolver")
            return value

        async def ask(value: Annotated[int, Resolve(work)]) -> Elicit[Sure]:
            self.ran.append("a question")
            return Elicit("Sure?", Sure)

        def ask_late() -> Elicit[Sure]:
            work()
            return Elicit("Sure?", Sure)

        @self.mcp.tool(**options)
        async def alone(value: Annotated[int, Resolve(work)]) -> str:
            self.ran.append("the body")
            return "done"

        @self.mcp.tool(**options)
        async def elsewhere(value: Annotated[int, Resolve(work_elsewhere)]) -> str:
            self.ran.append("the body")
            return "done"

        @self.mcp.tool(**options)
        async def dependent(value: Annotated[int, Resolve(after)], sure: Annotated[Sure, Resolve(ask)]) -> str:
            self.ran.append("the body")
            return "done"

        @self.mcp.tool(**options)
        async def asks(sure: Annotated[Sure, Resolve(ask_late)]) -> str:
            self.ran.append("the body")
            return "done"


LATE = pytest.mark.parametrize("tool", ["alone", "elsewhere", "dependent", "asks"])


@LATE
async def test_nothing_starts_after_a_call_was_cancelled(askback: Rehearsal, tool: str) -> None:
    late = Late()
    ended = anyio.Event()

    class Watch(Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            try:
                return await call_next(context)
            finally:
                ended.set()

    late.mcp.add_middleware(Watch())
    async with askback.connect(late.mcp) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, tool)
            await anyio.to_thread.run_sync(late.begun.wait)
            group.cancel_scope.cancel()
        # The server hears of it before the thread is let go.
        with contextlib.suppress(Exception):
            await client.ping()
        late.let_go.set()
        with anyio.fail_after(10):
            await ended.wait()
    assert late.ran == []


@LATE
async def test_nothing_starts_after_a_call_has_timed_out(askback: Rehearsal, tool: str) -> None:
    late = Late(timeout=0.05)

    async def let_go_in_time() -> None:
        await anyio.to_thread.run_sync(late.begun.wait)
        await anyio.sleep(0.1)
        late.let_go.set()

    async with askback.connect(late.mcp) as client, anyio.create_task_group() as group:
        group.start_soon(let_go_in_time)
        result = await client.call_tool(tool, raise_on_error=False)
    assert "timed out" in result.content[0].text
    assert late.ran == []
