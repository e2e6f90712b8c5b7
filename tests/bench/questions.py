"""Spoken questions: synthesised with Parley's voice at varied speed and loudness, over a little room noise."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np

from appliance.voice.say import Speaker
from firmware import wav
from firmware.frame import RATE, Wave
from firmware.resample import Resampler

QUESTIONS = (
    "What are you?",
    "Can you work without the internet?",
    "Who can hear what I say?",
    "What is the capital of France?",
    "How does a heat pump work?",
    "Tell me something about the moon.",
    "What colour is the sky in the evening?",
    "Hello, how are you today?",
    "Why do leaves turn red in autumn?",
    "What should I cook with potatoes and eggs?",
    "How long does it take to boil an egg?",
    "What is the difference between a crow and a raven?",
    "Is it safe to drink water from the tap?",
    "How many days are there in a leap year?",
    "Who wrote Romeo and Juliet?",
    "What is the tallest mountain in the world?",
    "Can you tell me a short story about a dog?",
    "What does a carburettor do?",
    "Why is the sea salty?",
    "How do I change a flat tyre?",
)
SNR_DB = 40.0
"""Speech over room noise, in decibels."""


def spoken_questions(speaker: Speaker, folder: Path) -> Iterator[tuple[str, Path, int]]:
    """Without end: text, recording (16 kHz WAV in `folder`), and the sample at which its last sound ends.

    The turn's own silence follows from the reader."""
    noise = np.random.default_rng(0)
    for number in count():
        text = QUESTIONS[number % len(QUESTIONS)]
        tempo = (1.0, 1.1, 0.95)[number // len(QUESTIONS) % 3]
        sound, end = voiced(Speaker(speaker.voice, speaker.phonemise, tempo, seed=number), text, noise)
        path = folder / f"question-{number:03}.wav"
        wav.write(path, sound)
        yield text, path, end


def voiced(speaker: Speaker, text: str, noise: np.random.Generator) -> tuple[Wave, int]:
    """The question at 16 kHz behind 0.5 s of room, in a little noise, and the sample at which its last sound ends."""
    sound = np.concatenate([chunk.samples for chunk in speaker.say(text)])
    resampler = Resampler(speaker.rate, RATE)
    sound = np.concatenate([resampler.push(sound), resampler.flush()])
    lead = RATE // 2
    level = float(np.sqrt(np.mean(sound**2)))
    whole = np.concatenate([np.zeros(lead, np.float32), sound])
    end = lead + int(np.nonzero(np.abs(sound) > 0.02 * np.abs(sound).max())[0][-1])
    whole += noise.normal(0, level * 10 ** (-SNR_DB / 20), len(whole)).astype(np.float32)
    return whole, end
