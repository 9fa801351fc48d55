"""Taking calls in turn, and comparing what they take."""

import gc
import logging
import math
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

Call = Callable[[], Awaitable[object]]


async def measure(calls: Mapping[str, Call], repeats: int) -> dict[str, float]:
    """The median duration of each call, all of them taken in turn."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        await call()
    gc.collect()
    gc.disable()
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            await call()
            taken[name].append(time.perf_counter() - start)
    gc.enable()
    return {name: statistics.median(durations) for name, durations in taken.items()}


@dataclass
class Row:
    """A comparison: what was measured, against what, and how far it may be from it."""

    what: str
    ours: float
    peer: str
    theirs: float
    limit: float = math.inf

    @property
    def ratio(self) -> float:
        """How much of the peer's time it takes."""
        return self.ours / self.theirs


def report(rows: Sequence[Row]) -> None:
    """Print a table, and exit with an error where a limit is passed."""
    table = Table("what", "µs", "against", "µs", "ratio", "limit")
    for row in rows:
        ratio = f"{row.ratio:.2f}" if row.ratio <= row.limit else f"[red]{row.ratio:.2f}[/]"
        limit = f"{row.limit:.2f}" if math.isfinite(row.limit) else ""
        table.add_row(row.what, f"{row.ours * 1e6:.0f}", row.peer, f"{row.theirs * 1e6:.0f}", ratio, limit)
    Console().print(table)
    sys.exit(any(row.ratio > row.limit for row in rows))


def repeats() -> int:
    """How often to repeat each call: the first argument of the program, or a thousand times."""
    logging.disable(logging.CRITICAL)
    return int(sys.argv[1]) if len(sys.argv) > 1 else 1000
