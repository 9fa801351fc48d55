"""Tools that ask the caller's model before they act: for one word, and for a structured decision.

`Sample` asks the model of the caller, so the server needs no API key. With `tools=` the model answers by calling one of
them, and its arguments are structured data instead of text.
"""

from typing import Annotated

import fastmcp
from fastmcp.exceptions import ToolError
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    SamplingMessage,
    TextContent,
    Tool,
    ToolChoice,
    ToolUseContent,
)
from pydantic import BaseModel
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models import Model

from askback import Resolve, Sample
from askback.integration import FastMCP
from askback.testing import ScriptedModel, calls
from askback.toolsets import ResolverToolset
from examples.command_line import Options, expect, parser_for, run
from examples.narration import narrate, show_answer

mcp = FastMCP("Newsroom")
published: list[str] = []
filed: dict[str, list[str]] = {}


class Desk(BaseModel):
    """The desk that a letter belongs to."""

    name: str


async def review(text: str) -> Sample:
    """Ask for a second opinion, in one word."""
    asked = f"May this be published? Say yes or no, nothing else: {text}"
    return Sample([SamplingMessage(role="user", content=TextContent(text=asked))], max_tokens=10)


async def choose_desk(letter: str) -> Sample:
    """Ask for a decision, through a tool that the model must call."""
    asked = f"File this letter under a desk, sports or politics: {letter}"
    return Sample(
        [SamplingMessage(role="user", content=TextContent(text=asked))],
        max_tokens=100,
        tools=[Tool(name="file_under", input_schema=Desk.model_json_schema())],
        tool_choice=ToolChoice(mode="required"),
    )


@mcp.tool
async def publish(text: str, opinion: Annotated[CreateMessageResult, Resolve(review)]) -> str:
    """Publish a text, if a second opinion agrees."""
    word = opinion.content.text if isinstance(opinion.content, TextContent) else ""
    if not word.lower().startswith("yes"):
        raise ToolError(f"Not published: the second opinion was {word!r}.")
    published.append(text)
    return f"Published: the second opinion was {word!r}."


@mcp.tool
async def file_letter(letter: str, choice: Annotated[CreateMessageResultWithTools, Resolve(choose_desk)]) -> str:
    """File a letter to the editor."""
    for block in choice.content_as_list:
        if isinstance(block, ToolUseContent):
            desk = Desk.model_validate(block.input)
            filed.setdefault(desk.name, []).append(letter)
            return f"Filed under {desk.name}."
    raise ToolError("The model did not choose a desk.")


def second_model(ctx: RunContext[object], request: CreateMessageRequestParams) -> Model:
    """The model for a request, here a scripted one; `sampling_from="run"` uses the run's own."""
    if request.tools:
        return calls("file_under", name="sports")
    return ScriptedModel(says="no" if "idiots" in str(request.messages) else "yes")


async def story(options: Options) -> None:
    """Publish a fair text, fail to publish an unfair one, and file a letter."""
    client = fastmcp.Client(mcp, mode=options.mode)
    sampling = "run" if options.model else second_model
    toolset = ResolverToolset[object](client, id="newsroom", sampling_from=sampling, on_answer=show_answer)
    fair, unfair, letter = "The bridge opens in May.", "The voters are idiots.", "The referee was blind."
    scripted = ScriptedModel(
        ToolCallPart("publish", {"text": fair}),
        ToolCallPart("publish", {"text": unfair}),
        ToolCallPart("file_letter", {"letter": letter}),
        says="One is published, one is not, and the letter is filed.",
    )
    agent = Agent(options.model or scripted, toolsets=[toolset])
    async with agent:
        print(f"On protocol {client.protocol_version}\n")
        prompt = f"Publish {fair!r}, then publish {unfair!r}, each as it is and once; then file the letter {letter!r}."
        result = await agent.run(prompt, event_stream_handler=narrate)
    print(f"The agent says: {result.output}")
    print(f"\nPublished: {published}\nFiled:     {filed}")
    print(f"The run made {result.usage.requests} requests to models, second opinions included.")
    expect((published, filed), ([fair], {"sports": [letter]}))


if __name__ == "__main__":
    run(parser_for("second_opinion", __doc__, model=True), story)
