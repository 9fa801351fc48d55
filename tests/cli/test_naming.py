"""How a server is named, and the errors for names that do not work."""

from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine

SHOP = Path(__file__).with_name("shop.py")

SERVER = """
from typing import Annotated
from askback import Resolve
from askback.integration import FastMCP

def answer() -> int:
    return 42

{name} = FastMCP("Small")

@{name}.tool
def ask(it: Annotated[int, Resolve(answer)]) -> str:
    return str(it)
"""


def test_a_server_is_named_by_module_and_attribute(cli: CommandLine) -> None:
    assert "order_book(title, copies)" in cli("graph", "tests.cli.shop:mcp").out


def test_a_server_is_named_by_file_and_attribute(cli: CommandLine, folder: Path) -> None:
    assert "order_book(title, copies)" in cli("graph", f"{SHOP}:mcp").out


@pytest.mark.parametrize("name", ["mcp", "server", "app"])
def test_a_file_or_module_alone_has_a_server_of_a_usual_name(cli: CommandLine, folder: Path, name: str) -> None:
    (folder / f"alone_{name}.py").write_text(SERVER.format(name=name))
    assert "ask()" in cli("graph", f"alone_{name}.py").out
    assert "ask()" in cli("graph", f"alone_{name}").out


def test_the_current_folder_is_importable(cli: CommandLine, folder: Path) -> None:
    (folder / "beside.py").write_text(SERVER.format(name="mcp"))
    (folder / "around.py").write_text("from beside import mcp as mounted\n")
    assert "ask()" in cli("graph", "around:mounted").out


def test_a_file_may_be_called_like_a_module_that_is_imported_already(cli: CommandLine, folder: Path) -> None:
    (folder / "json.py").write_text(SERVER.format(name="mcp"))
    ran = cli("graph", "json.py", "-f", "json")
    assert ran.code == 0
    assert "ask" in ran.out


@pytest.mark.parametrize("make", ["def make():", "async def make():"])
def test_a_function_that_makes_a_server_is_called(cli: CommandLine, folder: Path, make: str) -> None:
    (folder / "factory.py").write_text(SERVER.format(name="inside") + f"\n{make}\n    return inside\n")
    assert "ask()" in cli("graph", "factory:make").out


def test_what_a_module_prints_stays_out_of_the_output(cli: CommandLine, folder: Path) -> None:
    (folder / "chatty.py").write_text("print('hello there')\n" + SERVER.format(name="mcp"))
    ran = cli("graph", "chatty.py", "--format", "json")
    assert ran.out.startswith("{")
    assert "hello there" in ran.err


def test_a_wrong_name_is_answered_with_the_right_ones(cli: CommandLine, folder: Path) -> None:
    (folder / "shops.py").write_text(SERVER.format(name="bookshop") + "STOCK = {}\ndef order(title): ...\n")
    said = {
        "shops:bookshp": "'shops' has no 'bookshp'; did you mean bookshop?",
        "shops:xyz": "'shops' has no 'xyz'; it has bookshop",
        "shops:STOCK": "'STOCK' of 'shops' is not a server but of type dict; it has bookshop",
        "shops:order": "'order' of 'shops' is not a server but of type function; it has bookshop",
        "shops.py": "'shops.py' has no server called mcp, server, app; it has bookshop",
        "shop:mcp": f"there is no module 'shop' in {folder} or on Python's path; did you mean shops?",
        "nothing.like.it:mcp": f"there is no module 'nothing' in {folder} or on Python's path",
        "shop.py": "there is no file 'shop.py'; did you mean shops.py?",
        "elsewhere/shops:mcp": "'elsewhere/shops' is not the name of a module; name a server as module:attribute or "
        "path/to/file.py:attribute",
        ":": "'' is not the name of a module; name a server as module:attribute or path/to/file.py:attribute",
    }
    for name, sentence in said.items():
        ran = cli("graph", name)
        assert (ran.code, ran.out, ran.err) == (2, "", f"askback: {sentence}\n")


def test_a_module_without_a_server_says_so(cli: CommandLine, folder: Path) -> None:
    (folder / "empty.py").write_text("")
    assert cli("check", "empty.py").err.endswith("; it has no server at all\n")


def test_a_module_that_fails_shows_its_own_error_and_line(cli: CommandLine, folder: Path) -> None:
    failing = {
        "broken": ("import json\n\njson.loads('{')\n", "JSONDecodeError"),
        "divides": ("x = 1\ny = x / 0\n", "ZeroDivisionError: division by zero"),
        "leaves": ("import sys\nsys.exit('no database')\n", "SystemExit: no database"),
        "unfinished": ("def f(:\n", "SyntaxError"),
        "needy": ("import not_installed_anywhere\n", "No module named 'not_installed_anywhere'"),
        "hidden": ("raise ModuleNotFoundError('hm')\n", "ModuleNotFoundError: hm"),
    }
    for name, (source, error) in failing.items():
        (folder / f"{name}.py").write_text(source)
        for typed in (f"{name}:mcp", f"{name}.py"):
            ran = cli("check", typed)
            assert ran.code == 2
            assert f"{typed.partition(':')[0]!r} fails when it is imported" in ran.err
            assert error in ran.err
            assert "Traceback" not in ran.err
    assert f"({folder / 'divides.py'}, line 2)" in cli("check", "divides.py").err
    assert f"({folder / 'unfinished.py'}, line 1)" in cli("check", "unfinished.py").err


@pytest.mark.parametrize("named", ["serving.py", "serving.py:mcp", "serving:mcp"])
def test_a_module_that_would_serve_when_it_is_imported_is_rejected(cli: CommandLine, folder: Path, named: str) -> None:
    (folder / "serving.py").write_text("import fastmcp\nmcp = fastmcp.FastMCP('serving')\nmcp.run()\n")
    ran = cli("check", named)
    assert ran.code == 2
    assert "serving.py, line 3): put that under if __name__ == '__main__':" in ran.err


def test_a_factory_that_fails_shows_its_own_error(cli: CommandLine, folder: Path) -> None:
    (folder / "factories.py").write_text("def make():\n    raise OSError('no disk')\n")
    ran = cli("graph", "factories:make")
    assert ran.err.startswith("askback: 'make' of 'factories' fails when it is called: OSError: no disk (")
    assert ran.err.endswith("factories.py, line 2)\n")


def test_an_sdk_server_is_rejected_with_the_reason(cli: CommandLine, folder: Path) -> None:
    (folder / "sdk.py").write_text("from mcp.server.mcpserver import MCPServer\nmcp = MCPServer('sdk')\n")
    assert "gives no access to the functions of its tools" in cli("graph", "sdk:mcp").err


def test_a_plain_server_with_resolved_tools_is_drawn(cli: CommandLine, folder: Path) -> None:
    plain = SERVER.format(name="mcp").replace(
        "askback.integration import FastMCP", "askback.integration import resolved"
    )
    plain = plain.replace("mcp = FastMCP", "import fastmcp\nmcp = fastmcp.FastMCP").replace(
        "@mcp.tool", "@mcp.tool\n@resolved"
    )
    (folder / "plainly.py").write_text(plain)
    assert "it from answer" in cli("graph", "plainly.py").out


MOUNTED = """
from fastmcp.server.providers.proxy import ProxyTool
from fastmcp.tools.tool_transform import ArgTransform
from fastmcp.tools import Tool
import fastmcp

middle = fastmcp.FastMCP("Middle")
middle.mount(inside, namespace="deep", tool_names={"ask": "wonder"})
mcp = fastmcp.FastMCP("Outside")
mcp.mount(middle, namespace="far")

@inside.tool(name="versioned", version="2")
def versioned(n: int, it: Annotated[int, Resolve(answer)]) -> str:
    return str(it)

@inside.tool(name="guarded", auth=lambda ctx: False)
def guarded(it: Annotated[int, Resolve(answer)]) -> str:
    return str(it)

class Elsewhere(Tool):
    async def run(self, arguments):
        raise NotImplementedError

mcp.add_tool(Elsewhere(name="elsewhere", parameters={}))
"""


def test_tools_of_mounted_servers_are_drawn_under_the_names_that_clients_see(cli: CommandLine, folder: Path) -> None:
    (folder / "mounted.py").write_text(SERVER.format(name="inside") + MOUNTED)
    ran = cli("graph", "mounted.py")
    assert [line for line in ran.out.splitlines() if line.endswith("asks nothing")] == [
        "far_deep_wonder()  asks nothing",
        "far_deep_versioned@2(n)  asks nothing",
        "far_deep_guarded()  asks nothing",
    ]
    assert "far_deep_versioned@2" in cli("graph", "mounted.py", "far_deep_versioned").out


def test_a_provider_that_fails_is_not_left_out_in_silence(cli: CommandLine, folder: Path) -> None:
    failing = """
from fastmcp.server.providers import Provider
class Failing(Provider):
    async def _list_tools(self):
        raise OSError("no network")
mcp.add_provider(Failing())
"""
    (folder / "provided.py").write_text(SERVER.format(name="mcp") + failing)
    ran = cli("check", "provided.py")
    assert ran.code == 2
    assert "the tools of 'provided.py' cannot be listed: OSError: no network" in ran.err


def test_a_url_can_only_be_called(cli: CommandLine) -> None:
    for command in ("graph", "check"):
        ran = cli(command, "http://localhost:8000/mcp")
        assert ran.code == 2
        assert "'http://localhost:8000/mcp' is a URL, which only `askback call` takes" in ran.err
