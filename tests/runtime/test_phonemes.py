"""Pronunciations on a lexicon small enough to read, and on the built one."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.errors import ConfigFault, ModelDamaged, ModelMissing
from appliance.runtime.card import Shelf
from appliance.runtime.espeak import Espeak
from appliance.runtime.letters import Letters
from appliance.runtime.lexicon import Lexicon
from appliance.runtime.normalise import normalise
from appliance.runtime.phonemes import Phonemiser, SpokenWord, past, plural, spelled, words
from models.quantized.recipes import lexicon as recipe

VOICE = "abdefhijklmnopstuvwzæðŋɐɑɔəɚɛɜɡɪɹɾʃʊʌʒʔˈˌːθᵻ\u0329 ,.?!;:"
"""What the words of an en-us voice are made of, out of its phoneme table."""

GOLD = {
    "water": "wˈɔɾəɹ", "cat": "kˈæt", "mat": "mˈæt", "bat": "bˈæt", "rat": "ɹˈæt", "ten": "tˈɛn", "net": "nˈɛt",
    "men": "mˈɛn", "apple": "ˈæpᵊl", "about": "əbˈWt", "smart": "smˈɑɹt", "phone": "fˈOn", "watch": "wˈɑʧ",
    "city": "sˈɪɾi", "bake": "bˈAk", "NASA": "nˈæsə", "Paris": "pˈɛɹəs", "cab": "kˈæb", "tab": "tˈæb", "tan": "tˈæn",
    "man": "mˈæn", "ran": "ɹˈæn", "can": "kæn", "pan": "pˈæn", "pat": "pˈæt", "pet": "pˈɛt", "met": "mˈɛt",
    "cent": "sˈɛnt",
    "record": {"DEFAULT": "ɹˈɛkəɹd", "VERB": "ɹəkˈɔɹd"},
    "read": {"DEFAULT": "ɹˈid", "VBN": "ɹˈɛd", "VBD": "ɹˈɛd"},
    "live": {"DEFAULT": "lˈIv", "VERB": "lˈɪv"},
    "lives": {"DEFAULT": "lˈIvz", "VERB": "lˈɪvz"},
    "silent": {"DEFAULT": None, "NOUN": None},
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("lexicon")
    (out / "gold.json").write_text(json.dumps(GOLD), "utf-8")
    (out / "silver.json").write_text(json.dumps({"cat": "wrong", "zebra": "zˈibɹə"}), "utf-8")
    sources = {"gold": out / "gold.json", "silver": out / "silver.json"}
    spoken, lessons = recipe.graphones(recipe.read(sources.values()), lambda note, fraction: None)
    names, ids = recipe.numbered(lessons, least=1)
    keys, scores = recipe.train(ids)
    recipe.write(out, recipe.lines(spoken), names, keys, scores)
    return out


def opened(folder: Path) -> Phonemiser:
    return Phonemiser(
        Lexicon(folder / "lexicon.txt"),
        Letters(folder / "graphones.txt", folder / "ngram-keys.npy", folder / "ngram-scores.npy"),
    )


@pytest.fixture(scope="module")
def small(folder: Path) -> Phonemiser:
    return opened(folder)


def said(phonemiser: Phonemiser, text: str) -> str:
    return " ".join(word.phonemes for word in phonemiser.phrase(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The water is about ten.", "ðə wˈɔːɾɚɹ ɪz ɐbˌaʊt tˈɛn."),
        ("the apple, a cat; an apple: ten!", "ðɪ ˈæpəl, ɐ kˈæt; ɐn ˈæpəl: tˈɛn!"),
        ("Paris", "pˈæɹɪs"),
        ("cats and apples and watches", "kˈæts ænd ˈæpəlz ænd wˈɑːtʃᵻz"),
        ("cities", "sˈɪɾiz"),
        ("the cat's water", "ðə kˈæts wˈɔːɾɚ"),
        ("baked baking baker", "bˈeɪkt bˈeɪkɪŋ bˈeɪkɚ"),
        ("smartphone", "smˈɑːɹtfˌoʊn"),
        ("SmartWatch", "smˈɑːɹtwˈɑːtʃ"),
        ("USA, NASA, APIs", "jˌuːˌɛsˈeɪ, nˈæsə, ˌeɪpˌiːˈaɪz"),
        ("CITY WATER", "sˈɪɾi wˈɔːɾɚ"),
        ("ten AM", "tˈɛn ˌeɪˈɛm"),
        ("I am ten", "aɪ æm tˈɛn"),
        ("record it; a record; to record", "ɹᵻkˈɔːɹd ɪt; ɐ ɹˈɛkɚd; tə ɹᵻkˈɔːɹd"),
        ("I have read it. I read it", "aɪ hæv ɹˈɛd ɪt. aɪ ɹˈiːd ɪt"),
        ("she lives; ten lives", "ʃiː lˈɪvz; tˈɛn lˈaɪvz"),
        ("what is it for?", "wˌʌt ɪz ɪt fˈɔːɹ?"),
        ("(cat) “mat” — bat…", "kˈæt, mˈæt, bˈæt."),
        ("cät", "kˈæt"),
        ("xqz", "ˌɛkskjˌuːzˈiː"),
    ],
)
def test_phrases(small: Phonemiser, text: str, expected: str) -> None:
    assert said(small, text) == expected


def test_the_text_is_kept_with_its_punctuation(small: Phonemiser) -> None:
    text = 'He said: "the cat, (maybe) sat." Well-known!'
    assert " ".join(word.text for word in small.phrase(text)) == text


def test_nothing_to_say(small: Phonemiser) -> None:
    for text in ("", "  ", "...", "—", "!?", "'"):
        assert small.phrase(text) == []


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=40))
def test_any_text_has_words_or_none(small: Phonemiser, text: str) -> None:
    for word in small.phrase(text):
        assert isinstance(word, SpokenWord)
        assert word.phonemes.strip(",;:.!?")
        assert not any(c.isspace() or c.isdigit() for c in word.phonemes)


@settings(max_examples=100, deadline=None)
@given(text=st.text(st.sampled_from("ab' -.,!?()—\"é"), max_size=40))
def test_words_keep_the_text(text: str) -> None:
    found = " ".join(word.text for word in words(text))
    assert [c for c in found if c.isalpha()] == [c for c in text if c.isalpha()]


def test_endings() -> None:
    assert [plural(stem) for stem in ("kˈæt", "dˈɔɡ", "bˈʌs")] == ["kˈæts", "dˈɔɡz", "bˈʌsᵻz"]
    assert [past(stem) for stem in ("wˈɔːk", "bˈɛɡ", "wˈeɪt")] == ["wˈɔːkt", "bˈɛɡd", "wˈeɪtᵻd"]
    assert spelled("tv") == "tˌiːvˈiː"


@settings(max_examples=50, deadline=None)
@given(entries=st.dictionaries(st.text("abcé'-", min_size=1, max_size=6), st.text("æbkt", min_size=1), min_size=1))
def test_every_entry_is_found(tmp_path_factory: pytest.TempPathFactory, entries: dict[str, str]) -> None:
    path = tmp_path_factory.mktemp("bisect") / "lexicon.txt"
    rows = sorted(entries.items(), key=lambda row: row[0].encode())
    path.write_text("".join(f"{word}\t{said}\n" for word, said in rows), "utf-8")
    lexicon = Lexicon(path)
    assert {word: lexicon.get(word)[""] for word in entries} == entries
    assert lexicon.get("zz") == lexicon.get("") == lexicon.get("a~") == {}


def test_files_that_are_missing_or_damaged(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(ModelMissing, match="models build"):
        Lexicon(tmp_path / "none.txt")
    (tmp_path / "empty.txt").touch()
    with pytest.raises(ModelDamaged, match="empty"):
        Lexicon(tmp_path / "empty.txt")
    (tmp_path / "cut.txt").write_text("cat\tk", "utf-8")
    with pytest.raises(ModelDamaged, match="middle"):
        Lexicon(tmp_path / "cut.txt")
    with pytest.raises(ModelMissing):
        Letters(tmp_path / "g", tmp_path / "k", tmp_path / "s")
    with pytest.raises(ModelDamaged):
        Letters(folder / "graphones.txt", folder / "lexicon.txt", folder / "ngram-scores.npy")


def test_the_model_speaks_what_it_learnt(folder: Path) -> None:
    letters = Letters(folder / "graphones.txt", folder / "ngram-keys.npy", folder / "ngram-scores.npy")
    assert letters.say("cat") == "kˈæt"
    assert letters.say("ban") == "bˈæn"
    assert letters.say("") == letters.say("123") == ""


def test_unigrams_sum_to_one(folder: Path) -> None:
    keys, scores = np.load(folder / "ngram-keys.npy"), np.load(folder / "ngram-scores.npy")
    ids = len((folder / "graphones.txt").read_text("utf-8").splitlines())
    unigrams = scores[(keys > 1) & (keys <= ids), 0].astype(float)
    assert np.exp(unigrams).sum() == pytest.approx(1.0, abs=0.05)
    assert (scores[:, 0] <= 0).all()


def test_alignment_keeps_every_phone() -> None:
    aligner = recipe.Aligner()
    aligner.fit([(word, recipe.phones(said)) for word, said in GOLD.items() if isinstance(said, str)])
    pairs = aligner.align("water", recipe.phones("wˈɔɾəɹ"))
    assert pairs is not None
    assert [letter for letter, _ in pairs] == list("water")
    assert "".join(sound for _, sounds in pairs for sound in sounds) == "wˈɔɾəɹ"
    assert aligner.align("a", recipe.phones("wˈɔɾəɹ")) is None


def test_espeak_is_optional() -> None:
    with pytest.raises(ConfigFault, match="not installed"):
        Espeak(program="no-such-espeak")


def test_espeak_phrases(tmp_path: Path) -> None:
    """With a stand-in for the program: one line of phonemes for each clause, words run together now and then."""
    program = tmp_path / "espeak-ng"
    program.write_text("#!/bin/sh\ncat > /dev/null\nprintf ' ðə kˈæt\\n ɪnðə mˈæt\\n'\n", "utf-8")
    program.chmod(0o755)
    espeak = Espeak(program=str(program))
    assert espeak.phrase("") == []
    assert espeak.phrase("The cat, in the mat.") == [
        SpokenWord("The", "ðə"),
        SpokenWord("cat,", "kˈæt,"),
        SpokenWord("in the mat.", "ɪnðə mˈæt."),
    ]


# --- the built lexicon ---------------------------------------------------------------------------------------------


ID = "lexicon-en_us"
SENTENCE = "The weather in Denver tomorrow will be sunny, with a high of twenty-five degrees."


@pytest.fixture(scope="module")
def phonemiser(shelf: Shelf) -> Phonemiser:
    return Phonemiser.open(shelf.built(ID))


@pytest.mark.models(ID)
def test_a_sentence(phonemiser: Phonemiser) -> None:
    assert said(phonemiser, SENTENCE) == (
        "ðə wˈɛðɚɹ ɪn dˈɛnvɚ təmˈɑːɹoʊ wɪl biː sˈʌni, wɪð ɐ hˈaɪ ʌv twˈɛntifˈaɪv dᵻɡɹˈiːz."
    )


@pytest.mark.models(ID)
def test_unknown_words_have_one_stress(phonemiser: Phonemiser) -> None:
    for word in ("blinterish", "zorbification", "kaelith", "quixlet", "Ollamatron"):
        assert said(phonemiser, word).count("ˈ") == 1


@pytest.mark.models(ID)
def test_every_symbol_is_the_voices(phonemiser: Phonemiser) -> None:
    sentences = (Path(__file__).parents[1] / "bench/data/sentences.txt").read_text("utf-8").splitlines()
    symbols = {c for sentence in sentences for c in said(phonemiser, normalise(sentence))}
    assert symbols <= set(VOICE)


@pytest.mark.models(ID)
def test_no_symbol_of_the_lexicon_is_foreign(shelf: Shelf) -> None:
    rows = shelf.built(ID).file("lexicon").read_text("utf-8").splitlines()
    spoken = {c for row in rows for field in row.split("\t")[1:] for c in field.partition("=")[2] or field}
    assert spoken <= set(VOICE)


@pytest.mark.models(ID)
def test_it_is_small_and_quick(shelf: Shelf) -> None:
    """Counted in pages and steps, not in seconds: nothing is read until it is asked for."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fresh = Phonemiser.open(shelf.built(ID))
    fresh.phrase(SENTENCE)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40 * 1024
