"""The door to WebRTC's audio processing module, as the livekit wheel ships it (Apache-2.0; x86-64 and aarch64).

The package is imported when a module is opened, not before: that takes 0.2 s and starts the threads of its runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from firmware.fault import DeviceFault
from firmware.frame import FRAME, RATE, Pcm

INSTALL = "pip install livekit, or set audio.echo to speex"


class Apm:
    """High-pass, echo canceller (AEC3), noise suppression and gain control, each where it is asked for.

    Every frame of the microphone is given to `push`, behind the frame of the far end that goes with it. Raises
    DeviceFault when the package is missing or its library fails.
    """

    def __init__(
        self,
        *,
        echo: bool = False,
        noise_suppression: bool = False,
        gain_control: bool = False,
        high_pass: bool = False,
    ) -> None:
        module, frame = _library()
        self._module = module(
            echo_cancellation=echo,
            noise_suppression=noise_suppression,
            auto_gain_control=gain_control,
            high_pass_filter=high_pass,
        )
        self._echo = echo
        if echo:
            _called(self._module.set_stream_delay_ms, 0)
        # One buffer for all frames: the library works in place, and an AudioFrame of its own for each frame costs
        # as much as the filters do.
        memory = bytearray(2 * FRAME)
        self._frame = frame(memory, RATE, 1, FRAME)
        self._samples = np.frombuffer(memory, np.int16)

    def push(self, near: Pcm, far: Pcm | None = None) -> Pcm:
        """int16 [FRAME] of the microphone, and of what arrives there as echo, or will within 0.1 s; cleaned [FRAME]."""
        if self._echo and far is not None:
            self._run(self._module.process_reverse_stream, far)
        return self._run(self._module.process_stream, near).copy()

    def close(self) -> None:
        """The library frees the module with the object."""

    def _run(self, step: Callable[[Any], None], samples: Pcm) -> Pcm:
        self._samples[:] = samples
        _called(step, self._frame)
        return self._samples


def check() -> None:
    """Raises DeviceFault when the library cannot be used."""
    _library()


def _library() -> tuple[Any, Any]:
    """The classes of the module and of its frames."""
    try:
        from livekit.rtc.apm import AudioProcessingModule
        from livekit.rtc.audio_frame import AudioFrame
    except (ImportError, OSError) as error:
        raise DeviceFault(f"WebRTC's echo canceller needs the livekit package: {error}", INSTALL) from error
    return AudioProcessingModule, AudioFrame


def _called(step: Callable[[Any], None], value: Any) -> None:
    try:
        step(value)
    except RuntimeError as error:
        raise DeviceFault(f"WebRTC's audio processing failed: {error}", INSTALL) from error
