"""An English pronouncing lexicon and a letter-to-sound model, for voices that were trained on espeak's en-us symbols.

Built from misaki's US lexicons (Apache-2.0), which write one character per phone and merge the weak vowels. Each word's
letters are aligned with its phones first: the spelling tells which weak vowel the voice expects ("e" in "rely" is not
the "a" in "about"). The aligned pairs also train a joint n-gram model, which pronounces the words no lexicon has.

Artefacts

    lexicon.txt     one line per word, sorted by its UTF-8 bytes: word TAB pronunciation (TAB tag=pronunciation)...
    graphones.txt   one line per graphone: letter TAB symbols; the line number, from 1, is its id
    ngram-keys.npy  uint64 [N], sorted hashes of graphone n-grams of every order
    ngram-scores.npy float16 [N, 2], log probability and log back-off weight
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from appliance.runtime.card import Built, Card
from appliance.runtime.letters import HASH, ORDER, Letters
from appliance.runtime.lexicon import Lexicon
from models.quantized.recipes import Check, Progress

Entry = Mapping[str, str | None]
Pairs = list[tuple[str, tuple[str, ...]]]
"""A word, letter by letter: the letter and the phones it stands for, stress marks in front of their vowel."""

VERSION = 2
EXACT = False  # logarithms end up in the scores
SAMPLE = 10_000
ROUNDS = 4
_SILENT = math.log(0.02)
_UNSEEN = -12.0
_VOWELS = set("AIWOYiuɑɔəɛɪɜᵊᵻʊʌæ")
_PLAIN = {"A": "eɪ", "I": "aɪ", "W": "aʊ", "O": "oʊ", "Y": "ɔɪ", "ʤ": "dʒ", "ʧ": "tʃ", "\u1d4a": "ə", "ɑ": "ɑː"}
_TRAINABLE = re.compile(r"[a-z']{2,}")


_SHORT_A = re.compile(r"arr|ar[aio](?![aeiouy])")
"""The spelling of the vowel of "carry" and "Paris", which the lexicons write like that of "scary"."""


# --- alignment ---------------------------------------------------------------------------------------------------


def phones(pronunciation: str) -> tuple[str, ...]:
    """Splits a pronunciation into phones; a stress mark belongs to the phone behind it."""
    return tuple(re.findall(r"[ˈˌ]?[^ˈˌ]", pronunciation))


class Aligner:
    """Letters to phones, each letter standing for none, one or two. Fitted by Viterbi training."""

    def __init__(self) -> None:
        self._cost: dict[tuple[str, tuple[str, ...]], float] = {}

    def fit(self, words: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        counts: Counter[tuple[str, tuple[str, ...]]] = Counter()
        for letters, sounds in words:
            scale = len(sounds) / len(letters)
            for i, letter in enumerate(letters):
                middle = int((i + 0.5) * scale)
                for j in range(max(0, middle - 1), min(len(sounds), middle + 2)):
                    counts[letter, (sounds[j],)] += 2 if j == middle else 1
        self._learn(counts, silent=True)
        for _ in range(ROUNDS):
            counts = Counter(pair for letters, sounds in words for pair in self.align(letters, sounds) or ())
            self._learn(counts)

    def _learn(self, counts: Counter[tuple[str, tuple[str, ...]]], *, silent: bool = False) -> None:
        totals: Counter[str] = Counter()
        for (letter, _), count in counts.items():
            totals[letter] += count
        self._cost = {pair: math.log(count / totals[pair[0]]) for pair, count in counts.items()}
        if silent:
            self._cost |= {(letter, ()): _SILENT for letter in totals}

    def _price(self, letter: str, sounds: tuple[str, ...]) -> float:
        known = self._cost.get((letter, sounds))
        if known is not None:
            return known
        if len(sounds) == 2:
            return self._cost.get((letter, sounds[:1]), _UNSEEN) + self._cost.get((letter, sounds[1:]), _UNSEEN) - 2.0
        return _UNSEEN

    def align(self, letters: str, sounds: tuple[str, ...]) -> Pairs | None:
        """The best alignment, or None if the phones are too many for the letters."""
        best: list[dict[int, tuple[float, int]]] = [{0: (0.0, 0)}]
        for i, letter in enumerate(letters):
            row: dict[int, tuple[float, int]] = {}
            left = 2 * (len(letters) - i - 1)
            for j, (score, _) in best[-1].items():
                for n in (0, 1, 2):
                    k = j + n
                    if k > len(sounds) or len(sounds) - k > left:
                        continue
                    total = score + self._price(letter, sounds[j:k])
                    if k not in row or total > row[k][0]:
                        row[k] = (total, j)
            best.append(row)
        if len(sounds) not in best[-1]:
            return None
        pairs: Pairs = []
        k = len(sounds)
        for i in range(len(letters) - 1, -1, -1):
            j = best[i + 1][k][1]
            pairs.append((letters[i], sounds[j:k]))
            k = j
        return pairs[::-1]


# --- symbols -----------------------------------------------------------------------------------------------------


def respell(pairs: Pairs) -> list[tuple[str, str]]:
    """The same pairs in the voice's symbols: (letter, symbols)."""
    spelling = "".join(letter for letter, _ in pairs)
    flat = [(i, letter, sound) for i, (letter, sounds) in enumerate(pairs) for sound in sounds]
    out = ["" for _ in pairs]
    vowels = [n for n, (_, _, sound) in enumerate(flat) if sound[-1] in _VOWELS]
    skip = False
    for n, (i, letter, sound) in enumerate(flat):
        if skip:
            skip = False
            continue
        before = flat[n - 1][2] if n else ""
        rest = [sound for _, _, sound in flat[n + 1 :]]
        if sound[-1] == "ɛ" and rest[:1] == ["ɹ"] and any(_SHORT_A.match(spelling, k) for k in (i, i - 1) if k >= 0):
            sound = sound[:-1] + "æ"
        symbols, skip = _symbols(letter, sound, before, rest, first=bool(vowels) and n == vowels[0])
        out[i] += symbols
    return [(letter, symbols) for (letter, _), symbols in zip(pairs, out, strict=True)]


def _symbols(letter: str, sound: str, before: str, rest: list[str], *, first: bool) -> tuple[str, bool]:
    """A phone's symbols, and whether they stand for the next phone too."""
    stress, phone = sound[:-1], sound[-1]
    after = rest[0] if rest else ""
    vowel_follows = len(rest) > 1 and rest[1][-1] in _VOWELS
    if phone in "ə\u1d4a" and after == "ɹ":
        if stress:
            return stress + "ɜː" + ("ɹ" if vowel_follows else ""), True
        if first and before == "d" and vowel_follows and rest[1][0] == "ˈ":
            return "ᵻɹ", True
        return "ɚ" + ("ɹ" if vowel_follows else ""), True
    if phone == "ɜ" and after == "ɹ":
        return stress + "ɜː" + ("ɹ" if vowel_follows else ""), True
    if phone == "ə" and after == "w" and vowel_follows and letter == "u":
        return stress + "uː", True
    if phone == "ə" and not stress:
        return _weak(letter, before, rest, first=first), False
    if phone == "\u1d4a" and before == "k" and rest == ["l", "i"]:
        return "", False
    if phone == "i":
        long = stress or (after and (after[-1] not in _VOWELS or first))
        return stress + ("iː" if long else "i"), False
    if phone == "u":
        return stress + "uː", False
    if phone == "ɔ":
        short = (letter == "o" and after[-1:] in {"ŋ", "s", "f", "θ", "ɡ"}) or (after == "l" and len(rest) > 1)
        return stress + ("ɔ" if short else "ɔː"), False
    if phone == "ɑ" and letter == "a" and before == "w" and after in {"n", "l"}:
        return stress + "ɔ", False
    if phone == "ʧ" and letter == "t" and before == "n" and after[:1] in {"ə", "i", "\u1d4a"}:
        return "ʃ", False
    if phone == "n" and before == "ʔ":
        return "n\u0329", False
    if phone == "ɪ" and letter == "e" and not stress:
        if not before and after[-1:] in {"k", "ɡ", "n", "m"}:
            return "ɛ", False
        if before == "n" and rest == ["s"]:
            return "ə", False
    if phone == "ɾ" and rest == ["ɪ", "v"]:
        return "t", False
    return stress + _PLAIN.get(phone, phone), False


def _weak(letter: str, before: str, rest: list[str], *, first: bool) -> str:
    """Which of the weak vowels an unstressed schwa is."""
    after = rest[0] if rest else ""
    if not before:
        return {"a": "ɐ", "e": "ᵻ", "i": "ɪ"}.get(letter, "ə")
    if letter in {"i", "y"} and rest:
        ability = after == "ɾ" or (after == "z" and len(rest) > 1) or rest[:2] in (["b", "\u1d4a"], ["b", "l"])
        if after == "l" and len(rest) == 1:
            return "ə"
        return "ᵻ" if ability else "ɪ"
    if letter == "e" and first and before in {"ɹ", "d", "b", "s"} and any(sound[0] == "ˈ" for sound in rest[:4]):
        return "ᵻ"
    if letter == "e" and rest == ["t"]:
        return "ɪ"
    if letter == "u" and before == "j":
        return "ʊ" if after == "l" else "uː"
    return "ə"


# --- the joint n-gram model ----------------------------------------------------------------------------------------


def _hashes(ids: NDArray[np.uint64], order: int) -> NDArray[np.uint64]:
    """Hashes of all windows of `order` ids; [len - order + 1]."""
    total = np.zeros(len(ids) - order + 1, np.uint64)
    for k in range(order):
        total = total * HASH + ids[k : len(ids) - order + 1 + k]
    return total


def train(words: Sequence[Sequence[int]], order: int = ORDER) -> tuple[NDArray[np.uint64], NDArray[np.float16]]:
    """Interpolated Kneser-Ney over graphone ids. A word is its ids between one start (1) and one end (2) mark.

    Returns the sorted hashes of all n-grams and their (log probability, log back-off weight).
    """
    stream = np.concatenate([np.array([1, *word, 2], np.uint64) for word in words])
    starts = np.concatenate([np.arange(len(word) + 2) for word in words])
    lengths = np.repeat([len(word) + 2 for word in words], [len(word) + 2 for word in words])
    tables: list[tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64], NDArray[np.float64]]] = []
    for n in range(1, order + 1):
        keep = starts[: len(stream) - n + 1] + n <= lengths[: len(stream) - n + 1]
        full = _hashes(stream, n)[keep]
        key, index, count = np.unique(full, return_index=True, return_counts=True)
        history = _hashes(stream, n - 1)[: len(keep)][keep][index] if n > 1 else np.zeros(len(key), np.uint64)
        suffix = _hashes(stream[1:], n - 1)[: len(keep)][keep][index] if n > 1 else np.zeros(len(key), np.uint64)
        tables.append((key, history, suffix, count.astype(np.float64)))
    return _smooth(tables, order)


def _smooth(
    tables: Sequence[tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64], NDArray[np.float64]]], order: int
) -> tuple[NDArray[np.uint64], NDArray[np.float16]]:
    below: dict[str, NDArray[np.float64]] = {}
    keys: list[NDArray[np.uint64]] = []
    logs: list[NDArray[np.float64]] = []
    backs: list[NDArray[np.float64]] = []
    for n in range(1, order + 1):
        key, history, suffix, raw = tables[n - 1]
        if n < order:  # a lower order counts contexts, not occurrences; only a word's start has none
            above = np.unique(tables[n][2], return_counts=True)
            seen = np.zeros(len(key))
            seen[np.searchsorted(key, above[0])] = above[1]
            count = np.where(seen > 0, seen, raw if n > 1 else 0)
        else:
            count = raw
        once, twice = float((count == 1).sum()), float((count == 2).sum())
        discount = once / (once + 2 * twice) if once else 0.5
        contexts, where = np.unique(history, return_inverse=True)
        mass = np.bincount(where, count)
        kinds = np.bincount(where)
        weight = discount * kinds / mass
        if n == 1:
            lower = np.full(len(key), 1.0 / len(key))
        else:
            lower = below["p"][np.searchsorted(tables[n - 2][0], suffix)]
            backs[-1][np.searchsorted(tables[n - 2][0], contexts)] = np.log(weight)
        probability = np.maximum(count - discount, 0) / mass[where] + weight[where] * lower
        below["p"] = probability
        keys.append(key)
        logs.append(np.log(probability))
        backs.append(np.zeros(len(key)))
    key = np.concatenate(keys)
    turn = np.argsort(key, kind="stable")
    scores = np.stack([np.concatenate(logs), np.concatenate(backs)], axis=1).astype(np.float16)
    return key[turn], scores[turn]


# --- the recipe --------------------------------------------------------------------------------------------------


def read(files: Iterable[Path]) -> dict[str, Entry]:
    """The lexicons, the first file winning. A value is tag to pronunciation, the tag of the usual one is ""."""
    merged: dict[str, Entry] = {}
    for file in files:
        for word, value in json.loads(file.read_text("utf-8")).items():
            entry = (
                {"": value} if isinstance(value, str) else {("" if k == "DEFAULT" else k): v for k, v in value.items()}
            )
            merged.setdefault(word, entry)
    return merged


def graphones(
    entries: Mapping[str, Entry], progress: Progress
) -> tuple[dict[str, dict[str, str]], list[list[tuple[str, str]]]]:
    """Pronunciations in the voice's symbols, and the aligned words that a model can learn from."""
    usual = ((word.lower(), entry.get("")) for word, entry in entries.items())
    clean = [(word, phones(said)) for word, said in usual if said and _TRAINABLE.fullmatch(word)]
    aligner = Aligner()
    progress("aligning letters with sounds", 0.05)
    aligner.fit(clean[:: max(1, len(clean) // SAMPLE)])
    spoken: dict[str, dict[str, str]] = {}
    lessons: list[list[tuple[str, str]]] = []
    for done, (word, entry) in enumerate(sorted(entries.items())):
        if done % 20_000 == 0:
            progress("spelling out the lexicon", 0.2 + 0.5 * done / len(entries))
        for tag, pronunciation in entry.items():
            if pronunciation is None:
                continue
            pairs = aligner.align(word.lower(), phones(pronunciation))
            spelt = respell(pairs) if pairs else respell([("", (sound,)) for sound in phones(pronunciation)])
            spoken.setdefault(word, {})[tag] = "".join(symbols for _, symbols in spelt)
            if pairs and not tag and word.islower() and _TRAINABLE.fullmatch(word):
                lessons.append(spelt)
    return spoken, lessons


def numbered(
    lessons: Sequence[Sequence[tuple[str, str]]], least: int = 3
) -> tuple[list[tuple[str, str]], list[list[int]]]:
    """Graphones that occur at least `least` times, and the words that use no other, as ids."""
    counts = Counter(pair for lesson in lessons for pair in lesson)
    names = [("", "start"), ("", "end"), *sorted(pair for pair, count in counts.items() if count >= least)]
    ids = {pair: n for n, pair in enumerate(names, start=1)}
    words = [[ids[pair] for pair in lesson] for lesson in lessons if all(pair in ids for pair in lesson)]
    return names, words


def lines(spoken: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The lexicon's lines. A capitalised entry that sounds like the lower-case one is left out."""
    rows = []
    for word, entry in spoken.items():
        lower = word.lower()
        if word != lower and spoken.get(lower) == entry:
            continue
        usual = entry.get("")
        if usual is None:
            continue
        rows.append(
            "\t".join([word, usual, *(f"{tag}={said}" for tag, said in sorted(entry.items()) if tag and said != usual)])
        )
    return sorted(rows, key=lambda row: row.split("\t")[0].encode())


def write(
    out: Path,
    rows: Sequence[str],
    names: Sequence[tuple[str, str]],
    keys: NDArray[np.uint64],
    scores: NDArray[np.float16],
) -> None:
    """The four artefacts, into the folder `out`."""
    (out / "lexicon.txt").write_text("".join(f"{row}\n" for row in rows), "utf-8")
    (out / "graphones.txt").write_text("".join(f"{letter}\t{symbols}\n" for letter, symbols in names), "utf-8")
    np.save(out / "ngram-keys.npy", keys)
    np.save(out / "ngram-scores.npy", scores)


def build(card: Card, sources: Mapping[str, Path], out: Path, progress: Progress) -> None:
    """Sources "gold" and "silver": misaki's lexicons as JSON; the first is the more reliable one."""
    spoken, lessons = graphones(read([sources["gold"], sources["silver"]]), progress)
    progress("training letter-to-sound", 0.75)
    names, words = numbered(lessons)
    write(out, lines(spoken), names, *train(words))
    progress("done", 1.0)


def verify(built: Built) -> list[Check]:
    """Golden words: `words` are looked up, `unknown` are pronounced by rule; both must match in full."""
    lexicon = Lexicon(built.file("lexicon"))
    letters = Letters(built.file("graphones"), built.file("keys"), built.file("scores"))
    wrong = [word for word, said in built.card.golden["words"].items() if lexicon.get(word).get("") != said]
    guessed = [word for word, said in built.card.golden["unknown"].items() if letters.say(word) != said]
    return [Check("lexicon entries that differ", len(wrong), 0), Check("guesses that differ", len(guessed), 0)]
