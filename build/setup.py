"""Installs Parley and its tools into the environment that runs this file; does nothing when nothing has changed.

Standard library only: it runs before anything is installed. Live audio is the one part that may be left out: it needs
PortAudio, which is a system library.
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
from pathlib import Path

from steps import ROOT, StepFailed, Steps

STAMP = Path(sys.prefix) / ".setup.json"
PIP = [sys.executable, "-m", "pip", "install", "--no-input", "--progress-bar", "off", "--disable-pip-version-check"]
SYSTEM_PACKAGES = ["portaudio19-dev", "gcc", "libc6-dev"]


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


def can_compile_audio() -> bool:
    include = sysconfig.get_path("include")
    compiler = shutil.which("gcc") or shutil.which("cc")
    headers = any((Path(place) / "portaudio.h").exists() for place in ("/usr/include", "/usr/local/include"))
    return compiler is not None and headers and (Path(include) / "Python.h").exists()


def python_headers() -> list[str]:
    """Debian keeps the interpreter's headers in a package of their own."""
    if sys.base_prefix != "/usr" or (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return []
    return [f"python{sys.version_info.major}.{sys.version_info.minor}-dev"]


def install_system_libraries(steps: Steps) -> None:
    root = root_prefix()
    if root is None or shutil.which("apt-get") is None:
        raise StepFailed("it needs PortAudio's headers and a compiler, which take root and apt to install")
    install = [*root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", *SYSTEM_PACKAGES]
    install += python_headers()
    try:
        steps.run("system libraries for live audio", install)
    except StepFailed:
        steps.run("package lists", [*root, "apt-get", "update"])
        steps.run("system libraries for live audio, again", install)


def install_audio(steps: Steps) -> str:
    """Returns "" or the reason why live audio is left out."""
    if importlib.util.find_spec("pyaudio"):
        return ""
    try:
        if not can_compile_audio():
            install_system_libraries(steps)
        steps.run("live audio", [*PIP, "-e", ".[audio]"])
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
    reason = install_audio(steps)
    if reason:
        steps.note(f"live audio is left out, everything else works: {reason} (log: {steps.log})")
        steps.note("to add it: as root `apt-get install portaudio19-dev gcc python3-dev`, then `./just audio`")
    STAMP.write_text(json.dumps({"key": key(), "audio": reason or "installed"}))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nstopped; run the same command again to go on", file=sys.stderr)
        sys.exit(130)
