"""Letter-to-sound: how a word that no lexicon has is probably said.

A joint n-gram model over graphones (a letter with the symbols it stands for), decoded by a beam over the letters.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from appliance.errors import ModelDamaged, ModelMissing

HASH = np.uint64(0x9E3779B97F4A7C15)
"""Odd multiplier of the polynomial hash that names an n-gram."""

ORDER = 6
BEAM = 12
_START, _END = 1, 2
_FLOOR = -14.0
_POWERS = np.array([pow(int(HASH), n, 2**64) for n in range(ORDER)], np.uint64)


class Letters:
    """The model's three files, as the recipe describes them; the n-grams stay on disk, mapped."""

    def __init__(self, graphones: Path, keys: Path, scores: Path) -> None:
        try:
            rows = graphones.read_text("utf-8").split("\n")[:-1]
            self._keys: NDArray[np.uint64] = np.load(keys, mmap_mode="r")
            self._scores: NDArray[np.float16] = np.load(scores, mmap_mode="r")
        except FileNotFoundError as error:
            raise ModelMissing(f"{error.filename} is not there", "run `parley models build`") from error
        except ValueError as error:
            raise ModelDamaged(
                f"the letter-to-sound model {keys.parent} cannot be read: {error}", "run `parley models build`"
            ) from error
        self._symbols = ["", *(row.partition("\t")[2] for row in rows)]
        by_letter: defaultdict[str, list[int]] = defaultdict(list)
        for number, row in enumerate(rows, start=1):
            by_letter[row.partition("\t")[0]].append(number)
        self._choices = {letter: np.array(ids, np.uint64) for letter, ids in by_letter.items()}
        self.say = lru_cache(1024)(self._say)

    def _say(self, word: str) -> str:
        """The symbols for `word`; letters the model does not know are silent. At least one vowel is stressed."""
        histories: list[tuple[int, ...]] = [(_START,)]
        totals = np.zeros(1)
        for letter in word.lower():
            choices = self._choices.get(letter)
            if choices is None or not letter:
                continue
            scores = totals[:, None] + self._score(histories, choices)
            best = np.argsort(scores, axis=None)[::-1][:BEAM]
            rows, columns = np.unravel_index(best, scores.shape)
            histories = [(*histories[r], int(choices[c])) for r, c in zip(rows, columns, strict=True)]
            totals = scores[rows, columns]
        totals = totals + self._score(histories, np.array([_END], np.uint64))[:, 0]
        spoken = ["".join(self._symbols[i] for i in histories[n][1:]) for n in np.argsort(totals)[::-1]]
        return next((said for said in spoken if said.count("ˈ") == 1), spoken[0])

    def _score(self, histories: list[tuple[int, ...]], choices: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Log probabilities [histories, choices] with back-off."""
        contexts = np.zeros((ORDER, len(histories)), np.uint64)
        for n in range(1, ORDER):
            ids = np.array([h[-n] if len(h) >= n else 0 for h in histories], np.uint64)
            contexts[n] = contexts[n - 1] + ids * _POWERS[n - 1]
        known = np.array([[len(h) >= n for h in histories] for n in range(ORDER)])
        found, context_scores = self._find(contexts)
        back = np.where(found & known, context_scores[..., 1], 0.0)
        hit, gram_scores = self._find(contexts[:, :, None] * HASH + choices)
        hit &= known[:, :, None]
        total = np.full((len(histories), len(choices)), _FLOOR)
        for n in range(ORDER):
            shorter = total + (back[n][:, None] if n else 0.0)
            total = np.where(hit[n], gram_scores[n, ..., 0], shorter)
        return total

    def _find(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        where = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return self._keys[where] == keys, self._scores[where].astype(np.float64)
