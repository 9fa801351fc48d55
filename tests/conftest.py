"""How every test runs: on asyncio, and without FastMCP's log."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """FastMCP prints every failing call, and most calls here are meant to fail."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
