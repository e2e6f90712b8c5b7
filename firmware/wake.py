"""Wake words: micro features once for all words, a streaming model per word (injected as `infer`), a decision per word.

Two things are asked of a word that the box plays itself at the time: does what was heard sound like what was played,
and is there more of it than the canceller usually leaves?

The features are those of the TensorFlow Lite micro front end (40 bands, 30 ms, a hop of 10 ms, noise reduction and
per-channel gain), which the models were trained on.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymicro_features import MicroFrontend

from firmware.fault import Fault
from firmware.frame import FRAME, NOTHING, RATE, Pcm, Role, Wave, Woke, to_wave

BANDS = 40

Infer = Callable[[Mapping[str, NDArray[Any]]], Mapping[str, NDArray[Any]]]

WASH = 80
"""Windows of silence after which a model has forgotten all that came before: the longest memory measured is 50."""

REFRACTORY = RATE
"""Samples after a wake in which the same word is not heard again."""

HANG = RATE
"""Samples of silence behind which nothing plays any more."""

LAG = 60
"""Rows (0.6 s) by which the echo of what was played may come later, at most."""

SAID = 0.3
"""Score of a single window from which what is played counts as the word: low, since it decides nothing alone."""

SPAN = 70
"""Rows over which what is heard is compared with what is played: a wake word."""

ALIKE = 0.78
"""Correlation of the two from which it is the echo: of echoes through eight rooms it was 0.82 to 0.99, of a user who
says the same word over it at +3 dB, in the very voice of the box, at most 0.75, in other voices 0.1 to 0.7."""

EXTRA = 0.15
"""The score that is needed on top for what the suppressor takes for an echo: other words of an answer, bent until they
sounded like the word, scored up to 0.09 above the threshold."""

CERTAIN = 0.98
"""A score that is enough in any case."""

MARGIN = 10.0
"""dB by which the word must stand above what is usually left of the echo; users at +3 dB stood 14 to 40 above it."""

SUPPRESSED = 8.0
"""dB that the suppressor takes away of an echo, and not of a user: of users at +3 dB over the word it took 2 to 4.4."""

HISTORY = 10 * RATE // FRAME
"""Rows of playing from which it is known what is usually left."""


@dataclass(frozen=True, slots=True)
class WakeWord:
    """`name` is the model's, `phrase` what is said. `infer` takes `features` float32 [1, stride, BANDS] and gives
    `score` float32 [1, 1], a probability; it keeps the state of one stream, and `infer_far` that of another.

    The word is heard where the mean of the last `window` scores reaches `threshold`. That is up to `late` samples
    behind its end, and it is `length` samples long.
    """

    name: str
    phrase: str
    infer: Infer
    infer_far: Infer
    threshold: float
    window: int
    stride: int = 3
    late: int = 0
    length: int = 700 * RATE // 1000
    role: Role = "wake"


class Wake:
    """The wake words that one stream holds, whatever the size of its pieces. One thread uses it, but that `threshold`
    may come from any.

    While the box plays, what it plays is scored too, so that a word that it says itself does not wake it.

    `scored` counts the windows that were scored for all words: it stands still where nothing listens. `suppressed`
    counts the words that were the box's own.
    """

    def __init__(self, words: Sequence[WakeWord]) -> None:
        self.scored = 0
        self.suppressed = 0
        self._features = _Features()
        self._words = {word.name: _Word(word) for word in words}
        self._own = _Own(words)
        self.reset()

    @property
    def given(self) -> dict[str, float]:
        """The thresholds that the words came with."""
        return {name: word.made.threshold for name, word in self._words.items()}

    @property
    def thresholds(self) -> dict[str, float]:
        """Those that count now."""
        return {name: word.threshold for name, word in self._words.items()}

    def push(self, samples: Pcm, at: int, *, far: Pcm = NOTHING, strict: Pcm | None = None) -> tuple[Woke, ...]:
        """The words that `samples` complete: int16 [n] at RATE without echo, but with all of the user's voice. `at` is
        the index of their first, `far` what the loudspeaker took meanwhile, int16 [m]; `strict` is the same sound with
        all that could be echo suppressed."""
        self._own.push(far, at + len(samples), samples, samples if strict is None else strict)
        woke = []
        for row in self._features.push(samples):
            self._own.heard(row)
            now = at + row.end
            woke += [self._judge(word, now) for word in self._words.values() if word.push(row)]
        return tuple(note for note in woke if note)

    def reset(self) -> None:
        """Forgets all sound."""
        self._features.reset()
        self._own.reset()
        for word in self._words.values():
            word.reset()

    def threshold(self, name: str, value: float) -> None:
        """From the next window on. Raises Fault where there is no such word, or the value is none."""
        if name not in self._words:
            raise Fault(f"there is no wake word {name!r}", f"there are {', '.join(self._words) or 'none'}")
        if not 0.0 < value < 1.0:
            raise Fault(f"{value!r} is no threshold for {name}", "it must lie between 0 and 1")
        self._words[name].threshold = float(value)

    def peak(self, name: str) -> float:
        """The best score of the last two seconds."""
        return max(self._words[name].recent, default=0.0)

    def _judge(self, word: _Word, now: int) -> Woke | None:
        self.scored += 1
        score = word.scores.mean
        word.recent.append(score)
        if score < word.threshold:
            word.since = None
            return None
        if score < min(word.threshold + EXTRA, CERTAIN) and self._own.bends():
            return None
        rises, word.since = word.since is None, now if word.since is None else word.since
        if now < word.deaf_until:
            return None
        if self._own.says(word.made.name, now):
            self.suppressed += rises
            return None
        word.deaf_until = now + REFRACTORY
        end = word.since - word.made.late
        return Woke(word.made.name, end - word.made.length, end, score, word.threshold, word.made.role)


class _Word:
    """What is remembered of one word at the near end."""

    def __init__(self, made: WakeWord) -> None:
        self.made = made
        self.threshold = made.threshold
        self.scores = _Scores(made.infer, made)
        self.recent: deque[float] = deque(maxlen=2 * RATE // FRAME // made.stride)
        self.deaf_until = 0

    def push(self, row: _Row) -> bool:
        return self.scores.push(row)

    def reset(self) -> None:
        self.deaf_until = 0
        self.since: int | None = None
        self.recent.clear()
        self.scores.reset()


# --- one stream ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Row:
    """The features of a frame, [BANDS], its `power` against full scale, and the samples of the push up to its end."""

    bands: Wave
    power: float
    end: int


class _Features:
    """int16 at RATE to rows, one each FRAME."""

    def __init__(self) -> None:
        self._frontend = MicroFrontend()
        self._held: Pcm = NOTHING

    def push(self, samples: Pcm) -> Iterator[_Row]:
        late = len(self._held)
        sound = np.concatenate([self._held, samples]).astype(np.int16, copy=False)
        whole = len(sound) // FRAME * FRAME
        self._held = sound[whole:]
        for start in range(0, whole, FRAME):
            piece = sound[start : start + FRAME]
            found = self._frontend.process_samples(piece.tobytes())
            if found.features:  # none before there is a whole window
                wave = to_wave(piece)
                yield _Row(np.array(found.features, np.float32), float(wave @ wave) / FRAME, start + FRAME - late)

    def reset(self) -> None:
        self._frontend.reset()
        self._held = NOTHING


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

    def push(self, row: _Row) -> bool:
        """Whether the row was the last that a score needed."""
        self._rows.append(row.bands)
        if len(self._rows) < self._stride:
            return False
        self.last.append(float(self._infer({"features": np.stack(self._rows)[None]})["score"][0, 0]))
        self._rows.clear()
        return True

    def reset(self) -> None:
        """Silence takes the place of all that was heard: a model cannot be told to forget."""
        silence = {"features": np.zeros((1, self._stride, BANDS), np.float32)}
        for _ in range(WASH):
            self._infer(silence)
        self._rows.clear()
        self.last.clear()


# --- what the box says itself ----------------------------------------------------------------------------------------


class _Own:
    """What the box plays, and what is left of it in what is heard. It costs nothing while nothing plays."""

    def __init__(self, words: Sequence[WakeWord]) -> None:
        self._features = _Features()
        self._scores = {word.name: _Scores(word.infer_far, word) for word in words}
        self._near: deque[_Row] = deque(maxlen=SPAN)
        self._far: deque[_Row] = deque(maxlen=SPAN + LAG)
        self._left: deque[float] = deque(maxlen=HISTORY + SPAN)
        self._kept: deque[tuple[float, float]] = deque(maxlen=SPAN)
        self._said: dict[str, int] = {}

    def reset(self) -> None:
        self._plays_until = -1
        self._plays = False
        self._left.clear()
        self._begin()
        for scores in self._scores.values():
            scores.reset()

    def push(self, far: Pcm, now: int, gentle: Pcm, strict: Pcm) -> None:
        """`now` is the near end's clock."""
        if len(far) and far.any():
            if now > self._plays_until:
                self._begin()
            self._plays_until = now + HANG
        self._plays = now <= self._plays_until
        if self._plays:
            self._kept.append((_power(gentle), _power(strict)))
        for row in self._features.push(far) if self._plays else ():
            self._far.append(row)
            for name, scores in self._scores.items():
                if scores.push(row) and scores.last[-1] >= SAID:
                    self._said[name] = now

    def heard(self, row: _Row) -> None:
        if not self._plays:
            return
        self._near.append(row)
        if len(self._near) == SPAN and self._far:
            self._left.append(self._ratio())

    def says(self, name: str, now: int) -> bool:
        """Whether a word that is heard now is what the box has just said itself."""
        if not self._plays or now - self._said.get(name, -RATE) > LAG * FRAME:
            return False
        usual = list(self._left)[:-SPAN]
        if len(usual) < SPAN or self._left[-1] < float(np.median(usual)) + MARGIN:
            return True
        return self._alike() >= ALIKE or self._suppressed() > SUPPRESSED

    def bends(self) -> bool:
        """Whether what is heard is probably left of other words that the box says."""
        whole = self._plays and len(self._near) == SPAN
        return whole and self._suppressed() > SUPPRESSED

    def _begin(self) -> None:
        """What was played before is over; how much is usually left of it is still known."""
        self._features.reset()
        self._near.clear()
        self._kept.clear()
        self._far.clear()
        self._said.clear()

    def _ratio(self) -> float:
        """dB of what is heard against what was played at its loudest, as echo may be heard later."""
        near = sum(row.power for row in self._near) / SPAN
        played = np.convolve([row.power for row in self._far], np.full(SPAN, 1 / SPAN))[: len(self._far)]
        return 10 * math.log10((near + 1e-10) / (float(played.max()) + 1e-10))

    def _suppressed(self) -> float:
        """By how many dB the suppressor took more away than the linear filter."""
        gentle, strict = np.sum(list(self._kept), axis=0)
        return 10 * math.log10((gentle + 1e-10) / (strict + 1e-10))

    def _alike(self) -> float:
        """The largest correlation of the last SPAN rows with what was played up to LAG rows before."""
        near = _levelled(np.stack([row.bands for row in self._near]))
        far = np.stack([row.bands for row in self._far])
        ends = range(max(SPAN, len(far) - LAG), len(far) + 1)
        return max((float(np.vdot(near, _levelled(far[end - SPAN : end]))) for end in ends), default=0.0)


def _power(samples: Pcm) -> float:
    wave = to_wave(samples)
    return float(wave @ wave)


def _levelled(rows: Wave) -> Wave:
    """Each band without its mean, all of them of unit length."""
    flat = rows - rows.mean(axis=0)
    unit: Wave = flat / (np.linalg.norm(flat) + 1e-9)
    return unit


def scores(word: WakeWord, samples: Pcm) -> list[float]:
    """What the model says to each window of a sound, [0, 1], behind silence."""
    features, heard = _Features(), _Scores(word.infer, word)
    heard.reset()
    return [heard.last[-1] for row in features.push(samples) if heard.push(row)]
