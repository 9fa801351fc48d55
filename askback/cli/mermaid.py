"""Graphs as a Mermaid flowchart."""

from collections.abc import Iterable, Sequence

from askback.cli.graphs import Need, Resolver, ToolGraph
from askback.exchange.text import printable

ENTITIES = str.maketrans(
    {"#": "#35;", '"': "#quot;", "&": "#amp;", "<": "#lt;", ">": "#gt;", "`": "#96;", "%": "#37;", "\n": "#9252;"}
)
"""Characters that Mermaid would read as markup, a directive or comment (`%%`), or a line break."""

CLASSES = """\
    classDef tool stroke-width:2px
    classDef person fill:#fff3cd,stroke:#9a6700,color:#1f2328
    classDef model fill:#efe6ff,stroke:#8250df,color:#1f2328
    classDef directories fill:#dcf5e3,stroke:#1a7f37,color:#1f2328
    classDef anyone stroke-dasharray:4 3
"""


def mermaid_of(graphs: Sequence[ToolGraph]) -> str:
    """A flowchart with a subgraph for each tool; dotted arrows carry the outcome of a question, others a value."""
    lines = ["flowchart LR"]
    for number, graph in enumerate(graphs):
        tool = f"tool{number}"
        lines += [
            f"    subgraph part{number}[{_quoted(f'{graph.tool}: {graph.effort}')}]",
            f"        {tool}([{_quoted(graph.tool, *graph.arguments)}]):::tool",
            *(f"        {_node(f'{tool}_{index}', each)}" for index, each in enumerate(graph.resolvers)),
            *_arrows(tool, tool, graph.needs),
        ]
        for index, each in enumerate(graph.resolvers):
            lines += _arrows(tool, f"{tool}_{index}", each.needs)
        lines.append("    end")
    return "\n".join(lines) + "\n" + CLASSES


def _node(name: str, resolver: Resolver) -> str:
    takes = ", ".join((*resolver.arguments, *resolver.contexts))
    asked = [line for ask in resolver.asks for line in (str(ask), *map(str, ask.fields))]
    label = _quoted(resolver.name, *([f"takes {takes}"] if takes else []), *asked)
    return f"{name}{{{{{label}}}}}:::{resolver.asks[0].whom}" if resolver.asks else f"{name}[{label}]"


def _arrows(tool: str, to: str, needs: Iterable[Need]) -> list[str]:
    return [
        f"        {tool}_{need.resolver} {'-.->' if need.takes == 'outcome' else '-->'}|{_quoted(need.parameter)}| {to}"
        for need in needs
    ]


def _quoted(*lines: str) -> str:
    """Text that Mermaid shows literally."""
    return '"' + "<br/>".join(printable(line.translate(ENTITIES)) for line in lines) + '"'
