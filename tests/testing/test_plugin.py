"""The pytest plugin, in test suites of its own."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

# Imported before any suite is: pytester forgets what a suite imports, and cryptography cannot be imported twice.
import askback.testing  # noqa: F401  # pyright: ignore[reportUnusedImport]

pytest_plugins = ["pytester"]

SERVER = """
    from typing import Annotated
    import pytest
    from pydantic import BaseModel
    from askback import Elicit, Resolve
    from askback.integration import FastMCP

    mcp = FastMCP("shop")

    class Sure(BaseModel):
        ok: bool

    async def ask() -> Elicit[Sure]:
        return Elicit("Sure?", Sure)

    @mcp.tool
    async def order(sure: Annotated[Sure, Resolve(ask)]) -> bool:
        return sure.ok
"""


def suite(pytester: pytest.Pytester, tests: str, *options: str, ini: str = "") -> pytest.RunResult:
    pytester.makepyfile(test_it=textwrap.dedent(SERVER) + textwrap.dedent(tests))
    if ini:
        pytester.makeini(f"[pytest]\n{ini}\n")
    return pytester.runpytest("-p", "no:cacheprovider", "-W", "error", "-v", *options)


USES_IT = """
    async def test_sure(askback):
        call = await askback.call(mcp, "order", {}, [{"ok": True}])
        assert call.result == "true"
"""


@pytest.mark.parametrize("ini", ["", "anyio_mode = auto"], ids=["nothing set up", "anyio set up"])
def test_an_async_test_runs_on_both_generations(pytester: pytest.Pytester, ini: str) -> None:
    if ini:
        pytester.makeconftest("import pytest\n@pytest.fixture\ndef anyio_backend(): return 'asyncio'")
    result = suite(pytester, USES_IT, ini=ini)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*::test_sure?2026-07-28? PASSED*", "*::test_sure?2025-11-25? PASSED*"])


def test_a_marker_picks_the_generation_and_the_connections(pytester: pytest.Pytester) -> None:
    result = suite(
        pytester,
        """
    @pytest.mark.askback("2025-11-25")
    def test_one(askback):
        assert (askback.generation, askback.mode, askback.over) == ("2025-11-25", "legacy", "memory")

    @pytest.mark.askback("2026-07-28", over=("memory", "http"))
    def test_two(askback):
        assert (askback.generation, askback.mode) == ("2026-07-28", "auto")

    @pytest.mark.askback(over="stdio")
    class TestThree:
        @pytest.mark.parametrize("number", [1, 2])
        async def test_four(self, askback, number):
            assert askback.over == "stdio"

    class TestFive(TestThree):
        pass
    """,
    )
    result.assert_outcomes(passed=11)
    result.stdout.fnmatch_lines(
        [
            "*::test_one?2025-11-25? PASSED*",
            "*::test_two?2026-07-28-memory? PASSED*",
            "*::test_two?2026-07-28-http? PASSED*",
            "*::TestThree::test_four?2026-07-28-stdio-1? PASSED*",
        ]
    )


@pytest.mark.parametrize(
    "marker", ["'2024-11-05'", "over='pigeon'", "generation='2026-07-28'", "over=[]", "over=None", "['2026-07-28']"]
)
def test_an_invalid_marker_is_an_error(pytester: pytest.Pytester, marker: str) -> None:
    result = suite(pytester, f"\n@pytest.mark.askback({marker})\ndef test_one(askback): pass\n")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*test_one: the marker askback takes generations out of ('2026-07-28', '2025-11-25'), and over=*"]
    )


def test_the_marker_and_the_fixture_are_listed(pytester: pytest.Pytester) -> None:
    assert "askback(*generations, over='memory')" in pytester.runpytest("--markers").stdout.str()
    pytester.runpytest("--fixtures").stdout.fnmatch_lines(["askback*"])


def test_another_fixture_may_use_it(pytester: pytest.Pytester) -> None:
    result = suite(
        pytester,
        """
    @pytest.fixture
    def shop(askback):
        return askback.connect(mcp, {"Sure": {"ok": False}})

    async def test_it(shop):
        async with shop as client:
            assert (await client.call_tool("order")).data is False

    @pytest.mark.anyio
    @pytest.mark.parametrize("anyio_backend", ["asyncio"])
    async def test_that(shop, anyio_backend):
        async with shop as client:
            assert (await client.call_tool("order")).data is False
    """,
    )
    result.assert_outcomes(passed=4)


def test_a_test_that_another_plugin_is_to_run_is_left_to_it(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import asyncio, pytest

        @pytest.hookimpl
        def pytest_pyfunc_call(pyfuncitem):
            if pyfuncitem.get_closest_marker("asyncio"):
                asyncio.run(pyfuncitem.obj(pyfuncitem.funcargs["askback"]))
                print("by another")
                return True
        """
    )
    tests = "\n@pytest.mark.asyncio\nasync def test_it(askback):\n    pass\n"
    result = suite(pytester, tests, ini="markers = asyncio\naddopts = -s")
    result.assert_outcomes(passed=2)
    assert result.stdout.str().count("by another") == 2


def test_it_can_be_requested_inside_the_test_and_beside_defaults(pytester: pytest.Pytester) -> None:
    result = suite(
        pytester,
        """
    async def test_default(askback, extra=1):
        assert extra == 1

    def test_dynamic(request):
        assert request.getfixturevalue("askback").generation == "2026-07-28"
    """,
    )
    result.assert_outcomes(passed=3)


def test_a_failing_conversation_is_what_the_report_shows(pytester: pytest.Pytester) -> None:
    result = suite(pytester, USES_IT.replace("[{'ok'", "[{'no'").replace('{"ok": True}', '{"ok": 3}'))
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "E*ConversationError: 'order' asked 'Sure?'. The answer from the script (answer 1) does not fit: ok: 3 *",
            "E*order()",
            "E*asks   test_it:ask: Sure?",
        ]
    )
    assert "During handling of the above exception" not in result.stdout.str()
    assert "askback conversation" not in result.stdout.str()


FAILS = """
    from askback.agents import Decline

    def test_nothing_was_called(askback):
        askback.connect(mcp)
        assert False

    async def test_an_assertion(askback):
        call = await askback.call(mcp, "order", {}, [{"ok": True}])
        assert call.result == "false"

    async def test_an_error(askback):
        async with askback.connect(mcp, Decline()) as client:
            await client.call_tool("order")
"""


def test_a_failing_test_prints_its_conversations_and_no_frames_of_libraries(pytester: pytest.Pytester) -> None:
    result = suite(pytester, FAILS)
    result.assert_outcomes(failed=6)
    result.stdout.fnmatch_lines(
        [
            "*_ test_an_assertion?2026-07-28? _*",
            "E*AssertionError: assert 'true' == 'false'",
            "*- askback conversation -*",
            "order()",
            "    gets   accepted {?ok?: true}*",
            "  said   true",
            "*_ test_an_error?2026-07-28? _*",
            ">*await client.call_tool*",
            "E*ToolError: *elicitation was decline. The user declined *",
            "*- askback conversation -*",
            "    gets   declined  (by Decline)",
        ]
    )
    shown = result.stdout.str()
    assert shown.count("askback conversation") == 4
    assert "site-packages" not in shown
    assert shown.count("\n") < 130


def test_full_trace_shows_the_libraries_too(pytester: pytest.Pytester) -> None:
    assert "site-packages" in suite(pytester, FAILS, "--full-trace").stdout.str()


@pytest.mark.processes
def test_a_suite_that_does_not_use_it_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_it(request):\n"
        "    assert request.config.pluginmanager.has_plugin('askback')\n"
        "    heavy = ('askback', 'fastmcp', 'mcp', 'mcp_types', 'pydantic', 'pydantic_ai')\n"
        "    assert [name for name in heavy if name in sys.modules] == []\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)


@pytest.mark.processes
def test_testing_a_server_imports_no_pydantic_ai(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent(SERVER)
        + textwrap.dedent(USES_IT)
        + "    import sys\n    assert 'fastmcp' in sys.modules\n    assert 'pydantic_ai' not in sys.modules\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    ran = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert "2 passed" in ran.stdout, ran.stdout
