"""Words that are likely to be said: a prompt within its budget, and a bonus that follows them token by token."""

from __future__ import annotations

import json

import numpy as np
import pytest

from appliance.runtime import asr
from appliance.runtime.bias import BONUS, BUDGET, START, Bias
from appliance.runtime.model import finish
from firmware import wav
from firmware.frame import to_wave


class Letters:
    """A token for each letter."""

    def encode(self, text: str) -> list[int]:
        return [ord(char) for char in text]


def bias(*words: str) -> Bias:
    return Bias(Letters(), 1, words)  # type: ignore[arg-type]


def lifted(words: tuple[str, ...], written: str) -> dict[str, float]:
    scores = np.zeros(128, np.float32)
    bias(*words).lift(scores, [ord(char) for char in written])
    return {chr(token): float(scores[token]) for token in scores.nonzero()[0]}


def test_the_prompt_is_a_sentence_of_the_words() -> None:
    assert "".join(map(chr, bias("latte", "mocha").prefix[1:])) == " Latte, mocha."


def test_the_prompt_keeps_within_its_budget_and_the_first_words() -> None:
    prefix = bias(*(f"word{number}" for number in range(100))).prefix
    assert len(prefix) <= BUDGET
    assert "".join(map(chr, prefix[1:])).startswith(" Word0, word1")


def test_no_words_no_prompt() -> None:
    assert bias().prefix == []


def test_a_word_that_is_begun_is_gone_on_with() -> None:
    found = lifted(("latte",), "a la")
    assert found["t"] == pytest.approx(BONUS)
    assert found[" "] == pytest.approx(START * BONUS)
    assert set(found) == {"t", " "}


def test_what_is_no_word_is_not_lifted() -> None:
    assert set(lifted(("latte",), "xyz")) == {" "}


ORDERS = ("00e09cf0", "02b77977", "35aef469", "506f882d", "6e8d4b90")
MENU = ("iced coffee", "iced mocha", "cappuccino", "mocha", "espresso", "triple shot", "light roast", "medium roast")


@pytest.mark.models("whisper-base")
@pytest.mark.shared
def test_what_is_expected_is_heard_better_and_other_speech_stays(shelf, shared_audio) -> None:  # type: ignore[no-untyped-def]
    recogniser = asr.load(shelf.built("whisper-base"))
    right = {False: 0, True: 0}
    for recording in (found for found in shared_audio if found.path.name.startswith(ORDERS)):
        label = json.loads(recording.label.partition(") ")[2])["slots"]
        wanted = [value for value in label.values() if value in MENU]
        heard = finish(
            recogniser.transcribe(to_wave(wav.read(recording.path).samples), language="en", hints=lambda text: MENU)
        )
        assert heard.hinted is not None
        assert heard.hinted.likeness > -1.5
        for biased, text in ((False, heard.text), (True, heard.hinted.text)):
            right[biased] += sum(value in text.lower().replace("-", " ") for value in wanted)
    assert right[True] > right[False] > 0
