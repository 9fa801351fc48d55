"""`askback graph`: pictures of resolvers."""

import io
import json
import re
import sys
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import CommandLine

SHOP = "tests.cli.shop:mcp"
SVG = "{http://www.w3.org/2000/svg}"


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


def test_names_leave_a_picture_well_formed(cli: CommandLine, names: str) -> None:
    picture = ElementTree.fromstring(cli("graph", names, "-f", "svg").out)
    assert "a?[2J?b, a??b, ??" in (picture.findtext(f"{SVG}title") or "")


def numbers(element: ElementTree.Element, *names: str) -> list[float]:
    return [float(element.get(name, "nan")) for name in names]


@pytest.fixture
def picture(cli: CommandLine, tmp_path: Path) -> ElementTree.Element:
    path = tmp_path / "shop.svg"
    ran = cli("graph", SHOP, "--format", "svg", "--output", str(path))
    assert (ran.code, ran.out) == (0, "")
    return ElementTree.fromstring(path.read_text())


def boxes_of(group: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    found = [numbers(each, "x", "y", "width", "height") for each in group.findall(f"{SVG}rect")]
    return [(x, y, x + width, y + height) for x, y, width, height in found]


def test_no_box_of_the_picture_lies_on_another(picture: ElementTree.Element) -> None:
    groups = picture.findall(f"{SVG}g")
    assert [len(boxes_of(group)) for group in groups] == [10, 2]
    for group in groups:
        for (left, top, right, bottom), (x, y, x_end, y_end) in combinations(boxes_of(group), 2):
            assert right < x or x_end < left or bottom < y or y_end < top


def test_no_text_of_the_picture_leaves_its_box(picture: ElementTree.Element) -> None:
    widest_monospace = 0.61 * 12
    for group in picture.findall(f"{SVG}g"):
        for text in group.findall(f"{SVG}text"):
            x, y = numbers(text, "x", "y")
            end = x + len(text.text or "") * widest_monospace
            assert any(
                left < x and end < right and top < y - 9 and y < bottom for left, top, right, bottom in boxes_of(group)
            )


def points_of(path: ElementTree.Element) -> list[tuple[float, float]]:
    """The points that a line goes through, its curves by a few points of each."""
    points: list[tuple[float, float]] = []
    for command, given in re.findall(r"([MHC])([^MHC]*)", path.get("d", "")):
        values = [float(each) for each in given.split()]
        if command == "M":
            points.append((values[0], values[1]))
        elif command == "H":
            points.append((values[0], points[-1][1]))
        else:
            (x0, y0), (x1, y1, x2, y2, x3, y3) = points[-1], values
            for step in range(1, 21):
                t, u = step / 20, 1 - step / 20
                points.append(
                    (
                        u**3 * x0 + 3 * u * u * t * x1 + 3 * u * t * t * x2 + t**3 * x3,
                        u**3 * y0 + 3 * u * u * t * y1 + 3 * u * t * t * y2 + t**3 * y3,
                    )
                )
    return points


def test_lines_of_the_picture_go_from_box_to_box_and_through_none(picture: ElementTree.Element) -> None:
    for group in picture.findall(f"{SVG}g"):
        boxes = boxes_of(group)
        for path in group.findall(f"{SVG}path"):
            points = points_of(path)
            (x, y), (x_end, y_end) = points[0], points[-1]
            assert any(right == pytest.approx(x) and top < y < bottom for _, top, right, bottom in boxes)
            assert any(left == pytest.approx(x_end) and top < y_end < bottom for left, top, _, bottom in boxes)
            for (x0, y0), (x1, y1) in pairwise(points):
                middle = (x0 + x1) / 2, (y0 + y1) / 2
                assert not any(
                    left < middle[0] < right and top < middle[1] < bottom for left, top, right, bottom in boxes
                )


def test_the_picture_shows_outcomes_and_questions_differently_and_has_room_for_all(
    picture: ElementTree.Element,
) -> None:
    looks = [each.get("class") for each in picture.iter(f"{SVG}rect")]
    assert {"tool", "resolver", "person", "model", "directories", "anyone"} <= set(looks)
    assert [each.get("class") for each in picture.iter(f"{SVG}path")].count("line outcome") == 2
    width, height = numbers(picture, "width", "height")
    for text in picture.findall(f"{SVG}text"):
        x, y = numbers(text, "x", "y")
        assert x + len(text.text or "") * 0.61 * 12 < width
        assert y < height
    style = picture.findtext(f"{SVG}style") or ""
    assert "prefers-color-scheme: dark" in style


def test_a_picture_of_a_tool_without_resolvers_is_its_box(cli: CommandLine) -> None:
    picture = ElementTree.fromstring(cli("graph", SHOP, "hello", "-f", "svg").out)
    (group,) = picture.findall(f"{SVG}g")
    assert len(boxes_of(group)) == 1


def test_an_output_that_cannot_be_written_is_a_sentence(cli: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "out.svg"
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
