"""The sound card, both ways: the only file that imports pyaudio, and only when a device is opened or listed."""

from __future__ import annotations

import ctypes
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import Empty
from typing import Any, Literal

import numpy as np

from firmware.fault import DeviceFault
from firmware.frame import FRAME, NOTHING, RATE, Frame, Pcm, to_pcm, to_wave
from firmware.mixer import Mixer
from firmware.resample import Resampler
from firmware.ring import Ring
from firmware.sound import PATIENCE, gone, silent

INSTALL = "apt-get install portaudio19-dev && pip install parley[audio]"
_RATES = (48_000, 44_100, 32_000, 16_000, 8_000)
_PERIODS = {"capture": 100, "playback": 33}
"""Periods in a second. Playback in periods of 10 or 20 ms ran dry all the time on a busy box with a sound server."""
_RING = 200
"""Blocks of 10 ms that wait for a loop that is busy."""

Direction = Literal["capture", "playback"]


@dataclass(frozen=True, slots=True)
class Port:
    """A device as PortAudio lists it. `id` stays the same from one start to the next, `index` does not; `capture` and
    `playback` are numbers of channels, `rate` its native one; `default` names the directions it is chosen for."""

    id: str
    index: int
    name: str
    capture: int
    playback: int
    rate: int
    default: tuple[Direction, ...]

    def channels(self, direction: Direction) -> int:
        return self.capture if direction == "capture" else self.playback


NO_PORT = Port("none", -1, "none", 0, 0, RATE, ())
"""Stands for a microphone that was not asked for."""


def ports() -> list[Port]:
    """What there is. Raises DeviceFault when PortAudio or its Python binding is missing. The list does not change while
    a device is open: PortAudio reads it once."""
    with _portaudio() as (_, library):
        return _ports(library)


class Device:
    """A `Sound` on real hardware: native rate and channels outside, 16 kHz mono inside, one resampler for each stream.

    `capture` and `playback` are ids, or a part of one that fits no other; empty means the system's default, and without
    a capture at all (None) there are no frames. `at` is the number of the first sample, for an owner that opens the
    device again and goes on counting, and `mixer` what it plays. Raises DeviceFault.
    """

    def __init__(
        self, *, capture: str | None = "", playback: str = "", at: int = 0, mixer: Mixer | None = None
    ) -> None:
        self._at = at
        self.mixer = mixer or Mixer()
        self.underruns = 0
        self._closed = False
        self._streams: list[Any] = []
        self._blocks: Ring[bytes] = Ring(_RING)
        self._taken: Ring[Pcm] = Ring(_RING)
        self._pyaudio, self._library = _start()
        try:
            found = _ports(self._library)
            self.source = NO_PORT if capture is None else _choose(found, capture, "capture")
            self.sink = _choose(found, playback, "playback")
            output, rate, self._outputs = self._open(self.sink, "playback", self._give)
            self.mixer.attach(rate, latency=round(output.get_output_latency() * rate))
            if self.source is not NO_PORT:
                _, self.capture_rate, self._inputs = self._open(self.source, "capture", self._receive)
            for stream in self._streams:
                stream.start_stream()
        except (OSError, DeviceFault) as error:
            self.close()
            if isinstance(error, DeviceFault):
                raise
            raise DeviceFault(f"the sound card does not start: {_reason(error)}", "see `parley doctor`") from error

    def frames(self) -> Iterator[Frame]:
        """Raises DeviceFault when nothing has come for PATIENCE seconds: the owner closes this device and opens
        another."""
        if self.source is NO_PORT:
            return
        resampler, reference = Resampler(self.capture_rate, RATE), Resampler(self.mixer.rate, RATE)
        held: Pcm = np.zeros(0, np.int16)
        losses = lost_samples = 0
        at = self._at
        while (block := self._next(at)) is not None:
            data, lost = block
            lost_samples += lost * (self.capture_rate // 100) * RATE
            losses += lost
            at, lost_samples = at + lost_samples // self.capture_rate, lost_samples % self.capture_rate
            channels = np.frombuffer(data, np.int16).reshape(-1, self._inputs)
            mono = channels.mean(axis=1, dtype=np.float32) / np.float32(32768.0)
            held = np.concatenate([held, to_pcm(resampler.push(mono))])
            while len(held) >= FRAME:
                yield Frame(at, held[:FRAME], losses, to_pcm(reference.push(to_wave(self._far()))))
                at, held, losses = at + FRAME, held[FRAME:], 0

    def close(self) -> None:
        self._closed = True
        for stream in self._streams:
            with suppress(OSError):
                stream.close()
        self._streams.clear()
        if self._library is not None:
            self._library.terminate()
            self._library = None

    def _next(self, at: int) -> tuple[bytes, int] | None:
        """The next block and the number lost in front of it; None once the device is closed."""
        deadline = time.monotonic() + PATIENCE
        while not self._closed:
            try:
                return self._blocks.get(timeout=0.1)
            except Empty:
                if time.monotonic() > deadline:
                    raise silent(at / RATE) from None
                if not self._closed and not all(stream.is_active() for stream in list(self._streams)):
                    raise gone("sound server or card") from None
        return None

    def _far(self) -> Pcm:
        """What the loudspeaker took since the last look, at its rate; silence for what was lost."""
        parts = [NOTHING]
        while len(self._taken):
            mono, lost = self._taken.get(timeout=0.1)
            parts += [np.zeros(lost * len(mono), np.int16), mono]
        return np.concatenate(parts)

    def _receive(self, data: bytes, count: int, time_info: object, status: int) -> tuple[None, int]:
        self._blocks.put(data)
        return None, self._pyaudio.paContinue

    def _give(self, data: None, count: int, time_info: Mapping[str, float], status: int) -> tuple[bytes, int]:
        self.underruns += bool(status & self._pyaudio.paOutputUnderflow)
        # What the stream states as its latency leaves out the sound server: 80 ms for 99 measured ones.
        ahead = time_info["output_buffer_dac_time"] - time_info["current_time"]
        if 0.0 <= ahead < 1.0:
            self.mixer.latency = max(self.mixer.latency, round(ahead * self.mixer.rate) + count)
        mono = self.mixer.take(count)
        self._taken.put(mono)
        return np.repeat(mono, self._outputs).tobytes(), self._pyaudio.paContinue

    def _open(self, port: Port, direction: Direction, callback: Callable[..., object]) -> tuple[Any, int, int]:
        """Opens the port at the first form that it takes: its native rate and at most two channels, then others."""
        most = port.channels(direction)
        reasons: list[str] = []
        for rate in dict.fromkeys((port.rate, *_RATES)):
            for channels in dict.fromkeys((min(most, 2), 1, most)):
                side = "input" if direction == "capture" else "output"
                try:
                    with _quiet():
                        stream = self._library.open(
                            rate,
                            channels,
                            self._pyaudio.paInt16,
                            **{side: True, f"{side}_device_index": port.index},
                            frames_per_buffer=rate // _PERIODS[direction],
                            stream_callback=callback,
                            start=False,
                        )
                except (OSError, ValueError) as error:
                    reasons.append(f"{rate} Hz x {channels}: {_reason(error)}")
                else:
                    self._streams.append(stream)
                    return stream, rate, channels
        raise DeviceFault(
            f"{port.id} takes no {direction} stream ({reasons[0]}; {len(reasons)} forms were tried)",
            "see that no other program holds it, and that this user is in the audio group",
        )


def _ports(library: Any) -> list[Port]:
    defaults: dict[Direction, int] = {}
    for direction, ask in (("capture", "input"), ("playback", "output")):
        with suppress(OSError):  # there is none
            defaults[direction] = int(getattr(library, f"get_default_{ask}_device_info")()["index"])  # type: ignore[index]
    found: list[Port] = []
    for index in range(library.get_device_count()):
        info = library.get_device_info_by_index(index)
        id = _identity(library.get_host_api_info_by_index(info["hostApi"])["name"], info["name"])
        twins = sum(re.sub(r"#\d+$", "", port.id) == id for port in found)
        found.append(
            Port(
                id=f"{id}#{twins + 1}" if twins else id,
                index=index,
                name=info["name"],
                capture=info["maxInputChannels"],
                playback=info["maxOutputChannels"],
                rate=int(info["defaultSampleRate"]),
                default=tuple(direction for direction, chosen in defaults.items() if chosen == index),
            )
        )
    return found


def _identity(host: str, name: str) -> str:
    """Without the number of the card, which changes with the order in which cards are found."""
    return f"{host}:" + re.sub(r" *[(]hw:[0-9]+,([0-9]+)[)]", r",\1", name)


def _choose(found: list[Port], wanted: str, direction: Direction) -> Port:
    able = [port for port in found if port.channels(direction) > 0]
    what = "microphone" if direction == "capture" else "loudspeaker"
    if not able:
        raise DeviceFault(f"this box has no {what}", "plug one in, or give a recording: parley ask FILE.wav")
    if not wanted:
        return next((port for port in able if direction in port.default), able[0])
    fitting = [port for port in able if port.id == wanted] or [port for port in able if wanted in port.id]
    if len(fitting) == 1:
        return fitting[0]
    which = "no" if not fitting else "more than one"
    raise DeviceFault(f"{which} {what} is called {wanted!r}", f"there are: {', '.join(port.id for port in able)}")


def _start() -> tuple[Any, Any]:
    """The pyaudio module and a library in use. Raises DeviceFault."""
    try:
        import pyaudio
    except (ImportError, OSError) as error:
        raise DeviceFault(f"live sound needs PortAudio and its Python binding: {error}", INSTALL) from error
    _hush()
    try:
        with _quiet():
            return pyaudio, pyaudio.PyAudio()
    except OSError as error:
        raise DeviceFault(f"PortAudio does not start: {_reason(error)}", INSTALL) from error


@contextmanager
def _portaudio() -> Iterator[tuple[Any, Any]]:
    module, library = _start()
    try:
        yield module, library
    finally:
        library.terminate()


def _hush() -> None:
    """ALSA writes a line to stderr for each under-run, for as long as a stream is open: on a busy box that fills the
    log. Its error handler becomes a function of the C library that does nothing and needs no interpreter lock."""
    with suppress(OSError, AttributeError):
        nothing = ctypes.cast(ctypes.CDLL(None).labs, ctypes.c_void_p)
        ctypes.CDLL("libasound.so.2").snd_lib_error_set_handler(nothing)


@contextmanager
def _quiet() -> Iterator[None]:
    """ALSA and JACK write some eighty lines to the process's stderr while PortAudio looks for devices."""
    try:
        kept = os.dup(2)
    except OSError:  # there is no stderr
        yield
        return
    try:
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _reason(error: Exception) -> str:
    """PyAudio raises OSError with PortAudio's number and words in either order."""
    return next((str(part) for part in error.args if isinstance(part, str)), str(error))
