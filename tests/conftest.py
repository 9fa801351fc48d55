"""Both protocol generations, for every test that asks for them."""

import logging
from collections.abc import Iterator

import pytest

from tests.conversation import Generation


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["auto", "legacy"], ids=["2026-07-28", "2025-11-25"])
def generation(request: pytest.FixtureRequest) -> Generation:
    return request.param


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """FastMCP prints every failing call, and most calls here are meant to fail."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
