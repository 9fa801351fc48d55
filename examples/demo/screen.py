"""How the demo looks: in colour at a terminal, as plain text elsewhere or if `NO_COLOR` is set."""

import json
import os
from collections.abc import Mapping
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from askback.agents import Question
from askback.testing import ToolCall

WIDTH = 76
LABEL = 16
VERBS = {"accept": "accepts", "decline": "declines", "cancel": "cancels", "defer": "defers"}

PLAIN = bool(os.environ.get("NO_COLOR"))

console = Console(highlight=False, soft_wrap=True, color_system=None if PLAIN else "auto")


def title(text: str) -> None:
    """A new part of the story."""
    console.print()
    console.print(Text(text, "bold"))
    console.print(Text("─" * (WIDTH + 2), "dim"))


def line(label: str, text: str, style: str = "") -> None:
    """A step of the story, and who takes it."""
    console.print(Text.assemble((f"  {label:<{LABEL}}", "dim"), (text, style)))


def asked(question: Question) -> None:
    """A question, its round and its resolver."""
    line(f"round {question.round}" if question.key else "the call waits", f"{resolver(question)} asks", "bold magenta")
    line("", question.message, "magenta")


def answered(who: str, why: str, action: str, content: Mapping[str, Any] | None) -> None:
    """An answer, who gave it, and why."""
    line("", f"{who} {VERBS[action]}{given(content)}", "bold green" if action == "accept" else "bold red")
    line("", f"why: {why}", "green" if action == "accept" else "red")


def resolver(question: Question) -> str:
    """The name of the resolver that asks, which older connections do not send."""
    return question.key.rpartition(":")[2] if question.key else "the desk"


def given(content: Mapping[str, Any] | None) -> str:
    """The content of an answer."""
    return f" {json.dumps(content)}" if content else ""


def picture(call: ToolCall, caller: str = "agent", server: str = "refund desk") -> None:
    """A sequence diagram of the call, round by round."""
    console.print(Text(f"  {caller:<{WIDTH - len(server)}}{server}", "bold"))
    _arrow(f"{call.tool}({', '.join(call.arguments)})", "right", "cyan")
    for exchange in call.exchanges:
        question = exchange.question
        _arrow(f"round {question.round}: {resolver(question)} has a question", "left", "magenta")
        _arrow(f"{exchange.action}{given(exchange.content)}, by {exchange.answered_by}", "right", "green")
    _arrow(call.result or "", "left", "bold")


def _arrow(text: str, direction: Literal["left", "right"], style: str) -> None:
    inner = WIDTH - 2
    shown = text if len(text) <= inner - 2 else f"{text[: inner - 3]}…"
    padded = f" {shown:<{inner - 1}}" if direction == "right" else f"{shown:>{inner - 1}} "
    console.print(Text("  │").append(padded, style).append("│"))
    shaft = "─" * (inner - 1)
    console.print(Text(f"  ├{shaft}▶│" if direction == "right" else f"  │◀{shaft}┤", "dim"))
