"""The demo: what it prints, at a terminal and elsewhere."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[1]
DEMO = [sys.executable, "-W", "error", "-m", "examples.demo"]


def test_it_shows_each_round_who_answered_and_why_and_the_receipts(tmp_path: Path) -> None:
    ran = subprocess.run(
        DEMO, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "\x1b" not in ran.stdout
    _, policies, declined, stopped = ran.stdout.split("\n──")
    for shown in (
        "it never sees   cents, restock, nor the questions and answers",
        "round 1         refund_scope asks",
        'within_limit accepts {"sku": "", "full": true}',
        "why: The clerk may refund up to $100 without asking.",
        "round 2         ask_restock asks",
        'the receipt     {"order_id": "ORD-7002", "cents": 6150, "restocked": true}',
        "round 2: ask_restock has a question │",
        '│ accept {"restock": true}, by house_rule',
    ):
        assert shown in policies
    assert "customer declines" in declined
    assert "Resolver for parameter 'scope' could not resolve: elicitation was decline" in declined
    assert "night_clerk defers" in stopped
    assert "another process (" in stopped
    assert '(answered later) accepts {"sku": "LAMP", "full": false}' in stopped
    assert "why: A manager has decided." in stopped
    assert 'the receipt     {"order_id": "ORD-7002", "cents": 4900, "restocked": true}' in stopped
    assert list(tmp_path.iterdir()) == []


def at_a_terminal(**environment: str) -> str:
    """What a terminal shows."""
    master, slave = pty.openpty()
    known = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    with subprocess.Popen(DEMO, cwd=ROOT, env=known | {"TERM": "xterm"} | environment, stdout=slave) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                read = os.read(master, 65536)
            except OSError:
                break
            if not read:
                break
            shown += read
    os.close(master)
    assert process.returncode == 0
    return shown.decode()


def test_both_processes_print_colours_at_a_terminal_unless_no_color_is_set() -> None:
    colourful = at_a_terminal()
    assert "\x1b[" in colourful
    assert "\x1b[" in colourful.partition("another process")[2]
    plain = at_a_terminal(NO_COLOR="1")
    assert "\x1b" not in plain
    assert "the receipt" in plain


def test_an_unknown_model_is_one_sentence() -> None:
    ran = subprocess.run([*DEMO, "--model", "nobody:nothing"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stderr.endswith("argument --model: Unknown model: nobody:nothing\n")
