"""The next token from its logits, text held back for stop strings, and loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from appliance.errors import ConfigFault
from appliance.runtime.model import softmax

Logits = NDArray[np.float32]

_LONGEST_PERIOD = 32
_REPEATS = 3
_SHORTEST_LOOP = 18
"""Tokens: "no, no, no, no" is not a loop yet."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """`temperature` 0 takes the likeliest token. `top_p` keeps the likeliest tokens that hold that much probability,
    `min_p` those at least that probable relative to the likeliest. `repetition` > 1 makes tokens of the last `window`
    less likely (harmful to a model of 135M: leave it at 1). Equal seeds give equal text. Raises ConfigFault."""

    temperature: float = 0.0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition: float = 1.0
    window: int = 64
    seed: int | None = None

    def __post_init__(self) -> None:
        bounds = {
            "temperature": (self.temperature, 0, 10),
            "top_p": (self.top_p, 1e-6, 1),
            "min_p": (self.min_p, 0, 1),
            "repetition": (self.repetition, 0.1, 10),
            "window": (self.window, 0, 1 << 20),
        }
        for name, (value, low, high) in bounds.items():
            if not low <= value <= high:
                raise ConfigFault(f"sampling: {name} is {value}", f"choose {low} to {high}")


class Sampler:
    """Chooses tokens one after another."""

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._random = np.random.default_rng(sampling.seed)

    def choose(self, logits: Logits, recent: Sequence[int]) -> tuple[int, float]:
        """`logits` float32 [vocabulary], forbidden tokens at -inf. Returns the token and the natural logarithm of the
        probability that the model gives it."""
        scores = self._penalised(logits, recent)
        id = self._drawn(scores) if self._sampling.temperature > 0 else int(scores.argmax())
        top = logits.max()
        return id, float(logits[id] - top - np.log(np.exp(logits - top).sum()))

    def _penalised(self, logits: Logits, recent: Sequence[int]) -> Logits:
        sampling = self._sampling
        if sampling.repetition == 1 or not sampling.window:
            return logits
        seen = np.unique(np.array(recent[-sampling.window :], np.int64))
        scores = logits.copy()
        scores[seen] *= np.where(scores[seen] > 0, 1 / sampling.repetition, sampling.repetition)
        return scores

    def _drawn(self, scores: Logits) -> int:
        sampling = self._sampling
        probable = softmax(scores / np.float32(sampling.temperature))
        kept = np.flatnonzero(probable >= max(sampling.min_p * probable.max(), np.finfo(np.float32).tiny))
        kept = kept[np.argsort(-probable[kept], kind="stable")]
        cumulated = np.cumsum(probable[kept], dtype=np.float64)
        kept = kept[: int(np.searchsorted(cumulated, sampling.top_p * cumulated[-1])) + 1]
        drawn = self._random.random() * cumulated[len(kept) - 1]
        return int(kept[int(np.searchsorted(cumulated[: len(kept)], drawn, side="right").clip(max=len(kept) - 1))])


class StopStrings:
    """Lets text through up to the first stop string. What could be the beginning of one is held back."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [stop for stop in stops if stop]
        self._held = ""
        self.stopped = False

    def push(self, text: str) -> str:
        """The text that is certain to come before any stop string."""
        text = self._held + text
        found = [at for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            self.stopped, self._held = True, ""
            return text[: min(found)]
        keep = max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def end(self) -> str:
        """What was held back: it was no stop string after all."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that `stop` begins with."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)


def looping(ids: Sequence[int]) -> bool:
    """Whether the text ends in the same few tokens again and again."""
    for period in range(1, _LONGEST_PERIOD + 1):
        size = max(period * _REPEATS, _SHORTEST_LOOP)
        if len(ids) >= size and ids[-1] == ids[-1 - period]:
            tail = ids[-size:]
            if tail[period:] == tail[:-period]:
                return True
    return False
