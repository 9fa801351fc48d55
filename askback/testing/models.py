"""A model that does what a test says, without an API key."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

from pydantic_ai import UserError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

Turn: TypeAlias = "ToolCallPart | Sequence[ToolCallPart] | ScriptedModel"


class ScriptedModel(FunctionModel):
    """Calls tools turn by turn, then says what they returned, or what it was told to say.

        ScriptedModel(calls("find", name="Ada"), calls("refund", order="ORD-1"), says="Done.")

    A turn is `calls(...)`, a `ToolCallPart`, or a list of parts, which are called at the same time. The model counts
    its turns in the messages of the run, so a suspended run can go on with the same script in another process.
    """

    def __init__(self, *turns: Turn, says: str | None = None) -> None:
        """Take the turns, and what to say after the last one; by default, what its tools returned.

        Raises:
            TypeError: If a turn is not one of the above.
        """
        self.turns = [parts for turn in turns for parts in _turns_of(turn)]
        self._says = says
        super().__init__(self._respond, stream_function=self._stream, model_name="scripted")

    def _respond(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        taken = _turns_since_the_prompt(messages)
        # FromModel offers output tools only. The script is not for that request, and the answer is a decline.
        asks_for_form = info.output_tools and not info.function_tools
        if taken < len(self.turns) and not info.function_tools and not info.output_tools:
            return ModelResponse(parts=[TextPart(self._said_without_tools(self.turns[taken]))])
        if taken < len(self.turns) and not (asks_for_form and not _known(self.turns[taken], info)):
            return ModelResponse(parts=_numbered(self.turns[taken], messages, info))
        return ModelResponse(parts=[TextPart(self._says if self._says is not None else _returned(messages[-1]))])

    def _said_without_tools(self, turn: Sequence[ToolCallPart]) -> str:
        """What it says to a request that offers no tools, such as a sampling request of a server."""
        if self._says is None:
            raise UserError(
                f"The script should call the tool {turn[0].tool_name!r}, but this request offers no tools, as when a "
                "server samples: give the model something to say with says=..., or set the toolset's sampling_from to "
                "another model"
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
    """A model that calls a tool with these arguments, then says what the tool returned."""
    return ScriptedModel(ToolCallPart(tool, arguments))


def _turns_of(turn: Turn) -> list[list[ToolCallPart]]:
    if isinstance(turn, ScriptedModel):
        return turn.turns
    parts = [turn] if isinstance(turn, ToolCallPart) else list(turn)
    if not all(isinstance(part, ToolCallPart) for part in cast("list[object]", parts)):
        raise TypeError(
            f"a turn of a scripted model is calls(...), a ToolCallPart or a list of them, not {turn!r}; use says=... "
            "for what it says in the end"
        )
    return [parts]


def _turns_since_the_prompt(messages: Sequence[ModelMessage]) -> int:
    """The number of turns since the last user prompt."""
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
    """A turn's calls, with ids that are new to the conversation and the same in every run.

    Raises:
        UserError: If the agent has no such tool.
    """
    there = [tool.name for tool in (*info.function_tools, *info.output_tools)]
    for part in turn:
        if part.tool_name not in there:
            raise UserError(
                f"The script calls the tool {part.tool_name!r}, which the agent does not have; its tools: "
                f"{', '.join(there) or 'none'}"
            )
    made = sum(isinstance(part, ToolCallPart) for message in messages for part in message.parts)
    return [
        replace(part, tool_call_id=f"{part.tool_name}-{number}") for number, part in enumerate(turn, start=made + 1)
    ]


def _returned(message: ModelMessage) -> str:
    """What the last tools returned."""
    said: list[Any] = [
        getattr(part, "content", None) for part in message.parts if part.part_kind in ("tool-return", "retry-prompt")
    ]
    return " | ".join(each if isinstance(each, str) else json.dumps(each, default=str) for each in said) or "(nothing)"
