"""Installs Parley and its tools into the environment that runs this file; does nothing when nothing has changed.

Standard library only: it runs before anything is installed. Two parts may be left out, since they are compiled against
system libraries: live audio (PortAudio), and the second of the two echo cancellers (speexdsp).
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from ctypes.util import find_library
from dataclasses import dataclass
from pathlib import Path

from steps import ROOT, StepFailed, Steps

STAMP = Path(sys.prefix) / ".setup.json"
PIP = [sys.executable, "-m", "pip", "install", "--no-input", "--progress-bar", "off", "--disable-pip-version-check"]


@dataclass(frozen=True)
class Piece:
    """A library that is compiled here, and may be left out. `without` says what that means. Where the system's
    `library` is there already, it does as well."""

    title: str
    module: str
    extra: str
    header: str
    tools: tuple[str, ...]
    packages: tuple[str, ...]
    without: str
    library: str = ""


PIECES = (
    Piece(
        title="live audio",
        module="pyaudio",
        extra="audio",
        header="portaudio.h",
        tools=("gcc",),
        packages=("portaudio19-dev", "gcc", "libc6-dev"),
        without="live audio is left out, everything else works",
    ),
    Piece(
        title="the echo canceller speex",
        module="speexdsp",
        extra="speex",
        header="speex/speex_echo.h",
        tools=("g++", "swig"),
        packages=("libspeexdsp-dev", "swig", "g++"),
        without='the echo canceller "speex" is left out, "webrtc" works',
        library="speexdsp",
    ),
)


def key() -> str:
    """Changes with the dependencies, the interpreter and the place of the checkout (an editable install knows it)."""
    parts = (ROOT / "pyproject.toml").read_bytes(), str(ROOT).encode(), sys.version.encode()
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def is_current() -> bool:
    try:
        return bool(json.loads(STAMP.read_text())["key"] == key())
    except (OSError, ValueError, KeyError):
        return False


def root_prefix() -> list[str] | None:
    """How to run a command as root without asking for a password; None when that is not possible."""
    if os.geteuid() == 0:
        return []
    if (
        shutil.which("sudo")
        and subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0
    ):
        return ["sudo", "-n"]
    return None


def can_compile(piece: Piece) -> bool:
    headers = [Path(sysconfig.get_path("include")) / "Python.h"]
    places = (Path("/usr/include"), Path("/usr/local/include"))
    headers.append(next((place / piece.header for place in places if (place / piece.header).exists()), Path("none")))
    return all(map(shutil.which, piece.tools)) and all(header.exists() for header in headers)


def python_headers() -> list[str]:
    """Debian keeps the interpreter's headers in a package of their own."""
    if sys.base_prefix != "/usr" or (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return []
    return [f"python{sys.version_info.major}.{sys.version_info.minor}-dev"]


def install_system_packages(steps: Steps, piece: Piece) -> None:
    root = root_prefix()
    if root is None or shutil.which("apt-get") is None:
        raise StepFailed("a compiler and headers are missing, which take root and apt to install")
    install = [*root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", *piece.packages]
    install += python_headers()
    try:
        steps.run(f"system packages for {piece.title}", install)
    except StepFailed:
        steps.run("package lists", [*root, "apt-get", "update"])
        steps.run(f"system packages for {piece.title}, again", install)


def install_piece(steps: Steps, piece: Piece) -> str:
    """Returns "" or the reason why it is left out."""
    if importlib.util.find_spec(piece.module) or (piece.library and find_library(piece.library)):
        return ""
    try:
        if not can_compile(piece):
            install_system_packages(steps, piece)
        steps.run(piece.title, [*PIP, "-e", f".[{piece.extra}]"])
    except StepFailed as failed:
        return str(failed)
    return ""


def main() -> int:
    again = "--again" in sys.argv[1:]
    if is_current() and not again:
        return 0
    with (Path(sys.prefix) / ".setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return 0 if is_current() and not again else install(Steps("setup"))


def install(steps: Steps) -> int:
    try:
        steps.run("Parley and its libraries", [*PIP, "-e", ".[dev]"])
    except StepFailed:
        print(
            f"error: the libraries could not be installed\n{steps.tail()}\n"
            f"  fix: most often the network is missing (pip must reach its index); the whole log: {steps.log}",
            file=sys.stderr,
        )
        return 1
    reasons = {piece: reason for piece in PIECES if (reason := install_piece(steps, piece))}
    for piece, reason in reasons.items():
        steps.note(f"{piece.without}: {reason} (log: {steps.log})")
    if reasons:
        packages = " ".join(dict.fromkeys(name for piece in reasons for name in piece.packages))
        steps.note(f"to add it: as root `apt-get install {packages} python3-dev`, then `./just audio`")
    left_out = {piece.module: reason for piece, reason in reasons.items()}
    STAMP.write_text(json.dumps({"key": key(), "left out": left_out}))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nstopped; run the same command again to go on", file=sys.stderr)
        sys.exit(130)
