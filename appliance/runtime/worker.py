"""Where blocking work runs: one thread per worker, so that the event loop never waits for a matrix product."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from appliance.runtime.model import Steps

T = TypeVar("T")
P = ParamSpec("P")


class Worker:
    """Runs blocking calls one after another in a thread of its own.

    A call that has started cannot be stopped; a caller that is cancelled leaves at once, and whoever calls next waits
    for the rest of that one step. Long work is therefore handed over in steps.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: function(*args, **kwargs))

    async def iterate(self, items: Iterator[T]) -> AsyncGenerator[T, None]:
        """Yields what the iterator yields, each `next` as one call; closes it when the caller leaves."""
        end = object()
        try:
            while (item := await self.call(next, items, end)) is not end:
                yield item  # type: ignore[misc]
        finally:
            self._close(items)

    async def finish(self, steps: Steps[T]) -> T:
        """Runs a stepped computation to its end and returns its result."""

        def step() -> tuple[bool, T | None]:
            try:
                next(steps)
            except StopIteration as end:
                return True, end.value
            return False, None

        try:
            while True:
                done, value = await self.call(step)
                if done:
                    return value  # type: ignore[return-value]
        finally:
            self._close(steps)

    def _close(self, items: object) -> None:
        """Closing runs behind the step that may still be going on: a running generator cannot be closed."""
        close = getattr(items, "close", None)
        if close is not None:
            self._pool.submit(close)

    def close(self) -> None:
        """Drops what waits and joins the thread."""
        self._pool.shutdown(wait=True, cancel_futures=True)


__all__ = ["Worker"]
