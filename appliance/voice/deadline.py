"""Every wait has a deadline; a stage that misses it fails under its own name."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from appliance.errors import DeadlineFault
from appliance.events import Mark


@asynccontextmanager
async def within(stage: str, seconds: float) -> AsyncIterator[None]:
    """Raises DeadlineFault when the block does not finish in time."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise DeadlineFault(stage, seconds) from None


def mark(at: int, turn: int, stage: str, name: str) -> Mark:
    """A point on the waterfall, now."""
    return Mark(at, turn, stage, name, time.monotonic())
