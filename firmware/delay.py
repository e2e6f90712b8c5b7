"""Where the echo of the far end lies in the microphone: its delay, the drift of the two clocks, and the far end put
there, so that a canceller sees neither.

The delay is the peak of the generalised cross-correlation with phase transform (Knapp & Carter 1976, "The generalized
correlation method for estimation of time delay"), of a cross spectrum that is averaged over some tenths of a second.
Delay and drift are followed by a Kalman filter (1960) of two states, offset and slope.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from firmware.frame import FRAME, RATE, Pcm, Wave, to_pcm, to_wave

LEAD = 64
"""Samples (4 ms) by which the aligned far end precedes its echo: a causal filter then holds the direct sound in its
first taps, even where the estimate is a millisecond or two late."""

PLAUSIBLE = 0.05
"""Seconds of delay that are assumed until it is known: the buffers of a common card."""

LEAST, MOST = -0.06, 0.56
"""Seconds of delay that are searched: half a second, and the period of a card to either side."""

BLOCK = RATE // 10
"""Samples of the microphone that are correlated at once."""

WINDOW = 11_520
"""Samples of the far end that a block is correlated with: the block at every delay. FFTs of this length are quick."""

BAND = 150.0, 3800.0
"""Hertz that are correlated: most of speech, and narrow enough for lags that are two samples apart."""

MEMORY = 0.6
"""What a block leaves of the average before it: a time constant of 0.2 s."""

NEARBY = 0.004
"""Seconds within which peaks are taken for one sound and its reflections: less than the period of most voices, whose
harmonics agree by chance at many lags."""

EARLY = 0.01
"""Seconds in front of the highest peak in which the direct sound is looked for."""

STRAY = 0.02
"""Seconds by which the delays that are searched may be off before they are set right."""

FADE = 960
"""Samples at the ends of a window that are faded (60 ms)."""

CLEAR = 1.5
"""A peak must be so many times as high as anything that is not nearby. What repeats itself has many peaks of one
height; so has noise, in effect."""

DIRECT = 0.6
"""The direct sound is the first peak nearby of this height; the highest, which is 1, may be a reflection."""

FIRST, AGAIN = 2.5, 3.0
"""Evidence that a first delay needs, and another one. A block gives the logarithm of how clear its peak is, at most 1,
to the place of that peak, and takes as much from any other place."""

FADING = 0.05
"""Evidence that each block takes away, so that doubtful peaks do not add up."""

PULL = 0.001
"""Seconds to either side of the delay in which it is followed. What lies further off is another delay."""

SLEW = 0.4
"""Samples per frame by which an error is made good, and STEP the largest that is; a larger one is a jump."""
STEP = 4.0

ACTIVE = 32 / 32768
"""Peak (-60 dBFS) under which the far end is silent."""

HELD = 20_480
"""Samples of the far end that are kept (1.3 s): a window, and what comes in bursts."""

TAPS = 32
"""Taps of the fractional delay, a sinc under a squared cosine: 1 dB down at 7.5 kHz."""

PHASES = 128
"""Fractions of a sample for which the taps are kept; in between they are interpolated (-90 dB)."""

_HALF = TAPS // 2
_BINS = WINDOW // 4 + 1
"""Bins up to a quarter of the rate: the inverse transform is half as long, and its lags two samples apart."""


class Aligner:
    """Takes the microphone and what the loudspeaker took, frame by frame, and gives the far end as it reaches the
    microphone LEAD samples later, on the microphone's clock.

    `jumped` is True where the frame just given does not continue the one before. `lead` is LEAD, or the fewer samples
    that there are where the delay is shorter than that and a frame. `sure` in [0, 1] is how clearly the echo was last
    heard where it is expected. Only sound that is played teaches anything.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forgets everything, as is right when a card has been opened."""
        self.sure = 0.0
        self.jumped = False
        self._far = _Timeline()
        self._spectrum = CrossSpectrum()
        self._track = _Track()
        self._known = self._begun = False
        self._at, self._part = 0, 0.0  # where the far end is heard by the next sample of the microphone
        self._ahead = 0.0  # by how many samples the far end is written beyond that, on average: the delay
        self._reach = 0  # how many samples before that the window begins
        self._owed = 0.0  # samples of error still to be made good
        self.lead = LEAD
        self._near: list[Wave] = []
        self._first = (0, 0.0)  # where the far end was heard by the first sample of `_near`
        self._blind = 0  # samples since the delay was last measured
        self._candidate, self._evidence = 0.0, 0.0

    @property
    def delay(self) -> float | None:
        """Seconds between what the loudspeaker took and what the microphone hears, None until known."""
        return self._ahead / RATE if self._known else None

    @property
    def drift(self) -> float | None:
        """By how many parts per million the loudspeaker's clock is the faster one, None until known."""
        return self._track.slope * 1e6 if self._track.settled else None

    def push(self, near: Pcm, far: Pcm) -> Pcm:
        """int16 [FRAME] and what the loudspeaker took since the frame before, int16 [n] -> int16 [FRAME]."""
        self.jumped = False
        self._far.push(to_wave(far))
        if not self._begun:
            self._begin()
        if self._far.silent:
            self._near.clear()
            self._advance()
            return np.zeros(FRAME, np.int16)
        if not self._near:
            self._first = self._at, self._part
        self._near.append(to_wave(near))
        if len(self._near) * FRAME == BLOCK:
            self._learn()
        at, part = self._at + self.lead, self._part
        moved = self._advance()
        return to_pcm(_between(self._far.read(at - _HALF + 1, FRAME + TAPS - 1), part, part + moved - FRAME))

    def skip(self, near: int) -> None:
        """So many samples of the microphone were lost; what was played meanwhile comes with the next frame."""
        self._near.clear()
        if self._begun:
            self._move(near * (1 + self._track.slope))
            self._blind += near

    def _begin(self) -> None:
        self._begun = True
        self._ahead = PLAUSIBLE * RATE
        self._at = self._far.end - FRAME - round(self._ahead)
        self._anchor()

    def _advance(self) -> float:
        """Moves on by one frame of the microphone; returns by how many samples of the far end."""
        made_good = min(max(self._owed, -SLEW), SLEW)
        self._owed -= made_good
        moved = FRAME * (1 + self._track.slope) + made_good
        self._move(moved)
        self._blind += FRAME
        self._ahead += (self._far.end - self._at - self._part - self._ahead) * FRAME / RATE
        if abs(self._reach + self._ahead - MOST * RATE) > STRAY * RATE:
            self._anchor()
        return moved

    def _move(self, samples: float) -> None:
        whole = int(np.floor(self._part + samples))
        self._at, self._part = self._at + whole, self._part + samples - whole

    def _anchor(self) -> None:
        """The window lies where the delays to be searched are. A little further on, what was learnt still holds."""
        further = round(MOST * RATE - self._ahead) // 2 * 2 - self._reach
        self._reach += further
        self._candidate += further
        if abs(further) < BLOCK:
            self._spectrum.shift(-further)
        else:
            self._spectrum.reset()

    def _learn(self) -> None:
        """Correlates a block, and corrects the delay by what it shows."""
        near = np.concatenate(self._near)
        self._near.clear()
        at, part = self._first
        middle = part + (self._at + self._part - at - part - (BLOCK - FRAME)) / 2  # the block's, less half a block
        whole = int(np.floor(middle))
        window = self._far.read(at + whole - self._reach, WINDOW)
        if not near.any() or np.abs(window).max() < ACTIVE:
            return
        self._spectrum.push(near, window, middle - whole)
        lags = self._spectrum.lags()
        if not (self._known and self._follow(lags)):
            self._look(lags)

    def _follow(self, lags: Wave) -> bool:
        """Follows the peak at the present delay, if there is one that is clear."""
        here, pull = self._reach // 2, round(PULL * RATE / 2)
        if not pull <= here < len(lags) - pull:
            return False
        place = here - pull + int(np.argmax(lags[here - pull : here + pull + 1]))
        clear = _clear(lags, place, place)
        self.sure += 0.3 * (min(max(clear - 1.0, 0.0), 1.0) - self.sure)
        if clear < CLEAR or lags[place] < DIRECT * lags.max():
            return False
        self._evidence = max(0.0, self._evidence - min(np.log(clear), 1.0))
        self._correct(refine(lags, place) - self._reach)
        return True

    def _look(self, lags: Wave) -> None:
        """Looks for another delay: what is seen for one place counts against all others."""
        peak = find(lags)
        gain = min(float(np.log(peak.clear)), 1.0)
        self._evidence = max(0.0, self._evidence - FADING)
        if abs(peak.lag - self._candidate) >= PULL * RATE:
            self._evidence -= gain
            if self._evidence < 0:
                self._candidate, self._evidence = peak.lag, -self._evidence
            return
        self._candidate = peak.lag
        self._evidence += gain
        if self._evidence >= (AGAIN if self._known else FIRST) and self._better(lags, peak):
            self._jump(peak.lag - self._reach)

    def _better(self, lags: Wave, peak: Peak) -> bool:
        """It is no neighbour of the present delay that is little higher, and does not lie where the window fades."""
        here, pull = self._reach // 2, round(PULL * RATE / 2)
        present = lags[max(0, here - pull) : max(0, here + pull + 1)].max(initial=0.0) if self._known else 0.0
        return peak.height > CLEAR * float(present) and FADE < 2 * peak.lag < 4 * len(lags) - FADE

    def _correct(self, error: float) -> None:
        before = self._track.slope
        offset = self._track.push(error, self._spectrum.age, self._blind)
        self._blind = 0
        self._spectrum.shift(-(self._track.slope - before) * self._spectrum.age)
        if abs(offset) > STEP:
            self._jump(offset)
        else:
            self._owed += offset
            self._spectrum.shift(offset)

    def _jump(self, samples: float) -> None:
        whole = round(samples / 2) * 2
        self._move(samples)
        self._ahead -= samples
        self._reach += whole
        self._spectrum.shift(samples - whole)
        self._owed = 0.0
        self._track.moved()
        self._blind = 0
        self._candidate, self._evidence = 0.0, 0.0
        self._known = self.jumped = True
        self.lead = int(min(max(self._ahead - FRAME, 0), LEAD))


def likeness(channel: Pcm, played: Pcm) -> float:
    """How much of a channel's energy is what was played, in [0, 1], both int16 [n] at RATE: close to 1 where the card
    loops back what it plays; less, by the room, where it is a microphone; 0 where no echo is found."""
    aligner = Aligner()
    heard: list[Wave] = []
    echo: list[Wave] = []
    for at in range(0, min(len(channel), len(played)) - FRAME + 1, FRAME):
        aligned = aligner.push(channel[at : at + FRAME], played[at : at + FRAME])
        if aligner.jumped:
            heard.clear()
            echo.clear()
        if aligner.delay is not None:
            heard.append(to_wave(channel[at : at + FRAME]))
            echo.append(to_wave(aligned))
    if not heard:
        return 0.0
    late = np.concatenate(heard)[aligner.lead :]
    early = np.concatenate(echo)[: len(late)]
    energy = float(np.sum(np.square(late)) * np.sum(np.square(early)))
    return float(np.dot(late, early)) ** 2 / energy if energy > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Peak:
    """`lag` in samples from the beginning of the window, its height, and how many times as high it is as any that is
    not nearby."""

    lag: float
    height: float
    clear: float


class CrossSpectrum:
    """The cross spectrum of microphone and far end, averaged over blocks."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._mean: NDArray[np.complex64] = np.zeros(_BINS, np.complex64)
        self._weight = 0.0
        self.age = BLOCK / 2

    def push(self, near: Wave, far: Wave, offset: float = 0.0) -> None:
        """float32 [BLOCK] and [WINDOW]; the window begins `offset` samples too early."""
        here = np.fft.rfft(_faded(near, BLOCK // 2), WINDOW)[:_BINS]
        there = np.fft.rfft(_faded(far, FADE))[:_BINS]
        cross = np.conj(here) * there * _shifting(offset)
        self._mean = (np.float32(MEMORY) * self._mean + cross).astype(np.complex64)
        old, new = MEMORY * self._weight, float(np.linalg.norm(near))
        self._weight = old + new
        self.age = (old * (self.age + BLOCK) + new * BLOCK / 2) / self._weight

    def shift(self, samples: float) -> None:
        """All lags become so many samples smaller."""
        self._mean = self._mean * _shifting(samples)

    def lags(self) -> Wave:
        """The correlation with phase transform by lag, two samples apart: float32 [(WINDOW - BLOCK) / 2]."""
        magnitude = np.abs(self._mean)
        whitened = self._mean * (_BAND / np.maximum(magnitude, np.float32(1e-20)))
        return np.fft.irfft(whitened)[: (WINDOW - BLOCK) // 2].astype(np.float32)


def find(lags: Wave) -> Peak:
    """The direct sound among the lags."""
    top = int(np.argmax(lags))
    start = max(0, top - round(EARLY * RATE / 2))
    first = start + int(np.argmax(lags[start : top + 1] >= DIRECT * lags[top]))
    while first < top and lags[first + 1] > lags[first]:
        first += 1
    return Peak(refine(lags, first), float(lags[top]), _clear(lags, first, top))


def _clear(lags: Wave, first: int, top: int) -> float:
    """How many times as high the peak at `top` is as any that is not near it or `first`."""
    nearby = round(NEARBY * RATE / 2)
    others = max(lags[: max(0, first - nearby)].max(initial=0.0), lags[top + nearby :].max(initial=0.0))
    return max(float(lags[top] / others), 0.01) if others > 0 else 1.0


def refine(lags: Wave, place: int) -> float:
    """The lag in samples of the peak at `place`, between the lags: band-limited interpolation, then a parabola."""
    around = lags[max(0, place - 8) : place + 9]
    if len(around) < 17:
        return 2.0 * place
    fine = _FINE @ around
    top = min(max(int(np.argmax(fine)), 1), len(fine) - 2)
    below, middle, above = (float(value) for value in fine[top - 1 : top + 2])
    bend = below - 2 * middle + above
    within = 0.5 * (below - above) / bend if bend < 0 else 0.0
    return 2.0 * (place + (top - _STEPS + within) / _STEPS)


class _Track:
    """The slope of the delay: a Kalman filter whose offset is taken out as soon as it is known."""

    NOISE = 0.3**2
    """Samples squared by which a measurement errs; consecutive ones err alike, since they share an average."""
    WANDER = 1e-4 / BLOCK
    """Samples squared per sample by which the offset wanders, as people move."""
    AGEING = (5e-8) ** 2 / BLOCK
    """The same of the slope, as a crystal warms."""
    WIDEST = 500e-6
    """Far more than crystals differ."""

    def __init__(self) -> None:
        self.slope = 0.0
        self._offset, self._both, self._slope = 1.0, 0.0, (200e-6) ** 2  # the covariance

    @property
    def settled(self) -> bool:
        """The slope is known to 5 parts per million."""
        return self._slope < (5e-6) ** 2

    def moved(self) -> None:
        """The offset is another one; the clocks are the same."""
        self._offset, self._both = 1.0, 0.0

    def push(self, error: float, age: float, samples: int) -> float:
        """The offset as it was `age` samples ago, measured `samples` after the last one; returns what it is now."""
        self._offset += samples * (2 * self._both + samples * self._slope + self.WANDER)
        self._both += samples * self._slope
        self._slope += samples * self.AGEING
        offset, both = self._offset - age * self._both, self._both - age * self._slope  # with the error, without noise
        total = offset - age * both + self.NOISE
        widest = 3 * total**0.5
        error = min(max(error, -widest), widest)
        gain, pull = offset / total, both / total
        self.slope = min(max(self.slope + pull * error, -self.WIDEST), self.WIDEST)
        self._offset -= gain * offset
        self._both -= gain * both
        self._slope -= pull * both
        return gain * error


class _Timeline:
    """The last HELD samples of a stream, by the number of the sample; what is not there is silence."""

    def __init__(self) -> None:
        self.end = 0
        self._held: Wave = np.zeros(2 * HELD, np.float32)
        self._stop = HELD
        self._quiet = HELD

    @property
    def silent(self) -> bool:
        return self._quiet >= HELD

    def push(self, wave: Wave) -> None:
        self.end += len(wave)
        loud = np.nonzero(np.abs(wave) >= ACTIVE)[0]
        self._quiet = len(wave) - 1 - int(loud[-1]) if len(loud) else self._quiet + len(wave)
        wave = wave[-HELD:]
        if self._stop + len(wave) > len(self._held):
            self._held[:HELD] = self._held[self._stop - HELD : self._stop]
            self._stop = HELD
        self._held[self._stop : self._stop + len(wave)] = wave
        self._stop += len(wave)

    def read(self, first: int, samples: int) -> Wave:
        start = first - self.end + self._stop
        low, high = max(start, self._stop - HELD), min(start + samples, self._stop)
        if low == start and high == start + samples:
            return self._held[low:high]
        wave = np.zeros(samples, np.float32)
        if low < high:
            wave[low - start : high - start] = self._held[low:high]
        return wave


def _between(window: Wave, begin: float, end: float) -> Wave:
    """float32 [FRAME + TAPS - 1] -> [FRAME], read from `begin` samples behind place _HALF - 1 on, and a little slower
    or faster than it was written: by the next frame that distance has become `end`."""
    read = np.correlate(window, _taps(begin))
    return read if begin == end else read + _FADE * (np.correlate(window, _taps(end)) - read)


def _taps(part: float) -> Wave:
    row, rest = divmod((part + 1) * PHASES, 1)
    lower, upper = _TABLE[int(row)], _TABLE[int(row) + 1]
    return lower + np.float32(rest) * (upper - lower)  # type: ignore[no-any-return]


def _table() -> Wave:
    """The taps for fractions from -1 to 2: a distance may grow out of [0, 1) within a frame."""
    distance = np.arange(-PHASES, 2 * PHASES + 1)[:, None] / PHASES - np.arange(1 - _HALF, _HALF + 1)
    taps = np.sinc(distance) * np.cos(np.pi * np.clip(distance / TAPS, -0.5, 0.5)) ** 2
    return taps.astype(np.float32)  # type: ignore[no-any-return]


def _faded(wave: Wave, samples: int) -> Wave:
    """Without the tilt of speech, which would leak over the spectrum, and faded at both ends: hard cuts look like a
    sound that both have."""
    steep = np.diff(wave, prepend=wave[:1])
    rise = np.sin(np.pi / 2 * (np.arange(samples, dtype=np.float32) + 0.5) / samples) ** 2
    steep[:samples] *= rise
    steep[-samples:] *= rise[::-1]
    return steep


def _shifting(samples: float) -> NDArray[np.complex64]:
    """What a spectrum is multiplied by so that its sound comes so many samples earlier: a geometric series, as the
    product of a coarse and a fine one."""
    step = 2j * np.pi * samples / WINDOW
    coarse, fine = np.exp(step * 64 * np.arange(-(-_BINS // 64))), np.exp(step * np.arange(64))
    phases: NDArray[np.complex64] = np.outer(coarse.astype(np.complex64), fine.astype(np.complex64)).ravel()[:_BINS]
    return phases


def _band() -> Wave:
    hertz = np.arange(_BINS) * RATE / WINDOW
    low, high = BAND
    return np.clip(np.minimum((hertz - low) / 100 + 1, (high - hertz) / 300 + 0.5), 0, 1).astype(np.float32)


_STEPS = 8
_BAND = _band()
_TABLE = _table()
_FADE = (np.arange(FRAME) / FRAME).astype(np.float32)
_FINE = np.sinc(np.arange(-_STEPS, _STEPS + 1)[:, None] / _STEPS - np.arange(-8, 9)).astype(np.float32)
