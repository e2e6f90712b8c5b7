"""The one abstraction: events flowing through stages, joined into a line.

A stage takes a stream of events and returns one. It consumes what it understands and passes everything else on, in
order. Each stage of a line runs in a task of its own; the tasks are joined by bounded queues, so that a slow stage
makes the ones before it wait. Leaving the block cancels and joins them all: that is the only interruption there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from appliance.events import Event

Events = AsyncIterator[Event]
Stage = Callable[[Events], Events]

_End = object()


async def _drain(queue: asyncio.Queue[object]) -> Events:
    while (item := await queue.get()) is not _End:
        if isinstance(item, BaseException):
            raise item
        assert isinstance(item, Event)
        yield item


async def _pump(source: Events, queue: asyncio.Queue[object]) -> None:
    """Moves a stage's output into the queue behind it. A failure travels down the line in its place in the order,
    so that what was produced before it is still delivered."""
    try:
        async for event in source:
            await queue.put(event)
    except Exception as error:  # noqa: BLE001 - it is raised again at the reader
        await queue.put(error)
    else:
        await queue.put(_End)
    finally:
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()


@asynccontextmanager
async def line(source: Events, *stages: Stage, depth: int = 8) -> AsyncIterator[Events]:
    """Runs `source` through `stages` and yields the last stage's events.

    `depth` bounds each queue, in events. An exception in a stage is raised at the reader, once, after the events that
    were produced before it; the whole line is then closed by leaving the block.
    """
    tasks: list[asyncio.Task[None]] = []
    events = source
    try:
        for stage in (None, *stages):
            queue: asyncio.Queue[object] = asyncio.Queue(depth)
            tasks.append(asyncio.create_task(_pump(events if stage is None else stage(events), queue)))
            events = _drain(queue)
        yield events
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
