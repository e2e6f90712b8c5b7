"""Wake words: micro features once for all words, a streaming model per word (injected as `infer`), a decision per word.

The features are those of the TensorFlow Lite micro front end (40 bands, 30 ms, a hop of 10 ms, noise reduction and
per-channel gain), which the models were trained on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pymicro_features import MicroFrontend

from firmware.fault import Fault
from firmware.frame import FRAME, RATE, Pcm, Wave, Woke, to_wave

BANDS = 40

Infer = Callable[[Mapping[str, NDArray[Any]]], Mapping[str, NDArray[Any]]]

Role = Literal["wake", "stop"]
"""What a word does: it opens a turn, or ends what the box says."""

WASH = 80
"""Windows of silence after which a model has forgotten all that came before: the longest memory measured is 50."""

REFRACTORY = RATE
"""Samples after a wake in which the same word is not heard again."""

HANG = RATE
"""Samples of silence behind which nothing plays any more."""

LAG = 600 * RATE // 1000
"""Samples by which the echo of what was played may come later, at most."""

ECHO_SCORE = 0.3
"""Score from which what is played counts as the word: low, since a word too many there costs little."""

MARGIN = 10.0
"""dB by which the near end must stand above what the canceller usually leaves of the echo, for a word that the box says
at the same time to be the user's."""

SPAN = 60
"""Frames over which the near end and the echo are compared: a wake word."""


@dataclass(frozen=True, slots=True)
class WakeWord:
    """`name` is the model's, `phrase` what is said. `infer` takes `features` float32 [1, stride, BANDS] and gives
    `score` float32 [1, 1], a probability; it keeps the state of one stream, and `infer_far` that of another.

    The word is heard where the mean of the last `window` scores reaches `threshold`. That is `late` samples behind its
    end (or before, if negative), and the word is `length` samples long: medians of recordings.
    """

    name: str
    phrase: str
    infer: Infer
    infer_far: Infer
    threshold: float
    window: int = 5
    stride: int = 3
    late: int = 0
    length: int = 700 * RATE // 1000
    role: Role = "wake"


class Wake:
    """The wake words that one stream holds, whatever the size of its pieces. One thread uses it.

    While the box plays, what it plays is scored too, and a word that it says itself is not one that wakes it.

    `scored` counts the windows of the near end that were scored: it stands still where nothing listens.
    """

    def __init__(self, words: Sequence[WakeWord]) -> None:
        self.scored = 0
        self.suppressed = 0
        self._features = _Features()
        self._words = {word.name: _Word(word) for word in words}
        self._far = _FarEnd(words)
        self.reset()

    def push(self, samples: Pcm, at: int, *, far: Pcm | None = None, doubt: float = 0.0) -> tuple[Woke, ...]:
        """The words that `samples` complete, int16 [n] at RATE and echo-cancelled. `at` is the index of their first,
        `far` what the loudspeaker took meanwhile [m]."""
        self._far.push(samples, far, at)
        woke = []
        for row, used in self._features.push(samples):
            for word in self._words.values():
                if word.near.push(row):
                    self.scored += 1
                    woke.append(self._judge(word, at + used))
        return tuple(note for note in woke if note is not None)

    def reset(self) -> None:
        """Forgets all sound."""
        self._features.reset()
        self._far.reset()
        for word in self._words.values():
            word.reset()

    def threshold(self, name: str, value: float) -> None:
        """From the next window on. Raises Fault where there is no such word, or the value is no probability."""
        if name not in self._words:
            raise Fault(f"there is no wake word {name!r}", f"there are {', '.join(self._words) or 'none'}")
        if not 0.0 < value < 1.0:
            raise Fault(f"the threshold of {name} cannot be {value}", "it must lie between 0 and 1")
        self._words[name].threshold = float(value)

    @property
    def thresholds(self) -> dict[str, float]:
        return {name: word.threshold for name, word in self._words.items()}

    def peak(self, name: str) -> float:
        """The best score of the last two seconds."""
        return max(self._words[name].recent, default=0.0)

    def _judge(self, word: _Word, now: int) -> Woke | None:
        score = word.near.mean
        word.recent.append(score)
        if score < word.threshold or now < word.deaf_until:
            return None
        if self._far.says(word.word.name, now):
            self.suppressed += 1
            return None
        word.deaf_until = now + REFRACTORY
        end = now - max(word.word.late, 0)
        return Woke(word.word.name, end - word.word.length, end, score, word.threshold)


class _Word:
    """What is remembered of one word at the near end."""

    def __init__(self, word: WakeWord) -> None:
        self.word = word
        self.threshold = word.threshold
        self.near = _Scores(word.infer, word)
        self.recent: deque[float] = deque(maxlen=2 * RATE // FRAME // word.stride)

    def reset(self) -> None:
        self.deaf_until = -1
        self.recent.clear()
        self.near.reset()


class _Features:
    """int16 at RATE to rows of BANDS, one each FRAME."""

    def __init__(self) -> None:
        self._frontend = MicroFrontend()
        self._held = b""

    def push(self, samples: Pcm) -> Iterator[tuple[Wave, int]]:
        """Each row that is complete, and how many of the samples lie in front of its end."""
        late = len(self._held) // 2
        sound = self._held + np.ascontiguousarray(samples, np.int16).tobytes()
        whole = len(sound) - len(sound) % (2 * FRAME)
        self._held = sound[whole:]
        for start in range(0, whole, 2 * FRAME):
            found = self._frontend.process_samples(sound[start : start + 2 * FRAME])
            if found.features:
                yield np.array(found.features, np.float32), start // 2 + FRAME - late

    def reset(self) -> None:
        self._frontend.reset()
        self._held = b""


class _Scores:
    """The scores that one model gives to one stream."""

    def __init__(self, infer: Infer, word: WakeWord) -> None:
        self._infer = infer
        self._rows: list[Wave] = []
        self._stride = word.stride
        self.last: deque[float] = deque(maxlen=word.window)

    @property
    def mean(self) -> float:
        """Of a full window; 0 before there is one."""
        return sum(self.last) / len(self.last) if len(self.last) == self.last.maxlen else 0.0

    def push(self, row: Wave) -> bool:
        """Whether the row was the last that a score needed."""
        self._rows.append(row)
        if len(self._rows) < self._stride:
            return False
        self.last.append(float(self._infer({"features": np.stack(self._rows)[None]})["score"][0, 0]))
        self._rows.clear()
        return True

    def reset(self) -> None:
        silence = {"features": np.zeros((1, self._stride, BANDS), np.float32)}
        for _ in range(WASH):
            self._infer(silence)
        self._rows.clear()
        self.last.clear()


class _FarEnd:
    """What the box plays, and how much of it is left at the near end."""

    def __init__(self, words: Sequence[WakeWord]) -> None:
        self._features = _Features()
        self._scores = {word.name: _Scores(word.infer_far, word) for word in words}
        self.reset()

    def reset(self) -> None:
        self._playing_until = -1
        self._said: dict[str, int] = {}
        self.debug: list[Any] = []
        self._near_power = _Mean(SPAN)
        self._far_power = _Mean(SPAN)
        self._loudest: deque[float] = deque(maxlen=(LAG + FRAME * 10) // FRAME)
        self.floor = None

    def push(self, near: Pcm, far: Pcm | None, at: int) -> None:
        now = at + len(near)
        if far is not None and far.any():
            if self._playing_until < at:
                self._begin()
            self._playing_until = now + HANG
        if now > self._playing_until:
            return
        f = far if far is not None else np.zeros(0, np.int16)
        for row, _ in self._features.push(f):
            for name, scores in self._scores.items():
                if scores.push(row) and scores.last[-1] >= ECHO_SCORE:
                    self._said[name] = now
        self._near_power.push(_energy(near), len(near))
        self._far_power.push(_energy(f), len(f))
        self._loudest.append(self._far_power.value)
        self.debug.append(
            (now, 10 * np.log10(self._near_power.value + 1e-10), 10 * np.log10(max(self._loudest) + 1e-10))
        )

    def says(self, name: str, now: int) -> bool:
        """Whether a word that is heard now is one that the box itself has just said."""
        return name in self._said and now - self._said[name] <= LAG

    def _begin(self) -> None:
        self._features.reset()
        for scores in self._scores.values():
            scores.reset()


class _Mean:
    def __init__(self, n: int) -> None:
        self._q: deque[tuple[float, int]] = deque(maxlen=n)

    def push(self, energy: float, n: int) -> None:
        self._q.append((energy, n))

    @property
    def value(self) -> float:
        return sum(e for e, _ in self._q) / max(1, sum(n for _, n in self._q))


def _energy(samples: Pcm) -> float:
    wave = to_wave(samples)
    return float(np.dot(wave, wave))


def scores(word: WakeWord, samples: Pcm) -> list[float]:
    """What the model says to each window of a sound, [0, 1], behind silence."""
    features, heard = _Features(), _Scores(word.infer, word)
    heard.reset()
    return [heard.last[-1] for row, _ in features.push(samples) if heard.push(row)]
