"""The sound card, both ways: the only file that imports pyaudio, and only when a device is opened or listed."""

from __future__ import annotations

import ctypes
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from typing import Any, Literal

import numpy as np

from firmware import preflight, pulse
from firmware.cards import LEAD_IN, Node, cancels_echo, kind
from firmware.fault import DeviceFault
from firmware.frame import FRAME, NOTHING, RATE, Frame, Pcm, Wave, to_pcm, to_wave
from firmware.mixer import Mixer
from firmware.resample import Resampler
from firmware.ring import Ring
from firmware.watch import Lookout, Reading

INSTALL = "apt-get install portaudio19-dev && pip install parley[audio]"
PLUG = "plug one in, or give a recording: parley ask FILE.wav"
_RATES = (48_000, 44_100, 32_000, 16_000, 8_000)
_PERIODS = {"capture": 100, "playback": 33}
"""Periods in a second. Playback in periods of 10 or 20 ms ran dry all the time on a busy box with a sound server."""
_RING = 200
"""Blocks of 10 ms that wait for a loop that is busy."""

PROMPT = 0.1
"""Seconds after which a microphone begins that is no virtual one. Others begin with a heap of sound from long ago."""

LOOK = 0.1
"""Seconds between two looks at whether the card still works."""

Direction = Literal["capture", "playback"]


@dataclass(frozen=True, slots=True)
class Port:
    """A device as PortAudio lists it. `id` stays the same from one start to the next, `index` does not; `capture` and
    `playback` are numbers of channels, `rate` its native one, or for a sound server that of most of them, since
    PortAudio states 44.1 kHz for all; `default` names the directions it is chosen for."""

    id: str
    index: int
    name: str
    capture: int
    playback: int
    rate: int
    default: tuple[Direction, ...]

    def channels(self, direction: Direction) -> int:
        return self.capture if direction == "capture" else self.playback

    @property
    def card(self) -> int | None:
        """The number of the ALSA card; None behind a sound server."""
        return _card(self.name)

    @property
    def node(self) -> Node:
        """What is known of it without a sound server."""
        usb = self.card is not None and Path(f"/proc/asound/card{self.card}/usbid").exists()
        return Node(self.name, properties={"device.bus": "usb"} if usb else {})


NO_PORT = Port("none", -1, "none", 0, 0, RATE, ())
"""Stands for a microphone that was not asked for."""


def ports() -> list[Port]:
    """What there is. Raises DeviceFault when PortAudio or its Python binding is missing. The list does not change while
    a device is open: PortAudio reads it once."""
    with _portaudio() as (_, library):
        return _ports(library)


class Device:
    """A `Sound` on real hardware: native rate and channels outside, 16 kHz mono inside, one resampler for each stream.

    `capture` and `playback` are ids, or a part of one that fits no other; empty means the system's default. Without a
    capture at all (None) the frames are silent, not live, and come as the loudspeaker takes them. `channels` of the
    microphone are averaged (empty: all), and its channel `reference`, if it is not -1, is what the card plays: the far
    end. `lead_in` seconds wake the loudspeaker; None takes what its kind needs. `at` is the number of the first sample,
    for an owner that opens the device again and goes on counting, and `mixer` what it plays. Raises DeviceFault.

    `cancels_echo` says why the card itself takes away what it plays; "" where it does not.
    """

    def __init__(
        self,
        *,
        capture: str | None = "",
        playback: str = "",
        at: int = 0,
        mixer: Mixer | None = None,
        channels: tuple[int, ...] = (),
        reference: int = -1,
        lead_in: float | None = None,
    ) -> None:
        self._at = at
        self.mixer = mixer or Mixer()
        self.underruns = 0
        self._overflows = 0
        self._channels, self._reference = (channels, reference) if capture is not None else ((), -1)
        self._closed = False
        self._streams: list[Any] = []
        self._blocks: Ring[bytes] = Ring(_RING)
        self._heard = self._skipped = 0
        self._steady = capture is None
        self._came = 0.0
        self._taken: Ring[tuple[int, Pcm]] = Ring(_RING)
        self._next_taken: tuple[int, Pcm] | None = None
        self._served = False
        self._observer: pulse.Observer | None = None
        self._pyaudio, self._library = _start()
        try:
            found = _ports(self._library)
            self.source = NO_PORT if capture is None else choose(found, capture, "capture")
            self.sink = choose(found, playback, "playback")
            output, rate, self._outputs = self._open(self.sink, "playback", self._give)
            self.capture_rate, self._inputs, self._period = rate, 1, rate // _PERIODS["playback"]
            if self.source is not NO_PORT:
                _, self.capture_rate, self._inputs = self._open(self.source, "capture", self._receive)
                self._period = self.capture_rate // _PERIODS["capture"]
            self._attach(rate, round(output.get_output_latency() * rate), self.sink.node, lead_in)
            self._came = time.monotonic()
            for stream in self._streams:
                stream.start_stream()
        except (OSError, DeviceFault) as error:
            self.close()
            if isinstance(error, DeviceFault):
                raise
            raise DeviceFault(
                f"the sound card does not start: {_reason(error)}", "see `parley doctor`", "refused"
            ) from error
        source, sink = self._ask_server()
        self.cancels_echo = cancels_echo(source, sink)
        self.mixer.lead_in(LEAD_IN[kind(sink)] if lead_in is None else lead_in)  # the sound may have begun
        self._looked = time.monotonic()
        self._lookout = Lookout(self._looked)

    @property
    def overruns(self) -> int:
        """Blocks that were dropped because the loop was busy, and times that the card itself lost some."""
        return self._blocks.lost + self._overflows

    def frames(self) -> Iterator[Frame]:
        """Raises DeviceFault when the card is gone, frozen or moved: the owner closes this device and opens another."""
        near, reference = Resampler(self.capture_rate, RATE), Resampler(self.capture_rate, RATE)
        far = Resampler(self.mixer.rate, RATE)
        held = returned = NOTHING
        losses = lost_samples = position = 0
        at, live, weights = self._at, self.source is not NO_PORT, self._weights()
        while (block := self._next()) is not None:
            data, lost = block
            position += (lost + 1) * self._period
            lost_samples += lost * self._period * RATE
            losses += lost
            at, lost_samples = at + lost_samples // self.capture_rate, lost_samples % self.capture_rate
            by_channel = np.frombuffer(data, np.int16).reshape(-1, self._inputs)
            held = np.concatenate([held, to_pcm(near.push(by_channel @ weights))])
            if self._reference >= 0:
                returned = np.concatenate([returned, to_pcm(reference.push(to_wave(by_channel[:, self._reference])))])
            while len(held) >= FRAME:
                if self._reference >= 0:
                    played, returned = returned[:FRAME], returned[FRAME:]
                else:
                    played = to_pcm(far.push(to_wave(self._far(position))))
                yield Frame(at, held[:FRAME], losses, played, live)
                at, held, losses = at + FRAME, held[FRAME:], 0

    def close(self) -> None:
        self._closed = True
        if self._observer is not None:
            self._observer.close()
        for stream in self._streams:
            with suppress(OSError):
                stream.close()
        self._streams.clear()
        if self._library is not None:
            self._library.terminate()
            self._library = None

    def _attach(self, rate: int, latency: int, sink: Node, lead_in: float | None) -> None:
        self.mixer.attach(rate, latency=latency, lead_in=LEAD_IN[kind(sink)] if lead_in is None else lead_in)

    def _ask_server(self) -> tuple[Node, Node]:
        """What the microphone and the loudspeaker are behind a sound server, which is watched from now on."""
        source, sink = self.source.node, self.sink.node
        self._served = None in (self.source.card, self.sink.card) and pulse.answers()
        found = pulse.look() if self._served else None
        if found is None:
            return source, sink
        self._observer = pulse.Observer(found.source.name if found.source else "")
        return found.source or source, found.sink or sink

    def _next(self) -> tuple[bytes, int] | None:
        """The next block and the number lost in front of it; None once the device is closed."""
        while not self._closed:
            block = None
            with suppress(Empty):
                block = self._blocks.get(timeout=LOOK)
            now = time.monotonic()
            if now - self._looked >= LOOK:
                self._looked = now
                if (trouble := self._lookout.step(self._reading(now))) is not None and not self._closed:
                    raise DeviceFault(trouble.message, trouble.fix, trouble.kind)
            if block is not None:
                return block
        return None

    def _reading(self, now: float) -> Reading:
        alive = all(stream.is_active() for stream in list(self._streams))
        server = alive or not self._served or pulse.answers()
        place = None
        if self._observer is not None:
            server, place = server and self._observer.server, self._observer.place
        return Reading(now, self._skipped + self._heard, alive, server, place)

    def _needed(self) -> int:
        """Channels that the microphone must have: those that are named, and one to hear with beside the reference."""
        return max(*self._channels, self._reference, 1 if self._reference >= 0 and not self._channels else 0) + 1

    def _weights(self) -> Wave:
        """By how much each channel counts in what is heard, float32 [channels]; the sum is 1 / 32768."""
        chosen = self._channels or tuple(n for n in range(self._inputs) if n != self._reference)
        weights = np.zeros(self._inputs, np.float32)
        weights[list(chosen)] = 1 / (32768 * len(chosen))
        return weights

    def _far(self, position: int) -> Pcm:
        """What the loudspeaker had taken, at its rate, by the time that `position` samples had come; silence for what
        was lost. So the two stay together however late the loop is."""
        parts = [NOTHING]
        while self._next_taken is not None or len(self._taken):
            if self._next_taken is None:
                (stamp, mono), lost = self._taken.get(timeout=0.1)
                self._next_taken = stamp, np.pad(mono, (lost * len(mono), 0)) if lost else mono
            stamp, mono = self._next_taken
            if stamp >= position:
                break
            parts.append(mono)
            self._next_taken = None
        return np.concatenate(parts)

    def _receive(self, data: bytes, count: int, time_info: object, status: int) -> tuple[None, int]:
        self._overflows += bool(status & self._pyaudio.paInputOverflow)
        if self._steady or self._begins():
            self._blocks.put(data)
            self._heard += count
        else:
            self._skipped += count
        return None, self._pyaudio.paContinue

    def _begins(self) -> bool:
        """Whether sound comes in its time by now: with the first block, or the first that does not come in a heap. From
        it on the near and the far end are counted, so that the echo follows in no more than the time that it takes."""
        now = time.monotonic()
        passed, self._came = now - self._came, now
        late = self._skipped > 0
        self._steady = passed > 0.5 / _PERIODS["capture"] if late else passed < PROMPT
        return self._steady

    def _give(self, data: None, count: int, time_info: Mapping[str, float], status: int) -> tuple[bytes, int]:
        self.underruns += bool(status & self._pyaudio.paOutputUnderflow)
        # What the stream states as its latency leaves out the sound server: 80 ms for 99 measured ones.
        ahead = time_info["output_buffer_dac_time"] - time_info["current_time"]
        if 0.0 <= ahead < 1.0:
            self.mixer.latency = max(self.mixer.latency, round(ahead * self.mixer.rate) + count)
        mono = self.mixer.take(count)
        if self._reference < 0 and self._steady:
            self._taken.put((self._heard, mono))
        if self.source is NO_PORT:
            self._blocks.put(bytes(2 * count))
            self._heard += count
        return np.repeat(mono, self._outputs).tobytes(), self._pyaudio.paContinue

    def _open(self, port: Port, direction: Direction, callback: Callable[..., object]) -> tuple[Any, int, int]:
        """Opens the port at the first form that it takes: its native rate and at most two channels, then others."""
        most = port.channels(direction)
        need = self._needed() if direction == "capture" else 1
        if need > most:
            raise DeviceFault(
                f"{port.id} has {most} channels, and the settings name {need}",
                "correct audio.channels and audio.reference: channels are numbered from 0",
                "refused",
            )
        reasons: list[str] = []
        for rate in dict.fromkeys((port.rate, *_RATES)):
            for channels in dict.fromkeys((min(most, 2), 1, most)):
                if channels < need:
                    continue
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
            "refused",
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
                rate=int(info["defaultSampleRate"]) if _card(info["name"]) is not None else _RATES[0],
                default=tuple(direction for direction, chosen in defaults.items() if chosen == index),
            )
        )
    return found


def _card(name: str) -> int | None:
    found = re.search(r"[(]hw:([0-9]+),", name)
    return int(found[1]) if found else None


def _identity(host: str, name: str) -> str:
    """Without the number of the card, which changes with the order in which cards are found."""
    return f"{host}:" + re.sub(r" *[(]hw:[0-9]+,([0-9]+)[)]", r",\1", name)


def choose(found: list[Port], wanted: str, direction: Direction) -> Port:
    """The port that is called `wanted`, or a part of it; empty takes the default. Raises DeviceFault."""
    able = [port for port in found if port.channels(direction) > 0]
    what = "microphone" if direction == "capture" else "loudspeaker"
    if not able:
        fix = next((obstacle.fix for obstacle in preflight.obstacles(preflight.system())), PLUG)
        raise DeviceFault(f"this box has no {what}", fix, "missing")
    if not wanted:
        return next((port for port in able if direction in port.default), able[0])
    fitting = [port for port in able if port.id == wanted] or [port for port in able if wanted in port.id]
    if len(fitting) == 1:
        return fitting[0]
    which = "no" if not fitting else "more than one"
    listed = ", ".join(port.id for port in able)
    raise DeviceFault(f"{which} {what} is called {wanted!r}", f"there are: {listed}", "missing")


def _start() -> tuple[Any, Any]:
    """The pyaudio module and a library in use. Raises DeviceFault."""
    try:
        import pyaudio
    except (ImportError, OSError) as error:
        raise DeviceFault(f"live sound needs PortAudio and its Python binding: {error}", INSTALL, "missing") from error
    _hush()
    try:
        return pyaudio, pyaudio.PyAudio()
    except OSError as error:
        raise DeviceFault(f"PortAudio does not start: {_reason(error)}", INSTALL, "missing") from error


@contextmanager
def _portaudio() -> Iterator[tuple[Any, Any]]:
    module, library = _start()
    try:
        yield module, library
    finally:
        library.terminate()


def _hush() -> None:
    """ALSA and JACK write some eighty lines to stderr while PortAudio looks for devices, and ALSA one for each
    under-run from then on. Their error handlers become a function of the C library that does nothing and needs no
    interpreter lock."""
    nothing = ctypes.cast(ctypes.CDLL(None).labs, ctypes.c_void_p)
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libasound.so.2").snd_lib_error_set_handler(nothing)
    with suppress(OSError, AttributeError):
        jack = ctypes.CDLL("libjack.so.0")
        jack.jack_set_error_function(nothing)
        jack.jack_set_info_function(nothing)


_STDERR = threading.Lock()


@contextmanager
def _quiet() -> Iterator[None]:
    """PortAudio writes a few lines to the process's stderr for each form that a device does not take."""
    with _STDERR:
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
