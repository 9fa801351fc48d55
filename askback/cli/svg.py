"""Graphs as a picture."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

from rich.cells import cell_len, chop_cells

from askback.agents.console import printable
from askback.cli.graphs import WORDS, Link, Resolver, ToolGraph
from askback.cli.layout import Layout, Slot, layout_of

MARGIN = 24
PADDING = 12
LINE = 18
CELL = 7.6
"""The width of a character. Monospaced fonts are at most 0.61 of their size wide, which is 12 here; this has slack."""

CELLS = 34
"""The longest line in a box."""

LINES = {"line": "takes the value", "line outcome": "takes the outcome: accepted, declined or cancelled"}
LEGEND_INDENT = 34

STYLE = """\
.page { fill: #ffffff }
text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #1f2328 }
.heading { font-size: 15px; font-weight: bold } .name { font-weight: bold } .dim { fill: #59636e }
rect { stroke-width: 1.2 }
.resolver { fill: #f6f8fa; stroke: #afb8c1 } .tool { fill: #ddf4ff; stroke: #0969da; stroke-width: 2 }
.person { fill: #fff3cd; stroke: #9a6700; stroke-width: 2 } .model { fill: #efe6ff; stroke: #8250df; stroke-width: 2 }
.directories { fill: #dcf5e3; stroke: #1a7f37; stroke-width: 2 }
.anyone { fill: #f6f8fa; stroke: #9a6700; stroke-width: 2; stroke-dasharray: 5 4 }
.line { fill: none; stroke: #818b98; stroke-width: 1.5 } .outcome { stroke-dasharray: 6 4 } .head { fill: #818b98 }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117 } text { fill: #f0f6fc } .dim { fill: #9198a1 }
.resolver { fill: #161b22; stroke: #4c545e } .tool { fill: #0c2d4d; stroke: #4493f8 }
.person { fill: #3a2c07; stroke: #d29922 } .model { fill: #2a1d4a; stroke: #ab7df8 }
.directories { fill: #0f3320; stroke: #3fb950 } .anyone { fill: #161b22; stroke: #d29922 }
.line { stroke: #6e7681 } .head { fill: #6e7681 }
}
"""


@dataclass
class Box:
    """A tool or a resolver: its lines of text, and the lines at which others come in."""

    look: str
    lines: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Text, and how it looks."""
    ports: dict[str, int] = field(default_factory=dict[str, int])
    """The line of each parameter that a resolver fills."""

    def write(self, text: str, look: str = "") -> None:
        """Add text, on as many lines as it needs."""
        self.lines += [(line, look) for line in wrapped(text)]

    def write_needs(self, arguments: Iterable[str], contexts: Iterable[str], needs: Iterable[Link]) -> None:
        """Add the parameters, each on a line of its own."""
        for each in arguments:
            self.write(each, "dim")
        for each in contexts:
            self.write(f"{each} (context)", "dim")
        for link in needs:
            self.ports[link.parameter] = len(self.lines)
            self.write(f"{link.parameter} (outcome)" if link.takes == "outcome" else link.parameter)

    @property
    def size(self) -> tuple[float, float]:
        """Its width and height."""
        widest = max(cell_len(text) for text, _ in self.lines)
        return widest * CELL + 2 * PADDING, len(self.lines) * LINE + 2 * PADDING - 6

    def port(self, parameter: str, slot: Slot) -> float:
        """How far down a line comes in."""
        return slot.top + PADDING - 3 + (self.ports[parameter] + 0.5) * LINE


def svg_of(graphs: Sequence[ToolGraph]) -> str:
    """A picture of tools one below the other. It follows the reader's choice of light or dark."""
    parts: list[str] = []
    width, y = _width([*_looks(graphs).values(), *LINES.values()]) + LEGEND_INDENT, float(MARGIN)
    for graph in graphs:
        boxes = [_resolver_box(each) for each in graph.resolvers] + [_tool_box(graph)]
        layout = _laid_out(graph, boxes)
        heading = wrapped(graph.tool, 60)
        parts += [_text(MARGIN, y + 14 + row * 20, line, "heading") for row, line in enumerate(heading)]
        y += len(heading) * 20
        parts += [_text(MARGIN, y + 12, graph.effort, "dim"), f'<g transform="translate({MARGIN} {y + 32:.1f})">']
        parts += [*_drawn_lines(graph, boxes, layout), *_drawn_boxes(boxes, layout), "</g>"]
        width = max(width, layout.width, _width(heading) * 1.3)
        y += 32 + layout.height + 2 * MARGIN
    parts += _legend(graphs, y)
    height = y + len(_looks(graphs)) * LINE + 3 * LINE
    width += 2 * MARGIN
    names = escape(printable(", ".join(graph.tool for graph in graphs)))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" role="img">',
            f"<title>Resolvers of {names}</title>",
            f"<style>\n{STYLE}</style>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto"><path class="head" d="M0 0.5 L8 4 L0 7.5 z"/></marker></defs>',
            '<rect class="page" width="100%" height="100%"/>',
            *parts,
            "</svg>\n",
        ]
    )


def wrapped(text: str, cells: int = CELLS) -> list[str]:
    """Text in lines of at most so many cells, broken after spaces and underscores where there are any.

    XML has no way to write most characters that cannot be printed, so there are none in it.
    """
    lines = [""]
    for piece in (part for word in re.findall(r"[^ _.]*[ _.]?", printable(text)) for part in chop_cells(word, cells)):
        if cell_len(lines[-1] + piece.rstrip()) > cells:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines]


def _width(lines: Iterable[str]) -> float:
    return max(map(cell_len, lines)) * CELL


def _tool_box(graph: ToolGraph) -> Box:
    box = Box("tool")
    box.write(graph.tool, "name")
    box.write_needs(graph.arguments, (), graph.needs)
    return box


def _resolver_box(resolver: Resolver) -> Box:
    box = Box(resolver.asks[0].whom if resolver.asks else "resolver")
    box.write(resolver.name, "name")
    box.write_needs(resolver.arguments, resolver.contexts, resolver.needs)
    for asks in resolver.asks:
        box.write(str(asks))
        for each in asks.fields:
            box.write(f"- {each}", "dim")
    return box


def _laid_out(graph: ToolGraph, boxes: Sequence[Box]) -> Layout:
    tool = len(graph.resolvers)
    columns = [each.depth for each in graph.resolvers]
    columns.append(max(columns, default=-1) + 1)
    lines = [(link.resolver, tool) for link in graph.needs]
    lines += [(link.resolver, index) for index, each in enumerate(graph.resolvers) for link in each.needs]
    return layout_of([box.size for box in boxes], columns, lines)


def _drawn_lines(graph: ToolGraph, boxes: Sequence[Box], layout: Layout) -> Iterator[str]:
    needs = [*(each.needs for each in graph.resolvers), graph.needs]
    for end, links in enumerate(needs):
        for link in links:
            way = layout.ways[link.resolver, end]
            path = f"M{way[0].x + way[0].width:.1f} {way[0].middle:.1f}"
            port = boxes[end].port(link.parameter, way[-1])
            for one, other in itertools.pairwise(way):
                leaves, arrives = layout.columns[one.column][1], layout.columns[other.column][0]
                y = port if other is way[-1] else other.middle
                halfway = (leaves + arrives) / 2
                path += f" H{leaves:.1f} C{halfway:.1f} {one.middle:.1f} {halfway:.1f} {y:.1f} {arrives:.1f} {y:.1f}"
            look = "line outcome" if link.takes == "outcome" else "line"
            yield f'<path class="{look}" marker-end="url(#head)" d="{path}"/>'


def _drawn_boxes(boxes: Sequence[Box], layout: Layout) -> Iterator[str]:
    for box, slot in zip(boxes, layout.slots, strict=True):
        yield (
            f'<rect class="{box.look}" x="{slot.x:.1f}" y="{slot.top:.1f}" width="{slot.width:.1f}" '
            f'height="{slot.height:.1f}" rx="{12 if box.look == "tool" else 6}"/>'
        )
        for row, (line, look) in enumerate(box.lines):
            yield _text(slot.x + PADDING, slot.top + PADDING + 10 + row * LINE, line, look)


def _looks(graphs: Iterable[ToolGraph]) -> dict[str, str]:
    """What the boxes of a picture stand for."""
    asked = {asks.whom for graph in graphs for each in graph.resolvers for asks in each.asks}
    return {"tool": "the tool", "resolver": "looks a value up"} | {
        whom: words for whom, words in WORDS.items() if whom in asked
    }


def _legend(graphs: Iterable[ToolGraph], y: float) -> Iterator[str]:
    x = MARGIN
    for look, words in _looks(graphs).items():
        yield f'<rect class="{look}" x="{x}" y="{y - 11:.1f}" width="22" height="13" rx="3"/>'
        yield _text(x + LEGEND_INDENT, y, words, "dim")
        y += LINE
    for look, words in LINES.items():
        yield f'<path class="{look}" d="M{x} {y - 4:.1f} H{x + 22}"/>'
        yield _text(x + LEGEND_INDENT, y, words, "dim")
        y += LINE


def _text(x: float, y: float, text: str, look: str) -> str:
    return f'<text class="{look}" x="{x:.1f}" y="{y:.1f}" xml:space="preserve">{escape(text)}</text>'
