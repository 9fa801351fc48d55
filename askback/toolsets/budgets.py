"""Keeping to a run's limits when several questions are answered by models at the same time."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakValueDictionary

import anyio
from pydantic_ai import RunContext, RunUsage


class _Turn:
    """The turn of one run: alive, and with it the usage it belongs to, only while somebody waits for it or has it."""

    def __init__(self, usage: RunUsage) -> None:
        self.usage = usage
        self.lock = anyio.Lock()


_turns: WeakValueDictionary[int, _Turn] = WeakValueDictionary()


@asynccontextmanager
async def model_turn(ctx: RunContext[Any]) -> AsyncGenerator[None]:
    """One model request of a run at a time.

    Limits are checked before a request and counted after it, so requests made side by side would pass the same check.
    """
    turn = _turns.setdefault(id(ctx.usage), _Turn(ctx.usage))
    async with turn.lock:
        yield
