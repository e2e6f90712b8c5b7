"""Wake words: the published models on speech from nothing, and a stand-in model where the logic is what counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from appliance.runtime.wakeword import open_word
from firmware import wav
from firmware.fault import Fault
from firmware.frame import FRAME, NOTHING, RATE, Pcm, Woke, to_wave
from firmware.room import Room, reverberation
from firmware.wake import BANDS, LAG, REFRACTORY, WASH, Infer, Wake, WakeWord, scores
from models.quantized.recipes.micro import spoken

WORDS = ("wake-alexa", "wake-okay-nabu")


class Script:
    """A model that says one score after the other, and 0 behind them. It begins anew after the silence of a reset."""

    def __init__(self, says: Sequence[float] = ()) -> None:
        self.says, self.calls, self.quiet = list(says), 0, 0

    def __call__(self, tensors: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        features = tensors["features"]
        assert features.shape == (1, 3, BANDS)
        assert features.dtype == np.float32
        self.calls += 1
        score = self.says[self.calls - WASH - 1] if WASH < self.calls <= WASH + len(self.says) else 0.0
        return {"score": np.array([[score]], np.float32)}


def word(near: Infer, far: Infer | None = None, **given: Any) -> WakeWord:
    return WakeWord("word", "Word", near, far or Script(), **{"threshold": 0.5, "window": 2, **given})


def push(wake: Wake, sound: Pcm, *, far: Pcm = NOTHING, at: int = 0) -> list[Woke]:
    """Frame by frame, with the frames of the far end beside them."""
    heard: list[Woke] = []
    for start in range(0, len(sound) - FRAME + 1, FRAME):
        heard += wake.push(sound[start : start + FRAME], at + start, far=far[start : start + FRAME])
    return heard


def silence(seconds: float) -> Pcm:
    return np.zeros(round(seconds * RATE), np.int16)


def noise(seconds: float, seed: int = 0, loud: float = 1000.0) -> Pcm:
    return np.random.default_rng(seed).normal(0, loud, round(seconds * RATE)).astype(np.int16)


# --- the decision ----------------------------------------------------------------------------------------------------


def test_the_mean_of_the_window_wakes_and_says_where_the_word_was() -> None:
    wake = Wake([word(Script([0.0, 0.4, 0.7, 0.9]), late=1000, length=3000)])
    (woke,) = push(wake, silence(1.0), at=5000)
    crossed = 5000 + (3 + 2 * 3) * FRAME + 2 * FRAME  # two frames fill the first window of features
    assert (woke.word, woke.threshold) == ("word", 0.5)
    assert woke.score == pytest.approx(0.55)
    assert (woke.begin, woke.end) == (crossed - 4000, crossed - 1000)


def test_one_window_is_not_enough() -> None:
    assert not push(Wake([word(Script([0.9, 0.0, 0.9, 0.0, 0.9]))]), silence(1.0))


def test_a_window_that_is_not_full_wakes_nobody() -> None:
    assert not push(Wake([word(Script([1.0]), window=5)]), silence(0.06))


def test_the_same_word_is_heard_again_after_a_while() -> None:
    always = Wake([word(Script([1.0] * 200))])
    found = push(always, silence(3.5))
    assert [later.end - earlier.end >= 0 for earlier, later in pairwise(found)] == [True] * (len(found) - 1)
    assert len(found) == 4
    assert REFRACTORY == RATE


def test_words_do_not_disturb_each_other() -> None:
    first, second = word(Script([0.9] * 3)), WakeWord("other", "Other", Script([0.0] * 9 + [0.8] * 3), Script(), 0.7, 2)
    assert [woke.word for woke in push(Wake([first, second]), silence(1.0))] == ["word", "other"]


def test_a_threshold_counts_from_the_next_window_on() -> None:
    wake = Wake([word(Script([0.4] * 30))])
    assert not push(wake, silence(0.5))
    wake.threshold("word", 0.3)
    (woke,) = push(wake, silence(0.03))
    assert woke.threshold == 0.3
    assert wake.thresholds == {"word": 0.3}


@pytest.mark.parametrize(("name", "value"), [("word", 0.0), ("word", 1.0), ("word", float("nan")), ("another", 0.5)])
def test_a_threshold_that_is_none_is_refused(name: str, value: float) -> None:
    wake = Wake([word(Script())])
    with pytest.raises(Fault, match="word"):
        wake.threshold(name, value)
    assert wake.thresholds == {"word": 0.5}


def test_the_best_score_of_late_is_known_for_the_log() -> None:
    wake = Wake([word(Script([0.2, 0.4, 0.0]))])
    assert wake.peak("word") == 0.0
    push(wake, silence(0.5))
    assert wake.peak("word") == pytest.approx(0.3)
    push(wake, silence(2.5))
    assert wake.peak("word") == 0.0


def test_what_is_scored_is_counted_and_nothing_else_runs() -> None:
    near, far = Script(), Script()
    wake = Wake([word(near, far)])
    ready = near.calls, far.calls
    push(wake, silence(1.0), far=silence(1.0))
    assert wake.scored == near.calls - ready[0] == 32
    assert far.calls == ready[1], "the far end is scored while it plays only"
    assert not wake.push(NOTHING, 0)
    assert wake.scored == 32


def test_the_far_end_is_scored_while_it_plays_and_a_little_longer() -> None:
    far = Script()
    wake = Wake([word(Script(), far)])
    ready = far.calls
    push(wake, silence(10.0), far=np.concatenate([noise(1.0), silence(9.0)]))
    assert 32 <= far.calls - ready <= 67


def test_reset_forgets_the_word_half_heard() -> None:
    script = Script([0.9, 0.0])
    wake = Wake([word(script)])
    push(wake, silence(0.05))
    wake.reset()
    script.says, script.calls = [0.9, 0.0], WASH
    assert not push(wake, silence(0.5))


# --- the box's own voice ---------------------------------------------------------------------------------------------


def test_a_word_that_was_just_played_is_the_boxs_own() -> None:
    """The same sound, uncancelled and 0.1 s late: both hold the word at the same time."""
    played = noise(4.0)
    script = [0.0] * 80 + [0.9] * 10
    heard = np.concatenate([silence(0.1), played])[: len(played)]
    wake = Wake([word(Script(script), Script(script))])
    assert not push(wake, heard, far=played)
    assert wake.suppressed == 1


def test_what_is_left_of_the_boxs_own_word_is_not_the_users() -> None:
    """A canceller has bent it, so that it sounds otherwise; but there is no more of it than usual."""
    script = [0.0] * 125 + [0.9] * 5
    wake = Wake([word(Script(script), Script(script))])
    assert not push(wake, noise(6.0, seed=1, loud=100.0), far=noise(6.0))
    assert wake.suppressed == 1


def test_what_the_suppressor_takes_for_an_echo_needs_a_better_score() -> None:
    """Other words of an answer, bent by a canceller, may sound a little like the word."""
    sound = noise(6.0)
    for score, strict, times in ((0.55, sound // 8, 0), (0.55, sound, 1), (0.9, sound // 8, 1)):
        wake = Wake([word(Script([0.0] * 125 + [score] * 5), Script([0.0] * 200), threshold=0.5)])
        woke = [
            note
            for at in range(0, len(sound), FRAME)
            for note in wake.push(
                sound[at : at + FRAME], at, far=sound[at : at + FRAME], strict=strict[at : at + FRAME]
            )
        ]
        assert len(woke) == times, score


@pytest.mark.parametrize("apart", [-40, 40])
def test_a_word_that_was_played_at_another_time_suppresses_nothing(apart: int) -> None:
    played = noise(6.0)
    near, far = [0.0] * 100 + [0.9] * 5, [0.0] * (100 + apart) + [0.9] * 5
    assert len(push(Wake([word(Script(near), Script(far))]), played, far=played)) == 1
    assert abs(apart) * 3 > LAG


def test_a_user_who_says_it_over_the_boxs_own_is_heard() -> None:
    """Little echo is left, then the user is as loud as what is played, and sounds otherwise."""
    played, left = noise(6.0), noise(6.0, seed=1, loud=10.0)
    bursts = np.repeat(np.random.default_rng(2).random(20) > 0.5, RATE // 20)
    left[3 * RATE : 4 * RATE] += (noise(1.0, seed=3) * bursts).astype(np.int16)
    script = [0.0] * 125 + [0.9] * 5
    wake = Wake([word(Script(script), Script(script))])
    assert len(push(wake, left, far=played)) == 1
    assert wake.suppressed == 0


# --- the published models --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models(shelf) -> Iterator[dict[str, WakeWord]]:  # type: ignore[no-untyped-def]
    with ExitStack() as stack:
        built = {id: shelf.built(id) for id in WORDS}
        yield {id: stack.enter_context(open_word(each)) for id, each in built.items()}


@pytest.fixture(scope="module")
def golden(shelf) -> dict[str, Pcm]:  # type: ignore[no-untyped-def]
    """Each word, spoken from nothing."""
    return {id: spoken(shelf.built(id).card.golden["sounds"]) for id in WORDS}


@pytest.mark.models(*WORDS)
def test_each_word_wakes_by_its_own_name(models: dict[str, WakeWord], golden: dict[str, Pcm]) -> None:
    wake = Wake(list(models.values()))
    for id, sound in golden.items():
        wake.reset()
        found = push(wake, np.concatenate([silence(1.0), sound, silence(1.0)]))
        assert [woke.word for woke in found] == [models[id].name]
        assert RATE < found[0].begin < found[0].end <= RATE + len(sound) - len(sound) // 4


@pytest.mark.models(*WORDS)
def test_the_end_is_early_rather_than_late(models: dict[str, WakeWord], golden: dict[str, Pcm]) -> None:
    """An order may begin with the silence of 0.5 s that is the last sound of the word."""
    sound = golden["wake-okay-nabu"]
    (woke,) = push(Wake([models["wake-okay-nabu"]]), np.concatenate([silence(1.0), sound, silence(1.0)]))
    end = RATE + len(sound) - RATE // 2
    assert end - RATE // 4 <= woke.end <= end


@pytest.mark.models(*WORDS)
@settings(max_examples=4, deadline=None)
@given(pieces=st.lists(st.integers(1, 700), min_size=1, max_size=30))
def test_any_pieces_give_the_same_scores(
    models: dict[str, WakeWord], golden: dict[str, Pcm], pieces: list[int]
) -> None:
    sound = np.concatenate([silence(0.3), golden["wake-alexa"]])
    found = []
    for sizes in ([len(sound)], pieces):
        wake, at, woke = Wake([models["wake-alexa"]]), 0, []
        while at < len(sound):
            size = sizes[wake.scored % len(sizes)]
            woke += wake.push(sound[at : at + size], at)
            at += size
        found.append((woke, wake.scored, wake.peak("alexa")))
    assert found[0] == found[1]


@pytest.mark.models(*WORDS)
@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(-32768, 32767), min_size=1, max_size=400), st.integers(0, 2**32 - 1))
def test_any_sound_gives_probabilities(models: dict[str, WakeWord], samples: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    sound = np.concatenate([np.array(samples, np.int16), rng.integers(-32768, 32768, 4000, np.int16)])
    assert all(0.0 <= score <= 1.0 for score in scores(models["wake-alexa"], sound))


@pytest.mark.models(*WORDS)
def test_streams_are_independent(shelf, golden: dict[str, Pcm]) -> None:  # type: ignore[no-untyped-def]
    sound = golden["wake-alexa"]
    built = shelf.built("wake-alexa")
    with open_word(built) as one, open_word(built) as other:
        alone = scores(one, sound)
        first, second = Wake([one]), Wake([other])
        peaks = []
        for start in range(0, len(sound) - FRAME + 1, FRAME):
            first.push(sound[start : start + FRAME], start)
            second.push(noise(0.01, seed=start), start)
        peaks = [first.peak("alexa"), second.peak("alexa")]
        assert peaks[0] == pytest.approx(max(np.convolve(alone, np.full(12, 1 / 12), "valid")))
        assert peaks[1] < 0.1
        assert scores(one, sound) == alone, "what came before is forgotten"


@pytest.mark.models(*WORDS)
def test_the_box_does_not_wake_itself(models: dict[str, WakeWord], golden: dict[str, Pcm]) -> None:
    """Three times its own word through a room, and no canceller at all; with no loudspeaker the same sound wakes."""
    pause = silence(1.0)
    played = np.concatenate([pause, *(piece for _ in range(3) for piece in (golden["wake-okay-nabu"], pause))]) // 2
    room = Room(gain=6.0, delay=0.1, response=reverberation(0.2))
    heard = np.concatenate([room.push(played[at : at + FRAME]) for at in range(0, len(played) - FRAME + 1, FRAME)])
    wake = Wake([models["wake-okay-nabu"]])
    assert len(push(wake, heard)) >= 2
    wake.reset()
    assert not push(wake, heard, far=played)
    assert wake.suppressed >= 2


@pytest.mark.shared
@pytest.mark.models(*WORDS)
def test_people_are_heard_at_any_level(models: dict[str, WakeWord], shared_audio) -> None:  # type: ignore[no-untyped-def]
    wake, heard = Wake([models["wake-alexa"]]), 0
    recordings = [each for each in shared_audio if "wake/alexa/" in str(each.path)]
    for each, level in zip(recordings[::2], (0.02, 0.9, 0.1, 0.4), strict=True):
        sound = to_wave(wav.read(each.path).samples)
        wake.reset()
        loud = (level * 32767 * sound / np.abs(sound).max()).astype(np.int16)
        heard += len(push(wake, np.concatenate([loud, silence(0.5)])))
    assert heard == 4


@pytest.mark.shared
@pytest.mark.models(*WORDS)
def test_other_words_wake_nobody(models: dict[str, WakeWord], shared_audio) -> None:  # type: ignore[no-untyped-def]
    wake = Wake(list(models.values()))
    others = [each.path for each in shared_audio if "/wake/" in str(each.path) and "alexa" not in str(each.path)]
    for path in others[::12]:
        sound = to_wave(wav.read(path).samples)
        assert not push(wake, (sound * 32767).astype(np.int16)), path.name
