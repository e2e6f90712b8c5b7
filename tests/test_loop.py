"""The whole loop on real models: a spoken question in, a spoken answer out, and nothing out of noise."""

from pathlib import Path

import numpy as np
import pytest

from appliance import config
from appliance.compose import Engines, talk
from appliance.events import Answered, Draft, Event, Failed, NoSpeech, Played, SpeechStarted, Token, Transcript
from appliance.runtime.model import finish
from appliance.voice.conversation import Conversation
from firmware.fake import Fake
from firmware.frame import RATE, Pcm, to_pcm, to_wave
from firmware.resample import resample

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def engines(shelf):
    settings = config.parse('[models]\nasr = "whisper-tiny.en"\n[think]\nmax_tokens = 60\nsentences = 9')
    return Engines(settings, shelf)


def spoken(engines: Engines, text: str, seed: int = 0) -> Pcm:
    """The words as a quiet room hears them, half a second of it in front."""
    sound = np.concatenate([chunk.samples for chunk in engines.speaker.say(text)])
    near = resample(sound, engines.speaker.rate, RATE)
    near = np.concatenate([np.zeros(RATE // 2, np.float32), near])
    return to_pcm(near + np.random.default_rng(seed).normal(0, 3e-4, len(near)).astype(np.float32))


async def hear(engines: Engines, sound: Fake, conversation: Conversation | None = None) -> list[Event]:
    async with talk(engines, sound, conversation or Conversation()) as events:
        return [event async for event in events]


def transcripts(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Transcript)]


async def test_a_spoken_question_gets_a_spoken_answer(engines):
    sound, conversation = Fake(spoken(engines, "What is the capital of France?"), tail=2.0), Conversation()
    events = await hear(engines, sound, conversation)
    assert transcripts(events) == ["What is the capital of France?"]
    answered = next(event for event in events if isinstance(event, Answered))
    assert answered.reason == "complete"
    assert "Paris" in answered.said
    assert [message.role for message in conversation.messages] == ["user", "assistant"]
    heard = finish(engines.recogniser.transcribe(to_wave(sound.output())))
    assert "Paris" in heard.text


async def test_two_questions_are_two_turns_of_one_conversation(engines):
    first, second = spoken(engines, "How are you today?"), spoken(engines, "What colour is the sky?")
    pause = np.zeros(40 * RATE, np.int16)
    conversation = Conversation()
    events = await hear(engines, Fake(np.concatenate([first, pause, second]), tail=2.0), conversation)
    assert [event.turn for event in events if isinstance(event, Answered)] == [1, 2]
    assert len(conversation.messages) == 4


async def test_a_replay_gives_the_same_turns(engines):
    question = spoken(engines, "How does a heat pump work?")
    runs = [await hear(engines, Fake(question, tail=2.0)) for _ in range(2)]
    kinds = (SpeechStarted, Draft, Transcript)
    first, second = ([event for event in run if isinstance(event, kinds)] for run in runs)
    assert first == second


async def test_speech_over_the_answer_ends_it(engines):
    question, over = spoken(engines, "Tell me a long story about a dog."), spoken(engines, "No, stop talking now.")
    sound: Fake

    def near():
        yield question
        while sound.player.played < RATE:
            yield np.zeros(RATE // 100, np.int16)
        yield over

    sound, conversation = Fake(near(), tail=2.0, pace=1.0), Conversation()
    events = await hear(engines, sound, conversation)
    answers = [event for event in events if isinstance(event, Answered)]
    assert answers[0].turn == 1
    assert answers[0].reason == "interrupted"
    assert conversation.messages[1].text == answers[0].said
    played = [event.turn for event in events if isinstance(event, Played)]
    assert played == sorted(played)


def noises() -> dict[str, Pcm]:
    random = np.random.default_rng(7)
    time = np.arange(5 * RATE) / RATE
    white = random.normal(0, 0.05, len(time))
    hum = 0.1 * np.sin(2 * np.pi * 50 * time) + 0.05 * np.sin(2 * np.pi * 150 * time)
    chord = sum(0.05 * np.sin(2 * np.pi * hertz * time) for hertz in (262, 330, 392)) * (
        1 + np.sin(2 * np.pi * 2 * time)
    )
    clicks = np.zeros(len(time))
    clicks[:: RATE // 4] = 0.8
    keyboard = np.convolve(clicks, random.normal(0, 0.3, 200) * np.exp(-np.arange(200) / 40))[: len(time)]
    fan = np.convolve(random.normal(0, 0.2, len(time)), np.ones(40) / 40, "same")
    sounds = {"silence": 0 * time, "white": white, "hum": hum, "music": chord, "keyboard": keyboard, "fan": fan}
    return {name: to_pcm(sound.astype(np.float32)) for name, sound in sounds.items()}


@pytest.mark.parametrize("name", list(noises()))
async def test_noise_is_no_turn_and_asks_nothing_of_the_language_model(engines, name):
    events = await hear(engines, Fake(noises()[name], tail=2.0))
    assert transcripts(events) == []
    assert not any(isinstance(event, Draft | Token | Answered | Failed) for event in events)


@pytest.mark.shared
async def test_recorded_noise_is_no_turn(engines, shared_audio):
    for recording in shared_audio:
        if recording.kind.startswith("noise") and recording.seconds < 40:
            events = await hear(engines, Fake(Path(recording.path), tail=2.0))
            assert transcripts(events) == [], recording.path.name
            assert not any(isinstance(event, Draft) for event in events)


@pytest.mark.shared
async def test_recorded_speech_is_a_turn(engines, shared_audio):
    said = {recording.path.name: recording for recording in shared_audio}
    events = await hear(engines, Fake(said["spk2_snt2.wav"].path, tail=2.0))
    assert transcripts(events) == ["What joy there is in living."]
    assert not any(isinstance(event, NoSpeech) for event in events)
