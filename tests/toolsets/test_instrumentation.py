"""The instrumentation example of the documentation prints the tree that it shows."""

import re
from pathlib import Path

import pytest

POLICIES = Path(__file__).parent.parent.parent / "docs" / "policies.md"


def test_the_example_prints_the_spans_that_are_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    document = POLICIES.read_text()
    exec("\n".join(re.findall(r"```python\n(.*?)```", document, re.S)), {"__name__": "policies"})
    (shown,) = re.findall(r"```text\n(.*?)```", document, re.S)
    assert capsys.readouterr().out == shown
