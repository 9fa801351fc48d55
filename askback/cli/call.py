"""`askback call`: call a tool, and answer what it asks at the terminal."""

import json
import logging
import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import anyio
from cyclopts import Parameter
from cyclopts.validators import Number
from fastmcp.client.client import CallToolResult
from mcp.shared.exceptions import MCPError
from mcp_types import ContentBlock, TextContent
from typing_extensions import override

from askback.agents import Accept, Answer, Cancel, Console, Decline, Policy, Question, rules_from
from askback.agents.policies import first_answer, name_of
from askback.cli.arguments import arguments_for
from askback.cli.console import as_text, output_console
from askback.cli.errors import CommandError, NoServerError
from askback.cli.scripts import is_script
from askback.cli.servers import USUAL_NAMES, did_you_mean, server_named
from askback.exchange.text import quoted
from askback.testing import Conversation, ConversationError, Exchange, ScriptedClient, ToolCall
from askback.testing.scripts import Script

T = TypeVar("T")

NOBODY = "nobody"
NO_RUN: Any = None
"""The run that policies are given: there is none."""

MOST_QUESTIONS = 100
MOST_CANCELLED = 3
"""How often in a row somebody at the terminal has to want out of a question, to get out of the call."""


def call(
    server: str,
    tool: str,
    /,
    *,
    arg: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    rules: Path | None = None,
    root: Annotated[tuple[Path, ...], Parameter(negative=())] = (),
    timeout: Annotated[float, Parameter(validator=Number(gt=0))] = 30,
    legacy: Annotated[bool, Parameter(negative=())] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Call a tool of a server, and answer what it asks at the terminal.

    What neither the rules nor the person at the terminal answers is declined. The exit code is 0 if the tool succeeds,
    1 if it fails, and 2 if it could not be called.

    Args:
        server: The server: module:attribute, path/to/file.py:attribute, a module or file with a server called mcp,
            server or app, a script to run (.py that serves by itself, .js), or an address.
        tool: The tool to call.
        arg: An argument, as name=value; may be given several times. Values are JSON where the tool takes no text.
        rules: A TOML file of rules, which answer what they may before the terminal is asked.
        root: A directory that the server may be told of; may be given several times.
        timeout: How many seconds the server has to let us connect, and to tell its tools. The call may take as long as
            it likes.
        legacy: Speak protocol 2025-11-25, even where the server speaks a newer one.
        as_json: Print JSON for programs: the result, and every question with its answer.
    """
    logging.disable(logging.CRITICAL)  # what a tool fails with is in its result
    reachable = _reachable(server)

    async def call_and_show() -> int:
        answers = _Answers(server, rules, root, sys.stderr if as_json else sys.stdout)
        mode = "legacy" if legacy else "auto"
        client = ScriptedClient(reachable, answers, mode=mode, input_required_max_rounds=MOST_QUESTIONS + 1)
        result = await _result(client, answers, server, tool, arg, timeout)
        return _Called(result, client.conversation).shown(as_json=as_json)

    return anyio.run(call_and_show)


class _Answers(Script):
    """The rules, then whoever is at the terminal, and at the end a no; until a server has asked enough."""

    def __init__(self, server: str, rules: Path | None, roots: Sequence[Path], screen: Any) -> None:
        try:
            self._policies: list[Policy[Any]] = [rules_from(rules)] if rules is not None else []
        except (OSError, ValueError) as error:
            raise CommandError(f"the rules cannot be read: {error}") from error
        self._console = Console(output=screen)
        self._policies += [_Directories(roots), self._console]
        self._server = server
        self._asked = 0
        self._cancelled_in_a_row = 0
        self.until_enough = anyio.CancelScope()
        """The time in which questions are answered."""
        self.enough = ""
        """Why that is over, once it is."""

    @override
    async def reply(self, call: ToolCall, question: Question) -> tuple[Answer, str]:
        self._asked += 1
        if self._asked > MOST_QUESTIONS:
            self._end(f"it has asked {MOST_QUESTIONS} questions, and goes on")
        if self.enough:
            return Cancel(), NOBODY
        known = replace(question, server=self._server)
        answer, name = await first_answer(self._policies, NO_RUN, known) or (Decline(), NOBODY)
        at_the_terminal = isinstance(answer, Cancel) and name == name_of(self._console)
        self._cancelled_in_a_row = self._cancelled_in_a_row + 1 if at_the_terminal else 0
        if self._cancelled_in_a_row == MOST_CANCELLED:
            self._end(f"{MOST_CANCELLED} of its questions were cancelled, one after another")
        return answer, name

    @override
    def unused(self) -> list[str]:
        return []

    def _end(self, reason: str) -> None:
        self.enough = reason
        self.until_enough.cancel()


class _Directories:
    """The directories that a server may be told of."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self.__name__ = "--root"
        self._roots = roots

    def __call__(self, ctx: Any, question: Question) -> Accept | None:
        return Accept(self._roots) if question.kind == "roots" and self._roots else None


def _reachable(server: str) -> Any:
    """What a client connects to: an address, a script, or a server in this process."""
    if server.startswith(("http://", "https://")):
        return server
    path = Path(server)
    if path.suffix == ".js" and not path.is_file():
        raise CommandError(f"there is no file {server!r}")
    if path.suffix == ".js" or (path.suffix == ".py" and is_script(path, USUAL_NAMES)):
        return path
    try:
        return server_named(server)[1]
    except NoServerError:
        if path.is_file():
            return path
        raise


async def _result(
    client: ScriptedClient, answers: _Answers, server: str, tool: str, given: Sequence[str], patience: float
) -> CallToolResult:
    with _told(f"{server!r} cannot be reached"):
        await _in_time(client.__aenter__, patience)
    try:
        with _told(f"{server!r} cannot be reached"):
            tools = {each.name: each for each in await _in_time(client.list_tools, patience)}
        if tool not in tools:
            there = f"; its tools: {', '.join(tools)}" if tools else "; it has no tools"
            raise CommandError(f"{server!r} has no tool {tool!r}{did_you_mean(tool, tools)}{there}")
        arguments = arguments_for(tools[tool], given)
        with _told(f"{tool!r} cannot be called"), answers.until_enough:
            try:
                return await client.call_tool(tool, arguments, raise_on_error=False)
            except MCPError as error:
                if not any(_is_refused(each) for each in client.conversation.exchanges):
                    raise
                content: list[ContentBlock] = [TextContent(text=str(error))]
                return CallToolResult(content=content, structured_content=None, meta=None, is_error=True)
        raise CommandError(f"the call of {tool!r} was ended: {answers.enough}")
    finally:
        # What goes wrong now says nothing of a call that is over.
        with suppress(Exception), anyio.move_on_after(patience):
            await client.__aexit__(None, None, None)


def _is_refused(exchange: Exchange) -> bool:
    """Whether it is a no that in rounds has no other way than an error: to sampling, or to roots."""
    return exchange.question.kind != "elicitation" and exchange.action == "decline"


async def _in_time(ask: Callable[[], Awaitable[T]], seconds: float) -> T:
    try:
        with anyio.fail_after(seconds):
            return await ask()
    except TimeoutError:
        raise TimeoutError(f"it has not answered for {seconds:g} seconds") from None


@contextmanager
def _told(what: str) -> Generator[None]:
    """Tell of whatever goes wrong with a server in a sentence."""
    try:
        yield
    except ConversationError as error:
        raise CommandError(f"{what}: {error.reason}") from error
    except Exception as error:
        raise CommandError(f"{what}: {str(error) or type(error).__name__}") from error


@dataclass(frozen=True)
class _Called:
    """How a call went."""

    result: CallToolResult
    conversation: Conversation

    def shown(self, *, as_json: bool) -> int:
        """Print it. The exit code says whether the tool has failed."""
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
                console.print(line, markup=False, highlight=False)
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
