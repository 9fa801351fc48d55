"""`askback call`: call a tool, and answer what it asks at the terminal."""

import json
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import anyio
from cyclopts import Parameter
from fastmcp.client.client import CallToolResult
from mcp.shared.exceptions import MCPError
from mcp_types import Tool

from askback.agents import Accept, Answer, Console, Decline, Policy, PolicyError, Question, rules_from
from askback.agents.policies import first_answer
from askback.cli.console import output_console
from askback.cli.errors import CommandError, NoServerError
from askback.cli.servers import did_you_mean, server_named
from askback.testing import Conversation, ConversationError, ScriptedClient

NOBODY = "nobody"


def call(
    server: str,
    tool: str,
    /,
    *,
    arg: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    rules: Path | None = None,
    root: Annotated[tuple[Path, ...], Parameter(negative=())] = (),
    legacy: Annotated[bool, Parameter(negative=())] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Call a tool of a server, and answer what it asks at the terminal.

    What neither the rules nor the person at the terminal answers is declined. The exit code is 0 if the tool succeeds,
    1 if it fails, and 2 if it could not be called.

    Args:
        server: The server: module:attribute, path/to/file.py:attribute, a module or file with a server called mcp,
            server or app, a script to run (.py without a server in it, .js), or an address.
        tool: The tool to call.
        arg: An argument, as name=value; may be given several times. Values are JSON where the tool takes no text.
        rules: A TOML file of rules, which answer what they may before the terminal is asked.
        root: A directory that the server may be told of; may be given several times.
        legacy: Speak protocol 2025-11-25 instead of 2026-07-28.
        as_json: Print JSON for programs: the result, and every question with its answer.
    """
    logging.disable(logging.CRITICAL)  # what a tool fails with is in its result
    answers = _Answers(rules, root, sys.stderr if as_json else sys.stdout)
    client = ScriptedClient(_reachable(server), answers, mode="legacy" if legacy else "auto")

    async def call_and_show() -> int:
        result = await _result(client, server, tool, arg)
        return _Called(result, client.conversation, answers.names).shown(as_json=as_json)

    return anyio.run(call_and_show)


class _Answers:
    """The rules, then whoever is at the terminal, and at the end a no."""

    def __init__(self, rules: Path | None, roots: Sequence[Path], screen: Any) -> None:
        try:
            self._policies: list[Policy[Any]] = [rules_from(rules)] if rules is not None else []
        except (OSError, ValueError) as error:
            raise CommandError(f"the rules cannot be read: {error}") from error
        self._policies += [self._directories, Console(output=screen)]
        self._roots = roots
        self.names: dict[int, str] = {}
        """Who has answered each question."""

    async def __call__(self, ctx: None, question: Question) -> Answer:
        answer, name = await first_answer(self._policies, cast("Any", ctx), question) or (Decline(), NOBODY)
        self.names[id(question)] = name
        return answer

    def _directories(self, ctx: Any, question: Question) -> Accept | None:
        return Accept(self._roots) if question.kind == "roots" and self._roots else None


def _reachable(server: str) -> Any:
    """What a client connects to: an address, a script, or a server in this process."""
    if server.startswith(("http://", "https://")):
        return server
    path = Path(server)
    if path.suffix == ".js":
        if not path.is_file():
            raise CommandError(f"there is no file {server!r}")
        return path
    try:
        return server_named(server)[1]
    except NoServerError:
        if path.is_file():
            return path
        raise


async def _result(client: ScriptedClient, server: str, tool: str, given: Sequence[str]) -> CallToolResult:
    try:
        await client.__aenter__()
    except Exception as error:
        raise CommandError(f"{server!r} cannot be reached: {error}") from error
    try:
        tools = {each.name: each for each in await client.list_tools()}
        if tool not in tools:
            there = f"; its tools: {', '.join(tools)}" if tools else "; it has no tools"
            raise CommandError(f"{server!r} has no tool {tool!r}{did_you_mean(tool, tools)}{there}")
        arguments = _arguments(tools[tool], given)
        return await client.call_tool(tool, arguments, raise_on_error=False)
    except (MCPError, ConversationError, PolicyError) as error:
        raise CommandError(f"{tool!r} cannot be called: {error}") from error
    finally:
        await client.__aexit__(None, None, None)


def _arguments(tool: Tool, given: Sequence[str]) -> dict[str, Any]:
    """What was given, as the types that the tool takes."""
    fields: Mapping[str, Mapping[str, Any]] = tool.input_schema.get("properties", {})
    arguments: dict[str, Any] = {}
    for each in given:
        name, separator, text = each.partition("=")
        if not separator:
            raise CommandError(f"an argument is given as name=value, not as {each!r}")
        if name not in fields:
            there = f"; it takes {', '.join(fields)}" if fields else "; it takes none"
            raise CommandError(f"{tool.name!r} takes no argument {name!r}{did_you_mean(name, fields)}{there}")
        arguments[name] = _value(text, fields[name])
    return arguments


def _value(text: str, field: Mapping[str, Any]) -> Any:
    if field.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


@dataclass(frozen=True)
class _Called:
    """How a call went, and who answered which of its questions."""

    result: CallToolResult
    conversation: Conversation
    names: Mapping[int, str]

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
            asked = exchange.question.message or f"for {exchange.question.kind}"
            content = f" {json.dumps(exchange.content)}" if exchange.content is not None else ""
            by = self.names[id(exchange.question)]
            console.print(f"asked: {asked}\n  {exchange.action}{content}, by {by}", markup=False)
        console.print(self._text, style="red" if self.result.is_error else "", markup=False)

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
                    "by": self.names[id(exchange.question)],
                }
                for exchange in self.conversation.exchanges
            ],
        }
