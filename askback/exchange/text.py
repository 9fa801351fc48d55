"""Text that a stranger wrote, made safe to show.

A server chooses its messages, field names and results. Printed as they are, they could move the cursor, hide part of a
line, reverse its direction, or imitate a prompt of ours. `printable` replaces every character that does more than
appear, and `quoted` puts a margin before every line, so that none can be taken for one of ours.
"""

import unicodedata
from collections.abc import Iterator

MARGIN = "  | "
MIN_WIDTH = 20


def printable(text: str) -> str:
    """`text` on one line, with `?` for control, formatting and bidirectional characters and for line breaks."""
    return "".join(each if each.isprintable() else "?" for each in text)


def quoted(text: str, width: int = 80) -> Iterator[str]:
    """The lines of `text`, made printable and wrapped, each with a margin and no wider than `width` columns."""
    room = max(width - len(MARGIN), MIN_WIDTH)
    for line in text.splitlines():
        for part in _wrapped(printable(line), room):
            yield f"{MARGIN}{part}"


def _wrapped(line: str, room: int) -> Iterator[str]:
    """A line in parts that fit into `room` columns, broken at a space where there is one."""
    start = used = 0
    space = -1
    for index, character in enumerate(line):
        used += _columns(character)
        if character == " ":
            space = index
        if used > room and index > start:
            end = space if space > start else index
            yield line[start:end].rstrip()
            start = end + (line[end] == " ")
            used = sum(_columns(each) for each in line[start : index + 1])
            space = -1
    yield line[start:]


def _columns(character: str) -> int:
    """How many columns of a terminal a character takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
