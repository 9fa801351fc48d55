"""`askback graph`: resolvers, drawn."""

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import CommandLine

SHOP = "tests.cli.shop:mcp"


def test_the_tree_says_what_is_needed_shared_and_asked(cli: CommandLine) -> None:
    ran = cli("graph", SHOP)
    assert ran.code == 0
    assert ran.out == TREE


TREE = """\
order_book(title, copies)  at most 3 rounds of questions
├── cost from price
│   ├── stock from check_stock
│   │   └── title from the tool's arguments
│   └── who from customer
│       └── ctx from the context of the call
├── backorder from confirm_backorder
│   ├── may ask a person: Backorder
│   │   ├── confirm: boolean
│   │   └── tags?: some of gift | urgent
│   ├── title from the tool's arguments
│   └── stock from check_stock (see above)
├── address from shipping_address
│   ├── may ask a person: Address
│   │   ├── street: string
│   │   ├── country?: Germany | France | The Independent and Sovereign Republic of Somewhere
│   │   └── email: email
│   ├── who from customer (see above)
│   └── backorder takes the outcome of confirm_backorder (see above)
├── wrapping from gift
│   ├── may ask a person: Gift
│   │   └── wrap: boolean
│   ├── address from shipping_address (see above)
│   └── cost from price (see above)
├── review from opinion
│   ├── may ask a model
│   ├── title from the tool's arguments
│   └── roots from folders
│       └── may ask for the directories
└── a_parameter_with_a_name_that_does_not_fit_into_one_line from \
a_resolver_whose_name_is_so_much_longer_than_anybody_would_ever_want_to_read_or_write
    ├── does not say whether it asks
    └── stock from check_stock (see above)

look_up(title)  asks nothing
└── stock from check_stock
    └── title from the tool's arguments
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("no_color", "styled"), [("", True), ("1", False)])
def test_a_terminal_is_styled_unless_no_color_is_set(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, no_color: str, styled: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    cli("graph", SHOP)
    shown = terminal.getvalue()
    assert ("\x1b[" in shown) is styled
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert max(map(len, plain.splitlines())) <= 60
    assert "order_book(title, copies)" in plain


def test_chosen_tools_alone_are_drawn(cli: CommandLine) -> None:
    assert cli("graph", SHOP, "look_up", "hello").out == TREE.partition("\n\n")[2] + "\nhello()  asks nothing\n"


def test_an_unknown_tool_is_told_which_there_are(cli: CommandLine, folder: Path) -> None:
    ran = cli("graph", SHOP, "lookup")
    assert (ran.code, ran.err) == (
        2,
        "askback: 'tests.cli.shop:mcp' has no tool 'lookup'; did you mean look_up? "
        "Its tools: order_book, look_up, hello\n",
    )
    (folder / "bare.py").write_text("import fastmcp\nmcp = fastmcp.FastMCP('bare')\n")
    assert cli("graph", "bare.py").err == "askback: no tool of 'bare.py' has resolvers. It has no tools\n"


def test_json_says_everything(cli: CommandLine) -> None:
    order, look_up = json.loads(cli("graph", SHOP, "--format", "json").out)["tools"]
    assert look_up == {
        "tool": "look_up",
        "arguments": ["title"],
        "needs": [{"parameter": "stock", "resolver": 0, "takes": "value"}],
        "resolvers": [
            {
                "name": "check_stock",
                "key": "tests.cli.shop:check_stock",
                "arguments": ["title"],
                "contexts": [],
                "needs": [],
                "asks": [],
                "depth": 0,
                "rounds": 0,
            }
        ],
        "rounds": 0,
    }
    address = next(each for each in order["resolvers"] if each["name"] == "shipping_address")
    assert order["rounds"] == 3
    assert (address["depth"], address["rounds"]) == (2, 2)
    assert [each["takes"] for each in address["needs"]] == ["value", "outcome"]
    assert address["asks"][0]["whom"] == "person"
    assert address["asks"][0]["fields"][0] == {"name": "street", "type": "string", "required": True}


def test_mermaid_is_a_flowchart(cli: CommandLine) -> None:
    chart = cli("graph", SHOP, "-f", "mermaid").out.splitlines()
    assert chart[0] == "flowchart LR"
    assert '        tool0(["order_book<br/>title<br/>copies"]):::tool' in chart
    assert '        tool0_0["check_stock<br/>takes title"]' in chart
    assert '        tool0_3 -.->|"backorder"| tool0_4' in chart
    assert '        tool1_0 -->|"stock"| tool1' in chart
    assert any(
        line.startswith('        tool0_5{{"gift<br/>may ask a person: Gift<br/>wrap: boolean"}}:::person')
        for line in chart
    )


def test_mermaid_shows_what_it_would_read_as_its_own(cli: CommandLine, folder: Path) -> None:
    server = """
from typing import Annotated, Literal
from pydantic import BaseModel
from askback import Elicit, Resolve
from askback.integration import FastMCP
mcp = FastMCP("Odd")
class Odd(BaseModel):
    it: Literal['"', "`<b>&#'"]
def ask() -> Elicit[Odd]: ...
@mcp.tool
def odd(it: Annotated[Odd, Resolve(ask)]) -> str: ...
"""
    (folder / "oddities.py").write_text(server)
    assert "it: #quot; | #96;#lt;b#gt;#amp;#35;'" in cli("graph", "oddities.py", "-f", "mermaid").out


NAMES = """
from typing import Annotated
from askback import Resolve
from askback.integration import FastMCP
mcp = FastMCP("Names")
def look() -> int: ...
for name in ("%%{init: {'theme': 'forest'}}%%", "a\\x1b[2J\\x00b", "a\\r\\nb", "\\ufffe\\ud800"):
    @mcp.tool(name=name)
    def t(it: Annotated[int, Resolve(look)]) -> str: ...
"""


@pytest.fixture
def names(folder: Path) -> str:
    (folder / "names.py").write_text(NAMES)
    return "names.py"


def test_names_cannot_move_the_terminal(cli: CommandLine, names: str) -> None:
    shown = cli("graph", names).out
    assert shown.replace("\n", "").isprintable()
    assert "a?[2J?b()  asks nothing\n" in shown
    assert "a??b()  asks nothing\n" in shown


def test_names_are_no_directives_of_mermaid(cli: CommandLine, names: str) -> None:
    chart = cli("graph", names, "-f", "mermaid").out
    assert "%" not in chart
    assert "#37;#37;{init: {'theme': 'forest'}}#37;#37;" in chart
    assert '(["a?#9252;b"])' in chart
    assert chart.replace("\n", "").isprintable()


def test_the_output_can_be_a_file(cli: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "shop.mmd"
    ran = cli("graph", SHOP, "--format", "mermaid", "--output", str(path))
    assert (ran.code, ran.out) == (0, "")
    assert path.read_text() == cli("graph", SHOP, "-f", "mermaid").out


def test_a_tool_without_resolvers_is_drawn_alone(cli: CommandLine) -> None:
    chart = cli("graph", SHOP, "hello", "-f", "mermaid").out
    assert '        tool0(["hello"]):::tool\n    end\n' in chart


def test_an_output_that_cannot_be_written_is_a_sentence(cli: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "out.mmd"
    ran = cli("graph", SHOP, "--output", str(path))
    assert (ran.code, ran.err) == (2, f"askback: {str(path)!r} cannot be written: No such file or directory\n")


def test_a_refused_tool_is_a_sentence_with_its_line(cli: CommandLine, folder: Path) -> None:
    (folder / "refused.py").write_text(REFUSED)
    ran = cli("graph", "refused.py")
    assert ran.code == 2
    assert ran.err.startswith(f"askback: {folder / 'refused.py'}, line 10: Tool 'odd': parameter 'it', resolver 'ask'")


REFUSED = """
from typing import Annotated
from askback import Resolve
from askback.integration import FastMCP
mcp = FastMCP("Odd")

def ask(nobody: int) -> int:
    return nobody

@mcp.tool
def odd(it: Annotated[int, Resolve(ask)]) -> str:
    return ""
"""


def test_a_form_that_cannot_be_asked_is_still_drawn(cli: CommandLine, folder: Path) -> None:
    server = """
from typing import Annotated, Any
from pydantic import BaseModel
from askback import Elicit, Resolve
from askback.integration import FastMCP
mcp = FastMCP("Odd")
class Odd(BaseModel):
    it: dict[str, int]
def ask() -> Any:
    return Elicit("it?", Odd)
@mcp.tool
def odd(it: Annotated[Odd, Resolve(ask)]) -> str: ...
"""
    (folder / "unaskable.py").write_text(server)
    tool: dict[str, Any] = json.loads(cli("graph", "unaskable.py", "-f", "json").out)["tools"][0]
    assert tool["resolvers"][0]["asks"] == [{"whom": "person", "form": "Odd", "fields": []}]
