"""The whole box on real models, its loudspeaker in the room: it does not hear itself, and hears who speaks over it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from appliance import config
from appliance.compose import Engines, attend_rules, basement, talk
from appliance.events import (
    Answered,
    Attending,
    Event,
    Held,
    Mark,
    NoSpeech,
    SoundBack,
    SoundLost,
    SpeechStarted,
    Transcript,
    Woken,
)
from appliance.voice.attend import AttendRules, Attention
from appliance.voice.conversation import Conversation
from firmware.fake import Fake, Mishap, World
from firmware.frame import FRAME, RATE, Pcm, to_pcm
from firmware.keeper import Keeper
from firmware.mixer import Mixer
from firmware.resample import resample
from firmware.room import Room

pytestmark = pytest.mark.models

NOISE = -65.0
ALWAYS = AttendRules(mode="always")


@pytest.fixture(scope="module")
def engines(shelf):
    settings = config.parse('[models]\nasr = "whisper-tiny.en"\n[think]\nmax_tokens = 60\nsentences = 9')
    return Engines(settings, shelf)


def spoken(engines: Engines, text: str) -> Pcm:
    sound = np.concatenate([chunk.samples for chunk in engines.speaker.say(text)])
    return to_pcm(resample(sound, engines.speaker.rate, RATE))


def silence(seconds: float) -> Pcm:
    return np.zeros(round(seconds * RATE), np.int16)


def room() -> Room:
    return Room(delay=0.06, gain=-3.0, drift=60.0, soft=1.5)


async def run(engines: Engines, sound: Fake | Keeper, rules: AttendRules = ALWAYS) -> tuple[list[Event], Conversation]:
    conversation = Conversation()
    with basement(engines, sound) as front:
        async with talk(engines, front, conversation, attention=Attention(rules)) as events:
            return [event async for event in events], conversation


def of(kind: type, events: list[Event]) -> list:
    return [event for event in events if isinstance(event, kind)]


async def test_its_own_answer_is_no_turn(engines):
    """C01: the answer comes back from the room, a little weaker than it was."""
    sound = Fake(
        np.concatenate([silence(0.5), spoken(engines, "Tell me a long story about a dog.")]),
        tail=25.0,
        room=room(),
        noise=NOISE,
    )
    events, conversation = await run(engines, sound)
    assert [event.turn for event in of(Transcript, events)] == [1]
    assert [event.reason for event in of(Answered, events)] == ["complete"]
    assert len(conversation.messages) == 2
    assert np.count_nonzero(sound.output()) > 2 * RATE


@contextmanager
def over(engines: Engines, *words: Pcm) -> Iterator[Fake]:
    """A question, and over its answer, from its second second on, the words."""
    sound: Fake
    question = spoken(engines, "Tell me a long story about a dog.")

    def near() -> Iterator[Pcm]:
        yield silence(0.5)
        yield question
        while sound.player.played < 2 * RATE:
            yield silence(0.01)
        yield from words

    sound = Fake(near(), tail=4.0, pace=1.0, room=room(), noise=NOISE)
    yield sound


async def test_who_speaks_over_the_answer_is_heard(engines):
    with over(engines, spoken(engines, "What is the capital of France?")) as sound:
        events, conversation = await run(engines, sound)
    first, *_ = of(Answered, events)
    assert (first.turn, first.reason) == (1, "interrupted")
    assert conversation.messages[1].text == first.said
    assert any("capital of France" in event.text for event in of(Transcript, events)[1:])
    assert of(Held, events)[0].on


async def test_stop_ends_the_answer_and_asks_nothing(engines):
    """C38."""
    with over(engines, spoken(engines, "Stop!")) as sound:
        events, _ = await run(engines, sound)
    assert [event.reason for event in of(Answered, events)] == ["interrupted"]
    assert [event.turn for event in of(Transcript, events)] == [1]
    assert {event.turn for event in of(Mark, events) if event.stage in ("think", "say")} == {1}


async def test_a_cough_holds_the_answer_at_most_and_it_goes_on(engines):
    """C36."""
    random = np.random.default_rng(3)
    cough = random.normal(0, 6000, RATE // 4) * np.exp(-np.arange(RATE // 4) / 1500)
    with over(engines, cough.astype(np.int16)) as sound:
        events, _ = await run(engines, sound)
    assert [event.reason for event in of(Answered, events)] == ["complete"]
    holds = of(Held, events)
    assert [event.on for event in holds] == [True, False] * (len(holds) // 2)


async def test_a_wake_word_opens_a_turn_and_is_no_part_of_it(engines):
    """C17: the question follows without a pause; what was said before is nobody's."""
    unasked = spoken(engines, "How are you today?")
    called = np.concatenate([spoken(engines, "Okay Nabu."), spoken(engines, "What is the capital of France?")])
    sound = Fake(np.concatenate([silence(1), unasked, silence(2), called]), tail=20.0, room=room(), noise=NOISE)
    events, _ = await run(engines, sound, attend_rules(engines.config))
    assert [event.word for event in of(Woken, events)] == ["okay-nabu"]
    assert [event.text for event in of(Transcript, events)] == ["What is the capital of France?"]
    assert next((event.on, event.why) for event in of(Attending, events)) == (True, "word")
    assert of(Attending, events)[-1].on is False


@pytest.mark.parametrize("kind", ["unplugged", "server", "frozen", "silence"])
async def test_a_card_that_fails_between_two_questions_costs_neither(engines, kind):
    first, second = spoken(engines, "How are you today?"), spoken(engines, "What is the capital of France?")
    near = np.concatenate([silence(0.5), first, silence(30), second])
    failing = len(first) + 22 * RATE
    world = World(near, tail=25.0, mishaps=[Mishap(failing, kind, 4.0)])
    keeper = Keeper(
        lambda at, mixer, listen=True: Fake(world, mixer=mixer, at=at, noise=NOISE),
        Mixer(),
        clock=world.now,
        sleep=world.sleep,
        aside=lambda job: job(),
    )
    events, _ = await run(engines, keeper)
    assert [event.turn for event in of(Answered, events)] == [1, 2]
    assert [event.kind for event in of(SoundLost, events)] == [kind]
    (back,) = of(SoundBack, events)
    assert back.kind == kind
    assert back.seconds <= 4.0 + 3.0


async def test_a_box_that_is_muted_hears_nothing_and_then_again(engines):
    """C22."""
    question = spoken(engines, "What is the capital of France?")
    sound = Fake(np.concatenate([silence(1), question, silence(2), question]), tail=20.0, noise=NOISE)
    conversation = Conversation()
    with basement(engines, sound) as front:
        calls: list[tuple[int, Callable[[], None]]] = [
            (0, lambda: front.mute(True)),
            (RATE + len(question) + RATE, lambda: front.mute(False)),
        ]

        def tick() -> None:
            while calls and sound.now >= calls[0][0]:
                calls.pop(0)[1]()

        front._tick = tick
        async with talk(engines, front, conversation) as events:
            seen = [event async for event in events]
    assert len(of(SpeechStarted, seen)) == 1
    assert len(of(Transcript, seen)) == 1
    assert not [event for event in of(NoSpeech, seen) if event.at < RATE + len(question)]
    assert front.heard < sound.now // FRAME - 100
