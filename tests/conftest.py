"""How every test runs: on asyncio, without FastMCP's log, and without starting processes unless it is marked."""

import logging
import subprocess
from collections.abc import Iterator

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A connection over stdio is a process."""
    for item in items:
        if "stdio" in item.name.partition("[")[2]:
            item.add_marker("processes")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """FastMCP logs every failing call, and most calls here are meant to fail."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(autouse=True)
def marked_processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes are slow to start, so that `make quick` leaves out the tests that do."""

    def fail(*args: object, **options: object) -> None:
        raise AssertionError("A test that starts a process has to be marked: @pytest.mark.processes")

    if request.node.get_closest_marker("processes") is None:
        monkeypatch.setattr(subprocess.Popen, "__init__", fail)
