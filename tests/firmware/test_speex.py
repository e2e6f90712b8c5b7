"""libspeexdsp: the library that is installed."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from firmware import speex
from firmware.fault import DeviceFault
from firmware.frame import FRAME, RATE, Pcm, to_pcm
from firmware.speex import Canceller, Preprocessor


def noise(seed: int, loudness: float = 0.1) -> Pcm:
    return to_pcm(np.random.default_rng(seed).normal(0, loudness, 3 * RATE).astype(np.float32)).reshape(-1, FRAME)


def test_it_takes_an_echo_out_and_what_is_left_of_it() -> None:
    far = noise(0)
    near = (np.roll(far.ravel(), 100).reshape(-1, FRAME) // 2 + noise(1, 0.002)).astype(np.int16)
    canceller = Canceller()
    after = Preprocessor(canceller)
    pairs = [(canceller.push(heard, played), after) for heard, played in zip(near, far, strict=True)]
    left = np.array([out for out, _ in pairs])
    assert np.std(left[200:]) < 0.1 * np.std(near[200:])
    canceller.reset()
    frames = zip(near, far, strict=True)
    suppressed = np.array([after.push(canceller.push(heard, played)) for heard, played in frames])
    assert np.std(suppressed[200:]) < 0.5 * np.std(left[200:])
    after.close()
    canceller.close()
    canceller.close()  # twice does no harm


def test_steady_noise_is_suppressed() -> None:
    after, sound = Preprocessor(), noise(0, 0.01)
    out = np.array([after.push(frame) for frame in sound])
    assert np.std(out[200:]) < 0.5 * np.std(sound[200:])
    after.close()


@pytest.mark.parametrize(
    "wrong", [np.zeros(FRAME - 1, np.int16), np.zeros(FRAME, np.float32), np.zeros(320, np.int16)[::2]]
)
def test_what_is_no_frame_never_reaches_the_library(wrong: Pcm) -> None:
    """It reads and writes a frame's length, whatever it is given."""
    canceller, good = Canceller(), np.zeros(FRAME, np.int16)
    for near, far in ((wrong, good), (good, wrong)):
        with pytest.raises(ValueError, match="a frame is"):
            canceller.push(near, far)
    with pytest.raises(ValueError, match="a frame is"):
        Preprocessor().push(wrong)


@pytest.mark.parametrize("package", [True, False])
def test_the_library_is_found_with_and_without_the_package(package: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speex, "_library", speex._library.__wrapped__)
    if package:
        if not importlib.util.find_spec("speexdsp"):
            pytest.skip("the package is not installed")
        monkeypatch.setattr(speex, "find_library", lambda name: None)
    else:
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    speex.check()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(speex, "find_library", lambda name: None)
    with pytest.raises(DeviceFault) as caught:
        speex.check()
    assert "webrtc" in caught.value.fix
