"""The keyboard of a daemon that runs on a terminal: Enter is the button, m and Enter closes or opens the microphone."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from appliance.controls import Controls
from appliance.errors import StorageFault
from appliance.telemetry import log


@contextmanager
def keys(controls: Controls) -> Iterator[bool]:
    """Listens to the keyboard while inside; yields whether there is one. Needs a running loop. Nothing waits for a key:
    leaving is immediate."""
    if not _has_keyboard():
        yield False
        return
    loop, handle = asyncio.get_running_loop(), sys.stdin.fileno()
    # Put into the background, a process that reads its terminal is stopped; so it is told that there is none.
    before = signal.signal(signal.SIGTTIN, signal.SIG_IGN)
    loop.add_reader(handle, _read, loop, handle, controls)
    try:
        yield True
    finally:
        loop.remove_reader(handle)
        signal.signal(signal.SIGTTIN, before)


def _has_keyboard() -> bool:
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


def _read(loop: asyncio.AbstractEventLoop, handle: int, controls: Controls) -> None:
    try:
        typed = os.read(handle, 1024)
    except OSError:  # the terminal is another's now, or gone
        typed = b""
    if not typed:
        loop.remove_reader(handle)
    for line in typed.decode(errors="replace").splitlines():
        match line.strip().lower():
            case "":
                controls.press()
            case "m":
                loop.run_in_executor(None, _toggle, controls)  # writing takes as long as the disk does


def _toggle(controls: Controls) -> None:
    try:
        controls.mute(not controls.muted)
    except StorageFault as fault:
        log("controls", level=logging.ERROR, message=fault.message, fix=fault.fix)
