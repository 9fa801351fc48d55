"""README and docs: every block of code in them is run."""

import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from pytest_examples import CodeExample, EvalExample, find_examples

from askback.agents import rules_from

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


def blocks(document: Path, language: str) -> list[str]:
    """The blocks of a language in a document."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", document.read_text(), re.M | re.S)
    return [textwrap.dedent(block) for _, block in found]


def python_in(document: Path) -> list[CodeExample]:
    return list(find_examples(document))


@pytest.fixture(autouse=True)
def no_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models have a key here, and are not to be asked."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("ASKBACK_KEY", "k" * 32)
    monkeypatch.setattr("pydantic_ai.models.ALLOW_MODEL_REQUESTS", False)


@pytest.mark.parametrize("document", [each for each in DOCUMENTS if python_in(each)], ids=lambda each: each.name)
def test_python_runs_block_after_block(document: Path, eval_example: EvalExample) -> None:
    names: dict[str, Any] = {}
    for example in python_in(document):
        names |= eval_example.run(example, module_globals=names)


@pytest.mark.parametrize(
    "document",
    [each for each in DOCUMENTS if any("def test_" in block for block in blocks(each, "python"))],
    ids=lambda each: each.name,
)
@pytest.mark.processes
def test_tests_that_are_shown_pass(document: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    code = "\n\n".join(blocks(document, "python"))
    pytester.makepyfile(test_shown=code)
    result = pytester.runpytest("-p", "no:cacheprovider")
    assert result.ret == 0
    assert result.parseoutcomes()["passed"] >= 2 * code.count("def test_") - code.count('askback("2026-07-28")')


@pytest.mark.parametrize(
    "document", [each for each in DOCUMENTS if blocks(each, "console")], ids=lambda each: each.name
)
@pytest.mark.processes
def test_commands_that_are_shown_print_what_is_shown(document: Path) -> None:
    for block in blocks(document, "console"):
        command, _, shown = block.partition("\n")
        words = shlex.split(command.removeprefix("$ "))
        assert words[0] == "askback"
        ran = subprocess.run(
            [sys.executable, "-m", "askback.cli", *words[1:]],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
        assert [line.rstrip() for line in ran.stdout.splitlines()] == shown.splitlines()


@pytest.mark.processes
def test_the_picture_that_is_shown_is_drawn_so(tmp_path: Path) -> None:
    drawn = tmp_path / "refund_desk.mmd"
    command = ["graph", "examples.refund_desk.server:mcp", "--format", "mermaid", "--output", str(drawn)]
    subprocess.run([sys.executable, "-m", "askback.cli", *command], cwd=ROOT, check=True)
    assert [drawn.read_text()] == blocks(ROOT / "docs" / "command-line.md", "mermaid")


@pytest.mark.parametrize("document", [each for each in DOCUMENTS if blocks(each, "toml")], ids=lambda each: each.name)
def test_rules_that_are_shown_are_rules(document: Path, tmp_path: Path) -> None:
    for number, block in enumerate(blocks(document, "toml")):
        path = tmp_path / f"{number}.toml"
        path.write_text(block)
        assert callable(rules_from(path))
