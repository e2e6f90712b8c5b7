"""What the sound server says of our streams: the only file that runs pactl, which PulseAudio and PipeWire both answer.

A server moves a stream to another source without telling the stream, when the one that it recorded from goes away. It
tells who subscribes.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from firmware.cards import Node

TIMEOUT = 1.0
"""Seconds that one question may take."""

PAUSE = 0.3
"""Seconds between two looks: changes come in swarms."""

SUBSCRIBE = "pactl subscribe & exec >&-; read _; kill $!"
"""It ends when its input does, so also with a process of ours that is killed: pactl itself would stay for ever."""


@dataclass(frozen=True, slots=True)
class Streams:
    """Where this process records from and plays to; None: it does not, or not through the server."""

    source: Node | None
    sink: Node | None


def sockets() -> list[str]:
    """Where the server of this user may be found on this box."""
    if server := os.environ.get("PULSE_SERVER", "").split():
        path = server[0].rpartition("}")[2].removeprefix("unix:")
        return [path] if path.startswith("/") else []
    own = os.environ.get("PULSE_RUNTIME_PATH") or os.path.join(
        os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}", "pulse"
    )
    return [os.path.join(own, "native"), "/run/pulse/native"]


def answers() -> bool:
    """Whether there is a sound server. Returns at once."""
    return any(knock(path) == "answers" for path in sockets())


def knock(path: str) -> Literal["answers", "denied", "refused", "absent"]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.settimeout(0.1)
        try:
            door.connect(path)
        except PermissionError:
            return "denied"
        except FileNotFoundError:
            return "absent"
        except OSError:
            return "refused"
    return "answers"


def look() -> Streams | None:
    """None where there is no server, or no pactl that speaks JSON (16 and later)."""
    if shutil.which("pactl") is None:
        return None
    try:
        answer = subprocess.run(
            ["pactl", "--format=json", "list"], capture_output=True, check=True, timeout=TIMEOUT, process_group=0
        )
        listed = json.loads(answer.stdout.decode(errors="replace"))
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return streams(listed, os.getpid())


def streams(listed: dict[str, Any], process: int) -> Streams:
    """Out of all that `pactl list` says, what belongs to `process`; of several streams the newest."""
    return Streams(
        _node(listed, "source_outputs", "source", process),
        _node(listed, "sink_inputs", "sink", process),
    )


def _node(listed: dict[str, Any], kind: str, end: str, process: int) -> Node | None:
    ours = [s for s in listed.get(kind, ()) if s["properties"].get("application.process.id") == str(process)]
    if not ours:
        return None
    index = max(ours, key=lambda stream: int(stream["index"]))[end]
    for found in listed.get(f"{end}s", ()):
        if found["index"] == index:
            return Node(found["name"], found["description"] or "", found["properties"])
    return None


class Observer:
    """Follows where the server records for us, in a thread that waits nearly all of the time.

    `place` is the name of the source, "" where there is none; `server` is False once the server has gone.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self.server = True
        self._closed = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="sound server", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._end()
        self._thread.join(TIMEOUT)

    def _run(self) -> None:
        while not self._closed.is_set():
            self._follow()
            if not self._look():
                self.server = self._closed.is_set()
                return
            self._closed.wait(PAUSE)

    def _follow(self) -> None:
        """Until the server is gone, or pactl is."""
        try:
            process = subprocess.Popen(
                ["sh", "-c", SUBSCRIBE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                process_group=0,
            )
        except OSError:
            return
        with process:
            self._process = process
            if self._closed.is_set():
                self._end()
            assert process.stdout is not None
            while said := os.read(process.stdout.fileno(), 1 << 16):
                if b"source-output" in said:
                    self._look()
                    self._closed.wait(PAUSE)

    def _look(self) -> bool:
        """Whether there is an answer."""
        found = look()
        if found is not None and not self._closed.is_set():
            self.place = found.source.name if found.source else ""
        return found is not None

    def _end(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
