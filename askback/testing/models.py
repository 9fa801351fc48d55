"""A model that does what a test says, without a key."""

import itertools
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

from pydantic_ai import UserError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

Turn: TypeAlias = "ToolCallPart | Sequence[ToolCallPart] | ScriptedModel"


class ScriptedModel(FunctionModel):
    """Calls tools turn by turn, and then says what it got, or what it was told to say.

        ScriptedModel(calls("find", name="Ada"), calls("refund", order="ORD-1"), says="Done.")

    A turn is `calls(...)`, a `ToolCallPart`, or a list of these parts, which are called at once. Which turn it is, the
    conversation tells: a run that was stopped goes on with the same script in another process.
    """

    def __init__(self, *turns: Turn, says: str | None = None) -> None:
        """Take the turns, and what to say when they are over: without, it says what it got last.

        Raises:
            TypeError: If a turn is none.
        """
        self.turns = _numbered([part for turn in turns for part in _turns_of(turn)])
        self._says = says
        super().__init__(self._respond, stream_function=self._stream, model_name="scripted")

    def _respond(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        called = {part.tool_call_id for part in parts if isinstance(part, ToolCallPart)}
        for turn in self.turns:
            if not called.issuperset(part.tool_call_id for part in turn):
                _check_known([part.tool_name for part in turn], info)
                return ModelResponse(parts=turn)
        return ModelResponse(parts=[TextPart(self._says if self._says is not None else _got(messages[-1]))])

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        for index, part in enumerate(self._respond(messages, info).parts):
            if isinstance(part, TextPart):
                yield part.content
            else:
                assert isinstance(part, ToolCallPart)
                yield {index: DeltaToolCall(part.tool_name, json.dumps(part.args), tool_call_id=part.tool_call_id)}


def calls(tool: str, /, **arguments: Any) -> ScriptedModel:
    """A model that calls a tool with these arguments, and then says what it got."""
    return ScriptedModel(ToolCallPart(tool, arguments))


def _turns_of(turn: Turn) -> list[list[ToolCallPart]]:
    if isinstance(turn, ScriptedModel):
        return turn.turns
    parts = [turn] if isinstance(turn, ToolCallPart) else list(turn)
    if not all(isinstance(part, ToolCallPart) for part in cast("list[object]", parts)):
        raise TypeError(
            f"a turn of a scripted model is calls(...), a ToolCallPart or a list of them, not {turn!r}; what it says "
            "in the end is says=..."
        )
    return [parts]


def _numbered(turns: Sequence[Sequence[ToolCallPart]]) -> list[list[ToolCallPart]]:
    """The turns, their calls numbered through, so that they can be recognised in a conversation."""
    numbers = itertools.count(1)
    return [[replace(part, tool_call_id=f"{part.tool_name}-{next(numbers)}") for part in turn] for turn in turns]


def _check_known(tools: list[str], info: AgentInfo) -> None:
    known = [tool.name for tool in (*info.function_tools, *info.output_tools)]
    for tool in tools:
        if tool not in known:
            there = ", ".join(known) or "none"
            raise UserError(f"The script calls the tool {tool!r}, and the agent has no such tool, only: {there}")


def _got(message: ModelMessage) -> str:
    """What the tools that were called last have said."""
    said: list[Any] = [
        getattr(part, "content", None) for part in message.parts if part.part_kind in ("tool-return", "retry-prompt")
    ]
    return " | ".join(each if isinstance(each, str) else json.dumps(each, default=str) for each in said) or "(nothing)"
