"""A server that asks every kind of question, for tests of the test kit."""

from typing import Annotated, Any, Literal

from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel

from askback import Elicit, ListRoots, Resolve, Sample
from askback.integration import FastMCP


class Scope(BaseModel):
    full: bool


class Paper(BaseModel):
    paper: Literal["red", "blue"]


async def ask_scope(order: str) -> Elicit[Scope]:
    return Elicit(f"Refund all of {order}?", Scope)


async def ask_paper(scope: Annotated[Scope, Resolve(ask_scope)]) -> Elicit[Paper]:
    return Elicit("Which paper?", Paper)


async def ask_note() -> Elicit[Paper]:
    return Elicit("Which note?", Paper)


async def opinion(order: str) -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(text=f"Is {order} odd?"))], max_tokens=9)


async def directories() -> ListRoots:
    return ListRoots()


def shop(scope: Any = ask_scope, paper: Any = ask_paper) -> FastMCP[Any]:
    server = FastMCP("shop")

    @server.tool
    async def refund(order: str, scope: Annotated[Scope, Resolve(scope)]) -> str:
        return f"refunded {order}, full={scope.full}"

    @server.tool
    async def wrap(
        order: str,
        scope: Annotated[Scope, Resolve(scope)],
        paper: Annotated[Paper, Resolve(paper)],
        note: Annotated[Paper, Resolve(ask_note)],
    ) -> str:
        return f"wrapped {order} in {paper.paper}, with a {note.paper} note"

    @server.tool
    async def judge(
        opinion: Annotated[CreateMessageResult, Resolve(opinion)],
        roots: Annotated[ListRootsResult, Resolve(directories)],
        order: str,
    ) -> str:
        return f"{getattr(opinion.content, 'text', '')} {[str(root.uri) for root in roots.roots]}"

    @server.tool
    async def plain(order: str) -> str:
        return f"plain {order}"

    return server


mcp = shop()
