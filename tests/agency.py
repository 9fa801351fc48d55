"""The desk that agents call, and the questions it asks."""

from typing import Annotated, Any, Literal

import fastmcp
from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel, Field
from pydantic_ai import Agent, RunContext
from pydantic_ai.models import Model

from askback import Elicit, ListRoots, Resolve, Sample
from askback.agents import Question
from askback.integration import FastMCP
from askback.testing import calls
from askback.toolsets import ResolverToolset

Mode = Literal["auto", "legacy"]


class Scope(BaseModel):
    full: bool
    sku: str = Field(default="", max_length=10)


class Wrap(BaseModel):
    paper: Literal["red", "blue"]


async def ask_scope(order: str) -> Elicit[Scope]:
    return Elicit(f"Refund all of {order}?", Scope)


async def ask_wrap(scope: Annotated[Scope, Resolve(ask_scope)]) -> Elicit[Wrap]:
    return Elicit(f"Which paper, after {scope.full}?", Wrap)


async def second_opinion(order: str) -> Sample:
    message = SamplingMessage(role="user", content=TextContent(text=f"Is {order} odd?"))
    return Sample([message], max_tokens=20, system_prompt="Be brief", temperature=0.5, stop_sequences=["."])


async def list_roots() -> ListRoots:
    return ListRoots()


desk = FastMCP("a name of its own choosing")


@desk.tool
async def refund(order: str, scope: Annotated[Scope, Resolve(ask_scope)]) -> str:
    return f"refunded {order}, full={scope.full}, sku={scope.sku}"


@desk.tool
async def wrap(
    order: str, scope: Annotated[Scope, Resolve(ask_scope)], paper: Annotated[Wrap, Resolve(ask_wrap)]
) -> str:
    return f"wrapped {order} in {paper.paper}"


@desk.tool
async def judge(order: str, opinion: Annotated[CreateMessageResult, Resolve(second_opinion)]) -> str:
    return f"{order}: {getattr(opinion.content, 'text', opinion.content.type)}"


@desk.tool
async def browse(roots: Annotated[ListRootsResult, Resolve(list_roots)]) -> list[str]:
    return [str(root.uri) for root in roots.roots]


@desk.tool
async def plain(order: str) -> str:
    return f"plain {order}"


def toolset(server: Any = desk, mode: Mode = "auto", **options: Any) -> ResolverToolset[Any]:
    options.setdefault("id", "desk")
    return ResolverToolset(fastmcp.Client(server, mode=mode), **options)


def agent(toolset: Any, model: Model | None = None, **options: Any) -> Agent[Any, str]:
    return Agent(model or calls("refund", order="ORD-1"), toolsets=[toolset], **options)


class Script:
    """A policy that answers by what a message contains, and remembers what it was asked."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.asked: list[Question] = []
        self.contexts: list[RunContext[Any]] = []

    async def __call__(self, ctx: RunContext[Any], question: Question) -> Any:
        self.asked.append(question)
        self.contexts.append(ctx)
        for part, answer in self.answers.items():
            if part in question.message:
                return answer
        return None
