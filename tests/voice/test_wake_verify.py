"""The recogniser's opinion on wake words: what it wrote for recordings of them, and for other sounds."""

from __future__ import annotations

import pytest

from appliance.runtime.asr import load
from appliance.voice.verify import heard, verify
from firmware import wav
from firmware.frame import to_pcm


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("Alexa.", "Alexa"),
        ("Okay, now boo.", "Okay Nabu"),
        ("Okay, Naboo. What time is it?", "Okay Nabu"),
        ("Well, hey, Jarvis.", "Hey Jarvis"),
        ("Hey, my craft.", "Hey Mycroft"),
        ("Hey, Minecraft.", "Hey Mycroft"),
    ],
)
def test_the_phrase_is_found_however_it_is_spelt(text: str, phrase: str) -> None:
    assert heard(text, phrase)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("", "Alexa"),
        ("Computer.", "Okay Nabu"),
        ("Smart Mirror.", "Alexa"),
        ("Hey, you.", "Hey Jarvis"),
        ("I would like a large coffee with milk.", "Hey Mycroft"),
        ("Okay, not now.", "Okay Nabu"),
    ],
)
def test_other_words_are_not_the_phrase(text: str, phrase: str) -> None:
    assert not heard(text, phrase)


@pytest.mark.shared
@pytest.mark.models("whisper-tiny.en")
def test_recordings_are_told_apart(shelf, shared_audio) -> None:  # type: ignore[no-untyped-def]
    recogniser = load(shelf.built("whisper-tiny.en"), threads=1)
    found = {
        word: verify(recogniser, to_pcm(wav.read(each.path).samples), "Alexa", "en")
        for word in ("alexa", "computer")
        for each in [next(each for each in shared_audio if f"wake/{word}/" in str(each.path))]
    }
    assert found == {"alexa": True, "computer": False}
