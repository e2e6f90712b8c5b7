"""Short sounds: one for each class of failure, and one for attention that delays nobody."""

import numpy as np
import pytest

from appliance.events import Attending, Event, Failed
from appliance.stream import Events, line
from appliance.voice.earcon import PATTERNS, acknowledge, earcon
from appliance.voice.failure import CUES
from firmware.frame import FRAME, RATE
from firmware.mixer import Mixer


async def source(*given: Event) -> Events:
    for event in given:
        yield event


def test_every_kind_of_failure_has_a_sound_of_its_own():
    assert {kind for kind, _ in CUES.values()} == set(PATTERNS)
    sounds = {kind: earcon(Failed(0, 1, "say", kind, "", "")).samples for kind in PATTERNS}
    assert all(np.abs(sound).max() <= 0.25 for sound in sounds.values())
    assert all(np.abs(sound[[0, -1]]).max() < 0.01 for sound in sounds.values())
    assert len({sound.tobytes() for sound in sounds.values()}) == len(sounds)


@pytest.mark.parametrize(
    ("events", "tones"),
    [
        ([(True, "word")], 1),
        ([(True, "button"), (False, "patience")], 1),
        ([(True, "word"), (True, "word"), (True, "word")], 1),
        ([(True, "follow-up"), (True, "always"), (False, "answered")], 0),
    ],
)
async def test_a_call_is_acknowledged_by_one_soft_tone(events, tones):
    mixer = Mixer(RATE)
    player = mixer.player("earcon")
    given = [Attending(0, 1, on, why) for on, why in events]
    async with line(source(*given), acknowledge(player)) as seen:
        assert [event async for event in seen] == given
    out = np.concatenate([mixer.take(FRAME) for _ in range(100)])
    assert player.underruns == 0
    assert 0.11 * RATE * tones <= np.count_nonzero(out) <= 0.13 * RATE * tones
    assert np.abs(out).max(initial=0) < 0.08 * 32768
