"""A graph as a tree for the terminal."""

from collections.abc import Iterable

from rich.text import Text
from rich.tree import Tree

from askback.cli.graphs import Need, ToolGraph
from askback.exchange.text import printable


def tree_of(graph: ToolGraph) -> Tree:
    """What a tool needs, and what that needs in turn. A shared resolver is drawn once, then only named."""
    tree = Tree(
        _text((graph.tool, "bold"), (f"({', '.join(graph.arguments)})", ""), ("  ", ""), (graph.effort, "dim")),
        guide_style="dim",
    )
    _grow(tree, graph, graph.needs, drawn=set())
    return tree


def _grow(tree: Tree, graph: ToolGraph, needs: Iterable[Need], drawn: set[int]) -> None:
    for need in needs:
        resolver = graph.resolvers[need.resolver]
        label = _text(
            (need.parameter, ""),
            (" takes the outcome of " if need.takes == "outcome" else " from ", "dim"),
            (resolver.name, "bold cyan"),
        )
        if need.resolver in drawn:
            tree.add(label.append(" (see above)", "dim"))
            continue
        drawn.add(need.resolver)
        branch = tree.add(label)
        for ask in resolver.asks:
            branch.add(_text((str(ask), "yellow"))).children.extend(Tree(_text((str(each), ""))) for each in ask.fields)
        for argument in resolver.arguments:
            branch.add(_text((argument, ""), (" from the tool's arguments", "dim")))
        for context in resolver.contexts:
            branch.add(_text((context, ""), (" from the context of the call", "dim")))
        _grow(branch, graph, resolver.needs, drawn)


def _text(*parts: tuple[str, str]) -> Text:
    """A line from parts and their styles."""
    return Text.assemble(*((printable(text), style) for text, style in parts))
