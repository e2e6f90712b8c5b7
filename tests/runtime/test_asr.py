"""What the recogniser decides without a model: contexts, loops, windows, agreement, words, guards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.errors import ModelDamaged, ModelFault
from appliance.runtime import asr
from appliance.runtime.asr import Agreement, Hypothesis, Options, Recogniser, Word
from appliance.runtime.model import Array, Infer, Tensors, finish
from appliance.runtime.vocabulary import Vocabulary
from firmware.frame import RATE, Wave

quick = settings(max_examples=60, deadline=None)


# --- context -----------------------------------------------------------------------------------------------------


@quick
@given(
    samples=st.integers(1, asr.LONGEST), block=st.integers(1, 50), period=st.integers(1, 400), margin=st.floats(0, 30)
)
def test_a_folded_context_stands_for_all_places(samples: int, block: int, period: int, margin: float) -> None:
    context = asr.folded(samples, Options(margin=margin, block=block, period=period))
    assert np.exp(context.weight.astype(np.float64)).sum() == pytest.approx(asr.PLACES, rel=1e-4)
    assert (np.diff(context.positions) > 0).all()
    assert context.positions[0] == 0
    assert context.positions[-1] < asr.PLACES
    assert context.dense * asr.PLACE >= min(samples, asr.SPAN)
    np.testing.assert_array_equal(context.positions[: context.dense], np.arange(context.dense))
    assert not context.weight[: context.dense].any()


@quick
@given(samples=st.integers(1, 4 * RATE))
def test_features_of_a_folded_context_are_those_of_the_sound_padded_with_silence(samples: int) -> None:
    wave = np.random.default_rng(samples).standard_normal(samples).astype(np.float32)
    context = asr.folded(samples, Options())
    found = asr.features(wave, context, 80)
    every = asr.features(wave, asr.whole(), 80)
    assert found.shape == (1, 80, 2 * len(context.positions))
    columns = (2 * context.positions[:, None] + np.arange(2)).ravel()
    np.testing.assert_allclose(found, every[:, :, columns], atol=1e-6)


# --- loops -------------------------------------------------------------------------------------------------------


@given(before=st.lists(st.integers(100, 200)), loop=st.lists(st.integers(0, 50), min_size=3, max_size=9, unique=True))
def test_a_loop_is_cut_to_one_copy(before: list[int], loop: list[int]) -> None:
    tokens = (*before, *loop * 4)
    assert asr.repeated(tokens) == len(before) + len(loop)


@given(st.lists(st.integers(), unique=True, max_size=60))
def test_tokens_that_do_not_repeat_are_no_loop(tokens: list[int]) -> None:
    assert asr.repeated(tuple(tokens)) == len(tokens)


def test_people_may_say_a_word_three_times() -> None:
    assert asr.repeated((1, 2, 3, 3, 3)) == 5
    assert asr.repeated((1, 2, 1, 2, 1, 2)) == 6


# --- windows -----------------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(seconds=st.floats(0, 120), chunk=st.integers(1000, 40 * RATE))
def test_windows_are_all_of_the_sound_in_order(seconds: float, chunk: int) -> None:
    wave = np.random.default_rng(1).standard_normal(int(seconds * RATE)).astype(np.float32)
    pieces = list(asr.windows(wave[at : at + chunk] for at in range(0, len(wave), chunk)))
    assert all(len(piece) <= asr.LONGEST for _, piece in pieces)
    assert all(len(piece) >= asr.EARLIEST for _, piece in pieces[:-1])
    assert [start for start, _ in pieces] == list(np.cumsum([0] + [len(piece) for _, piece in pieces])[:-1])
    joined = np.concatenate([piece for _, piece in pieces]) if pieces else np.zeros(0)
    np.testing.assert_array_equal(joined, wave)


@given(st.floats(20.5, 27.5))
def test_a_window_ends_in_the_pause(pause: float) -> None:
    wave = np.full(40 * RATE, 0.3, np.float32)
    start = int(pause * RATE)
    wave[start - RATE // 5 : start + RATE // 5] = 0
    _, first = next(asr.windows([wave]))
    assert abs(len(first) - start) <= RATE // 5


def test_hours_are_held_a_window_at_a_time() -> None:
    drawn = 0

    def chunks() -> Iterator[Wave]:
        nonlocal drawn
        for _ in range(3 * 3600):
            drawn += 1
            yield np.zeros(RATE, np.float32)

    stream = asr.windows(chunks())
    next(stream)
    assert drawn <= 30


# --- agreement ---------------------------------------------------------------------------------------------------


def heard(text: str) -> Hypothesis:
    return Hypothesis(text=text, words=tuple(Word(word, 1.0) for word in text.split()))


words = st.lists(st.sampled_from(["the", "The", "the,", "cat", "sat", "on", "a", "mat.", "no"]), max_size=6).map(
    " ".join
)


@given(st.lists(words, max_size=12))
def test_what_is_committed_is_never_taken_back(texts: list[str]) -> None:
    agreement, before = Agreement(), ""
    for text in texts:
        committed, _ = agreement.update(heard(text))
        assert committed == before or committed.startswith(f"{before} ".lstrip())
        before = committed


@given(words)
def test_what_is_heard_twice_is_committed(text: str) -> None:
    agreement = Agreement()
    assert agreement.update(heard(text)) == ("", text)
    assert agreement.update(heard(text)) == (text, "")


def test_a_changed_tail_stays_open() -> None:
    agreement = Agreement()
    agreement.update(heard("turn on the"))
    assert agreement.update(heard("Turn on, the light")) == ("Turn on, the", "light")
    assert agreement.update(heard("turn on the lighter please")) == ("Turn on, the", "lighter please")


def test_words_that_moved_are_not_committed_twice() -> None:
    agreement = Agreement()
    for text in ("turn on the", "turn on the", "please turn on the light", "please turn on the light"):
        committed, _ = agreement.update(heard(text))
    assert committed == "turn on the"


# --- the decoder, on a network that says what it is told --------------------------------------------------------------

SPECIAL = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>", "<|transcribe|>"]
SPECIAL += ["<|nospeech|>", "<|notimestamps|>"]
WORDS = ["Ġturn", "Ġit", "Ġo", "ff", "Ġyou", ".", "Ġnow"]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    added = [{"id": len(WORDS) + place, "content": name} for place, name in enumerate(SPECIAL)]
    path = tmp_path_factory.mktemp("asr") / "tokenizer.json"
    path.write_text(json.dumps({"added_tokens": added, "model": {"vocab": {w: i for i, w in enumerate(WORDS)}}}))
    return Vocabulary(path)


class Encoder:
    """Remembers the contexts that it was asked for."""

    def __init__(self) -> None:
        self.inputs: dict[str, tuple[int | str, ...]] = {"mel": (1, 80, "frames")}
        self.contexts: list[int] = []

    @contextmanager
    def session(self) -> Iterator[Infer]:
        def infer(tensors: Tensors) -> dict[str, Array]:
            self.contexts.append(len(tensors["positions"]))
            return {"key_0": np.zeros((1, 1, len(tensors["positions"]), 4), np.float32)}

        yield infer


class Decoder:
    """Writes a script, one for each time the sound is heard. The token that follows depends on those that were fed,
    which are kept in the state, so that a wrong way back is noticed."""

    def __init__(self, scripts: list[list[int]], encoder: Encoder, sure: float = 10.0, silent: float = -10.0) -> None:
        self.inputs: dict[str, tuple[int | str, ...]] = {"past": ("past", 2, 4)}
        self.scripts, self.encoder, self.sure, self.silent = scripts, encoder, sure, silent
        self.passes: list[int] = []

    @contextmanager
    def session(self) -> Iterator[Infer]:
        def infer(tensors: Tensors) -> dict[str, Array]:
            script = self.scripts[min(len(self.encoder.contexts), len(self.scripts)) - 1]
            new = tensors["tokens"][0]
            fed = [int(row[0, 0]) for row in tensors["past"]] + [int(token) for token in new]
            self.passes.append(len(new))
            logits = np.zeros((int(tensors["keep"][0]), len(WORDS) + len(SPECIAL)), np.float32)
            for row in range(len(logits)):
                seen = fed[: len(fed) - len(logits) + row + 1]
                written = seen[seen.index(14) + 1 :] if 14 in seen else []
                right = written == script[: len(written)] and len(written) < len(script)
                logits[row, script[len(written)] if right else 7] = self.sure
                logits[row, 13] = self.silent
            present = np.zeros((len(new), 2, 4), np.float32)
            present[:, 0, 0] = new
            return {"logits": logits, "present": present}

        yield infer


def recogniser(vocabulary: Vocabulary, *scripts: list[int], **network: float) -> tuple[Recogniser, Encoder, Decoder]:
    encoder = Encoder()
    decoder = Decoder(list(scripts), encoder, **network)
    suppressed = {"suppress_ids": [6], "suppress_ids_begin": [7]}
    return Recogniser(encoder, decoder, vocabulary, suppressed), encoder, decoder


SOUND = np.full(2 * RATE, 0.1, np.float32)


def test_words_and_text(vocabulary: Vocabulary) -> None:
    engine, encoder, _ = recogniser(vocabulary, [0, 1, 2, 3, 5, 7])
    found = finish(engine.transcribe(SOUND))
    assert found.text == "turn it off."
    assert [word.text for word in found.words] == ["turn", "it", "off."]
    assert found.tokens == (0, 1, 2, 3, 5)
    assert found.confidence > 0.99
    assert len(encoder.contexts) == 1
    assert found.context == encoder.contexts[0] * 0.02


@given(draft=st.lists(st.integers(0, 5), max_size=8))
def test_a_draft_changes_the_number_of_steps_and_nothing_else(vocabulary: Vocabulary, draft: list[int]) -> None:
    script = [0, 1, 2, 3, 5]
    engine, _, decoder = recogniser(vocabulary, [*script, 7])
    right = next((place for place, (a, b) in enumerate(zip(draft, script, strict=False)) if a != b), len(draft))
    found = finish(engine.transcribe(SOUND, draft=tuple(draft)))
    assert found.tokens == tuple(script)
    assert len(decoder.passes) == 6 - min(right, 5)


def test_a_loop_is_heard_again_with_every_place(vocabulary: Vocabulary) -> None:
    engine, encoder, _ = recogniser(vocabulary, [0, 1] * 20, [0, 1, 5, 7])
    found = finish(engine.transcribe(SOUND))
    assert (found.text, found.fallback) == ("turn it.", "loop")
    assert encoder.contexts[1] == asr.PLACES


def test_a_loop_that_stays_is_cut(vocabulary: Vocabulary) -> None:
    engine, _, _ = recogniser(vocabulary, [0, 1] * 20)
    assert finish(engine.transcribe(SOUND)).text == "turn it"


@pytest.mark.parametrize(
    ("script", "network", "reason"),
    [
        ([5, 7], {}, "no words"),
        ([0, 1, 7], {"sure": 1.4, "silent": 6.0}, "no speech"),
        ([4, 7], {"silent": 9.8}, "phrase"),
        ([0, 1, 7], {"sure": 0.1}, "guesswork"),
    ],
)
def test_what_is_no_speech_is_empty_and_says_why(
    vocabulary: Vocabulary, script: list[int], network: dict[str, float], reason: str
) -> None:
    engine, _, _ = recogniser(vocabulary, script, **network)
    found = finish(engine.transcribe(SOUND, language="en"))
    assert (found.text, found.tokens, found.words, found.reason) == ("", (), (), reason)


def test_a_phrase_is_heard_when_the_model_is_sure(vocabulary: Vocabulary) -> None:
    engine, _, _ = recogniser(vocabulary, [4, 7])
    assert finish(engine.transcribe(SOUND)).text == "you"


@pytest.mark.parametrize("wave", [np.zeros(0), np.zeros(RATE), np.full(100, 1e-5)])
def test_silence_asks_no_model(vocabulary: Vocabulary, wave: np.ndarray) -> None:
    engine, encoder, _ = recogniser(vocabulary, [0, 7])
    assert finish(engine.transcribe(wave.astype(np.float32))).reason == "silence"
    assert not encoder.contexts


def test_long_sound_is_joined_from_passages(vocabulary: Vocabulary) -> None:
    engine, encoder, _ = recogniser(vocabulary, [0, 7])
    wave = np.full(70 * RATE, 0.1, np.float32)
    found = finish(engine.transcribe(wave))
    assert found.text == " ".join(["turn"] * len(encoder.contexts))
    passages = list(engine.passages(iter(np.split(wave, 7))))
    assert passages[0].start == 0
    assert passages[-1].end == 70
    assert all(a.end == b.start for a, b in pairwise(passages))


def test_a_vocabulary_that_is_not_whispers_is_refused(vocabulary: Vocabulary, tmp_path: Path) -> None:
    with pytest.raises(ModelDamaged, match="suppress_ids"):
        Recogniser(Encoder(), Decoder([[7]], Encoder()), vocabulary, {})
    broken = tmp_path / "tokenizer.json"
    broken.write_text("{}")
    with pytest.raises(ModelDamaged, match="not a vocabulary"):
        Vocabulary(broken)


# --- the real thing ----------------------------------------------------------------------------------------------


@pytest.mark.models("whisper-base")
def test_an_unknown_language_is_refused(shelf) -> None:  # type: ignore[no-untyped-def]
    engine = asr.load(shelf.built("whisper-base"))
    with pytest.raises(ModelFault, match="language 'xx'"):
        finish(engine.transcribe(SOUND, language="xx"))


@pytest.mark.shared
@pytest.mark.models("whisper-tiny.en", "whisper-base")
@pytest.mark.parametrize("id", ["whisper-tiny.en", "whisper-base"])
def test_real_speech_is_recognised_streamed_and_drafted(id: str, shelf, shared_audio) -> None:  # type: ignore[no-untyped-def]
    from firmware import wav
    from firmware.frame import to_wave

    recording = next(recording for recording in shared_audio if recording.path.name == "jfk.flac")
    wave = to_wave(wav.read(recording.path).samples)
    engine, agreement = asr.load(shelf.built(id)), Agreement()
    draft: tuple[int, ...] = ()
    for end in (4 * RATE, 8 * RATE, len(wave)):
        found = finish(engine.transcribe(wave[:end], draft=draft))
        draft = found.tokens
        committed, _ = agreement.update(found)
    plain = "and so my fellow americans ask not what your country can do for you ask what you can do for your country"
    assert "".join(letter for letter in found.text.lower() if letter.isalpha() or letter == " ") == plain
    assert found.language == "en"
    assert "ask not what your" in committed.lower()
    steps = engine.transcribe(wave, draft=found.tokens)
    assert sum(1 for _ in steps) <= 4


@pytest.mark.models("whisper-tiny.en")
def test_hum_and_noise_give_no_words(shelf) -> None:  # type: ignore[no-untyped-def]
    engine = asr.load(shelf.built("whisper-tiny.en"))
    time = np.arange(2 * RATE) / RATE
    noise = np.random.default_rng(3).standard_normal(len(time))
    hum = sum(np.sin(2 * np.pi * 50 * k * time) / k for k in range(1, 6))
    fan = np.convolve(noise, np.hanning(15) / 8, "same") * (1 + 0.4 * np.sin(2 * np.pi * 20 * time))
    for sound in (0.05 * noise, 0.1 * hum, 0.05 * fan):
        found = finish(engine.transcribe(sound.astype(np.float32)))
        assert found.text == ""
        assert found.reason
