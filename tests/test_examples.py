"""The examples, run as they are."""

import subprocess
import sys


def test_the_bookshop_prints_what_was_asked_and_answered() -> None:
    ran = subprocess.run([sys.executable, "-m", "examples.bookshop"], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("The model is told that order_book takes: title\n")
    for generation in ran.stdout.split("\n\n")[1:]:
        lines = [line.strip() for line in generation.splitlines()]
        assert lines[1:3] == ["order_book(title='Dune')", "said      Ordered 'Dune'."]
        assert lines.count("asked     'Neuromancer' is out of stock (2-3 weeks). Order anyway?") == 3
        assert "answered  confirm=True" in lines
        assert "said      Backordered 'Neuromancer'; it ships in 2-3 weeks." in lines
        assert "said      No order placed." in lines
        assert lines[-1] == ("failed    Resolver for parameter 'backorder' could not resolve: elicitation was decline")
