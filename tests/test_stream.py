"""The laws of a line."""

import asyncio

import pytest

from appliance.events import Event, Token
from appliance.stream import Events, line


async def count(limit: int, made: list[int] | None = None) -> Events:
    for number in range(limit):
        if made is not None:
            made.append(number)
        yield Event(number, 0)


async def passing(events: Events) -> Events:
    async for event in events:
        yield event


async def test_order_is_kept_and_everything_arrives():
    async with line(count(100), passing, passing) as events:
        assert [event.at async for event in events] == list(range(100))


async def test_a_stage_adds_in_place_and_passes_the_rest_on():
    async def add(events: Events) -> Events:
        async for event in events:
            yield event
            if event.at == 1:
                yield Token(event.at, 0, "new")

    async with line(count(3), add, passing) as events:
        seen = [type(event).__name__ async for event in events]
    assert seen == ["Event", "Event", "Token", "Event"]


async def test_a_reader_that_stalls_makes_the_source_wait():
    made: list[int] = []
    async with line(count(1000, made), depth=4) as events:
        await anext(events)
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(made) <= 7
        await anext(events)


async def test_leaving_the_block_runs_every_stage_s_clean_up():
    left: list[str] = []

    def busy(name: str):
        async def stage(events: Events) -> Events:
            try:
                async for event in events:
                    await asyncio.sleep(3600)
                    yield event
            finally:
                left.append(name)

        return stage

    async with line(count(10), busy("a"), busy("b"), busy("c")):
        await asyncio.sleep(0.01)
    assert "a" in left
    assert len(asyncio.all_tasks()) == 1


async def test_leaving_by_an_exception_leaves_no_task():
    async def leave() -> None:
        async with line(count(10), passing) as events:
            async for _ in events:
                raise KeyError

    with pytest.raises(KeyError):
        await leave()
    assert len(asyncio.all_tasks()) == 1


async def test_a_failure_is_raised_at_the_reader_once_and_in_its_place():
    async def failing(events: Events) -> Events:
        async for event in events:
            if event.at == 3:
                raise ValueError("three")
            yield event

    seen: list[int] = []

    async def read() -> None:
        async with line(count(10), failing, passing) as events:
            async for event in events:
                seen.append(event.at)

    with pytest.raises(ValueError, match="three"):
        await read()
    assert seen == [0, 1, 2]
    assert len(asyncio.all_tasks()) == 1


async def test_a_source_that_never_ends_is_closed_with_the_block():
    closed = asyncio.Event()

    async def forever() -> Events:
        try:
            while True:
                yield Event(0, 0)
                await asyncio.sleep(0)
        finally:
            closed.set()

    async with line(forever(), passing) as events:
        await anext(events)
    assert closed.is_set()
