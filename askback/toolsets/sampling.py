"""Completions for a server, from a Pydantic AI model."""

import base64
import binascii
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, Literal, cast

from mcp_types import (
    AudioContent,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ImageContent,
    SamplingMessageContentBlock,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)
from pydantic_ai import BinaryContent, RunContext, ToolDefinition
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import AgentRunError, RunCancelled, UsageLimitExceeded
from pydantic_ai.messages import (
    FilePart,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.settings import ModelSettings

from askback.agents.calls import Call
from askback.agents.decide import Decision, declined
from askback.agents.errors import AnsweringError
from askback.exchange.question import Question, offers_tools
from askback.toolsets.budgets import model_turn

STOP_REASONS = {"stop": "endTurn", "length": "maxTokens", "tool_call": "toolUse"}


SamplingChoice = Model | str
SamplingFrom = (
    SamplingChoice | Callable[[RunContext[Any], CreateMessageRequestParams], SamplingChoice | Awaitable[SamplingChoice]]
)


class SamplingError(ValueError):
    """A sampling request that cannot be fulfilled; the message says why, to whoever reads the tool's result."""


@dataclass(frozen=True)
class SamplingSource:
    """Answers sampling requests of a run from a model, its name, `"run"`, or a function that chooses one."""

    chosen: SamplingFrom

    async def __call__(self, call: Call, question: Question) -> Decision:
        """Have the model complete what the server asks.

        Raises:
            AnsweringError: If the function chose something other than a model.
            UsageLimitExceeded: If the run's limits are reached.
        """
        assert call.run is not None
        assert question.sampling is not None
        ctx: RunContext[Any] = call.run.context
        chosen = self.chosen
        if callable(chosen) and not isinstance(chosen, Model):
            choice = chosen(ctx, question.sampling)
            chosen = await choice if isawaitable(choice) else choice
        if not isinstance(cast("object", chosen), Model | str):
            raise AnsweringError(f"`sampling_from` returned {chosen!r}, not a model")
        model = cast("Model | str", ctx.model if chosen == "run" else chosen)
        try:
            return Decision.of(await sample(model, question.sampling, ctx), "sampling_from")
        except (UsageLimitExceeded, RunCancelled):
            raise
        except SamplingError as error:
            return declined(question, "sampling_from", f"refused: {error}")
        except AgentRunError as error:
            return declined(question, "sampling_from", f"refused: the model failed: {error}")


async def sample(
    model: Model | str, params: CreateMessageRequestParams, ctx: RunContext[Any] | None
) -> CreateMessageResult | CreateMessageResultWithTools:
    """Have `model` complete a sampling request, within the run's limits and counted in its usage.

    Raises:
        SamplingError: If the request or the model's response cannot be translated.
        UsageLimitExceeded: If the run's limits are reached.
    """
    chosen = infer_model(model)
    messages = to_messages(params)
    if ctx is None:
        return to_result(await _request(chosen, messages, params), params, chosen.model_name)
    async with model_turn(ctx):
        if ctx.usage_limits is not None:
            ctx.usage_limits.check_before_request(ctx.usage)
        response = await _request(chosen, messages, params)
        ctx.usage.requests += 1
        ctx.usage.incr(response.usage)
        if ctx.usage_limits is not None:
            ctx.usage_limits.check_tokens(ctx.usage)
    return to_result(response, params, chosen.model_name)


async def _request(model: Model, messages: Sequence[ModelMessage], params: CreateMessageRequestParams) -> ModelResponse:
    settings = ModelSettings(max_tokens=params.max_tokens)
    if params.temperature is not None:
        settings["temperature"] = params.temperature
    if params.stop_sequences is not None:
        settings["stop_sequences"] = params.stop_sequences
    if params.tool_choice is not None and params.tool_choice.mode is not None:
        settings["tool_choice"] = params.tool_choice.mode
    tools = [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.input_schema)
        for tool in params.tools or ()
    ]
    required = params.tool_choice is not None and params.tool_choice.mode == "required"
    parameters = ModelRequestParameters(function_tools=tools, allow_text_output=not required)
    return await model_request(model, messages, model_settings=settings, model_request_parameters=parameters)


def to_messages(params: CreateMessageRequestParams) -> list[ModelMessage]:
    """A server's messages, as Pydantic AI's.

    Raises:
        SamplingError: If one cannot be read.
    """
    messages: list[ModelMessage] = []
    if params.system_prompt is not None:
        messages.append(ModelRequest(parts=[SystemPromptPart(params.system_prompt)]))
    tools: dict[str, str] = {}
    for message in params.messages:
        if message.role == "user":
            request: list[ModelRequestPart] = [_request_part(block, tools) for block in message.content_as_list]
            if messages and isinstance(messages[-1], ModelRequest):
                messages[-1] = ModelRequest(parts=[*messages[-1].parts, *request])
            else:
                messages.append(ModelRequest(parts=request))
        else:
            messages.append(ModelResponse(parts=[_response_part(block, tools) for block in message.content_as_list]))
    return messages


def _request_part(block: SamplingMessageContentBlock, tools: dict[str, str]) -> ModelRequestPart:
    if isinstance(block, TextContent):
        return UserPromptPart(block.text)
    if isinstance(block, ImageContent | AudioContent):
        return UserPromptPart([_binary(block)])
    if isinstance(block, ToolResultContent) and block.tool_use_id in tools:
        outcome: Literal["failed", "success"] = "failed" if block.is_error else "success"
        content: Any = block.structured_content
        if content is None:
            texts = [part.text for part in block.content if isinstance(part, TextContent)]
            files = [_binary(part) for part in block.content if isinstance(part, ImageContent | AudioContent)]
            content = [*texts, *files] if files else "\n".join(texts)
        return ToolReturnPart(tools[block.tool_use_id], content, tool_call_id=block.tool_use_id, outcome=outcome)
    raise SamplingError("a user's message has a tool's result without its call, or a tool's call")


def _response_part(block: SamplingMessageContentBlock, tools: dict[str, str]) -> ModelResponsePart:
    if isinstance(block, TextContent):
        return TextPart(block.text)
    if isinstance(block, ImageContent | AudioContent):
        return FilePart(_binary(block))
    if isinstance(block, ToolUseContent):
        tools[block.id] = block.name
        return ToolCallPart(block.name, block.input, tool_call_id=block.id)
    raise SamplingError("an assistant's message has a tool's result")


def _binary(block: ImageContent | AudioContent) -> BinaryContent:
    try:
        return BinaryContent(base64.b64decode(block.data, validate=True), media_type=block.mime_type)
    except binascii.Error:
        raise SamplingError(f"the {block.type} is not valid base64") from None


def to_result(
    response: ModelResponse, params: CreateMessageRequestParams, model: str
) -> CreateMessageResult | CreateMessageResultWithTools:
    """A model's response, as the result that the server receives.

    Raises:
        SamplingError: If the response contains something that the result cannot carry.
    """
    blocks: list[SamplingMessageContentBlock] = [
        block for part in response.parts if (block := _block(part)) is not None
    ]
    stop_reason = STOP_REASONS.get(response.finish_reason or "", response.finish_reason)
    if offers_tools(params):
        return CreateMessageResultWithTools(role="assistant", content=blocks, model=model, stop_reason=stop_reason)
    plain = [block for block in blocks if isinstance(block, TextContent | ImageContent | AudioContent)]
    texts = [block.text for block in plain if isinstance(block, TextContent)]
    if len(plain) != len(blocks):
        raise SamplingError("the model called a tool that it was not offered")
    content = TextContent(text="".join(texts)) if len(texts) == len(plain) else plain[0]
    return CreateMessageResult(role="assistant", content=content, model=model, stop_reason=stop_reason)


def _block(part: ModelResponsePart) -> TextContent | ImageContent | AudioContent | ToolUseContent | None:
    if isinstance(part, TextPart):
        return TextContent(text=part.content)
    if isinstance(part, ToolCallPart):
        return ToolUseContent(id=part.tool_call_id, name=part.tool_name, input=part.args_as_dict())
    if isinstance(part, FilePart):
        kind = ImageContent if part.content.is_image else AudioContent
        return kind(data=part.content.base64, mime_type=part.content.media_type)
    return None
