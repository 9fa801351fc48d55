"""The pytest plugin: the fixture `askback`, and the marker of the same name.

It stands outside the package, so that loading it imports nothing of askback: test suites that do not use it pay
nothing, and coverage of the package sees its first import.
"""

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from askback.testing import Rehearsal

GENERATIONS = ("2026-07-28", "2025-11-25")
CONNECTIONS = ("memory", "http", "stdio")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        "askback(*generations, over='memory'): run a test that uses the `askback` fixture on one protocol generation "
        "('2026-07-28' or '2025-11-25'), or over other connections ('memory', 'http', 'stdio', or several of them).",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: Any) -> None:
    """Have async tests that use the fixture run, also where nothing is configured for async tests."""
    if inspect.iscoroutinefunction(obj) and _uses_fixture(obj) and not _is_run_by_another(collector.config, obj):
        backend = pytest.param("asyncio", id=pytest.HIDDEN_PARAM)
        pytest.mark.usefixtures("anyio_backend")(obj)
        pytest.mark.parametrize("anyio_backend", [backend], scope="module")(obj)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each protocol generation and connection that it is to run on."""
    if "askback" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("askback")
    generations, connections = _chosen(marker, metafunc.definition.nodeid)
    cases = [(generation, over) for generation in generations for over in connections]
    ids = [generation if connections == CONNECTIONS[:1] else f"{generation}-{over}" for generation, over in cases]
    metafunc.parametrize("askback", cases, ids=ids, indirect=True)


@pytest.fixture
def askback(request: pytest.FixtureRequest) -> "Rehearsal":
    """Tries out servers that ask and agents that answer, on each protocol generation."""
    from askback.testing import Rehearsal

    return Rehearsal(*request.param)


def _uses_fixture(test: Any) -> bool:
    return "askback" in inspect.signature(test).parameters


def _is_run_by_another(config: pytest.Config, test: Any) -> bool:
    """Whether somebody has said how an async test is to be run; inherited tests are collected more than once."""
    marks: list[pytest.Mark] = getattr(test, "pytestmark", [])
    modes = {_setting(config, name) for name in ("anyio_mode", "asyncio_mode")}
    return "auto" in modes or any(
        mark.name in ("anyio", "asyncio", "trio") or "anyio_backend" in mark.args for mark in marks
    )


def _setting(config: pytest.Config, name: str) -> Any:
    """A setting of another plugin, which may not be there."""
    try:
        return config.getoption(name, None) or config.getini(name)
    except (KeyError, ValueError):
        return None


def _chosen(marker: pytest.Mark | None, test: str) -> tuple[Sequence[str], Sequence[str]]:
    """The generations and the connections that a marker says, checked."""
    if marker is None:
        return GENERATIONS, CONNECTIONS[:1]
    generations: Sequence[str] = marker.args or GENERATIONS
    given: str | Sequence[str] = marker.kwargs.get("over", CONNECTIONS[0])
    over = (given,) if isinstance(given, str) else tuple(given)
    if not set(generations) <= set(GENERATIONS) or not set(over) <= set(CONNECTIONS) or set(marker.kwargs) - {"over"}:
        raise pytest.UsageError(
            f"{test}: the marker askback takes generations, of {GENERATIONS}, and over=, one or several of "
            f"{CONNECTIONS}, not {marker.args} and {marker.kwargs}"
        )
    return generations, over
