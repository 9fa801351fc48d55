"""Tools that call tools that ask: each call has its own answers, and what is done is done once."""

import gc
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import anyio
import fastmcp
import pytest
from fastmcp import Context
from fastmcp.exceptions import ToolError
from fastmcp.server import create_proxy
from fastmcp.tools import Tool
from fastmcp.tools.base import ToolResult
from fastmcp.tools.tool_transform import forward
from mcp_types import ElicitResult, InputRequiredResult
from pydantic import BaseModel

from askback import Elicit, ElicitationResult, Resolve
from askback.agents import Decline
from askback.exchange.answer import Accept
from askback.exchange.question import Question
from askback.integration import FastMCP, Limits, resolved
from askback.testing import Rehearsal, ScriptedClient
from tests.conversation import Readable, accept, asked, forged, one_round, said, state_in, state_of


class Sure(BaseModel):
    ok: bool


YES = Sure(ok=True)


def always_yes(ctx: object, question: Question) -> Accept:
    return Accept(YES)


async def ask_sure() -> Elicit[Sure]:
    """It does not name what it is about: whoever answers it must not have answered for anything else."""
    return Elicit("Sure?", Sure)


class Disk:
    """A server with a tool that deletes after asking, and a record of what was deleted."""

    def __init__(self, **options: Any) -> None:
        self.deleted: list[str] = []
        self.bodies = 0
        self.mcp = FastMCP("disk", request_state_security=Readable.security(), **options)

        @self.mcp.tool
        async def delete(path: str, sure: Annotated[Sure, Resolve(ask_sure)]) -> str:
            self.deleted.append(path)
            return f"deleted {path}: {sure.ok}"

    def tool(self, body: Callable[..., Awaitable[Any]]) -> None:
        @self.mcp.tool(name="outer")
        async def outer(ctx: Context) -> str:
            self.bodies += 1
            return str(await body())

    async def delete(self, path: str) -> str:
        result = await self.mcp.call_tool("delete", {"path": path})
        return result.content[0].text  # pyright: ignore


@pytest.fixture
def disk() -> Disk:
    return Disk()


async def test_each_nested_call_asks_for_itself(askback: Rehearsal, disk: Disk) -> None:
    @disk.tool
    async def outer() -> str:
        return ", ".join([await disk.delete(path) for path in ("a", "b", "a")])

    call = await askback.call(disk.mcp, "outer", {}, [YES, Sure(ok=False), YES])
    assert (call.result, call.failed) == ("deleted a: True, deleted b: False, deleted a: True", False)
    assert call.messages == ["Sure?"] * 3
    assert disk.deleted == ["a", "b", "a"]
    assert disk.bodies == (4 if askback.generation == "2026-07-28" else 1)


@pytest.mark.askback("2026-07-28")
async def test_questions_of_nested_calls_at_the_same_time_come_in_one_round(askback: Rehearsal, disk: Disk) -> None:
    @disk.tool
    async def outer() -> str:
        async with anyio.create_task_group() as group:
            for path in "abcd":
                group.start_soon(disk.delete, path)
        return "done"

    call = await askback.call(disk.mcp, "outer", {}, always_yes)
    assert (call.result, call.failed) == ("done", False)
    assert [exchange.question.round for exchange in call.exchanges] == [1] * 4
    assert sorted(disk.deleted) == ["a", "b", "c", "d"]
    assert disk.bodies == 2


async def test_nested_calls_in_a_task_group_have_their_own_answers(askback: Rehearsal, disk: Disk) -> None:
    said: dict[str, str] = {}

    @disk.tool
    async def outer() -> str:
        async def delete(path: str) -> None:
            said[path] = await disk.delete(path)

        async with anyio.create_task_group() as group:
            for path in "ab":
                group.start_soon(delete, path)
        return "done"

    call = await askback.call(disk.mcp, "outer", {}, always_yes)
    assert (call.result, len(call.exchanges)) == ("done", 2)
    assert said == {path: f"deleted {path}: True" for path in "ab"}


async def test_tools_of_one_factory_have_their_own_answers(askback: Rehearsal) -> None:
    mcp = FastMCP("disk")
    done: list[str] = []

    def make(name: str) -> None:
        async def act(sure: Annotated[Sure, Resolve(ask_sure)]) -> str:
            done.append(f"{name} {sure.ok}")
            return name

        mcp.tool(act, name=name)

    make("wipe")
    make("format")

    @mcp.tool
    async def outer() -> str:
        for name in ("wipe", "format"):
            await mcp.call_tool(name)
        return "done"

    call = await askback.call(mcp, "outer", {}, [YES, Sure(ok=False)])
    assert (call.result, call.failed) == ("done", False)
    assert done == ["wipe True", "format False"]


async def test_a_nested_call_that_was_declined_stays_declined(askback: Rehearsal, disk: Disk) -> None:
    @disk.tool
    async def outer() -> str:
        outcomes: list[str] = []
        for path in ("a", "b"):
            try:
                outcomes.append(await disk.delete(path))
            except ToolError as error:
                outcomes.append(str(error)[:70])
        return "; ".join(outcomes)

    call = await askback.call(disk.mcp, "outer", {}, [Decline(), YES])
    declined = "Resolver for parameter 'sure' could not resolve: elicitation was decline"
    assert call.result == f"{declined[:70]}; deleted b: True"
    assert (call.messages, disk.deleted) == (["Sure?", "Sure?"], ["b"])


async def test_a_nested_call_that_has_finished_is_not_made_again(askback: Rehearsal, disk: Disk) -> None:
    made: list[str] = []

    @disk.mcp.tool
    async def note(text: str) -> dict[str, str]:
        made.append(text)
        return {"noted": text}

    @disk.mcp.tool(timeout=0.01)
    async def slow() -> str:
        made.append("slow")
        await anyio.sleep_forever()
        return "never"

    @disk.tool
    async def outer() -> str:
        noted = await disk.mcp.call_tool("note", {"text": "begin"})
        with pytest.raises(ToolError, match="execution timed out"):
            await disk.mcp.call_tool("slow")
        return f"{noted.structured_content} {await disk.delete('a')}"

    call = await askback.call(disk.mcp, "outer", {}, [YES])
    assert (call.result, call.failed) == ("{'noted': 'begin'} deleted a: True", False)
    assert made == ["begin", "slow"]


async def test_a_tool_with_resolvers_of_its_own_may_call_tools_that_ask(askback: Rehearsal, disk: Disk) -> None:
    async def ask_first() -> Elicit[Sure]:
        return Elicit("First?", Sure)

    @disk.mcp.tool
    async def outer(first: Annotated[ElicitationResult[Sure], Resolve(ask_first)]) -> str:
        return f"{first.action} {await disk.delete('a')} {await disk.delete('b')}"

    call = await askback.call(disk.mcp, "outer", {}, [YES, Sure(ok=False), YES])
    assert (call.result, call.failed) == ("accept deleted a: False deleted b: True", False)
    assert call.messages == ["First?", "Sure?", "Sure?"]


async def test_a_question_that_changes_beside_nested_calls_is_asked_again(disk: Disk) -> None:
    wording = iter(["First?", "First?", "Really?", "Really?", "Really?"])

    async def ask_first() -> Elicit[Sure]:
        return Elicit(next(wording), Sure)

    @disk.mcp.tool
    async def outer(first: Annotated[Sure, Resolve(ask_first)]) -> str:
        return f"{first.ok} {await disk.delete('a')}"

    async with ScriptedClient(disk.mcp, [YES, YES, Sure(ok=False), YES]) as client:
        assert (await client.call_tool("outer")).data == "False deleted a: True"
    assert [question.message for question in client.asked] == ["First?", "Sure?", "Really?", "Sure?"]


async def test_calls_within_nested_calls_have_their_own_answers(askback: Rehearsal, disk: Disk) -> None:
    @disk.mcp.tool
    async def middle(folder: str) -> str:
        return f"[{await disk.delete(f'{folder}/1')}, {await disk.delete(f'{folder}/2')}]"

    @disk.tool
    async def outer() -> str:
        results = [await disk.mcp.call_tool("middle", {"folder": folder}) for folder in ("x", "y")]
        return " ".join(result.content[0].text for result in results)  # pyright: ignore

    call = await askback.call(disk.mcp, "outer", {}, [YES] * 4)
    assert call.result == "[deleted x/1: True, deleted x/2: True] [deleted y/1: True, deleted y/2: True]"
    assert disk.deleted == ["x/1", "x/2", "y/1", "y/2"]


async def test_mounted_tools_may_be_called_too(askback: Rehearsal, disk: Disk) -> None:
    parent = FastMCP("parent")
    parent.mount(disk.mcp, namespace="disk")

    @parent.tool
    async def outer() -> str:
        for path in ("a", "b"):
            await parent.call_tool("disk_delete", {"path": path})
        return "done"

    call = await askback.call(parent, "outer", {}, [YES, YES])
    assert (call.result, disk.deleted) == ("done", ["a", "b"])


async def test_a_body_cannot_swallow_a_question(disk: Disk) -> None:
    @disk.tool
    async def outer() -> str:
        try:
            return await disk.delete("a")
        except BaseException:
            return "swallowed"

    async with ScriptedClient(disk.mcp, [YES]) as client:
        result = await client.call_tool("outer")
    assert (result.data, disk.deleted) == ("deleted a: True", ["a"])


async def test_a_sync_body_may_call_tools_that_ask(askback: Rehearsal, disk: Disk) -> None:
    @disk.mcp.tool
    def outer() -> str:
        return " ".join(anyio.from_thread.run(disk.delete, path) for path in ("a", "b"))

    call = await askback.call(disk.mcp, "outer", {}, [YES, YES])
    assert (call.result, disk.deleted) == ("deleted a: True deleted b: True", ["a", "b"])


async def test_a_nested_call_that_works_beside_a_question_is_not_cut_short(disk: Disk) -> None:
    asking = anyio.Event()

    async def ask_now() -> Elicit[Sure]:
        asking.set()
        return Elicit("Now?", Sure)

    @disk.mcp.tool
    async def asks(sure: Annotated[Sure, Resolve(ask_now)]) -> str:
        return "asked"

    worked: list[str] = []

    @disk.mcp.tool
    async def works() -> str:
        worked.append("begun")
        await asking.wait()
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        worked.append("done")
        return "worked"

    @disk.tool
    async def outer() -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(disk.mcp.call_tool, "works")
            group.start_soon(disk.mcp.call_tool, "asks")
        return "done"

    async with ScriptedClient(disk.mcp, [YES]) as client:
        assert (await client.call_tool("outer")).data == "done"
    assert worked == ["begun", "done"]


async def test_the_keys_of_nested_questions_tell_nothing_of_their_arguments(disk: Disk) -> None:
    @disk.tool
    async def outer() -> str:
        return await disk.delete("/secret/1234")

    async with ScriptedClient(disk.mcp) as client:
        first = await one_round(client, "outer", {})
        assert list(asked(first)) == ["tests.test_nesting:ask_sure@1"]
        # Another call's answer is not this one's.
        other = await one_round(
            client, "outer", {}, answers={"tests.test_nesting:ask_sure": accept(ok=True)}, state=state_of(first)
        )
        assert list(asked(other)) == ["tests.test_nesting:ask_sure@1"]
        assert (
            said(
                await one_round(
                    client,
                    "outer",
                    {},
                    answers={"tests.test_nesting:ask_sure@1": accept(ok=True)},
                    state=state_of(first),
                )
            )
            == "deleted /secret/1234: True"
        )
    assert set(state_in(first)) == {"v", "calls", "numbers"}


async def test_a_state_of_another_release_is_started_over(disk: Disk) -> None:
    @disk.tool
    async def outer() -> str:
        return await disk.delete("a")

    async with ScriptedClient(disk.mcp) as client:
        first = await one_round(client, "outer", {})
        for state in ('{"v": 0, "calls": {}}', "[]", "{", '{"step": 1}', '{"v": 1, "calls": {"": 3}, "numbers": 1}'):
            again = await one_round(client, "outer", {}, answers={"x@1": accept(ok=True)}, state=forged(first, state))
            assert list(asked(again).values()) == ["Sure?"]


async def test_what_is_remembered_of_nested_calls_is_bounded(disk: Disk) -> None:
    disk.mcp.limits = Limits(state=1000)

    @disk.mcp.tool
    async def long() -> str:
        return "x" * 2000

    @disk.tool
    async def outer() -> str:
        await disk.mcp.call_tool("long")
        return await disk.delete("a")

    async with ScriptedClient(disk.mcp) as client:
        with pytest.raises(ToolError, match="The results and answers of this call are longer than 1000 characters"):
            await client.call_tool("outer")
    assert disk.deleted == []


async def test_a_request_within_a_request_is_its_own(disk: Disk) -> None:
    """A body that connects to its own server in process hands its context on, and no more."""

    async def answer(message: str, response_type: Any, params: Any, context: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"ok": False})

    @disk.tool
    async def outer() -> str:
        async with fastmcp.Client(disk.mcp, elicitation_handler=answer) as inside:
            result = await inside.call_tool("delete", {"path": "inside"})
        return f"{result.data}, {await disk.delete('outside')}"

    async with ScriptedClient(disk.mcp, [YES]) as client:
        assert (await client.call_tool("outer")).data == "deleted inside: False, deleted outside: True"


@pytest.fixture
def proxying(disk: Disk) -> FastMCP[Any]:
    front = FastMCP("front")
    front.mount(create_proxy(disk.mcp), namespace="far")

    @front.tool
    async def near(sure: Annotated[Sure, Resolve(ask_sure)]) -> str:
        return f"near: {sure.ok}"

    return front


async def test_a_proxied_tool_may_be_called_on_its_own(proxying: FastMCP[Any], disk: Disk) -> None:
    @proxying.tool
    async def outer() -> ToolResult:
        return await proxying.call_tool("far_delete", {"path": "a"})

    async with ScriptedClient(proxying, [YES]) as client:
        await client.call_tool("outer")
    assert disk.deleted == ["a"]


@pytest.mark.parametrize("order", [("near", "far_delete"), ("far_delete", "near")])
async def test_a_proxied_tool_beside_another_that_asks_is_refused(
    proxying: FastMCP[Any], disk: Disk, order: tuple[str, str]
) -> None:
    @proxying.tool
    async def outer() -> str:
        for name in order:
            await proxying.call_tool(name, {"path": "a"} if name == "far_delete" else {})
        return "done"

    async with ScriptedClient(proxying, always_yes) as client:
        with pytest.raises(ToolError, match="'far_delete' is on another server or drives its questions itself"):
            await client.call_tool("outer")
    assert disk.deleted == []


async def test_a_tool_that_drives_its_own_questions_beside_another_is_refused(disk: Disk) -> None:
    @disk.mcp.tool
    async def by_hand() -> InputRequiredResult:
        return InputRequiredResult(input_requests={}, request_state='{"step": 1}')

    @disk.tool
    async def outer() -> str:
        return f"{await disk.delete('a')} {await disk.mcp.call_tool('by_hand')}"

    async with ScriptedClient(disk.mcp, [YES]) as client:
        with pytest.raises(ToolError, match="'by_hand' is on another server or drives its questions itself"):
            await client.call_tool("outer")


@pytest.mark.askback("2026-07-28")
async def test_a_tool_made_of_another_may_ask_once(askback: Rehearsal) -> None:
    deleted: list[str] = []

    async def delete(path: str, sure: Annotated[Sure, Resolve(ask_sure)]) -> str:
        deleted.append(path)
        return path

    async def twice(path: str) -> Any:
        await forward(path=f"{path}/1")
        return await forward(path=f"{path}/2")

    async def once(path: str) -> Any:
        return await forward(path=path)

    mcp = FastMCP("disk")
    mcp.add_tool(Tool.from_tool(Tool.from_function(resolved(delete)), name="twice", transform_fn=twice))
    mcp.add_tool(Tool.from_tool(Tool.from_function(resolved(delete)), name="once", transform_fn=once))
    call = await askback.call(mcp, "once", {"path": "a"}, [YES])
    assert (call.result, call.failed, deleted) == ("a", False, ["a"])
    call = await askback.call(mcp, "twice", {"path": "b"}, [YES])
    assert call.failed
    assert "in a way that does not tell them apart" in call.result
    assert deleted == ["a", "b/1"]


@pytest.mark.askback("2026-07-28")
async def test_on_another_server_one_answer_is_for_one_call(askback: Rehearsal) -> None:
    plain = fastmcp.FastMCP("plain")
    deleted: list[str] = []

    @plain.tool
    @resolved
    async def delete(path: str, sure: Annotated[Sure, Resolve(ask_sure)]) -> str:
        deleted.append(path)
        return path

    @plain.tool
    async def passes_on() -> Any:
        return await plain.call_tool("delete", {"path": "a"})

    @plain.tool
    async def changes_its_mind(ctx: Context) -> Any:
        return await plain.call_tool("delete", {"path": "a" if ctx.request_state is None else "b"})

    @plain.tool
    async def loops(paths: str) -> Any:
        return [await plain.call_tool("delete", {"path": path}) for path in paths]

    assert (await askback.call(plain, "passes_on", {}, [YES])).result == "a"
    call = await askback.call(plain, "changes_its_mind", {}, [YES, YES])
    assert (call.result, call.messages) == ("b", ["Sure?", "Sure?"])
    for paths in ("xy", "zz"):
        call = await askback.call(plain, "loops", {"paths": paths})
        assert call.failed
        assert "Two tools that ask were run within one call" in call.result
    assert deleted == ["a", "b"]


async def test_nothing_is_left_of_a_call(disk: Disk) -> None:
    @disk.tool
    async def outer() -> str:
        return f"{await disk.delete('a')} {await disk.delete('b')}"

    async with ScriptedClient(disk.mcp, [YES, YES]) as client:
        await client.call_tool("outer")
    gc.collect()
    from askback.integration.calls import Call, Ledger

    assert [each for each in gc.get_objects() if isinstance(each, Call | Ledger)] == []
