"""Playback: what was heard is known to the word, and nothing is heard behind an interruption."""

import asyncio
from threading import Event

import numpy as np
import pytest

from appliance.errors import DeadlineFault
from appliance.events import Event as Moment
from appliance.events import Mark, Phrase, Played, Speech
from appliance.runtime.worker import Worker
from appliance.stream import Events, line
from appliance.voice.mouth import HELD, Ledger, Patience, Spoken, mouth
from firmware.fake import Fake
from firmware.frame import FRAME, RATE
from firmware.mixer import Mixer

SECOND = np.full(RATE, 1000, np.int16).astype(np.float32) / 32768


def speech(*words: tuple[str, float], seconds: float = 1.0, last: bool = True, rate: int = RATE) -> Speech:
    samples = np.full(int(seconds * rate), 0.03, np.float32)
    return Speech(0, 1, samples, rate, tuple((word, int(until * rate)) for word, until in words), last)


async def source(*given: Moment) -> Events:
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


async def test_words_are_told_while_the_rest_still_waits_for_room(worker):
    mixer, told = Mixer(RATE), Event()
    mixer.attach(RATE, wait=lambda: mixer.take(FRAME) if told.is_set() or mixer.clock < RATE // 2 else told.wait(0.01))
    given = [speech(("one", 0.2), ("two", 2.9), seconds=3)]
    async with line(source(*given), mouth(mixer.player("speech"), worker, Spoken())) as events:
        seen = []
        async for event in events:
            if isinstance(event, Played):
                seen += event.words
                told.set()
    assert seen == ["one", "two"]


async def test_a_hold_costs_no_word_and_its_time_does_not_count(worker, monkeypatch):
    monkeypatch.setattr("appliance.voice.mouth.SLACK", 0.05)
    mixer, spoken = Mixer(RATE), Spoken()
    out = []
    mixer.attach(RATE, wait=lambda: out.append(mixer.take(FRAME)))
    player = mixer.player("speech")
    player.hold()
    given = [Phrase(0, 1, " one two?", "one two"), speech(("one", 0.1), ("two", 0.2), seconds=0.2)]
    async with line(source(*given), mouth(player, worker, spoken)) as events:
        release = asyncio.get_running_loop().call_later(0.6, player.resume)
        seen = [event async for event in events]
    release.cancel()
    assert [word for event in seen if isinstance(event, Played) for word in event.words] == ["one", "two"]
    assert spoken.text == spoken.phrase.strip() == "one two?"
    assert np.count_nonzero(np.concatenate(out)) >= RATE // 5 - 1


async def test_a_loudspeaker_that_does_not_go_on_is_given_up(worker, monkeypatch):
    monkeypatch.setattr("appliance.voice.mouth.SLACK", 0.05)
    player = Mixer(RATE).player("speech", capacity=0.5)
    with pytest.raises(DeadlineFault):
        async with line(source(speech(seconds=1.0)), mouth(player, worker, Spoken())) as events:
            _ = [event async for event in events]
    assert player.pending == 0


def test_patience_with_a_hold_has_an_end_too():
    player = Mixer(RATE).player("speech")
    patience = Patience(player, 1.0)
    player.hold()
    patience.spend(HELD - 1)
    player.resume()
    patience.spend(0.9)
    player.hold()
    patience.spend(0.9)
    with pytest.raises(DeadlineFault):
        patience.spend(0.2)
    player.resume()
    with pytest.raises(DeadlineFault):
        Patience(player, 1.0).spend(1.1)


def test_the_phrase_that_sounds_is_known():
    spoken = Spoken()
    ledger = Ledger(spoken, 100)
    for text in (" Hello.", " And you?"):
        ledger.phrase(text)
        ledger.queue(speech(("a", 0.4), seconds=0.5, last=False))
        ledger.queue(speech(("b", 0.5), seconds=0.5))
    ledger.heard(100)
    assert spoken.phrase == ""
    ledger.heard(101)
    assert (spoken.phrase, spoken.ahead(2)) == (" Hello.", ["Hello."])
    ledger.heard(100 + RATE)
    assert spoken.phrase == " Hello."
    ledger.heard(100 + RATE + 1)
    assert (spoken.phrase, spoken.ahead(2)) == (" And you?", ["And", "you?"])
    assert ledger.heard(100 + RATE + RATE // 2) == ("a",)
    assert spoken.ahead(2) == ["you?"]
    assert spoken.text == "Hello. a"
