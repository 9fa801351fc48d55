"""Text of a stranger, made safe to show."""

import pytest

from askback.exchange.text import printable, quoted


@pytest.mark.parametrize(
    "character",
    ["\x1b", "\x00", "\n", "\r", "\t", "\x7f", "\x9b", "\u202e", "\u2066", "\u200b", "\u200d", "\ufeff", "\u2028"],
)
def test_characters_that_do_more_than_appear_are_replaced(character: str) -> None:
    assert printable(f"a{character}b") == "a?b"


def test_other_characters_stay() -> None:
    text = "Größe: 書籍 [bold] 🙂 ﷽"
    assert printable(text) == text


def test_every_line_has_a_margin() -> None:
    assert list(quoted("Sure?\nconfirmed: yes\r\n\n\x1b[2J\u202eno")) == [
        "  | Sure?",
        "  | confirmed: yes",
        "  | ",
        "  | ?[2J?no",
    ]
    assert list(quoted("")) == []


def test_long_lines_are_wrapped_inside_the_margin() -> None:
    assert list(quoted("one two three four five", 24)) == ["  | one two three four", "  | five"]
    assert list(quoted("x" * 45, 24)) == [f"  | {'x' * 20}", f"  | {'x' * 20}", "  | xxxxx"]
    assert list(quoted("書" * 11, 24)) == [f"  | {'書' * 10}", "  | 書"]
    accented = "e\u0301"
    assert list(quoted(accented * 21, 24)) == [f"  | {accented * 20}", f"  | {accented}"]
    assert all(len(line) == 24 for line in list(quoted("x" * 60, 3)))
