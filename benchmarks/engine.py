"""What resolvers cost, side by side with the MCP SDK's own engine and with a guard tool written by hand.

Every figure is the median of interleaved calls over an in-process connection, less that of an empty tool on the same
host in the same run. `python -m benchmarks.engine` prints a table and fails where a ratio is over its limit.
"""

import asyncio
import inspect
import json
import time
from collections.abc import Callable
from typing import Annotated, Any

import anyio
import fastmcp
import mcp
from mcp.server import MCPServer
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    InputResponse,
)
from pydantic import BaseModel, Field

from askback import Elicit, Resolve
from askback.integration import FastMCP
from benchmarks.side_by_side import Call, Row, measure, repeats, report

WAIT = 0.02


class Confirm(BaseModel):
    """The form of every question here."""

    confirm: bool = Field(description="Go on?")


def trivial(number: int) -> Callable[..., Any]:
    """A resolver with nothing to do."""

    async def resolver(title: str) -> str:
        return f"{title}{number}"

    return resolver


def waiting(number: int) -> Callable[..., Any]:
    """A resolver that waits on the loop."""

    async def resolver() -> int:
        await anyio.sleep(WAIT)
        return number

    return resolver


def blocking(number: int) -> Callable[..., Any]:
    """A resolver that blocks its thread."""

    def resolver() -> int:
        time.sleep(WAIT)
        return number

    return resolver


def ten(make: Callable[[int], Callable[..., Any]]) -> Callable[..., Any]:
    """A tool with ten parameters, each filled by a resolver of its own."""

    async def tool(title: str, **given: Any) -> str:
        return title

    annotations = {name: Annotated[Any, Resolve(make(number))] for number, name in enumerate("abcdefghij")}
    tool.__signature__ = inspect.Signature(  # pyright: ignore[reportFunctionMemberAccess]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation)
            for name, annotation in {"title": str, **annotations}.items()
        ],
        return_annotation=str,
    )
    tool.__annotations__ = {"title": str, **annotations, "return": str}
    return tool


async def empty(title: str) -> str:
    """A tool with nothing to resolve."""
    return title


async def ask_first(title: str) -> Elicit[Confirm]:
    """The question of the tools that ask one."""
    return Elicit(f"Order {title}?", Confirm)


async def ask_once(title: str, first: Annotated[Confirm, Resolve(ask_first)]) -> str:
    """A tool with one question."""
    return f"{title} {first.confirm}"


async def ask_second(title: str, last: Annotated[Confirm, Resolve(ask_first)]) -> Elicit[Confirm]:
    """A question that depends on the first."""
    return Elicit(f"Really order {title}?", Confirm)


async def ask_third(title: str, last: Annotated[Confirm, Resolve(ask_second)]) -> Elicit[Confirm]:
    """A question that depends on the second."""
    return Elicit(f"Truly order {title}?", Confirm)


async def ask_fourth(title: str, last: Annotated[Confirm, Resolve(ask_third)]) -> Elicit[Confirm]:
    """A question that depends on the third."""
    return Elicit(f"Honestly order {title}?", Confirm)


async def ask_fifth(title: str, last: Annotated[Confirm, Resolve(ask_fourth)]) -> Elicit[Confirm]:
    """A question that depends on the fourth."""
    return Elicit(f"Finally order {title}?", Confirm)


async def ask_five_times(title: str, last: Annotated[Confirm, Resolve(ask_fifth)]) -> str:
    """A tool with five questions, each depending on the one before."""
    return f"{title} {last.confirm}"


GUARD_SCHEMA = Confirm.model_json_schema()


async def guard(title: str, ctx: fastmcp.Context) -> str | InputRequiredResult:
    """The same question, in the shortest form an author can write without resolvers."""
    answer = (ctx.input_responses or {}).get("confirm")
    if not isinstance(answer, ElicitResult):
        params = ElicitRequestFormParams(message=f"Order {title}?", requested_schema=GUARD_SCHEMA)
        return InputRequiredResult(input_requests={"confirm": ElicitRequest(params=params)})
    return f"{title} {Confirm.model_validate(answer.content).confirm}"


async def remembering_guard(title: str, ctx: fastmcp.Context) -> str | InputRequiredResult:
    """The same question by hand, where an answer counts only for what was asked: what resolvers promise."""
    message = f"Order {title}?"
    answer = (ctx.input_responses or {}).get("confirm")
    asked = json.loads(ctx.request_state or "{}").get("asked")
    if not isinstance(answer, ElicitResult) or asked != message:
        params = ElicitRequestFormParams(message=message, requested_schema=GUARD_SCHEMA)
        return InputRequiredResult(
            input_requests={"confirm": ElicitRequest(params=params)}, request_state=json.dumps({"asked": message})
        )
    return f"{title} {Confirm.model_validate(answer.content).confirm}"


async def compare(times: int) -> list[Row]:
    """Take all measurements."""
    ours = FastMCP("ours")
    for name, tool in {
        "empty": empty,
        "trivial": ten(trivial),
        "waiting": ten(waiting),
        "blocking": ten(blocking),
        "once": ask_once,
        "five": ask_five_times,
    }.items():
        ours.tool(tool, name=name)
    ours.tool(guard)
    ours.tool(remembering_guard)
    sdk = MCPServer("sdk")
    for name, tool in {"empty": empty, "trivial": ten(trivial), "waiting": ten(waiting)}.items():
        sdk.tool(name=name)(tool)

    async def agree(*_: object) -> dict[str, bool]:
        return {"confirm": True}

    arguments = {"title": "Dune"}
    async with fastmcp.Client(ours, elicitation_handler=agree) as client, mcp.Client(sdk) as sdk_client:

        def call(name: str) -> Call:
            return lambda: client.call_tool(name, arguments)

        def sdk_call(name: str) -> Call:
            return lambda: sdk_client.call_tool(name, arguments)

        quick = await measure(
            {
                "empty": call("empty"),
                "trivial": call("trivial"),
                "once": call("once"),
                "guard": call("guard"),
                "remembering guard": call("remembering_guard"),
                "sdk empty": sdk_call("empty"),
                "sdk trivial": sdk_call("trivial"),
            },
            times,
        )
        slow = await measure(
            {"empty": call("empty"), "waiting": call("waiting"), "blocking": call("blocking")}, max(times // 20, 5)
        )
        sdk_slow = await measure({"empty": sdk_call("empty"), "waiting": sdk_call("waiting")}, 3)

        async def round_of(tool: str, number: int) -> Call:
            """The `number`th round of a call, with the answers of the rounds before it."""
            result: Any = None
            responses: dict[str, InputResponse] | None = None
            state: str | None = None
            for _ in range(1, number):
                result = await client.session.call_tool(
                    tool, arguments, input_responses=responses, request_state=state, allow_input_required=True
                )
                responses = {
                    key: ElicitResult(action="accept", content={"confirm": True}) for key in result.input_requests
                }
                state = result.request_state
            return lambda: client.session.call_tool(
                tool, arguments, input_responses=responses, request_state=state, allow_input_required=True
            )

        rounds = await measure(
            {
                "lone": await round_of("once", 1),
                "lone answered": await round_of("once", 2),
                **{f"{number}": await round_of("five", number) for number in range(1, 7)},
            },
            times,
        )

    lone = (rounds["lone"] + rounds["lone answered"]) / 2
    chained = sum(rounds[str(number)] for number in range(1, 7)) / 6
    return [
        Row("ten trivial", quick["trivial"] - quick["empty"], "SDK", quick["sdk trivial"] - quick["sdk empty"], 2.0),
        Row("ten of 20 ms, async", slow["waiting"] - slow["empty"], "20 ms", WAIT, 1.15),
        Row("ten of 20 ms, sync", slow["blocking"] - slow["empty"], "20 ms", WAIT, 1.5),
        Row(
            "ten of 20 ms, async", slow["waiting"] - slow["empty"], "SDK", sdk_slow["waiting"] - sdk_slow["empty"], 0.15
        ),
        Row(
            "one question",
            quick["once"] - quick["empty"],
            "guard that remembers what it asked",
            quick["remembering guard"] - quick["empty"],
            1.1,
        ),
        Row("one question", quick["once"] - quick["empty"], "guard without state", quick["guard"] - quick["empty"]),
        Row("a round of a five-deep chain", chained, "a lone round", lone, 1.15),
        Row("its fifth round", rounds["5"], "its first", rounds["1"]),
    ]


if __name__ == "__main__":
    report(asyncio.run(compare(repeats())))
