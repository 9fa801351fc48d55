"""A model that does what a test says, without a key."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

from pydantic_ai import UserError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, UserPromptPart
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
        self.turns = [parts for turn in turns for parts in _turns_of(turn)]
        self._says = says
        super().__init__(self._respond, stream_function=self._stream, model_name="scripted")

    def _respond(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        taken = _turns_since_the_prompt(messages)
        # A request for a form alone, as a policy makes it, is none of the script's: it settles nothing.
        asks_for_form = info.output_tools and not info.function_tools
        if taken < len(self.turns) and not info.function_tools and not info.output_tools:
            return ModelResponse(parts=[TextPart(self._said_without_tools(self.turns[taken]))])
        if taken < len(self.turns) and not (asks_for_form and not _known(self.turns[taken], info)):
            return ModelResponse(parts=_numbered(self.turns[taken], messages, info))
        return ModelResponse(parts=[TextPart(self._says if self._says is not None else _got(messages[-1]))])

    def _said_without_tools(self, turn: Sequence[ToolCallPart]) -> str:
        """What it says to a request that offers no tools, as a server's for a completion."""
        if self._says is None:
            raise UserError(
                f"The script calls the tool {turn[0].tool_name!r}, and is asked without any tool, as a server samples: "
                "give it something to say with says=..., or the toolset's sampling_from a model of its own"
            )
        return self._says

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


def _turns_since_the_prompt(messages: Sequence[ModelMessage]) -> int:
    """How many turns were taken since somebody last said something."""
    taken = 0
    for message in messages:
        if any(isinstance(part, UserPromptPart) for part in message.parts):
            taken = 0
        elif any(isinstance(part, ToolCallPart) for part in message.parts):
            taken += 1
    return taken


def _known(turn: Sequence[ToolCallPart], info: AgentInfo) -> bool:
    known = {tool.name for tool in (*info.function_tools, *info.output_tools)}
    return all(part.tool_name in known for part in turn)


def _numbered(turn: Sequence[ToolCallPart], messages: Sequence[ModelMessage], info: AgentInfo) -> list[ToolCallPart]:
    """A turn's calls, with ids that are new to the conversation and the same every time.

    Raises:
        UserError: If the agent has no such tool.
    """
    there = [tool.name for tool in (*info.function_tools, *info.output_tools)]
    for part in turn:
        if part.tool_name not in there:
            raise UserError(
                f"The script calls the tool {part.tool_name!r}, and the agent has no such tool, only: "
                f"{', '.join(there) or 'none'}"
            )
    made = sum(isinstance(part, ToolCallPart) for message in messages for part in message.parts)
    return [
        replace(part, tool_call_id=f"{part.tool_name}-{number}") for number, part in enumerate(turn, start=made + 1)
    ]


def _got(message: ModelMessage) -> str:
    """What the tools that were called last have said."""
    said: list[Any] = [
        getattr(part, "content", None) for part in message.parts if part.part_kind in ("tool-return", "retry-prompt")
    ]
    return " | ".join(each if isinstance(each, str) else json.dumps(each, default=str) for each in said) or "(nothing)"
