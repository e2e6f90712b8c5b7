"""What the basement delivers becomes events."""

import numpy as np

from appliance.events import Event, Heard, Muted, SoundBack, SoundLost, Woken
from appliance.runtime.worker import Worker
from appliance.voice.ears import ears
from firmware.frame import FRAME, Frame, Muting, Recovered, Trouble, Woke

SILENCE = np.zeros(FRAME, np.int16)


class Counting:
    """A detector that says how often it was asked."""

    def __init__(self) -> None:
        self.pushed: list[int] = []
        self.resets = 0

    def push(self, frame: Frame) -> float:
        self.pushed.append(frame.at)
        return 0.7

    def reset(self) -> None:
        self.resets += 1


async def listened(*frames: Frame) -> tuple[list[Event], Counting]:
    vad, worker = Counting(), Worker("ears")
    try:
        return [event async for event in ears(iter(frames), vad, worker)], vad
    finally:
        worker.close()


async def test_what_the_basement_noticed_comes_in_front_of_its_frame():
    notes = (
        Woke("alexa", 100, 900, 0.97, 0.9),
        Trouble("frozen", "no frames", "wait"),
        Recovered("frozen", 1.5),
        Muting(True),
    )
    events, _ = await listened(Frame(1600, SILENCE, notes=notes, doubt=0.25))
    assert events[:4] == [
        Woken(900, 0, "alexa", 100, 0.97, 0.9),
        SoundLost(1600, 0, "frozen", "no frames", "wait"),
        SoundBack(1600, 0, "frozen", 1.5),
        Muted(1600, 0, True),
    ]
    (heard,) = events[4:]
    assert isinstance(heard, Heard)
    assert (heard.at, heard.speech, heard.live, heard.doubt) == (1600, 0.7, True, 0.25)


async def test_no_model_sees_sound_behind_which_there_is_no_microphone():
    """C22: muted is not a lower volume: the detector is not asked, and begins afresh afterwards."""
    frames = [Frame(number * FRAME, SILENCE, live=number not in (1, 2)) for number in range(4)]
    events, vad = await listened(*frames)
    assert vad.pushed == [0, 3 * FRAME]
    assert vad.resets == 1
    assert [(event.live, event.speech) for event in events if isinstance(event, Heard)] == [
        (True, 0.7),
        (False, 0.0),
        (False, 0.0),
        (True, 0.7),
    ]
