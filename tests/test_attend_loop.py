"""Attention on real models: what is said behind the wake word is heard whole, and the wake word itself never."""

from collections.abc import AsyncIterator, Callable

import numpy as np
import pytest

from appliance import config
from appliance.compose import Engines, endpoint_rules, hear_rules
from appliance.events import Answered, Attending, Event, Heard, Muted, NoSpeech, SpeechStarted, Transcript, Woken
from appliance.runtime.worker import Worker
from appliance.stream import Events, line
from appliance.voice.address import ALONE, address
from appliance.voice.attend import AttendRules, Attention, attend
from appliance.voice.endpoint import endpoint
from appliance.voice.hear import hear
from appliance.voice.verify import verify
from firmware.frame import FRAME, RATE, Frame, Pcm, to_pcm
from firmware.resample import resample

pytestmark = pytest.mark.models

MS = RATE // 1000
PHRASES = ("okay nabu", "hey jarvis", "alexa")
Say = Callable[[str], Pcm]


@pytest.fixture(scope="module")
def engines(shelf):
    return Engines(config.parse("[hear]\npartial_ms = 0"), shelf)


@pytest.fixture(scope="module")
def say(engines) -> Say:
    """The words without the silence around them."""

    def words(text: str) -> Pcm:
        near = resample(
            np.concatenate([chunk.samples for chunk in engines.speaker.say(text)]), engines.speaker.rate, RATE
        )
        loud = np.flatnonzero(np.convolve(near**2, np.ones(FRAME) / FRAME, "same") > 1e-4)
        return to_pcm(near[loud[0] : loud[-1]])

    return words


def silence(ms: int) -> Pcm:
    return np.zeros(ms * MS, np.int16)


def room(*parts: Pcm) -> Pcm:
    """A quiet room, a whole number of frames."""
    near = np.concatenate([silence(1000), *parts, silence(2500)])
    near = near[: len(near) // FRAME * FRAME].astype(np.float32)
    return np.rint(near + np.random.default_rng(0).normal(0, 10, len(near))).astype(np.int16)


async def ears(engines: Engines, near: Pcm, *events: Event, muted: int | None = None) -> AsyncIterator[Event]:
    """What the ears send: each event 100 ms behind its time, as wake words are."""
    due = sorted(events, key=lambda event: event.at)
    with engines.detector() as vad:
        for at in range(0, len(near), FRAME):
            while due and due[0].at + 100 * MS <= at:
                yield due.pop(0)
            live = muted is None or at < muted
            if at == muted:
                yield Muted(at, 0, True)
            frame = Frame(at, near[at : at + FRAME] if live else np.zeros(FRAME, np.int16))
            yield Heard(at, 0, frame.samples, vad.push(frame) if live else 0.0, live)


async def hears(engines: Engines, source: Events) -> list[Event]:
    """The listening line; each turn is answered at once."""

    async def answers(events: Events) -> Events:
        async for event in events:
            yield event
            if isinstance(event, Transcript):
                yield Answered(event.at, event.turn, "", "complete")

    workers = [Worker("turn end"), Worker("hear"), Worker("aside")]
    attention = Attention(AttendRules(patience_s=6.0, follow_up_s=6.0))
    stages = (
        attend(attention),
        endpoint(endpoint_rules(engines.config), engines.turn_end, workers[0]),
        hear(engines.recogniser, workers[1], workers[2], hear_rules(engines.config)),
        address(PHRASES),
        answers,
        attention.watch,
    )
    try:
        async with line(source, *stages) as events:
            return [event async for event in events]
    finally:
        for worker in workers:
            worker.close()


def woken(end: int) -> Woken:
    return Woken(end, 0, "okay-nabu", end - 700 * MS, 0.9, 0.8)


def transcripts(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Transcript)]


@pytest.mark.parametrize("error_ms", [-80, 0, 60])
@pytest.mark.parametrize("phrase", ["okay Nabu,", "hey Jarvis,"])
async def test_an_order_right_behind_the_wake_word_is_heard_whole_and_alone(engines, say, phrase, error_ms):
    name, order = say(phrase), say("turn on the kitchen light.")
    end = RATE + len(name)
    seen = await hears(engines, ears(engines, room(name, order), woken(end + error_ms * MS)))
    assert [text.lower() for text in transcripts(seen)] == ["turn on the kitchen light."]
    first = next(event for event in seen if isinstance(event, SpeechStarted))
    assert first.at <= end


@pytest.mark.parametrize("pause_ms", [300, 1500])
async def test_a_pause_behind_the_wake_word_makes_no_turn_of_its_own(engines, say, pause_ms):
    name = say("okay Nabu,")
    near = room(name, silence(pause_ms), say("what time is it?"))
    seen = await hears(engines, ears(engines, near, woken(RATE + len(name))))
    assert transcripts(seen) == ["What time is it?"]
    assert sum(isinstance(event, SpeechStarted) for event in seen) == 1


async def test_the_wake_word_alone_asks_nothing_and_is_waited_for(engines, say):
    name = say("okay Nabu,")
    near = room(name, silence(6500))
    seen = await hears(engines, ears(engines, near, woken(RATE + len(name))))
    assert transcripts(seen) == []
    assert [(event.on, event.why) for event in seen if isinstance(event, Attending)] == [
        (True, "word"),
        (False, "patience"),
    ]


async def test_without_the_wake_word_nothing_is_heard(engines, say):
    seen = await hears(engines, ears(engines, room(say("what time is it?"))))
    assert seen == []


async def test_a_follow_up_needs_no_wake_word_and_one_that_is_said_is_taken_off(engines, say):
    name, order = say("hey Jarvis,"), say("what time is it?")
    parts = [name, order, silence(2500), say("is it raining outside?"), silence(2500), name, order]
    ends = [RATE + sum(map(len, parts[:until])) for until in (1, 6)]
    seen = await hears(engines, ears(engines, room(*parts), *map(woken, ends)))
    texts = [text.lower() for text in transcripts(seen)]
    assert texts == ["what time is it?", "is it raining outside?", "what time is it?"]


async def test_the_wake_word_alone_in_a_follow_up_is_no_question(engines, say):
    name = say("okay Nabu.")
    parts = [name, say("what time is it?"), silence(2500), name]
    ends = [RATE + sum(map(len, parts[:until])) for until in (1, 4)]
    seen = await hears(engines, ears(engines, room(*parts), *map(woken, ends)))
    assert len(transcripts(seen)) == 1
    assert [event.why for event in seen if isinstance(event, NoSpeech)] == [ALONE]


async def test_a_microphone_that_is_closed_in_mid_order_ends_the_turn_by_silence(engines, say):
    name, order = say("okay Nabu,"), say("turn on the kitchen light.")
    end = RATE + len(name)
    closed = (end + len(order) + 20 * MS) // FRAME * FRAME
    seen = await hears(engines, ears(engines, room(name, order), woken(end), muted=closed))
    assert [text.lower() for text in transcripts(seen)] == ["turn on the kitchen light."]
    assert [event.why for event in seen if isinstance(event, Attending)][-1] == "muted"


@pytest.mark.parametrize(
    ("text", "phrase", "is_it"),
    [
        ("okay Nabu,", "okay nabu", True),
        ("hey Jarvis,", "hey jarvis", True),
        ("Alexa,", "alexa", True),
        ("hey Jarvis,", "okay nabu", False),
        ("okay, now book a table.", "okay nabu", False),
    ],
)
async def test_the_recogniser_confirms_a_wake_word(engines, say, text, phrase, is_it):
    assert verify(engines.recogniser, np.concatenate([silence(500), say(text)]), phrase) is is_it


async def test_of_silence_it_confirms_nothing(engines):
    assert not verify(engines.recogniser, silence(1000), "okay nabu")
