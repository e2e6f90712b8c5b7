"""Music is quiet while the box attends, and as loud as before afterwards, however it ends."""

import asyncio

import numpy as np
import pytest

from appliance.events import Attending, Event
from appliance.stream import Events, line
from appliance.voice.duck import duck
from firmware.frame import RATE
from firmware.mixer import DUCKED, Mixer

HALF = RATE // 2


async def loudness(*given: Event) -> tuple[float, float]:
    """Of music while the events pass, the last of them seen, and behind them."""
    mixer = Mixer(RATE)
    mixer.player("music", ducks=True, capacity=60.0).play(np.full(10 * RATE, 8000, np.int16), RATE)

    measured = asyncio.Event()

    async def source() -> Events:
        for event in given:
            yield event
        await measured.wait()

    inside = 0.0
    async with line(source(), duck(mixer)) as events:
        async for event in events:
            if event is given[-1]:
                inside = float(mixer.take(HALF)[-1])
                measured.set()
    return inside / 8000, float(mixer.take(HALF)[-1]) / 8000


async def test_music_gives_way_while_somebody_is_attended_to():
    inside, behind = await loudness(Attending(0, 0, True, "word"))
    assert inside == pytest.approx(10 ** (DUCKED / 20), abs=0.01)
    assert behind == pytest.approx(1.0, abs=0.01)


async def test_it_gives_way_once_whatever_the_reason_becomes():
    events = [Attending(0, 0, True, why) for why in ("word", "button", "follow-up")]
    inside, _ = await loudness(*events, Attending(0, 0, False, "answered"))
    assert inside == pytest.approx(1.0, abs=0.01)
