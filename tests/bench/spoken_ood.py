"""Sound that is meant for nobody here: other people's talk, spoken with our voices, and recordings of speech and noise.

The sentences (data/ood.txt) keep near to what the shipped skills listen for: their words, in talk about something else.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from harness import HERE
from spoken import said

from appliance.voice.say import Speaker
from firmware import wav
from firmware.frame import RATE, Pcm

TEMPOS = (1.0, 1.15, 0.9)
PART = 12 * RATE
"""Samples of a long recording that are one clip."""


def clips(speaker: Speaker, recordings: Path) -> Iterator[tuple[str, Pcm, str]]:
    """Name, int16 mono [n] at RATE, and the words where they are known: recordings first, then the sentences."""
    yield from recorded(recordings)
    sentences = (HERE / "data/ood.txt").read_text("utf-8").splitlines()
    for number, text in enumerate(sentences):
        yield f"sentence {number + 1}", said(speaker, text, tempo=TEMPOS[number % 3], seed=number), text


def recorded(folder: Path) -> Iterator[tuple[str, Pcm, str]]:
    with (folder / "MANIFEST.tsv").open(newline="", encoding="utf-8") as table:
        rows = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
    for row in rows:
        name, kind = row["file"], row["kind"]
        if name.startswith(("s2i", "wake", "rir", "fsdd")):
            continue
        sound = wav.read(folder / name).samples
        text = "" if kind == "noise" else row["transcript_or_label"]
        for part in range(0, max(1, len(sound) - RATE), PART):
            yield f"{name} {part // RATE} s", sound[part : part + PART], text
    digits = [wav.read(folder / row["file"]).samples for row in rows if row["file"].startswith("fsdd")]
    for start in range(0, len(digits), 6):
        yield f"digits {start}", np.concatenate(digits[start : start + 6]), "digits"
