"""Choosing tokens, holding back text, and noticing loops."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.errors import ConfigFault
from appliance.runtime.model import softmax
from appliance.runtime.sampling import Sampler, Sampling, StopStrings, looping

LOGITS = np.array([1.0, 3.0, 2.0, -1.0, 2.9], np.float32)


def drawn(sampling: Sampling, count: int = 400) -> set[int]:
    sampler = Sampler(sampling)
    return {sampler.choose(LOGITS, [])[0] for _ in range(count)}


def test_greed_takes_the_likeliest() -> None:
    id, logprob = Sampler(Sampling()).choose(LOGITS, [])
    assert id == 1
    assert logprob == pytest.approx(np.log(softmax(LOGITS)[1]), abs=1e-6)


def test_temperature_draws_all_in_proportion() -> None:
    sampler = Sampler(Sampling(temperature=1, seed=1))
    counts = np.bincount([sampler.choose(LOGITS, [])[0] for _ in range(4000)], minlength=5) / 4000
    np.testing.assert_allclose(counts, softmax(LOGITS), atol=0.03)


def test_top_p_and_min_p_cut_the_tail() -> None:
    assert drawn(Sampling(temperature=1, top_p=0.6, seed=1)) == {1, 4}
    assert drawn(Sampling(temperature=1, top_p=1e-6, seed=1)) == {1}
    assert drawn(Sampling(temperature=1, min_p=0.3, seed=1)) == {1, 2, 4}
    assert drawn(Sampling(temperature=1, min_p=1, seed=1)) == {1}


def test_what_is_forbidden_is_never_drawn() -> None:
    logits = np.full(100, -np.inf, np.float32)
    logits[42] = -30
    for sampling in (Sampling(), Sampling(temperature=10, seed=1), Sampling(temperature=1e-3, top_p=0.5, seed=1)):
        assert Sampler(sampling).choose(logits, []) == (42, pytest.approx(0))


def test_repetition_makes_the_last_tokens_less_likely() -> None:
    sampler = Sampler(Sampling(repetition=1.5, window=2))
    assert sampler.choose(LOGITS, [1])[0] == 4
    assert sampler.choose(LOGITS, [1, 0, 3])[0] == 1
    before = LOGITS.copy()
    sampler.choose(LOGITS, [1])
    np.testing.assert_array_equal(LOGITS, before)


@pytest.mark.parametrize("wrong", [{"temperature": -1}, {"top_p": 0}, {"min_p": 2}, {"repetition": 0}, {"window": -1}])
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigFault, match=next(iter(wrong))):
        Sampling(**wrong)  # type: ignore[arg-type]


@settings(max_examples=300)
@given(
    text=st.text("abc", max_size=30),
    stops=st.lists(st.text("abc", min_size=1, max_size=4), max_size=3),
    cuts=st.lists(st.integers(0, 30), max_size=8),
)
def test_stop_strings_at_every_cut(text: str, stops: list[str], cuts: list[int]) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    held = StopStrings(stops)
    out = ""
    for start, end in pairwise(places):
        out += held.push(text[start:end])
        if held.stopped:
            break
    out += held.end()
    # a stop string that is complete first wins, even where a longer one begins before it
    found = [(text.find(stop) + len(stop), text.find(stop)) for stop in stops if stop in text]
    assert held.stopped == bool(found)
    assert text.startswith(out)
    assert not any(stop in out for stop in stops)
    if not found:
        assert out == text


@given(unit=st.lists(st.integers(0, 5), min_size=1, max_size=32), start=st.lists(st.integers(6, 9), max_size=5))
def test_loops_are_noticed(unit: list[int], start: list[int]) -> None:
    assert looping(start + unit * max(3, -(-18 // len(unit)) + 1))


@pytest.mark.parametrize("text", ["ha ha ha ha ha", "no, no, no, no!", "one two three four one two three five"])
def test_emphasis_is_no_loop(text: str) -> None:
    words = text.split()
    assert not looping([words.index(word) for word in words])
