"""The voice: windows of any size give the sound of the whole, words end where they are heard, nothing crashes it."""

import gc
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.errors import ModelDamaged
from appliance.runtime import tts
from appliance.runtime.card import Built, Shelf
from appliance.runtime.ort import OrtModel
from appliance.runtime.phonemes import SpokenWord
from appliance.runtime.tts import Chunk, Voice
from models.quantized.build import default_store
from models.quantized.recipes import piper

MODEL = "en-us-joe"
WEATHER = "ðə wˈɛðɚɹ ɪn pˈæɹɪs tədˈeɪ ɪz sˈʌni, wɪð ɐ hˈaɪ ʌv twˈɛnti tˈuː."

pytestmark = pytest.mark.models(MODEL)


def spoken(phonemes: str) -> list[SpokenWord]:
    return [SpokenWord(f"word{number}", word) for number, word in enumerate(phonemes.split())]


def joined(chunks: list[Chunk]) -> np.ndarray:
    return np.concatenate([chunk.samples for chunk in chunks])


def word_ends(chunks: list[Chunk]) -> list[tuple[str, int]]:
    """Each word with the sample, counted from the start, at which it ends."""
    ends, done = [], 0
    for chunk in chunks:
        for text, at in chunk.words:
            assert 0 <= at <= len(chunk.samples)
            ends.append((text, done + at))
        done += len(chunk.samples)
    return ends


@pytest.fixture(scope="module")
def voice(shelf: Shelf) -> Voice:
    return Voice(shelf.built(MODEL))


@pytest.fixture(scope="module")
def whole(shelf: Shelf, tmp_path_factory: pytest.TempPathFactory) -> OrtModel:
    """The voice as it was published, in one piece, with its noise as inputs."""
    card = shelf.card(MODEL)
    source = default_store(shelf).find(card, card.sources[0])
    if source is None:
        pytest.skip("the voice's source is no longer in the cache")
    path = tmp_path_factory.mktemp("voice") / "whole.onnx"
    path.write_bytes(piper.with_noise(source).SerializeToString())
    return OrtModel(path)


@pytest.mark.parametrize("rate", [1.0, 1.3])
@pytest.mark.parametrize("phonemes", ["jˈɛs.", "haʊ ɑːɹ juː?", WEATHER])
def test_the_parts_say_what_the_whole_graph_says(voice: Voice, whole: OrtModel, phonemes: str, rate: float) -> None:
    (piece,) = voice.encode(spoken(phonemes))
    sound = voice.utter(piece.ids, rate=rate, seed=3)
    noise = np.random.default_rng(3)
    given = {
        "input": piece.ids[None],
        "input_lengths": np.array([len(piece.ids)]),
        "scales": np.array([voice.scales[0], voice.scales[1] / rate, voice.scales[2]], np.float32),
        "duration_noise": noise.standard_normal((1, 2, len(piece.ids)), np.float32),
        "latent_noise": np.ascontiguousarray(noise.standard_normal((len(sound), sound.channels), np.float32).T[None]),
    }
    with whole.session() as infer:
        wanted = infer(given)["samples"].reshape(-1)
    made = np.concatenate(list(sound.stream()))
    assert made.shape == wanted.shape
    assert np.abs(wanted).max() > 0.05
    assert np.abs(made - wanted).max() < 1e-4


@settings(max_examples=12, deadline=None)
@given(sizes=st.lists(st.integers(1, 90), min_size=0, max_size=12), begin=st.integers(0, 40))
def test_any_windows_give_the_same_samples(voice: Voice, sizes: list[int], begin: int) -> None:
    (piece,) = voice.encode(spoken("haʊ ɑːɹ juː tədˈeɪ?"))
    sound = voice.utter(piece.ids, seed=1)
    at_once = np.concatenate(list(sound.stream(0, [len(sound)])))
    made = np.concatenate(list(sound.stream(begin, sizes)))
    assert np.abs(made - at_once[begin * voice.hop :]).max() < 2e-5


def test_the_same_seed_gives_the_same_sound_and_another_one_does_not(voice: Voice) -> None:
    first, again, other = (joined(list(voice.speak(spoken("haʊ ɑːɹ juː?"), seed=seed))) for seed in (5, 5, 6))
    assert np.array_equal(first, again)
    assert len(first) != len(other) or not np.allclose(first, other)


def test_a_phrase_starts_with_a_small_chunk_and_ends_with_the_last(voice: Voice) -> None:
    chunks = list(voice.speak(spoken(WEATHER)))
    assert len(chunks[0].samples) == tts.WINDOWS[0] * voice.hop
    assert [chunk.last for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert all(chunk.samples.dtype == np.float32 for chunk in chunks)


def test_the_opening_silence_is_left_out(voice: Voice) -> None:
    """What is skipped is silent, so that the first chunk already holds sound."""
    words = spoken(WEATHER)
    (piece,) = voice.encode(words)
    full = np.concatenate(list(voice.utter(piece.ids, seed=(0, 0)).stream()))
    kept = joined(list(voice.speak(words, seed=0)))
    skipped = full[: len(full) - len(kept)]
    assert np.abs(skipped).max(initial=0) < 0.01 * np.abs(full).max()
    assert np.abs(kept[: tts.WINDOWS[0] * voice.hop]).max() > 0.05


def test_words_end_in_order_and_the_last_one_with_the_sound(voice: Voice) -> None:
    words = spoken(WEATHER)
    chunks = list(voice.speak(words))
    ends = word_ends(chunks)
    assert [text for text, _ in ends] == [word.text for word in words]
    samples = [at for _, at in ends]
    assert samples == sorted(samples)
    assert samples[-1] == len(joined(chunks))


def test_a_faster_rate_is_shorter(voice: Voice) -> None:
    slow, fast = (len(joined(list(voice.speak(spoken(WEATHER), rate=rate)))) for rate in (0.8, 1.6))
    assert fast < 0.7 * slow


def test_nothing_to_say_is_one_empty_last_chunk(voice: Voice) -> None:
    assert [(len(chunk.samples), chunk.words, chunk.last) for chunk in voice.speak([])] == [(0, (), True)]
    silent = list(voice.speak([SpokenWord("—", ""), SpokenWord("漢", "漢")]))
    assert [(len(chunk.samples), chunk.words, chunk.last) for chunk in silent] == [(0, (("—", 0), ("漢", 0)), True)]


def test_a_single_phoneme_is_spoken(voice: Voice) -> None:
    chunks = list(voice.speak([SpokenWord("a", "ə")]))
    assert len(joined(chunks)) > 0
    assert word_ends(chunks)[-1] == ("a", len(joined(chunks)))


def test_unknown_phonemes_are_left_out_and_counted(voice: Voice) -> None:
    before = voice.unknown["漢"]
    with_stranger = voice.encode([SpokenWord("x", "h漢aʊ"), SpokenWord("mark", "^_$")])
    without = voice.encode([SpokenWord("x", "haʊ"), SpokenWord("mark", "")])
    assert np.array_equal(with_stranger[0].ids, without[0].ids)
    assert voice.unknown["漢"] == before + 1
    assert voice.unknown["^"] >= 1


def test_ids_follow_the_training(voice: Voice) -> None:
    """Begin, a pad behind every symbol, words joined by a space, end: what piper-tts makes of "haʊ ɑː"."""
    (piece,) = voice.encode(spoken("haʊ ɑː"))
    assert piece.ids.tolist() == [1, 0, 20, 0, 14, 0, 100, 0, 3, 0, 51, 0, 122, 0, 2]
    assert piece.ends == (("word0", 8), ("word1", 14))


def test_composed_letters_are_taken_apart(voice: Voice) -> None:
    (piece,) = voice.encode([SpokenWord("x", "ã")])
    assert len(piece.ids) == 7


def test_a_long_text_is_read_in_pieces(voice: Voice) -> None:
    """500 words: each piece bounded, cut at pauses, every word reported once, in order; sound starts at once."""
    words = [SpokenWord(f"w{number}", word) for number, word in enumerate((WEATHER.split() * 36)[:500])]
    pieces = voice.encode(words)
    assert all(len(piece.ids) <= tts.PIECE + 3 for piece in pieces)
    assert [text for piece in pieces for text, _ in piece.ends] == [word.text for word in words]
    pauses = {voice.encode(spoken(mark))[0].ids[2] for mark in ",.?"}
    assert all(piece.ids[-3] in pauses for piece in pieces[:-1])
    stream = voice.speak(words)
    assert len(next(stream).samples) == tts.WINDOWS[0] * voice.hop
    stream.close()


def test_a_word_without_end_is_read_in_pieces(voice: Voice) -> None:
    pieces = voice.encode([SpokenWord("aah", "ɑː" * 1000), SpokenWord("then", "ðɛn")])
    assert all(len(piece.ids) <= tts.PIECE + 3 for piece in pieces)
    assert [text for piece in pieces for text, _ in piece.ends] == ["aah", "then"]


@settings(max_examples=100, deadline=None)
@given(words=st.lists(st.tuples(st.text(max_size=5), st.text(max_size=400)), max_size=20))
def test_any_text_becomes_ids(voice: Voice, words: list[tuple[str, str]]) -> None:
    pieces = voice.encode(SpokenWord(text, phonemes) for text, phonemes in words)
    assert pieces
    assert [text for piece in pieces for text, _ in piece.ends] == [text for text, _ in words if text]
    for piece in pieces:
        ends = [at for _, at in piece.ends]
        assert ends == sorted(ends)
        assert len(piece.ids) <= tts.PIECE + 3


def test_closing_between_chunks_leaves_nothing_running(voice: Voice) -> None:
    threads = threading.active_count()
    stream = voice.speak(spoken(WEATHER))
    next(stream)
    stream.close()
    with pytest.raises(StopIteration):
        next(stream)
    assert threading.active_count() == threads
    gc.collect()
    assert sys.getrefcount(stream) <= 2
    assert joined(list(voice.speak(spoken("jˈɛs."), seed=2))).any()


def test_two_streams_do_not_disturb_each_other(voice: Voice) -> None:
    alone = [joined(list(voice.speak(spoken(text), seed=4))) for text in ("haʊ ɑːɹ juː?", "jˈɛs, ˈaɪ æm.")]
    streams = [voice.speak(spoken(text), seed=4) for text in ("haʊ ɑːɹ juː?", "jˈɛs, ˈaɪ æm.")]
    heard: list[list[Chunk]] = [[], []]
    while any(not chunks or not chunks[-1].last for chunks in heard):
        for stream, chunks in zip(streams, heard, strict=True):
            chunks.extend([chunk] if (chunk := next(stream, None)) else [])
    for chunks, samples in zip(heard, alone, strict=True):
        assert np.array_equal(joined(chunks), samples)


def test_the_limiter_leaves_quiet_sound_alone_and_keeps_loud_sound_in_range() -> None:
    quiet = np.linspace(-tts.KNEE, tts.KNEE, 101, dtype=np.float32)
    assert np.array_equal(tts.limit(quiet), quiet)
    loud = tts.limit(np.linspace(-5, 5, 1001, dtype=np.float32))
    assert loud.dtype == np.float32
    assert np.abs(loud).max() <= 1
    assert (np.diff(loud) >= 0).all()
    assert np.diff(loud).max() <= 0.0101


def test_sixteen_bits() -> None:
    assert tts.pcm(np.array([-2, -1, -0.5, 0, 0.5, 1, 2], np.float32)).tolist() == [
        -32767, -32767, -16384, 0, 16384, 32767, 32767,
    ]  # fmt: skip


def test_a_damaged_configuration_is_named(shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "voice.json").write_text("{}")
    with pytest.raises(ModelDamaged, match=r"voice\.json"):
        Voice(Built(shelf.card(MODEL), tmp_path))
