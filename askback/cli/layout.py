"""Where the boxes of a graph go: in columns by dependency depth, the tool in the last, no box on another."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

GAP_ACROSS = 76
GAP_DOWN = 18
LANE = 6
"""The height that a line needs to pass a column between two boxes."""

SWEEPS = 12


@dataclass
class Slot:
    """A stretch of a column that belongs to one box, or to the lines from one box that pass by."""

    column: int
    width: float
    height: float
    middle: float = 0
    x: float = 0

    @property
    def top(self) -> float:
        """Where it begins."""
        return self.middle - self.height / 2


@dataclass
class Layout:
    """Boxes in columns, and the way of each line from one to another."""

    slots: list[Slot]
    ways: dict[tuple[int, int], list[Slot]]
    """The slots that a line goes through, by the boxes that it joins, both included."""
    columns: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    """Where each column begins and ends."""
    width: float = 0
    height: float = 0


def layout_of(sizes: Sequence[tuple[float, float]], columns: Sequence[int], lines: Iterable[tuple[int, int]]) -> Layout:
    """Place boxes of the given sizes in the given columns, close to those that `lines` join them to."""
    boxes = [Slot(column, *size) for size, column in zip(sizes, columns, strict=True)]
    layout = Layout(boxes, {})
    lanes: dict[tuple[int, int], Slot] = {}
    for start, end in lines:
        between = range(columns[start] + 1, columns[end])
        # Lines from one box run together for as long as they can.
        passed = [lanes.setdefault((start, column), Slot(column, 0, LANE)) for column in between]
        layout.ways[start, end] = [boxes[start], *passed, boxes[end]]
    in_columns = [[each for each in boxes if each.column == column] for column in range(max(columns) + 1)]
    for (_, column), lane in lanes.items():
        in_columns[column].append(lane)
    _settle(in_columns, _neighbours(layout.ways.values()))
    _measure(layout, in_columns)
    return layout


Neighbours = Mapping[tuple[int, int], Sequence[Slot]]


def _neighbours(ways: Iterable[Sequence[Slot]]) -> Neighbours:
    """The slots that each is joined to, by the column they are in."""
    found: dict[tuple[int, int], list[Slot]] = {}
    for way in ways:
        for one, other in itertools.pairwise(way):
            found.setdefault((id(one), other.column), []).append(other)
            found.setdefault((id(other), one.column), []).append(one)
    return found


def _settle(columns: Sequence[list[Slot]], neighbours: Neighbours) -> None:
    """Go to and fro over the columns, and draw each slot to the middle of those it is joined to on the side before."""
    for column in columns:
        _place(column, [0.0] * len(column))
    for sweep in range(SWEEPS):
        step = 1 if sweep % 2 == 0 else -1
        for column in columns[::step]:
            wanted: list[float] = []
            for slot in column:
                joined = neighbours.get((id(slot), slot.column - step), ())
                wanted.append(sum(each.middle for each in joined) / len(joined) if joined else slot.middle)
            _place(column, wanted)


def _place(column: list[Slot], wanted: Sequence[float]) -> None:
    """Put the slots of a column in the order in which they are wanted, as near to there as their heights allow."""
    in_order = sorted(zip(wanted, range(len(column)), column, strict=True), key=lambda each: each[:2])
    column[:] = [slot for _, _, slot in in_order]
    bottom = float("-inf")
    for middle, _, slot in in_order:
        slot.middle = max(middle, bottom + GAP_DOWN + slot.height / 2)
        bottom = slot.middle + slot.height / 2
    # Pushing moves everything down: move it back as a whole.
    excess = sum(slot.middle - middle for middle, _, slot in in_order) / len(in_order)
    for slot in column:
        slot.middle -= excess


def _measure(layout: Layout, columns: Sequence[Sequence[Slot]]) -> None:
    top = min(slot.top for column in columns for slot in column)
    x = 0.0
    for column in columns:
        width = max(slot.width for slot in column)
        for slot in column:
            slot.x = x
            slot.middle -= top
            layout.height = max(layout.height, slot.middle + slot.height / 2)
        layout.columns.append((x, x + width))
        layout.width = x + width
        x += width + GAP_ACROSS
