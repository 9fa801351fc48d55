"""The command line itself."""

import io
import os
import runpy
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine

ROOT = Path(__file__).parents[2]


def test_help_names_the_commands(cli: CommandLine) -> None:
    ran = cli("--help")
    assert ran.code == 0
    assert "Draw the resolvers of a server's tools." in ran.out
    assert "Check the resolvers of a server's tools for mistakes." in ran.out


def test_help_of_a_command_names_its_options(cli: CommandLine) -> None:
    graph, check = cli("graph", "--help").out, cli("check", "--help").out
    assert "mermaid" in graph
    assert "--output" in graph
    assert "colliding-keys" in check


def test_the_version_is_the_distributions(cli: CommandLine) -> None:
    assert cli("--version").out.strip() == version("askback")


def test_a_wrong_option_is_a_sentence_and_exit_code_2(cli: CommandLine) -> None:
    ran = cli("graph", "tests.cli.shop:mcp", "--fromat", "mermaid")
    assert ran.code == 2
    assert ran.out == ""
    assert "--fromat" in ran.err


def test_without_its_extra_the_command_line_says_what_to_install(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cyclopts", None)
    assert cli("--version").err == "askback: the command line needs cyclopts: pip install 'askback[cli]'\n"


class ClosedPipe(io.StringIO):
    """An output whose reader has gone."""

    def __init__(self) -> None:
        super().__init__()
        self.descriptor = os.open(os.devnull, os.O_WRONLY)

    def fileno(self) -> int:
        return self.descriptor

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_reader_that_goes_away_ends_the_command_in_silence(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", ClosedPipe())
    ran = cli("check", "tests.cli.shop:mcp")
    assert (ran.code, ran.err) == (2, "")


def test_the_package_can_be_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["askback", "--version"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_module("askback.cli", run_name="__main__")
    assert capsys.readouterr().out.strip() == version("askback")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("command", "absent"),
    [
        (["--version"], ["fastmcp", "mcp", "pydantic", "pydantic_ai"]),
        (["graph", "tests/cli/shop.py"], ["askback.testing", "pydantic_ai"]),
        (["check", "tests/cli/shop.py"], ["askback.testing", "pydantic_ai"]),
        (["call", "tests/cli/shop.py", "hello"], ["askback.testing", "pydantic_ai"]),
    ],
    ids=["version", "graph", "check", "call"],
)
def test_a_command_imports_only_what_it_needs(command: list[str], absent: list[str]) -> None:
    code = (
        "import atexit, sys\nfrom askback.cli import main\n"
        f"atexit.register(lambda: print([name for name in {absent} if name in sys.modules], file=sys.stderr))\nmain()\n"
    )
    ran = subprocess.run([sys.executable, "-c", code, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "[]\n")


@pytest.mark.processes
def test_it_runs_as_a_process_with_plain_output() -> None:
    command = [sys.executable, "-m", "askback.cli", "graph", "tests/cli/shop.py:mcp", "look_up"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("look_up(title)  asks nothing\n└── stock from check_stock\n")
