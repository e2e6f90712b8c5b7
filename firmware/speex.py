"""The door to libspeexdsp: echo canceller, and the preprocessor with its suppression of what echo is left.

The PyPI package wraps the canceller alone, but its extension is linked with the library, whose functions all are
reached through it; without the package, the system's library is taken.
"""

from __future__ import annotations

import ctypes
import importlib.util
from ctypes.util import find_library
from functools import cache
from pathlib import Path

import numpy as np

from firmware.fault import DeviceFault
from firmware.frame import FRAME, RATE, Pcm

INSTALL = "apt-get install libspeexdsp1, or set audio.echo to webrtc"

SUPPRESSED = -15
"""dB by which noise suppression weakens steady noise: the library's own choice."""

# Requests of speex_echo.h and speex_preprocess.h.
_SET_SAMPLING_RATE = 24
_SET_DENOISE, _SET_AGC, _SET_NOISE_SUPPRESS = 0, 2, 18
_SET_ECHO_SUPPRESS, _SET_ECHO_SUPPRESS_ACTIVE, _SET_ECHO_STATE = 20, 22, 24


class Canceller:
    """The linear canceller (a multi-delay block filter after Valin 2007) with a memory of `tail` seconds."""

    def __init__(self, tail: float = 0.256) -> None:
        self._library = _library()
        self.state = self._library.speex_echo_state_init(FRAME, round(tail * RATE))
        _set(self._library.speex_echo_ctl, self.state, _SET_SAMPLING_RATE, RATE)

    def push(self, near: Pcm, far: Pcm) -> Pcm:
        """int16 [FRAME] each -> `near` without the echo of `far`."""
        out = np.empty(FRAME, np.int16)
        self._library.speex_echo_cancellation(self.state, _whole(near), _whole(far), out.ctypes.data)
        return out

    def reset(self) -> None:
        """Forgets the room."""
        self._library.speex_echo_state_reset(self.state)

    def close(self) -> None:
        if self.state:
            self._library.speex_echo_state_destroy(self.state)
            self.state = None


class Preprocessor:
    """Noise suppression and gain control, and with a `canceller` the suppression of what echo it leaves: `resting` dB
    while nobody speaks, `speaking` dB while somebody does."""

    def __init__(
        self,
        canceller: Canceller | None = None,
        *,
        noise: int = SUPPRESSED,
        resting: int = -40,
        speaking: int = -15,
        gain_control: bool = False,
    ) -> None:
        self._library = _library()
        self._state = self._library.speex_preprocess_state_init(FRAME, RATE)
        control = self._library.speex_preprocess_ctl
        _set(control, self._state, _SET_DENOISE, 1)
        _set(control, self._state, _SET_NOISE_SUPPRESS, noise)
        _set(control, self._state, _SET_AGC, int(gain_control))
        if canceller:
            control(self._state, _SET_ECHO_STATE, canceller.state)
            _set(control, self._state, _SET_ECHO_SUPPRESS, resting)
            _set(control, self._state, _SET_ECHO_SUPPRESS_ACTIVE, speaking)

    def push(self, samples: Pcm) -> Pcm:
        """int16 [FRAME] -> [FRAME]; after the canceller took its frame."""
        _whole(samples)
        out = samples.copy()
        self._library.speex_preprocess_run(self._state, out.ctypes.data)
        return out

    def close(self) -> None:
        if self._state:
            self._library.speex_preprocess_state_destroy(self._state)
            self._state = None


def _whole(samples: Pcm) -> int:
    """The address of int16 [FRAME]; the library reads that many, whatever there is."""
    if samples.shape != (FRAME,) or samples.dtype != np.int16 or not samples.flags.c_contiguous:
        raise ValueError(f"a frame is int16 [{FRAME}], not {samples.dtype} {samples.shape}")
    return samples.ctypes.data


def _set(control: ctypes._FuncPointer, state: int, request: int, value: int) -> None:
    control(state, request, ctypes.byref(ctypes.c_int(value)))


def check() -> None:
    """Raises DeviceFault when the library cannot be used."""
    _library()


@cache
def _library() -> ctypes.CDLL:
    """Raises DeviceFault."""
    for path in _places():
        try:
            library = ctypes.CDLL(path)
            return _declared(library)
        except (OSError, AttributeError):
            continue
    raise DeviceFault("the speex echo canceller needs libspeexdsp, which was not found", INSTALL)


def _places() -> list[str]:
    package = importlib.util.find_spec("speexdsp")
    folders = (package.submodule_search_locations or []) if package else []
    found = [str(path) for folder in folders for path in sorted(Path(folder).glob("_speexdsp*.so"))]
    system = find_library("speexdsp")
    return found + ([system] if system else [])


def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    pointer, number = ctypes.c_void_p, ctypes.c_int
    for name, result, arguments in (
        ("speex_echo_state_init", pointer, [number, number]),
        ("speex_echo_state_reset", None, [pointer]),
        ("speex_echo_state_destroy", None, [pointer]),
        ("speex_echo_cancellation", None, [pointer, pointer, pointer, pointer]),
        ("speex_echo_ctl", number, [pointer, number, pointer]),
        ("speex_preprocess_state_init", pointer, [number, number]),
        ("speex_preprocess_state_destroy", None, [pointer]),
        ("speex_preprocess_run", number, [pointer, pointer]),
        ("speex_preprocess_ctl", number, [pointer, number, pointer]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
