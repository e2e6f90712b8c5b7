"""What the box plays, taken out of what its microphone hears: one function, whichever library does the last part.

The far end is put where its echo is heard (firmware/delay.py), so that the filters see neither delay nor drift. A
linear filter (firmware/kalman.py) then takes out the echo and nothing else: recognition hears that. What is left of the
echo, a loudspeaker's distortion above all, a suppressor takes out, and some of a voice over it: whether anybody speaks
is decided by that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from firmware import apm, speex
from firmware.delay import Aligner
from firmware.fault import DeviceFault
from firmware.frame import FRAME, Pcm, Wave, to_pcm, to_wave
from firmware.highpass import HighPass
from firmware.kalman import PARTS, Kalman

Backend = Literal["webrtc", "speex", "off"]
Phase = Literal["idle", "converging", "converged", "diverged"]

TAIL = 60
"""Frames (0.6 s) for which the room still sounds when the far end has fallen silent: its reverberation, and the delay
where that is not known yet."""

HEARD = 16
"""Peak (-66 dBFS) under which the far end is silent."""

FULL = 32_700
"""Samples as loud as this are clipped."""


@dataclass(frozen=True, slots=True)
class Clean:
    """A frame without echo, int16 [FRAME] each. `strict` holds no echo, and a voice over it only in parts: it shows
    whether somebody speaks. `gentle` holds the whole voice and a little echo: it is to be recognised. While nothing is
    played they are the same."""

    strict: Pcm
    gentle: Pcm


@dataclass(frozen=True, slots=True)
class EchoState:
    """`erle` is by how many dB the strict frames are weaker than the echo, None until it could be measured; `delay` in
    seconds and `drift` in parts per million as the aligner knows them; `doubt` as in Frame; `clipped` the number of
    samples at full scale so far, and `resets` how often the filters had gone astray."""

    backend: Backend
    phase: Phase = "idle"
    erle: float | None = None
    delay: float | None = None
    drift: float | None = None
    doubt: float = 0.0
    clipped: int = 0
    resets: int = 0


def usable(preferred: Backend) -> tuple[Backend, DeviceFault | None]:
    """`preferred`, or the other one, or "off": the first whose library is there; and what is wrong with `preferred`."""
    wrong: list[DeviceFault] = []
    order: tuple[Backend, ...] = ("speex", "webrtc") if preferred == "speex" else ("webrtc", "speex")
    for backend in () if preferred == "off" else order:
        try:
            (apm if backend == "webrtc" else speex).check()
        except DeviceFault as fault:
            wrong.append(fault)
        else:
            return backend, wrong[0] if wrong else None
    return "off", wrong[0] if wrong else None


class Echo:
    """Takes the microphone and what the loudspeaker took, frame by frame. Raises DeviceFault where the library of
    `backend` is missing, or that of a switch: noise suppression and gain control are WebRTC's, with speex its own.

    A frame that is clipped teaches nothing: there the echo is not a filter's. (WebRTC's canceller cannot be held from
    outside. It looks for clipping itself, and the linear filter does without it.)
    """

    def __init__(
        self,
        backend: Backend,
        *,
        noise_suppression: bool = False,
        gain_control: bool = False,
        high_pass: bool = True,
    ) -> None:
        self._backend: Backend = backend
        self._switches = _Switches(noise_suppression, gain_control)
        self._high_pass = HighPass() if high_pass else None
        self._finish = _finish(backend, self._switches)
        self._suppressor = _suppressor(backend, self._switches)
        self._aligner = Aligner()
        self._filter = Kalman()
        self._judge = Judge()
        self._quiet = TAIL
        self._clipped = 0
        self._resting = True

    @property
    def state(self) -> EchoState:
        judge = self._judge
        phase: Phase = "idle" if self._resting else judge.phase
        doubt = 0.0 if self._resting else judge.doubt
        delay, drift = self._aligner.delay, self._aligner.drift
        return EchoState(self._backend, phase, judge.erle, delay, drift, doubt, self._clipped, judge.resets)

    def push(self, near: Pcm, far: Pcm) -> Clean:
        """int16 [FRAME] of the microphone, and what the loudspeaker took since the frame before, int16 [n]."""
        clipped = int(np.count_nonzero(near >= FULL) + np.count_nonzero(near <= -FULL))
        self._clipped += clipped
        if self._high_pass:
            near = to_pcm(self._high_pass.push(to_wave(near)))
        if self._suppressor is None:
            return self._rest(near)
        aligned = self._aligner.push(near, far)
        if self._aligner.jumped:
            self._jumped()
        self._quiet = 0 if _loud(far) or _loud(aligned) else min(self._quiet + 1, TAIL)
        if self._quiet == TAIL:
            return self._rest(near)
        return self._cancel(near, aligned, learn=not clipped)

    def skip(self, near_samples: int) -> None:
        """So many samples of the microphone were lost. What was played meanwhile comes with the next frame."""
        if self._suppressor is None:
            return
        self._aligner.skip(near_samples)
        nothing = np.zeros(FRAME, np.float32)
        for _ in range(min(-(-near_samples // FRAME), PARTS)):
            self._filter.push(nothing, nothing, learn=False)

    def close(self) -> None:
        for each in (self._suppressor, self._finish):
            if each:
                each.close()

    def _cancel(self, near: Pcm, aligned: Pcm, *, learn: bool) -> Clean:
        assert self._suppressor
        wave, far = to_wave(near), to_wave(aligned)
        linear = self._filter.push(wave, far, learn=learn)
        gentle = to_pcm(linear)
        strict = self._suppressor.push(near, gentle, aligned, learn=learn)
        if self._resting:
            strict, self._resting = _crossed(near, strict), False
            self._judge.begin()
        if learn:
            self._judge.push(wave, linear, to_wave(strict), far)
        if self._judge.astray:
            self._filter.reset()
            self._renew()
            self._judge.reset(astray=True)
        elif self._judge.keep:
            self._filter.keep()
        return Clean(strict, self._finish.push(gentle) if self._finish else gentle)

    def _rest(self, near: Pcm) -> Clean:
        """Nothing is played: nothing is cancelled. Both outputs are the microphone."""
        out = self._finish.push(near) if self._finish else near
        strict = out
        if self._suppressor:
            if not self._resting:
                silent = np.zeros(FRAME, np.int16)
                strict = _crossed(self._suppressor.push(near, near, silent, learn=False), out)
            self._suppressor.rest(near)
            wave = to_wave(near)
            self._judge.rest(wave)
            self._filter.listen(wave)
        self._resting = True
        return Clean(strict, out)

    def _jumped(self) -> None:
        """The far end has been put elsewhere. The room is the one it was before the delay changed."""
        self._filter.recall()
        self._renew()
        self._judge.reset()

    def _renew(self) -> None:
        if self._suppressor:
            self._suppressor.close()
        self._suppressor = _suppressor(self._backend, self._switches)


class Judge:
    """How well the echo is cancelled, from the frames in which little but echo is heard: those that the linear filter
    explains. A voice is none of them, and a filter that knows nothing explains nothing."""

    ACTIVE = 1e-5
    """Power of the far end (-50 dBFS) from which a frame counts."""
    SILENT = 1e-6
    """Power (-60 dBFS) under which a strict frame holds nothing that could be taken for a voice."""
    EXPLAINED = 0.9
    """The squared correlation of a frame and its echo as the filter sees it: the echo is the louder by 10 dB."""
    PACE = 0.03
    """What one frame adds to the averages: a time constant of 0.3 s."""
    ENOUGH = 10
    """Frames that must be measured before they say anything."""
    SURE = 60
    """Frames (0.6 s) that must be measured before nothing is in doubt any more."""
    FAINT, AUDIBLE = 3e-6, 8.0
    """Power (-55 dBFS) up to which the rest of an echo is no voice, and dB above it at which it is as good as one."""
    RISE = 1.02
    """By how much the noise of the room may have grown from one frame to the next: 9 dB in a second."""
    STALE = 150
    """Frames (1.5 s) without any that can be measured after which nothing is known any more."""
    GOOD, POOR = 15.0, 6.0
    """dB of echo return loss enhancement from which on there is no doubt, and up to which there is nothing else."""
    LOUD = 1e-3
    """Power of the far end (-30 dBFS) at which a silent frame shows that no echo is heard."""
    ASTRAY = 2.0
    """How many times the power of the microphone the linear filter's output may have, over SOON frames or more."""
    SOON = 20

    def __init__(self) -> None:
        self.resets = 0
        self._noise = 1e-10
        self.reset()

    def reset(self, *, astray: bool = False) -> None:
        """Nothing is known of how well the echo is cancelled; because the filter had gone astray?"""
        self.resets += astray
        self._diverged = astray
        self._measured = 0
        self._echo = self._left = 0.0
        self.begin()
        self.keep = False

    def begin(self) -> None:
        """The far end sounds again. What was known of the room is taken to hold."""
        self._stale = self._heard = 0
        self._before = self._after = 0.0

    def rest(self, near: Wave) -> None:
        """A frame while nothing is played: the least of them is the room's own noise."""
        self._noise = min(self.RISE * self._noise, max(_power(near), 1e-10))

    @property
    def erle(self) -> float | None:
        if self._measured < self.ENOUGH or self._echo <= 0:
            return None
        return min(10 * float(np.log10(self._echo / max(self._left, 1e-10))), 60.0)

    @property
    def doubt(self) -> float:
        """A voice detector does not mind how weak a voice is: an echo that is much weaker than it was, and still above
        the room's own noise, may be taken for one."""
        if self._measured < self.ENOUGH:
            return 1.0
        over = self._left - 2 * self._noise
        heard = (10 * float(np.log10(over / self.FAINT)) / self.AUDIBLE) if over > self.FAINT else 0.0
        return min(max(1 - self._measured / self.SURE, heard, self._lack), 1.0)

    @property
    def _lack(self) -> float:
        """What the enhancement lacks, from 0 to 1."""
        erle = self.erle
        if self._measured < self.ENOUGH:
            return 1.0
        if self._left < self.SILENT or erle is None:
            return 0.0
        return min(max((self.GOOD - erle) / (self.GOOD - self.POOR), 0.0), 1.0)

    @property
    def phase(self) -> Phase:
        if self._lack < 0.5:
            return "converged"
        return "diverged" if self._diverged else "converging"

    @property
    def astray(self) -> bool:
        """The filter makes matters worse."""
        return self._heard >= self.SOON and self._after > self.ASTRAY * self._before

    def push(self, near: Wave, linear: Wave, strict: Wave, far: Wave) -> None:
        """One frame, float32 [FRAME] each."""
        self.keep = False
        played = _power(far)
        if played < self.ACTIVE:
            return
        self._heard += 1
        loud, left = _power(near), _power(strict)
        self._before += self.PACE * (loud - self._before)
        self._after += self.PACE * (_power(linear) - self._after)
        echo = near - linear
        both = float(near @ echo) / FRAME
        match = max(both, 0.0) ** 2 / max(loud * _power(echo), 1e-20)
        explained = match > self.EXPLAINED
        if not explained and (left >= self.SILENT or played < self.LOUD):
            self._stale += 1
            if self._stale == self.STALE:
                self._measured = 0
            return
        self._stale = 0
        self._measured += 1
        pace = max(self.PACE, 1 / self._measured)
        if explained and self._measured > self.ENOUGH:  # a voice under the echo is part of the rest
            pace *= ((match - self.EXPLAINED) / (1 - self.EXPLAINED)) ** 2
        self._left += pace * (left - self._left)
        if explained:
            self._echo += pace * (loud - self._echo)
            self.keep = self._measured % 100 == 0 and self._lack == 0.0
        if self._lack == 0.0:
            self._diverged = False


# --- the libraries' part ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Switches:
    noise_suppression: bool
    gain_control: bool


class _Suppressor(Protocol):
    def push(self, near: Pcm, linear: Pcm, far: Pcm, *, learn: bool) -> Pcm: ...
    def rest(self, near: Pcm) -> None: ...
    def close(self) -> None: ...


class _WebRtc:
    """AEC3 on the microphone itself: behind another filter it takes the rest of the echo for a voice. It wants the far
    end well ahead of its echo, so the microphone waits for a frame. Of tones its own filter leaves more than ours does:
    its output is held down to that."""

    def __init__(self, switches: _Switches) -> None:
        self._apm = apm.Apm(echo=True, noise_suppression=switches.noise_suppression, gain_control=switches.gain_control)
        self._waiting: Pcm = np.zeros(FRAME, np.int16)
        self._bound = 1.0  # power of the linear filter's output for the frame that waits
        self._gain = 1.0

    def push(self, near: Pcm, linear: Pcm, far: Pcm, *, learn: bool) -> Pcm:
        out = to_wave(self._apm.push(self._waiting, far))
        gain = float(min(1.0, np.sqrt(self._bound / max(_power(out), 1e-10))))
        out = out * (gain + np.float32(self._gain - gain) * _FALL)
        self._waiting, self._bound, self._gain = near, _power(to_wave(linear)), gain
        return to_pcm(out)

    def rest(self, near: Pcm) -> None:
        self._waiting, self._bound, self._gain = near, 1.0, 1.0

    def close(self) -> None:
        """The library frees it with the object."""


class _Speex:
    """Behind the linear filter, a second one for what is left and the suppression that it steers. It is by-passed
    where nothing may be learnt: it cannot be held from outside."""

    TAIL = 0.128

    def __init__(self, switches: _Switches) -> None:
        self._canceller = speex.Canceller(self.TAIL)
        noise = speex.SUPPRESSED if switches.noise_suppression else 0
        self._after = speex.Preprocessor(self._canceller, noise=noise, gain_control=switches.gain_control)

    def push(self, near: Pcm, linear: Pcm, far: Pcm, *, learn: bool) -> Pcm:
        return self._after.push(self._canceller.push(linear, far) if learn else linear)

    def rest(self, near: Pcm) -> None:
        """Nothing waits."""

    def close(self) -> None:
        self._after.close()
        self._canceller.close()


class _Finish(Protocol):
    def push(self, near: Pcm, /) -> Pcm: ...
    def close(self) -> None: ...


def _suppressor(backend: Backend, switches: _Switches) -> _Suppressor | None:
    if backend == "off":
        return None
    return _WebRtc(switches) if backend == "webrtc" else _Speex(switches)


def _finish(backend: Backend, switches: _Switches) -> _Finish | None:
    """Noise suppression and gain control of what no suppressor sees."""
    if not (switches.noise_suppression or switches.gain_control):
        return None
    if backend == "off":
        backend = usable("webrtc")[0]
    if backend == "speex":
        noise = speex.SUPPRESSED if switches.noise_suppression else 0
        return speex.Preprocessor(noise=noise, gain_control=switches.gain_control)
    return apm.Apm(noise_suppression=switches.noise_suppression, gain_control=switches.gain_control)


def _loud(samples: Pcm) -> bool:
    return bool(len(samples)) and max(int(samples.max()), -int(samples.min())) >= HEARD


def _power(wave: Wave) -> float:
    return float(wave @ wave) / FRAME


def _crossed(before: Pcm, after: Pcm) -> Pcm:
    """From one to the other over a frame: a hard switch would click."""
    return to_pcm(to_wave(before) * _FALL + to_wave(after) * (1 - _FALL))


_FALL = np.linspace(1.0, 0.0, FRAME, dtype=np.float32)
