"""The real device, on a PulseAudio server of our own: what is played on `spk` comes back 80 ms later at `mic`."""

from __future__ import annotations

import functools
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firmware import device as device_module
from firmware import watch
from firmware.device import Device, ports
from firmware.fault import DeviceFault
from firmware.frame import FRAME, RATE, Frame, Pcm, Recovered
from firmware.keeper import Keeper
from firmware.mixer import Mixer

LISTED = device_module._ports

MODULES = (
    "module-native-protocol-unix auth-anonymous=1 socket={run}/native",
    "module-null-sink sink_name=spk rate={rate} channels=2",
    "module-null-sink sink_name=room rate={rate} channels=1",
    "module-remap-source source_name=mic master=room.monitor",
    "module-loopback source=spk.monitor sink=room latency_msec=80 adjust_time=0",
)

ALSA = """
pcm.!default { type pulse }
ctl.!default { type pulse }
pcm.mic { type pulse device mic hint { show on description "mic" } }
pcm.spk { type pulse device spk hint { show on description "spk" } }
pcm.usb { type pulse device usb.monitor hint { show on description "usb" } }
"""


class Server:
    """A PulseAudio server in a folder of its own."""

    def __init__(self, folder: Path, rate: int) -> None:
        self.folder, self.rate = folder, rate
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [
            "pulseaudio",
            "-n",
            "--daemonize=no",
            "--exit-idle-time=-1",
            "--use-pid-file=no",
            "--log-target=stderr",
        ]
        for module in MODULES:
            command += ["-L", module.format(run=self.folder / "run", rate=self.rate)]
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(command, stderr=log)
        for _ in range(100):
            listed = subprocess.run(["pactl", "list", "short", "modules"], check=False, capture_output=True)
            if b"loopback" in listed.stdout:
                return
            time.sleep(0.1)
        self.stop()
        pytest.skip(f"pulseaudio does not start: {(self.folder / 'log').read_text()[-500:]}")

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            (self.folder / "run/native").unlink(missing_ok=True)


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    pytest.importorskip("pyaudio")
    if not shutil.which("pulseaudio"):
        pytest.skip("needs pulseaudio")
    run = tmp_path / "run"
    run.mkdir(mode=0o700)
    (tmp_path / ".asoundrc").write_text(ALSA)
    environment = {"XDG_RUNTIME_DIR": str(run), "HOME": str(tmp_path), "PULSE_SERVER": f"unix:{run}/native"}
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    started = Server(tmp_path, request.param)
    try:
        started.start()
        yield started
    finally:
        started.stop()


def tone(seconds: float, rate: int, hertz: float = 1000.0) -> Pcm:
    return (8000 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate + 0.2)).astype(np.int16)


def pitch(sound: Pcm) -> float:
    spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound)), 8 * len(sound)))
    return float(np.argmax(spectrum)) * RATE / (8 * len(sound))


def thrice(test: Callable[..., None]) -> Callable[..., None]:
    """On a crowded box the server itself may stumble: sound that is wrong for our reasons is wrong every time."""

    @functools.wraps(test)
    def tried(*args: object, **kwargs: object) -> None:
        for _ in range(2):
            try:
                return test(*args, **kwargs)
            except AssertionError:
                continue
        return test(*args, **kwargs)

    return tried


@contextmanager
def opened(**which: str | None) -> Iterator[Device]:
    device = Device(**which)  # type: ignore[arg-type]
    try:
        yield device
    finally:
        device.close()


@pytest.mark.parametrize("server", [44_100, 48_000], indirect=True)
@pytest.mark.parametrize("rate", [44_100, 48_000])
@thrice
def test_a_tone_comes_back_at_its_pitch_and_whole(
    server: Server, rate: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(device_module, "_ports", lambda library: [replace(port, rate=rate) for port in LISTED(library)])
    heard: list[Frame] = []
    with opened(capture="ALSA:mic", playback="ALSA:spk") as device:
        assert (device.mixer.rate, device.capture_rate) == (rate, rate)
        for frame in device.frames():
            heard.append(frame)
            if len(heard) == 50:
                device.mixer.player("speech").play(tone(1.003, 22_050), 22_050)
            if len(heard) == 250:
                break
        device.mixer.player("speech").drain()
        assert device.mixer.player("speech").played in range(round(1.003 * RATE) - 2, round(1.003 * RATE) + 3)
        assert device.mixer.player("speech").pending == 0
    sound = np.concatenate([frame.samples for frame in heard])
    assert [frame.at for frame in heard] == list(range(0, 250 * FRAME, FRAME))
    assert not any(frame.overruns for frame in heard)
    loud = np.flatnonzero(np.abs(sound) > 500)
    assert abs(pitch(sound[loud[0] : loud[-1]]) - 1000.0) < 1.0
    assert abs((loud[-1] - loud[0]) / RATE - 1.003) < 0.005
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("server", [48_000], indirect=True)
@thrice
def test_what_is_said_is_heard_to_the_end_before_the_device_closes(server: Server) -> None:
    """C68: play, drain, close; nothing else keeps the sound alive. No microphone is needed for it."""
    parec = ["parec", "-d", "spk.monitor", f"--rate={RATE}", "--channels=1", "--format=s16le", "--latency-msec=20"]
    with subprocess.Popen(parec, stdout=subprocess.PIPE) as recorder:
        assert recorder.stdout is not None
        head = recorder.stdout.read(RATE)
        with opened(capture=None, playback="ALSA:spk") as device:
            device.mixer.player("speech").play(tone(1.003, 22_050), 22_050)
            device.mixer.player("speech").drain()
        time.sleep(0.5)
        recorder.terminate()
        sound = np.frombuffer(head + recorder.communicate()[0], np.int16)
    loud = np.flatnonzero(np.abs(sound.astype(int)) > 500)
    assert abs((loud[-1] - loud[0]) / RATE - 1.003) < 0.005


@pytest.mark.parametrize("server", [48_000], indirect=True)
@thrice
def test_a_flush_is_heard_at_once(server: Server) -> None:
    """Barge-in: the sound stops within what the card already holds, and nothing more of it is written."""
    with opened(capture="ALSA:mic", playback="ALSA:spk") as device:
        taken: list[tuple[int, bool]] = []
        real = device.mixer.take

        def take(count: int) -> Pcm:
            out = real(count)
            taken.append((device.mixer.clock, bool(out.any())))
            return out

        device.mixer.take = take  # type: ignore[method-assign]
        decided = None
        for number, _frame in enumerate(device.frames()):
            if number == 50:
                device.mixer.player("speech").play(tone(0.9, RATE), RATE)
            if number == 80:
                device.mixer.player("speech").flush()
                decided = device.mixer.clock
            if number == 150:
                break
        assert decided is not None
        assert any(sounding for clock, sounding in taken if clock <= decided)
        late = [clock for clock, sounding in taken if sounding and clock > decided]
        assert len(late) <= 1, "more than the period that was being filled"
        assert 0 < device.mixer.player("speech").played < 0.9 * RATE


@pytest.mark.parametrize("server", [48_000], indirect=True)
def test_a_listener_that_stalls_loses_the_oldest_and_is_told(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """C64."""
    monkeypatch.setattr(device_module, "_RING", 20)
    with opened(capture="ALSA:mic", playback="ALSA:spk") as device:
        frames = device.frames()
        before = next(frames)
        time.sleep(1.0)
        behind = [next(frames) for _ in range(60)]
    lost = sum(frame.overruns for frame in behind)
    assert lost > 20
    assert before.overruns == 0
    assert behind[-1].at == before.at + FRAME * (60 + lost)


@pytest.mark.parametrize("server", [48_000], indirect=True)
def test_a_server_that_dies_is_noticed_and_the_next_one_is_used(server: Server) -> None:
    with opened(capture="ALSA:mic", playback="ALSA:spk") as device:
        frames = device.frames()
        for _ in range(20):
            last = next(frames)
        server.stop()
        with pytest.raises(DeviceFault, match=r"gone|silent"):
            list(frames)
    with pytest.raises(DeviceFault):
        Device(capture="ALSA:mic", playback="ALSA:spk")
    server.start()
    device = Device(capture="ALSA:mic", playback="ALSA:spk", at=last.at + FRAME)
    assert next(device.frames()).at == last.at + FRAME
    device.close()


class Kept:
    """A keeper on the noise at `usb`, and what it notes; `at` is the sample that it has come to."""

    def __init__(self) -> None:
        def open(at: int, mixer: Mixer, *, listen: bool = True) -> Device:
            return Device(capture="ALSA:usb" if listen else None, playback="ALSA:spk", at=at, mixer=mixer)

        self.keeper = Keeper(open, Mixer())
        self.frames = self.keeper.frames()
        self.at = 0

    def until(self, done: Callable[[Frame], object], seconds: float = 12.0) -> Frame:
        for frame in self.frames:
            assert frame.at == self.at
            self.at += FRAME * (1 + frame.overruns)
            if done(frame):
                return frame
            seconds -= FRAME / RATE
            assert seconds > 0, self.keeper.trouble
        raise AssertionError("it ended")

    def outage(self, begin: Callable[[], object], end: Callable[[], object]) -> tuple[str, float, str, float]:
        """The troubles noted, and the seconds of sound until they were: from `begin`, and from `end`."""
        self.until(lambda frame: frame.live and frame.samples.any())
        begin()
        began = self.at
        trouble = self.until(lambda frame: frame.notes)
        self.pass_time(0.5)
        end()
        self.pass_time(0.0)
        ended = self.at
        over = self.until(lambda frame: frame.notes)
        kinds = trouble.notes[0].kind, over.notes[0].kind  # type: ignore[union-attr]
        assert isinstance(over.notes[0], Recovered)
        return kinds[0], (trouble.at - began) / RATE, kinds[1], (over.at - ended) / RATE

    def pass_time(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        self.until(lambda frame: time.monotonic() >= end)


def pactl(*command: str) -> str:
    return subprocess.run(["pactl", *command], check=True, capture_output=True, text=True).stdout.strip()


class Noise:
    """A source `usb.monitor` that hisses, for as long as it is plugged in."""

    def plug(self) -> None:
        self.module = pactl("load-module", "module-null-sink", "sink_name=usb", "rate=48000", "channels=1")
        command = ["pacat", "-d", "usb", "--latency-msec=20", "/dev/urandom"]
        self.player = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def unplug(self) -> None:
        self.end()
        pactl("unload-module", self.module)

    def end(self) -> None:
        self.player.kill()
        self.player.wait()


@pytest.mark.parametrize("server", [48_000], indirect=True)
@thrice
def test_each_trouble_of_a_real_server_has_its_name_and_ends(server: Server) -> None:
    """Noticed within 2 s and over within 3, in one process; frames go on all the while."""
    threads = threading.active_count()
    noise = Noise()
    noise.plug()

    def stop() -> None:
        server.stop()
        noise.end()

    def start() -> None:
        server.start()
        noise.plug()

    kept = Kept()
    try:
        outages = [
            kept.outage(noise.unplug, noise.plug),
            kept.outage(
                lambda: pactl("set-source-mute", "usb.monitor", "1"),
                lambda: pactl("set-source-mute", "usb.monitor", "0"),
            ),
            kept.outage(lambda: server.signal(signal.SIGSTOP), lambda: server.signal(signal.SIGCONT)),
            kept.outage(stop, start),
        ]
    finally:
        kept.keeper.close()
        noise.end()
    for (kind, noticed, over, back), expected in zip(outages, ("moved", "silence", "frozen", "server"), strict=True):
        assert (kind, over) == (expected, expected)
        assert noticed <= 2.0
        assert back <= 3.0
    assert threading.active_count() == threads


@pytest.mark.parametrize("server", [48_000], indirect=True)
@thrice
def test_the_echo_stays_where_it_is(server: Server) -> None:
    """What the canceller needs: between the far end and its echo lies the same delay all the time, to a few samples."""
    noise = np.random.default_rng(0).normal(0, 3000, 4 * RATE).astype(np.int16)
    with opened(capture="ALSA:mic", playback="ALSA:spk") as device:
        device.mixer.player("speech", capacity=10.0).play(noise, RATE)
        frames = take(device, 400)
    near = np.concatenate([frame.samples for frame in frames]).astype(float)
    far = np.concatenate([frame.far for frame in frames]).astype(float)
    assert abs(len(near) - len(far)) < 0.05 * RATE
    lags = [delay(near, far, second * RATE) for second in (1, 2)]
    assert 0.08 * RATE < lags[0] < 0.4 * RATE
    assert abs(lags[1] - lags[0]) <= 4


def delay(near: np.ndarray[Any, Any], far: np.ndarray[Any, Any], at: int) -> int:
    """By how many samples half a second of the far end comes later in the near end."""
    piece = far[at : at + RATE // 2]
    return int(np.argmax(np.correlate(near[at : at + RATE], piece)))


@pytest.mark.parametrize("server", [48_000], indirect=True)
def test_a_canceller_of_the_server_is_recognised(server: Server) -> None:
    """C74: two cancellers undo one another."""
    with opened(capture="ALSA:mic", playback="ALSA:spk") as device:
        assert device.cancels_echo == ""
    master = ("source_master=mic", "sink_master=spk", "source_name=usb.monitor", "rate=48000")
    pactl("load-module", "module-echo-cancel", "aec_method=speex", *master)
    with opened(capture="ALSA:usb", playback="ALSA:spk") as device:
        assert device.cancels_echo == "usb.monitor is an echo canceller of the sound server"


@pytest.mark.parametrize("server", [48_000], indirect=True)
def test_ports_are_listed(server: Server) -> None:
    found = {port.id: port for port in ports()}
    assert found["ALSA:mic"].capture > 0
    assert found["ALSA:spk"].playback > 0
    assert len(found) == len(ports())
    with pytest.raises(DeviceFault, match=r"no microphone is called 'nowhere'.*ALSA:mic"):
        Device(capture="nowhere")


NOW = {"current_time": 5.0, "output_buffer_dac_time": 5.0}


class Library:
    """PyAudio with one card that takes only what real ones take; streams deliver when told to."""

    paInt16, paContinue, paInputOverflow, paOutputUnderflow = 8, 0, 2, 4

    def __init__(self, rates: tuple[int, ...] = (44_100, 48_000), channels: int = 2) -> None:
        self.rates, self.channels = rates, channels
        self.callbacks: dict[str, Any] = {}
        self.terminated = 0
        self.alive = True

    def PyAudio(self) -> Library:
        return self

    def terminate(self) -> None:
        self.terminated += 1

    def get_device_count(self) -> int:
        return 2 if self.channels else 0

    def get_default_input_device_info(self) -> dict[str, Any]:
        raise OSError("No Default Input Device Available")

    get_default_output_device_info = get_default_input_device_info

    def get_host_api_info_by_index(self, index: int) -> dict[str, Any]:
        return {"name": "ALSA"}

    def get_device_info_by_index(self, index: int) -> dict[str, Any]:
        name = f"USB Audio: Headset (hw:{index + 3},0)"
        both = {"maxInputChannels": self.channels, "maxOutputChannels": self.channels}
        return {"name": name, "hostApi": 0, "defaultSampleRate": 16_000.0, **both}

    def open(self, rate: int, channels: int, format: int, **options: Any) -> Library:
        if rate not in self.rates:
            raise OSError(-9997, "Invalid sample rate")
        if channels != self.channels:
            raise OSError(-9998, "Invalid number of channels")
        self.callbacks["capture" if "input" in options else "playback"] = options["stream_callback"]
        return self

    def get_output_latency(self) -> float:
        return 0.0

    def start_stream(self) -> None: ...

    def close(self) -> None: ...

    def is_active(self) -> bool:
        return self.alive


@pytest.fixture
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Library:
    made = Library(*getattr(request, "param", ()))
    monkeypatch.setattr(device_module, "PROMPT", np.inf)
    monkeypatch.setitem(sys.modules, "pyaudio", made)  # type: ignore[arg-type]
    return made


@pytest.mark.parametrize("library", [((44_100,), 2), ((48_000,), 2), ((48_000,), 8), ((16_000,), 1)], indirect=True)
def test_a_card_that_takes_only_its_own_rate_and_channels(library: Library) -> None:
    """C62: the sound is resampled inside, both ways."""
    rate, channels = library.rates[0], library.channels
    device = Device()
    device.mixer.player("speech").play(tone(0.1, 22_050), 22_050)
    played = b"".join(library.callbacks["playback"](None, rate // 100, NOW, 0)[0] for _ in range(20))
    by_channel = np.frombuffer(played, np.int16).reshape(-1, channels)
    assert (by_channel == by_channel[:, :1]).all()
    for block in np.repeat(tone(1.0, rate), channels).reshape(100, -1):
        library.callbacks["capture"](block.tobytes(), rate // 100, {}, 0)
    heard = [frame.samples for _, frame in zip(range(98), device.frames(), strict=False)]
    assert abs(pitch(np.concatenate(heard)) - 1000.0) < 2.0
    device.close()
    assert library.terminated == 1


def test_ids_stay_when_cards_change_their_numbers(library: Library) -> None:
    assert [port.id for port in ports()] == ["ALSA:USB Audio: Headset,0", "ALSA:USB Audio: Headset,0#2"]


def test_lost_blocks_move_the_clock(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_module, "_RING", 10)
    device = Device(at=1000)
    for _ in range(35):
        library.callbacks["capture"](bytes(480 * 4), 480, {}, 0)
    frames = [frame for _, frame in zip(range(9), device.frames(), strict=False)]
    assert [(frame.at, frame.overruns) for frame in frames[:2]] == [(1000 + 25 * FRAME, 25), (1000 + 26 * FRAME, 0)]


@pytest.mark.parametrize("library", [((), 2)], indirect=True)
def test_a_rate_that_nobody_supports(library: Library) -> None:
    with pytest.raises(DeviceFault, match=r"takes no playback stream .16000 Hz x 2: Invalid sample rate; 10 forms"):
        Device()
    assert library.terminated == 1


@pytest.mark.parametrize("library", [((), 0)], indirect=True)
def test_no_card(library: Library) -> None:
    with pytest.raises(DeviceFault, match="this box has no microphone"):
        Device()


def test_a_card_that_sends_nothing_or_ends(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "FIRST", 0.2)
    device = Device()
    with pytest.raises(DeviceFault, match=r"has sent nothing for 0\.\d s") as caught:
        next(device.frames())
    assert caught.value.kind == "frozen"
    device.close()
    monkeypatch.setattr(watch, "FIRST", 5.0)
    device = Device()
    library.alive = False
    with pytest.raises(DeviceFault, match="the sound card is gone") as caught:
        next(device.frames())
    assert caught.value.kind == "unplugged"
    device.close()
    assert list(device.frames()) == []


def feed(library: Library, *blocks: np.ndarray[Any, Any]) -> None:
    """Each [n, channels] as it comes from the card; one that is played goes between two of them."""
    for block in blocks:
        library.callbacks["capture"](block.astype(np.int16).tobytes(), len(block), {}, 0)


def take(device: Device, count: int) -> list[Frame]:
    return [frame for _, frame in zip(range(count), device.frames(), strict=False)]


@pytest.mark.parametrize("library", [((16_000,), 4)], indirect=True)
def test_a_channel_map_and_a_reference(library: Library) -> None:
    """Channels 1 and 2 are averaged; channel 3 is what the card plays, to the sample."""
    device = Device(channels=(1, 2), reference=3)
    device.mixer.player("speech").play(tone(0.1, RATE), RATE)
    library.callbacks["playback"](None, 480, NOW, 0)
    sound = np.arange(1, 10 * FRAME + 1)
    feed(library, *np.stack([0 * sound - 30_000, sound, 3 * sound, 5 * sound], axis=1).reshape(10, FRAME, 4))
    frames = take(device, 10)
    assert (np.concatenate([frame.samples for frame in frames]) == 2 * sound).all()
    assert (np.concatenate([frame.far for frame in frames]) == 5 * sound).all()
    device.close()


@pytest.mark.parametrize("library", [((48_000,), 4)], indirect=True)
def test_a_reference_is_no_part_of_what_is_heard(library: Library) -> None:
    device = Device(reference=0)
    sound = tone(1.0, 48_000)
    feed(library, *np.stack([-sound, sound, sound, sound], axis=1).reshape(100, 480, 4))
    frames = take(device, 90)
    near, far = (np.concatenate(parts) for parts in zip(*((f.samples, f.far) for f in frames), strict=True))
    assert np.abs(near.astype(int)).max() > 7000
    assert np.abs(near.astype(int) + far).max() <= 1
    device.close()


@pytest.mark.parametrize(
    ("library", "which"),
    [
        (((48_000,), 2), {"channels": (2,)}),
        (((48_000,), 2), {"reference": 2}),
        (((48_000,), 2), {"channels": (0, 1), "reference": 2}),
        (((48_000,), 1), {"reference": 0}),
    ],
    indirect=["library"],
)
def test_a_channel_that_is_not_there(library: Library, which: dict[str, Any]) -> None:
    with pytest.raises(DeviceFault, match=r"has [12] channels, and the settings name [23]") as caught:
        Device(**which)
    assert caught.value.kind == "refused"
    assert library.terminated == 1


@pytest.mark.parametrize("library", [((16_000,), 1)], indirect=True)
def test_far_and_near_stay_together_while_the_loop_stalls(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """C64, and what the canceller needs: whatever was dropped on either side, each frame carries what the loudspeaker
    took in its time."""
    monkeypatch.setattr(device_module, "_RING", 50)
    device = Device(lead_in=0.0)
    player = device.mixer.player("speech", capacity=60.0)
    clock = np.arange(1, 3001)
    player.play(np.repeat(clock, FRAME).astype(np.int16), RATE)

    def pass_time(blocks: range) -> None:
        for number in blocks:
            if number % 3 == 0:
                library.callbacks["playback"](None, 3 * FRAME, NOW, 0)
            feed(library, np.full((FRAME, 1), number + 1))

    stream = device.frames()
    feed(library, np.zeros((FRAME, 1)))
    assert not len(next(stream).far)
    pass_time(range(30))
    frames = [next(stream) for _ in range(30)]
    stalled = range(30, 600)
    pass_time(stalled)
    frames += [next(stream) for _ in range(50)]
    assert device.overruns == len(stalled) - 50
    assert frames[30].overruns == len(stalled) - 50
    assert sum(len(frame.far) for frame in frames) == 600 * FRAME
    assert sum(len(frame.far) > 0 for frame in frames[31:]) == 16
    for frame in frames[31:]:
        heard, played = frame.samples[0], frame.far
        assert not len(played) or tuple(played[::FRAME]) == (heard, heard + 1, heard + 2)
    device.close()


def test_a_heap_of_old_sound_at_the_start_is_left_out(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """A virtual microphone begins late, with what it has heard long ago. Both ends are counted from the first block
    that comes in its time: else the far end were seconds ahead of its echo."""
    monkeypatch.setattr(device_module, "PROMPT", -1.0)
    device = Device(lead_in=0.0)
    device.mixer.player("speech").play(tone(0.5, 44_100), 44_100)
    library.callbacks["playback"](None, 1336, NOW, 0)
    feed(library, *np.full((50, 441, 2), 1))
    library.callbacks["playback"](None, 1336, NOW, 0)
    time.sleep(0.02)
    feed(library, *np.full((3, 441, 2), 2))
    library.callbacks["playback"](None, 1336, NOW, 0)
    feed(library, *np.full((3, 441, 2), 2))
    frames = take(device, 5)
    assert all((frame.samples[80:] == 2).all() for frame in frames)
    assert sum(len(frame.far) for frame in frames) in range(400, 1336 * 160 // 441 + 1)
    assert device.overruns == 0
    device.close()


def test_overflows_of_the_card_are_counted(library: Library) -> None:
    device = Device()
    library.callbacks["capture"](bytes(480 * 4), 480, {}, library.paInputOverflow)
    assert device.overruns == 1
    device.close()


def test_without_a_microphone_time_goes_on_with_the_loudspeaker(library: Library) -> None:
    """Muted: frames are silent and not live, and the far end still travels with them."""
    device = Device(capture=None, at=800)
    device.mixer.player("speech").play(tone(0.5, 48_000), 48_000)
    for _ in range(40):
        library.callbacks["playback"](None, 44_100 // 33, NOW, 0)
    frames = take(device, 100)
    assert "capture" not in library.callbacks
    assert not any(frame.live or frame.samples.any() for frame in frames)
    assert [frame.at for frame in frames] == list(range(800, 800 + 100 * FRAME, FRAME))
    assert np.abs(np.concatenate([frame.far for frame in frames])).max() > 7000
    device.close()


@pytest.mark.parametrize(
    ("name", "lead_in", "seconds"),
    [
        ("HDA Intel HDMI: 0 (hw:0,3)", None, 1.5),
        ("bluealsa", None, 0.8),
        ("Jabra SPEAK 510 USB: Audio (hw:1,0)", None, 0.3),
        ("bcm2835 Headphones: - (hw:0,0)", None, 0.0),
        ("HDA Intel HDMI: 0 (hw:0,3)", 0.1, 0.1),
    ],
)
def test_the_lead_in_is_that_of_the_sink(
    library: Library, monkeypatch: pytest.MonkeyPatch, name: str, lead_in: float | None, seconds: float
) -> None:
    """C67: the first word comes behind the silence that the sink swallows."""
    real = library.get_device_info_by_index
    monkeypatch.setattr(library, "get_device_info_by_index", lambda index: {**real(index), "name": name})
    device = Device(lead_in=lead_in)
    device.mixer.player("speech").play(tone(0.2, 48_000), 48_000)
    rate = device.mixer.rate
    played = b"".join(library.callbacks["playback"](None, rate // 100, NOW, 0)[0] for _ in range(200))
    first = np.flatnonzero(np.abs(np.frombuffer(played, np.int16)[::2]) > 500)[0]
    assert abs(first / rate - seconds) < 0.02
    device.close()


def test_without_the_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyaudio", None)
    for ask in (ports, Device):
        with pytest.raises(DeviceFault) as caught:
            ask()
        assert caught.value.fix == "apt-get install portaudio19-dev && pip install parley[audio]"
