from __future__ import annotations

import asyncio
import os
import pty
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from appliance.commands.keys import keys
from appliance.controls import Controls


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """What is written here is typed on the terminal of this process."""
    ours, theirs = pty.openpty()
    with open(theirs) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        yield ours
    os.close(ours)


async def until(condition: Callable[[], bool]) -> bool:
    for _ in range(500):
        if condition():
            return True
        await asyncio.sleep(0.01)
    return False


async def test_enter_is_the_button_and_m_closes_the_microphone(tmp_path: Path, keyboard: int) -> None:
    live = Controls(tmp_path)
    with keys(live) as there:
        assert there
        os.write(keyboard, b"hello\n\n")
        assert await until(live.pressed)
        os.write(keyboard, b"M\n")
        assert await until(lambda: live.muted)
        assert await until(lambda: Controls(tmp_path).muted)
        os.write(keyboard, b"m\n")
        assert await until(lambda: not live.muted)


async def test_leaving_waits_for_no_key(tmp_path: Path, keyboard: int) -> None:
    live = Controls(tmp_path)
    before = signal.signal(signal.SIGTTIN, signal.SIG_DFL)
    with keys(live):
        assert signal.getsignal(signal.SIGTTIN) == signal.SIG_IGN
    assert signal.getsignal(signal.SIGTTIN) == signal.SIG_DFL
    signal.signal(signal.SIGTTIN, before)
    os.write(keyboard, b"\n")
    await asyncio.sleep(0.05)
    assert not live.pressed()


@pytest.mark.parametrize("how", ["gone", "in the background"])
async def test_a_terminal_that_goes_is_no_press_and_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    live, (ours, theirs), looks = Controls(tmp_path), pty.openpty(), []
    real = os.read

    def counted(handle: int, size: int) -> bytes:
        if handle == theirs:
            looks.append(size)
            if how == "in the background":
                raise OSError(5, "Input/output error")
        return real(handle, size)

    monkeypatch.setattr(os, "read", counted)
    with os.fdopen(theirs) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        with keys(live):
            os.close(ours)
            assert await until(lambda: bool(looks))
            await asyncio.sleep(0.1)
    assert len(looks) == 1
    assert not live.pressed()


@pytest.mark.parametrize("stdin", ["none", "pipe", "closed"])
async def test_without_a_terminal_there_is_no_keyboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stdin: str
) -> None:
    with os.fdopen(os.open(os.devnull, os.O_RDONLY)) as nothing:
        monkeypatch.setattr(sys, "stdin", None if stdin == "none" else nothing)
        if stdin == "closed":
            nothing.close()
        with keys(Controls(tmp_path)) as there:
            assert not there
