"""Runs the long commands of a set-up: one live line per step on a terminal, the full output in a log."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "parley"
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class StepFailed(Exception):
    """A command of a step ended with an error; its output is in the log."""


class Steps:
    """A sequence of commands that share a log.

    On a terminal each step is one line that shows the command's last words while it runs; elsewhere one line when it
    begins and one when it has ended.
    """

    def __init__(self, name: str) -> None:
        self.log = CACHE / "logs" / f"{name}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_text("")
        self._tty = sys.stderr.isatty()

    def note(self, text: str) -> None:
        print(f"  {text}", file=sys.stderr)

    def tail(self, lines: int = 6) -> str:
        """The end of the log, indented."""
        text = self.log.read_text(errors="replace").strip().splitlines()[-lines:]
        return "\n".join(f"  | {line}" for line in text)

    def run(self, title: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        """Raises StepFailed when the command cannot be started or returns non-zero."""
        started = time.monotonic()
        if not self._tty:
            print(f"{title} ...", file=sys.stderr, flush=True)
        with self.log.open("a") as log:
            log.write(f"\n$ {' '.join(command)}\n")
            log.flush()
            try:
                code = self._watch(title, command, {**os.environ, **(env or {})}, log.fileno(), started)
            except OSError as error:
                log.write(f"{error}\n")
                code = 127
        mark = "✓" if code == 0 else "✗"
        self._line(f"{mark} {title} ({time.monotonic() - started:.0f} s)", end="\n")
        if code != 0:
            raise StepFailed(title)

    def _watch(self, title: str, command: Sequence[str], env: Mapping[str, str], log: int, started: float) -> int:
        process = subprocess.Popen(
            command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        )
        last = [""]

        def follow() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                os.write(log, line)
                last[0] = line.decode(errors="replace").strip() or last[0]

        reader = threading.Thread(target=follow, daemon=True)
        reader.start()
        try:
            turn = 0
            while process.poll() is None:
                if self._tty:
                    spent = time.monotonic() - started
                    self._line(f"{SPINNER[turn % len(SPINNER)]} {title} ({spent:.0f} s)  {last[0]}")
                turn += 1
                time.sleep(0.1)
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            raise
        reader.join(timeout=2)
        return process.returncode

    def _line(self, text: str, end: str = "") -> None:
        if not self._tty:
            if end:
                print(text, file=sys.stderr, flush=True)
            return
        width = os.get_terminal_size(sys.stderr.fileno()).columns - 1
        print(f"\r\x1b[2K{text[:width] if width > 0 else text}", end=end, file=sys.stderr, flush=True)
