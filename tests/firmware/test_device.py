"""The real device, on a PulseAudio server of our own: what is played on `spk` comes back 80 ms later at `mic`."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from firmware.device import Device
from firmware.frame import FRAME, RATE, Pcm

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
"""


@pytest.fixture(params=[44_100, 48_000])
def server(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[subprocess.Popen[bytes]]:
    pytest.importorskip("pyaudio")
    if not shutil.which("pulseaudio"):
        pytest.skip("needs pulseaudio")
    run = tmp_path / "run"
    run.mkdir(mode=0o700)
    (tmp_path / ".asoundrc").write_text(ALSA)
    environment = {"XDG_RUNTIME_DIR": str(run), "HOME": str(tmp_path), "PULSE_SERVER": f"unix:{run}/native"}
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    command = ["pulseaudio", "-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no", "--log-target=stderr"]
    for module in MODULES:
        command += ["-L", module.format(run=run, rate=request.param)]
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            for _ in range(100):
                if (
                    b"loopback"
                    in subprocess.run(["pactl", "list", "short", "modules"], check=False, capture_output=True).stdout
                ):
                    break
                time.sleep(0.1)
            else:
                pytest.skip(f"pulseaudio does not start: {(tmp_path / 'log').read_text()[-500:]}")
            yield process
        finally:
            process.kill()


def tone(seconds: float, rate: int, hertz: float = 1000.0) -> Pcm:
    return (8000 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)).astype(np.int16)


def pitch(sound: Pcm) -> float:
    spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound)), 8 * len(sound)))
    return float(np.argmax(spectrum)) * RATE / (8 * len(sound))


def test_a_tone_comes_back_at_its_pitch_and_whole(server: subprocess.Popen[bytes]) -> None:
    sent = tone(1.003, 22_050)
    opened = Device(capture="mic", playback="spk")
    heard = []
    try:
        for frame in opened.frames():
            heard.append(frame)
            if len(heard) == 50:
                opened.play(sent, 22_050)
            if len(heard) == 300:
                break
        opened.drain()
    finally:
        opened.close()
    sound = np.concatenate([frame.samples for frame in heard])
    assert [frame.at for frame in heard] == [FRAME * number for number in range(300)]
    loud = np.flatnonzero(np.abs(sound) > 200)
    assert abs(pitch(sound[loud[0] : loud[-1]]) - 1000.0) < 1.0
    from firmware import wav

    wav.write(f"/tmp/fw/loop{time.time():.0f}.wav", sound)
    env = np.abs(sound[: len(sound) // 80 * 80].reshape(-1, 80)).max(1) < 200
    edges = np.flatnonzero(np.diff(env.astype(int))) * 5
    print("edges ms", edges)
    print(
        len(loud),
        loud[-1] - loud[0],
        loud[0] / 16,
        opened.rate,
        opened.capture_rate,
        opened._inputs,
        opened._outputs,
        opened._playback._latency,
    )
    assert abs((loud[-1] - loud[0]) / RATE - 1.003) < 0.005
