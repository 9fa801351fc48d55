"""`askback call`: list a server's tools, or call one and answer what it asks at the terminal."""

import json
import logging
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import anyio
import fastmcp
from cyclopts import Parameter
from cyclopts.validators import Number
from fastmcp.client.client import CallToolResult
from mcp.shared.exceptions import MCPError
from mcp_types import ContentBlock, TextContent, Tool

from askback.agents import Policy, rules_from
from askback.cli.answering import MAX_QUESTIONS, Answering, Directories, ModelCompletions
from askback.cli.arguments import arguments_for
from askback.cli.errors import CommandError, NoServerError
from askback.cli.listing import Resolved, print_tools
from askback.cli.screen import as_text, output_console
from askback.cli.servers import did_you_mean, inspected, server_named
from askback.clients import ConversationClient
from askback.exchange.text import quoted
from askback.exchange.transcript import Conversation, Exchange

T = TypeVar("T")

LOST_SESSION = (
    "the server does not know this session any more. If it has several workers, 2025-11-25 needs a load balancer that "
    "sends every request of a session to the same worker; without --legacy, any worker can answer"
)


def call(
    server: str,
    tool: str | None = None,
    /,
    *,
    arg: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    rules: Path | None = None,
    model: str | None = None,
    root: Annotated[tuple[Path, ...], Parameter(negative=())] = (),
    run: Annotated[bool, Parameter(negative=())] = False,
    timeout: Annotated[float, Parameter(validator=Number(gt=0))] = 30,
    legacy: Annotated[bool, Parameter(negative=())] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Call a tool of a server, and answer what it asks at the terminal. Without a tool, list the server's tools.

    A question that nobody answers is declined. The exit code is 0 if the tool succeeds, 1 if it fails, and 2 if it
    could not be called.

    Args:
        server: The server: a URL, module:attribute, path/to/file.py:attribute, a module or file with a server called
            mcp, server or app, or a .js file to run.
        tool: The tool to call.
        arg: An argument, as name=value; can be repeated. Values are JSON, unless the tool takes text.
        rules: A TOML file of rules, which are asked before the terminal.
        model: The model that answers sampling requests, as Pydantic AI names it, such as openai:gpt-5. Without one, you
            type what the model would say.
        root: A directory to tell the server of; can be repeated.
        run: Run the file as a program that serves over stdio, instead of importing it.
        timeout: The seconds that the server has to accept the connection and to list its tools. The call itself has no
            time limit.
        legacy: Use protocol 2025-11-25, even if the server supports a newer one.
        as_json: Print JSON for programs: the tools, or the result with every question and answer.
    """
    logging.disable(logging.CRITICAL)  # the result says what failed
    if tool is None and arg:
        raise CommandError("--arg needs a tool to call")
    policies: list[Policy[Any]] = [*_rules(rules), Directories(root), *([ModelCompletions(model)] if model else [])]
    target = _target(server, run=run)

    async def list_or_call() -> int:
        answering = Answering(server, policies, sys.stderr if as_json else sys.stdout)
        client = ConversationClient(
            target.connects_to,
            answering.reply,
            mode="legacy" if legacy else "auto",
            input_required_max_rounds=MAX_QUESTIONS + 1,
        )
        async with _connected(client, server, timeout) as tools:
            if tool is None:
                print_tools(tools, await target.resolved(), as_json=as_json)
                return 0
            result = await _result(client, answering, _named(tool, tools, server), arg)
        return _Called(result, client.conversation).shown(as_json=as_json)

    return anyio.run(list_or_call)


@dataclass(frozen=True)
class _Target:
    """What a client connects to, and the resolved parameters of its tools, if they are known."""

    connects_to: Any
    resolved: Callable[[], Awaitable[Resolved]]


def _target(server: str, *, run: bool) -> _Target:
    """The URL, program or server in this process that `server` names."""
    if server.startswith(("http://", "https://")):
        return _Target(server, _unknown)
    if run or server.endswith(".js"):
        if not Path(server).is_file():
            raise CommandError(f"there is no file {server!r}")
        return _Target(Path(server), _unknown)
    try:
        module, found = server_named(server)
    except NoServerError as none:
        raise CommandError(f"{none}; if it is a program, use --run") from none
    if not isinstance(found, fastmcp.FastMCP):
        return _Target(found, _unknown)
    local = found

    async def resolved() -> Resolved:
        return {
            each.name: tuple(link.name for link in each.resolved.links)
            for each in (await inspected(module, local)).tools
        }

    return _Target(local, resolved)


async def _unknown() -> Resolved:
    return {}


def _rules(path: Path | None) -> list[Policy[Any]]:
    try:
        return [rules_from(path)] if path is not None else []
    except (OSError, ValueError) as error:
        raise CommandError(f"the rules cannot be read: {error}") from error


@asynccontextmanager
async def _connected(client: ConversationClient, server: str, seconds: float) -> AsyncGenerator[list[Tool]]:
    """The server's tools, for as long as the client is connected."""
    with _explained(f"{server!r} cannot be reached"):
        await _in_time(client.__aenter__, seconds)
    try:
        with _explained(f"{server!r} cannot be reached"):
            tools = await _in_time(client.list_tools, seconds)
        yield tools
    finally:
        # The call is over: what fails now does not matter to it.
        with suppress(Exception), anyio.move_on_after(seconds):
            await client.__aexit__(None, None, None)  # pyright: ignore[reportUnknownMemberType]


def _named(name: str, tools: Sequence[Tool], server: str) -> Tool:
    there = {tool.name: tool for tool in tools}
    if name not in there:
        others = f"; its tools: {', '.join(there)}" if there else "; it has no tools"
        raise CommandError(f"{server!r} has no tool {name!r}{did_you_mean(name, there)}{others}")
    return there[name]


async def _result(client: ConversationClient, answering: Answering, tool: Tool, given: Sequence[str]) -> CallToolResult:
    arguments = arguments_for(tool, given)
    with _explained(f"{tool.name!r} cannot be called"), answering.scope:
        try:
            return await client.call_tool(tool.name, arguments, raise_on_error=False)
        except MCPError as error:
            if not any(_is_refused(each) for each in client.conversation.exchanges):
                raise
            content: list[ContentBlock] = [TextContent(text=str(error))]
            return CallToolResult(content=content, structured_content=None, meta=None, is_error=True)
    raise CommandError(f"the call of {tool.name!r} was ended: {answering.ended}")


def _is_refused(exchange: Exchange) -> bool:
    """Whether sampling or roots were declined, which rounds can only do with an error."""
    return exchange.question.kind != "elicitation" and exchange.action == "decline"


async def _in_time(ask: Callable[[], Awaitable[T]], seconds: float) -> T:
    try:
        with anyio.fail_after(seconds):
            return await ask()
    except TimeoutError:
        raise TimeoutError(f"no response within {seconds:g} seconds") from None


@contextmanager
def _explained(what: str) -> Generator[None]:
    """Turn whatever goes wrong with a server into a sentence."""
    try:
        yield
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise CommandError(f"{what}: {LOST_SESSION if _lost_session(error) else reason}") from error


def _lost_session(error: Exception) -> bool:
    # The protocol has no code for it: these are the messages of the SDK's server and client.
    return isinstance(error, MCPError) and str(error) in ("Session not found", "Session terminated")


@dataclass(frozen=True)
class _Called:
    """How a call went."""

    result: CallToolResult
    conversation: Conversation

    def shown(self, *, as_json: bool) -> int:
        """Print it, and return the exit code."""
        if as_json:
            sys.stdout.write(json.dumps(self._as_json(), indent=2) + "\n")
        else:
            self._print()
        return 1 if self.result.is_error else 0

    @property
    def _text(self) -> str:
        return "\n".join(getattr(each, "text", f"({each.type})") for each in self.result.content)

    def _print(self) -> None:
        console = output_console()
        for exchange in self.conversation.exchanges:
            question = exchange.question
            console.print("asked:" if question.message else f"asked for {question.kind}")
            for line in quoted(question.message, console.width):
                console.print(line)
            content = f" {json.dumps(exchange.content)}" if exchange.content is not None else ""
            console.print(f"  {exchange.action}{content}, by {exchange.answered_by}")
        if self.result.is_error:
            console.print(as_text(self._text), style="red")
        else:
            console.file.write(as_text(self._text) + "\n")

    def _as_json(self) -> dict[str, Any]:
        return {
            "failed": bool(self.result.is_error),
            "text": self._text,
            "result": self.result.structured_content,
            "asked": [
                {
                    "kind": exchange.question.kind,
                    "message": exchange.question.message,
                    "key": exchange.question.key,
                    "round": exchange.question.round,
                    "action": exchange.action,
                    "content": exchange.content,
                    "by": exchange.answered_by,
                }
                for exchange in self.conversation.exchanges
            ],
        }
