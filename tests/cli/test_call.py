"""`askback call`: a tool, called from the terminal."""

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from askback.testing.hosting import SelfHostedTransport
from tests.cli.conftest import CommandLine
from tests.testing.shop import mcp

SHOP = "tests.testing.shop:mcp"
ACCEPTS = """
[[rule]]
tool = "refund"
answer = "accept"
content = { full = true }
"""


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())


@pytest.mark.parametrize("generation", [[], ["--legacy"]], ids=["2026-07-28", "2025-11-25"])
def test_rules_answer_first(cli: CommandLine, tmp_path: Path, generation: list[str]) -> None:
    (tmp_path / "policy.toml").write_text(ACCEPTS)
    rules = ["--rules", str(tmp_path / "policy.toml")]
    ran = cli("call", SHOP, "refund", "--arg", "order=ORD-1", *rules, *generation)
    assert ran.code == 0
    assert ran.out == ('asked: Refund all of ORD-1?\n  accept {"full": true}, by Rules\nrefunded ORD-1, full=True\n')
    ran = cli("call", SHOP, "refund", "--arg", "order=ORD-1", "--json", *rules, *generation)
    answered = {"kind": "elicitation", "message": "Refund all of ORD-1?", "round": 1, "action": "accept"}
    key = None if generation else "tests.testing.shop:ask_scope"
    assert json.loads(ran.out) == {
        "failed": False,
        "text": "refunded ORD-1, full=True",
        "result": {"result": "refunded ORD-1, full=True"},
        "asked": [answered | {"key": key, "content": {"full": True}, "by": "Rules"}],
    }


def test_what_nobody_answers_is_declined_and_the_exit_code_tells(cli: CommandLine) -> None:
    ran = cli("call", SHOP, "refund", "--arg", "order=ORD-1")
    assert ran.code == 1
    assert "asked: Refund all of ORD-1?\n  decline, by nobody\n" in ran.out
    assert ran.out.endswith("could not resolve: elicitation was decline\n")
    assert ran.err == ""


def test_directories_are_told_of_only_when_given(cli: CommandLine, folder: Path) -> None:
    (folder / "roots.py").write_text(
        "from typing import Annotated\n"
        "from mcp_types import ListRootsResult\n"
        "from askback import ListRoots, Resolve\n"
        "from askback.integration import FastMCP\n"
        "mcp = FastMCP('roots')\n"
        "async def ask() -> ListRoots:\n"
        "    return ListRoots()\n"
        "@mcp.tool\n"
        "async def count(roots: Annotated[ListRootsResult, Resolve(ask)]) -> int:\n"
        "    return len(roots.roots)\n"
    )
    ran = cli("call", "roots.py", "count", "--root", "/srv", "--root", "/etc")
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "2")
    assert ran.out.startswith("asked: for roots\n")
    refused = cli("call", "roots.py", "count")
    assert refused.code == 2
    assert refused.err == "askback: 'count' cannot be called: The roots request was declined\n"


def test_arguments_become_what_the_tool_takes(cli: CommandLine, folder: Path) -> None:
    (folder / "kinds.py").write_text(
        "from askback.integration import FastMCP\n"
        "mcp = FastMCP('kinds')\n"
        "@mcp.tool\n"
        "async def show(number: int, text: str, many: list[str], loose: object = None) -> str:\n"
        "    return repr((number, text, many, loose))\n"
    )
    given = ["--arg", "number=3", "--arg", "text=3", "--arg", 'many=["a=b"]', "--arg", "loose=yes"]
    assert cli("call", "kinds", "show", *given).out == "(3, '3', ['a=b'], 'yes')\n"
    wrong = cli("call", "kinds", "show", "--arg", "number=x", "--arg", "text=", "--arg", "many=[]")
    assert wrong.code == 1
    assert "number" in wrong.out


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ([SHOP, "refnd"], "has no tool 'refnd'; did you mean refund?; its tools: refund, wrap, judge, plain"),
        ([SHOP, "plain", "--arg", "ordr=1"], "'plain' takes no argument 'ordr'; did you mean order?; it takes order"),
        ([SHOP, "plain", "--arg", "order"], "an argument is given as name=value, not as 'order'"),
        ([SHOP, "plain", "--rules", "nowhere.toml"], "the rules cannot be read: [Errno 2]"),
        (["tests.testing.shp:mcp", "plain"], "there is no module 'tests.testing.shp'"),
        (["http://127.0.0.1:9/mcp", "plain"], "'http://127.0.0.1:9/mcp' cannot be reached: "),
        (["nowhere.js", "plain"], "there is no file 'nowhere.js'"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_there(cli: CommandLine, command: list[str], sentence: str) -> None:
    ran = cli("call", *command)
    assert ran.code == 2
    assert ran.out == ""
    assert sentence in ran.err
    assert "Traceback" not in ran.err


def test_a_server_without_tools_says_so(cli: CommandLine, folder: Path) -> None:
    (folder / "bare.py").write_text("from askback.integration import FastMCP\nmcp = FastMCP('bare')\n")
    assert cli("call", "bare", "x").err == "askback: 'bare' has no tool 'x'; it has no tools\n"
    (folder / "alone.py").write_text(
        "from askback.integration import FastMCP\nmcp = FastMCP('alone')\n@mcp.tool\ndef x() -> int: return 1\n"
    )
    assert cli("call", "alone", "x", "--arg", "y=1").err == "askback: 'x' takes no argument 'y'; it takes none\n"


def test_the_sdks_own_server_is_called_too(cli: CommandLine, folder: Path) -> None:
    (folder / "sdk.py").write_text(
        "from mcp.server import MCPServer\nmcp = MCPServer('sdk')\n@mcp.tool()\ndef hello() -> str: return 'hi'\n"
    )
    assert cli("call", "sdk.py", "hello").out == "hi\n"


def test_a_script_without_a_server_in_it_is_run(cli: CommandLine, folder: Path) -> None:
    (folder / "script.py").write_text(
        "def main():\n"
        "    from mcp.server import MCPServer\n"
        "    server = MCPServer('script')\n"
        "    server.tool()(hello)\n"
        "    server.run()\n"
        "def hello() -> str:\n"
        "    return 'from another process'\n"
        "if __name__ == '__main__':\n"
        "    main()\n"
    )
    assert cli("call", "script.py", "hello").out == "from another process\n"
    (folder / "empty.py").write_text("")
    assert cli("call", "empty", "hello").err.endswith("there is no server in it\n")


def test_a_script_of_another_language_is_run(cli: CommandLine, folder: Path) -> None:
    (folder / "broken.js").write_text("process.exit(1)\n")
    assert "'broken.js' cannot be reached" in cli("call", "broken.js", "x").err


async def test_an_address_is_called() -> None:
    import anyio
    import fastmcp

    transport = SelfHostedTransport(mcp)
    async with fastmcp.Client(transport):
        command = [sys.executable, "-m", "askback.cli", "call", transport.url, "plain", "--arg", "order=ORD-1"]
        ran = await anyio.run_process(command, stdin=subprocess.DEVNULL)
    assert ran.stdout == b"plain ORD-1\n"


def test_the_person_at_the_terminal_answers() -> None:
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "askback.cli", "call", SHOP, "refund", "--arg", "order=ORD-1", "--json"]
    with subprocess.Popen(command, stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        os.write(master, b"a\nyes\n")
        out, err = process.communicate(timeout=60)
    os.close(slave)
    os.close(master)
    assert process.returncode == 0
    assert json.loads(out)["asked"][0]["by"] == "Console"
    assert json.loads(out)["text"] == "refunded ORD-1, full=True"
    assert "Refund all of ORD-1?" in err
