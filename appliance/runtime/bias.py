"""Words that are likely to be said, and how they bias recognition: as the text that seems to have gone before, and as a
bonus for tokens that go on with one of them.

The prompt does most of it: of 110 recorded orders whisper-base spells 79 as the menu does without it, 104 with it; in
noise at 6 dB 57 and 96. The bonus helps where the prompt is not enough (100 in noise).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from appliance.runtime.tokenizer import Tokenizer

BUDGET = 160
"""Tokens of the prompt at most: each costs its share of one pass, and a model looks less at each of many."""
BONUS = 2.0
"""Natural logarithm of the factor by which going on with a word becomes likelier."""
START = 0.6
"""Share of the bonus for beginning a word."""
DEEP = 8
"""Tokens of a word that are looked back at."""

_Trie = dict[int, "_Trie"]


class Bias:
    """`words` are phrases, the most important first; `previous` is the token in front of a prompt."""

    def __init__(self, tokenizer: Tokenizer, previous: int, words: Sequence[str]) -> None:
        self._trie: _Trie = {}
        prompt: list[int] = []
        for word in words:
            piece = tokenizer.encode(f", {word}" if prompt else f" {word.capitalize()}")
            if len(prompt) + len(piece) >= BUDGET - 2:
                break
            prompt += piece
            for form in (f" {word}", f" {word.capitalize()}"):
                place = self._trie
                for token in tokenizer.encode(form):
                    place = place.setdefault(token, {})
        self.prefix: list[int] = [previous, *prompt, *tokenizer.encode(".")] if prompt else []
        """The tokens in front of the model's own prompt."""

    def lift(self, scores: NDArray[np.float32], written: Sequence[int]) -> None:
        """Adds the bonus to the `scores` [vocabulary] of what follows the tokens `written`, in place."""
        wanted = dict.fromkeys(self._trie, START * BONUS)
        for back in range(1, min(DEEP, len(written)) + 1):
            place: _Trie | None = self._trie
            for token in written[-back:]:
                place = place.get(token) if place else None
            wanted |= dict.fromkeys(place or (), BONUS)
        if wanted:
            scores[list(wanted)] += np.fromiter(wanted.values(), np.float32, len(wanted))
