"""Keeps a run within its limits when models answer several questions at the same time."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakValueDictionary

import anyio
from pydantic_ai import RunContext, RunUsage


class _Turn:
    """A run's turn. It lives, and keeps the usage it belongs to alive, only while somebody has it or waits for it."""

    def __init__(self, usage: RunUsage) -> None:
        self.usage = usage
        self.lock = anyio.Lock()


_turns: WeakValueDictionary[int, _Turn] = WeakValueDictionary()


@asynccontextmanager
async def model_turn(ctx: RunContext[Any]) -> AsyncGenerator[None]:
    """Make the model requests of a run one at a time.

    Limits are checked before a request and usage is counted after it, so concurrent requests would all pass the check.
    """
    turn = _turns.setdefault(id(ctx.usage), _Turn(ctx.usage))
    async with turn.lock:
        yield
