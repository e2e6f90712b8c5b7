"""Playback: what was heard is known to the word, and nothing is heard behind an interruption."""

import asyncio

import numpy as np
import pytest

from appliance.events import Event, Mark, Phrase, Played, Speech
from appliance.runtime.worker import Worker
from appliance.stream import Events, line
from appliance.voice.mouth import Ledger, Spoken, mouth
from firmware.fake import Fake
from firmware.frame import FRAME, RATE

SECOND = np.full(RATE, 1000, np.int16).astype(np.float32) / 32768


def speech(*words: tuple[str, float], seconds: float = 1.0, last: bool = True, rate: int = RATE) -> Speech:
    samples = np.full(int(seconds * rate), 0.03, np.float32)
    return Speech(0, 1, samples, rate, tuple((word, int(until * rate)) for word, until in words), last)


async def source(*given: Event) -> Events:
    for event in given:
        yield event


@pytest.fixture
def worker():
    made = Worker("mouth")
    yield made
    made.close()


async def test_a_phrase_that_was_heard_is_remembered_as_it_was_written(worker):
    sound, spoken = Fake(np.zeros(0, np.int16)), Spoken()
    given = [
        Phrase(0, 1, " $5, please.", "five dollars, please."),
        speech(("five", 0.3), ("dollars", 0.6), ("please.", 1)),
    ]
    async with line(source(*given), mouth(sound.player, worker, spoken)) as events:
        seen = [event async for event in events]
    assert spoken.text == "$5, please."
    assert [word for event in seen if isinstance(event, Played) for word in event.words] == [
        "five",
        "dollars",
        "please.",
    ]
    assert np.count_nonzero(sound.output()) == RATE


async def test_an_interruption_leaves_the_words_that_were_heard_and_no_sound(worker):
    spoken = Spoken()
    sound = Fake(np.zeros(0, np.int16), tail=None, pace=1.0)
    listening = asyncio.get_running_loop().run_in_executor(None, lambda: [None for _ in sound.frames()])
    given = [
        Phrase(0, 1, " one two three", "one two three"),
        speech(("one", 0.2), ("two", 5.0), ("three", 9.9), seconds=10),
    ]
    async with line(source(*given), mouth(sound.player, worker, spoken)) as events:
        async for event in events:
            if isinstance(event, Played):
                break
    heard = np.count_nonzero(sound.output())
    await asyncio.sleep(0.1)
    sound.close()
    await listening
    assert spoken.text == "one"
    assert np.count_nonzero(sound.output()) - heard <= 2 * FRAME


async def test_the_first_sound_is_marked(worker):
    sound = Fake(np.zeros(0, np.int16))
    async with line(source(speech(("a", 1.0))), mouth(sound.player, worker, Spoken())) as events:
        seen = [event async for event in events]
    assert [event.name for event in seen if isinstance(event, Mark)] == ["first sound"]


def test_words_are_crossed_off_in_order_at_any_rate():
    spoken = Spoken()
    ledger = Ledger(spoken, 100)
    ledger.phrase(" both words")
    ledger.queue(speech(("both", 0.5), seconds=0.5, last=False, rate=22_050))
    ledger.queue(speech(("words", 0.5), seconds=0.5, rate=22_050))
    assert ledger.heard(100 + RATE // 4) == ()
    assert ledger.heard(100 + RATE // 2) == ("both",)
    assert spoken.text == "both"
    assert ledger.heard(100 + RATE) == ("words",)
    assert spoken.text == "both words"
