"""The pytest plugin: the fixture `askback`, the marker of the same name, and readable failures.

It is not part of the package, so that loading it does not import askback: test suites that do not use it pay nothing,
and coverage sees the package's first import.
"""

import functools
import inspect
from collections.abc import Generator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from askback.testing import Rehearsal

GENERATIONS = ("2026-07-28", "2025-11-25")
CONNECTIONS = ("memory", "http", "stdio")

RUNNERS = ("anyio", "asyncio", "trio")
"""The markers that leave an async test to another plugin."""

LIBRARIES = frozenset(
    {
        "_pytest",
        "anyio",
        "askback",
        "asyncio",
        "contextlib",
        "fastmcp",
        "mcp",
        "pluggy",
        "pydantic_ai",
        "pydantic_graph",
    }
)
"""Packages whose frames are left out of a failure: the test, its server and its agent are what people look for."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "askback(*generations, over='memory'): run a test that uses the `askback` fixture on one protocol generation "
        "('2026-07-28' or '2025-11-25'), or over other connections (one or several of 'memory', 'http' and 'stdio').",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on each protocol generation and connection that its marker asks for."""
    if "askback" in metafunc.fixturenames:
        generations, connections = _chosen(metafunc.definition)
        cases = [(generation, over) for generation in generations for over in connections]
        ids = [generation if connections == CONNECTIONS[:1] else f"{generation}-{over}" for generation, over in cases]
        metafunc.parametrize("askback", cases, ids=ids, indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run async tests that use the fixture if no other plugin does."""
    given = pyfuncitem.funcargs
    if not inspect.iscoroutinefunction(pyfuncitem.obj) or "askback" not in given or "anyio_backend" in given:
        return None
    if any(pyfuncitem.get_closest_marker(name) for name in RUNNERS):
        return None
    import anyio

    arguments = {name: given[name] for name in inspect.signature(pyfuncitem.obj).parameters if name in given}
    anyio.run(functools.partial(pyfuncitem.obj, **arguments), backend="asyncio")
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the conversations of a failed test that uses the fixture, instead of the libraries between its lines."""
    rehearsal: Rehearsal | None = getattr(item, "funcargs", {}).get("askback")
    if rehearsal is None or call.excinfo is None:
        return (yield)
    error = call.excinfo.value
    if not item.config.getoption("fulltrace"):
        call.excinfo = pytest.ExceptionInfo[BaseException].from_exception(
            error.with_traceback(_without_libraries(error))
        )
    report = yield
    # A ConversationError shows its own conversation.
    shown = getattr(error, "conversation", None)
    others = [each.picture() for each in rehearsal.conversations if each.calls and each is not shown]
    if report.failed and others:
        report.sections.append(("askback conversation", "\n\n".join(others)))
    return report


@pytest.fixture
def askback(request: pytest.FixtureRequest) -> "Rehearsal":
    """Tests servers that ask and agents that answer, on each protocol generation."""
    from askback.testing import Rehearsal

    return Rehearsal(*getattr(request, "param", ()))


def _without_libraries(error: BaseException) -> TracebackType | None:
    """The traceback of an error, without the frames of libraries."""
    entries: list[TracebackType] = []
    entry = error.__traceback__
    while entry is not None:
        if str(entry.tb_frame.f_globals.get("__name__")).partition(".")[0] not in LIBRARIES:
            entries.append(entry)
        entry = entry.tb_next
    trace = None
    for each in reversed(entries):
        trace = TracebackType(trace, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return trace or error.__traceback__


def _chosen(test: pytest.Item) -> tuple[Sequence[str], Sequence[str]]:
    """The generations and connections in a test's marker, checked."""
    marker = test.get_closest_marker("askback")
    if marker is None:
        return GENERATIONS, CONNECTIONS[:1]
    generations: Sequence[str] = marker.args or GENERATIONS
    given: Any = marker.kwargs.get("over", CONNECTIONS[0])
    over = tuple(cast("Sequence[str]", given)) if isinstance(given, list | tuple) else (given,)
    known = all(each in GENERATIONS for each in generations) and all(each in CONNECTIONS for each in over)
    if not known or not over or set(marker.kwargs) - {"over"}:
        raise pytest.UsageError(
            f"{test.nodeid}: the marker askback takes generations out of {GENERATIONS}, and over= with one or "
            f"several of {CONNECTIONS}, not {marker.args} and {marker.kwargs}"
        )
    return generations, over
