"""Where boxes go, for graphs of every shape."""

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from askback.cli.layout import layout_of


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[float, float]], list[int], list[tuple[int, int]]]:
    """Boxes of all sizes, each joined to some of those before it."""
    count = draw(st.integers(1, 12))
    sizes = draw(st.lists(st.tuples(st.floats(10, 300), st.floats(10, 300)), min_size=count, max_size=count))
    columns: list[int] = []
    lines: list[tuple[int, int]] = []
    for index in range(count):
        before = draw(st.sets(st.integers(0, index - 1), max_size=3)) if index else set[int]()
        columns.append(max((columns[each] + 1 for each in before), default=0))
        lines += [(each, index) for each in before]
    return sizes, columns, lines


@given(graphs())
def test_nothing_in_a_column_lies_on_anything_else(
    graph: tuple[list[tuple[float, float]], list[int], list[tuple[int, int]]],
) -> None:
    layout = layout_of(*graph)
    everything = {id(slot): slot for slot in [*layout.slots, *(each for way in layout.ways.values() for each in way)]}
    for one, other in combinations(everything.values(), 2):
        if one.column == other.column:
            assert one.top + one.height < other.top or other.top + other.height < one.top
    for slot in everything.values():
        begins, ends = layout.columns[slot.column]
        assert begins == slot.x
        assert slot.x + slot.width <= ends
        assert slot.top >= -0.001
        assert slot.top + slot.height <= layout.height + 0.001
    for (_, ends), (begins, _) in pairwise(layout.columns):
        assert ends < begins
