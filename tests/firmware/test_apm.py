"""WebRTC's audio processing: the library that is installed."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from firmware import apm
from firmware.apm import Apm
from firmware.fault import DeviceFault
from firmware.frame import FRAME, RATE, to_pcm


def test_it_takes_an_echo_out() -> None:
    far = to_pcm(np.random.default_rng(0).normal(0, 0.1, 3 * RATE).astype(np.float32)).reshape(-1, FRAME)
    near = np.roll(far.ravel(), 100).reshape(-1, FRAME) // 2
    module = Apm(echo=True)
    out = np.array([module.push(heard, played) for heard, played in zip(near, far, strict=True)])
    assert np.std(out[200:]) < 0.03 * np.std(near[200:])
    assert np.ptp(near[0]) > 0  # the microphone's frame is the caller's


def test_frames_are_not_shared() -> None:
    module = Apm(high_pass=True)
    first = module.push(np.full(FRAME, 1000, np.int16))
    kept = first.copy()
    module.push(np.zeros(FRAME, np.int16))
    np.testing.assert_array_equal(first, kept)


def test_a_frame_has_one_length() -> None:
    with pytest.raises(ValueError, match="broadcast"):
        Apm().push(np.zeros(FRAME + 1, np.int16))


def test_a_missing_package_is_a_fault_with_a_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "livekit.rtc.apm", None)
    with pytest.raises(DeviceFault) as caught:
        apm.check()
    assert "livekit" in caught.value.message
    assert "speex" in caught.value.fix


def test_it_is_imported_when_needed_and_leaves_quietly() -> None:
    """Nothing on stderr, no thread that keeps the process."""
    code = (
        "import sys; from firmware.apm import Apm; assert 'livekit.rtc' not in sys.modules; import numpy as np;"
        "a = Apm(echo=True); a.push(np.zeros(160, np.int16), np.zeros(160, np.int16))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
