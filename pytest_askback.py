"""The pytest plugin: the fixture `askback`, and the marker of the same name.

It stands outside the package, so that loading it imports nothing of askback: test suites that do not use it pay
nothing, and coverage of the package sees its first import.
"""

import functools
import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from askback.testing import Rehearsal

GENERATIONS = ("2026-07-28", "2025-11-25")
CONNECTIONS = ("memory", "http", "stdio")

RUNNERS = ("anyio", "asyncio", "trio")
"""The markers by which other plugins are told to run an async test."""


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        "askback(*generations, over='memory'): run a test that uses the `askback` fixture on one protocol generation "
        "('2026-07-28' or '2025-11-25'), or over other connections ('memory', 'http', 'stdio', or several of them).",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each protocol generation and connection that it is to run on."""
    if "askback" in metafunc.fixturenames:
        generations, connections = _chosen(metafunc.definition)
        cases = [(generation, over) for generation in generations for over in connections]
        ids = [generation if connections == CONNECTIONS[:1] else f"{generation}-{over}" for generation, over in cases]
        metafunc.parametrize("askback", cases, ids=ids, indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run async tests that use the fixture where nothing is set up to run async tests."""
    given = pyfuncitem.funcargs
    if not inspect.iscoroutinefunction(pyfuncitem.obj) or "askback" not in given or "anyio_backend" in given:
        return None
    if any(pyfuncitem.get_closest_marker(name) for name in RUNNERS):
        return None
    import anyio

    arguments = {name: given[name] for name in inspect.signature(pyfuncitem.obj).parameters if name in given}
    anyio.run(functools.partial(pyfuncitem.obj, **arguments), backend="asyncio")
    return True


@pytest.fixture
def askback(request: pytest.FixtureRequest) -> "Rehearsal":
    """Tries out servers that ask and agents that answer, on each protocol generation."""
    from askback.testing import Rehearsal

    return Rehearsal(*getattr(request, "param", ()))


def _chosen(test: pytest.Item) -> tuple[Sequence[str], Sequence[str]]:
    """The generations and the connections that a test's marker says, checked."""
    marker = test.get_closest_marker("askback")
    if marker is None:
        return GENERATIONS, CONNECTIONS[:1]
    generations: Sequence[str] = marker.args or GENERATIONS
    given: Any = marker.kwargs.get("over", CONNECTIONS[0])
    over = tuple(cast("Sequence[str]", given)) if isinstance(given, list | tuple) else (given,)
    known = all(each in GENERATIONS for each in generations) and all(each in CONNECTIONS for each in over)
    if not known or not over or set(marker.kwargs) - {"over"}:
        raise pytest.UsageError(
            f"{test.nodeid}: the marker askback takes generations, of {GENERATIONS}, and over=, one or several of "
            f"{CONNECTIONS}, not {marker.args} and {marker.kwargs}"
        )
    return generations, over
