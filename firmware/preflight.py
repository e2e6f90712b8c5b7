"""Why sound cannot work for this user on this box, with the exact fix."""

from __future__ import annotations

import ctypes
import getpass
import grp
import importlib.util
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from firmware import pulse

GROUP = "audio"

Server = Literal["answers", "cookie", "denied", "refused", "absent"]


@dataclass(frozen=True, slots=True)
class Obstacle:
    """`severe` is what leaves no sound at all; the rest makes it worse. `barred`: there is sound, but this user is
    denied it."""

    found: str
    fix: str
    severe: bool = True
    barred: bool = False


@dataclass(frozen=True, slots=True)
class System:
    """What matters of a box and its user. `groups` are those of this process, `assigned` those that the user has from
    the next login on; `devices` are the groups of the nodes in /dev/snd, by name, and `usable` says whether one of them
    can be opened; `cards` is their number. `server` is what came of knocking at the sound server's socket. `rtprio` is
    the highest real-time priority that a thread may ask for."""

    user: str
    uid: int
    groups: frozenset[str] = frozenset()
    assigned: frozenset[str] = frozenset()
    container: bool = False
    devices: frozenset[str] = frozenset()
    usable: bool = False
    cards: int = 0
    runtime: str = ""
    server_set: str = ""
    server: Server = "absent"
    rtprio: int = 0
    binding: bool = True
    portaudio: bool = True


def obstacles(system: System) -> list[Obstacle]:
    """The severe ones first. A sound server that answers needs no card of this user's, and a card no server."""
    found = [*_software(system)]
    if system.server != "answers":
        if not (system.usable and system.cards):
            found += [*_cards(system), *_server(system)]
        elif system.server in ("cookie", "denied"):
            found += [Obstacle(o.found, o.fix, severe=False) for o in _server(system)]
    return [*found, *_priority(system)]


def _software(system: System) -> Iterator[Obstacle]:
    if not system.portaudio:
        yield Obstacle("PortAudio is missing", "sudo apt-get install libportaudio2")
    if not system.binding:
        yield Obstacle(
            "PortAudio's Python binding is missing", "sudo apt-get install portaudio19-dev && pip install parley[audio]"
        )


def _cards(system: System) -> Iterator[Obstacle]:
    groups = sorted(system.devices - {"root"}) or [GROUP]
    group = groups[0]
    if system.uid and not system.usable and group not in system.groups:
        found = f"{system.user} is not in the group {group}"
        if system.container:
            yield Obstacle(found, f"start the container with --group-add {group}", barred=True)
        elif group in system.assigned:
            yield Obstacle(f"{found} until the next login", "log out and in again, or restart the service", barred=True)
        else:
            yield Obstacle(found, f"sudo usermod -aG {group} {system.user}, then log out and in again", barred=True)
    if not system.devices and system.container:
        yield Obstacle("/dev/snd is missing in this container", "start the container with --device /dev/snd")
    elif not system.devices or not system.cards:
        yield Obstacle("this box has no sound card", "plug one in (USB); `cat /proc/asound/cards` lists them")


def _server(system: System) -> Iterator[Obstacle]:
    match system.server:
        case "cookie":
            yield Obstacle(
                "the sound server denies access: its cookie is another one",
                "copy ~/.config/pulse/cookie of the user who runs the server to the same place here, mode 600",
                barred=True,
            )
        case "denied":
            yield Obstacle(
                f"{system.user} may not use the sound server's socket",
                "run Parley as the user who runs the sound server, or set PULSE_SERVER to a socket open to both",
                barred=True,
            )
        case "refused":
            yield Obstacle(
                "the sound server's socket is there, but nobody answers",
                "systemctl --user restart pipewire-pulse (or pulseaudio)",
            )
        case "absent" if system.container:
            yield Obstacle(
                "there is no sound server's socket in this container",
                "start the container with -v $XDG_RUNTIME_DIR/pulse/native:/run/pulse/native"
                " -e PULSE_SERVER=unix:/run/pulse/native",
            )
        case "absent" if not system.runtime and not system.server_set:
            yield Obstacle(
                "XDG_RUNTIME_DIR is not set: the sound server cannot be found",
                f"export XDG_RUNTIME_DIR=/run/user/{system.uid} (in a unit: Environment=)",
            )
        case "absent":
            yield Obstacle(
                f"there is no sound server at {system.server_set or system.runtime + '/pulse/native'}",
                "systemctl --user start pipewire-pulse (or pulseaudio)",
            )


def _priority(system: System) -> Iterator[Obstacle]:
    if system.uid and not system.rtprio:
        fix = f"echo '@{GROUP} - rtprio 95' | sudo tee /etc/security/limits.d/parley.conf, then log out and in again"
        if system.container:
            fix = "start the container with --ulimit rtprio=95 --cap-add SYS_NICE"
        yield Obstacle("sound has no real-time priority: it may stutter on a busy box", fix, severe=False)


# --- the system as it is -----------------------------------------------------------------------------------------


def system() -> System:
    nodes = [path for path in Path("/dev/snd").glob("*") if path.is_char_device()]
    user = _user()
    return System(
        user=user,
        uid=os.getuid(),
        groups=frozenset(_group(number) for number in (os.getegid(), *os.getgroups())),
        assigned=_assigned(user),
        container=_contained(),
        devices=frozenset(_group(path.stat().st_gid) for path in nodes),
        usable=any(os.access(path, os.R_OK | os.W_OK) for path in nodes if path.name.startswith("pcm")),
        cards=_text("/proc/asound/cards").count(" ["),
        runtime=os.environ.get("XDG_RUNTIME_DIR", ""),
        server_set=os.environ.get("PULSE_SERVER", ""),
        server=_knock(),
        rtprio=_rtprio(),
        binding="pyaudio" in sys.modules or importlib.util.find_spec("pyaudio") is not None,
        portaudio=_loads("libportaudio.so.2"),
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name
        return str(os.getuid())


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def _assigned(user: str) -> frozenset[str]:
    return frozenset(group.gr_name for group in grp.getgrall() if user in group.gr_mem)


def _contained() -> bool:
    marks = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
    engines = ("docker", "kubepods", "lxc", "containerd")
    return any(Path(mark).exists() for mark in marks) or any(name in _text("/proc/1/cgroup") for name in engines)


def _knock() -> Server:
    """What comes of the sockets in turn; a server that answers may still want another cookie."""
    heard = [pulse.knock(path) for path in pulse.sockets()]
    if "answers" in heard:
        return "answers" if _admitted() else "cookie"
    for worst in ("denied", "refused"):
        if worst in heard:
            return worst
    return "absent"


def _admitted() -> bool:
    if shutil.which("pactl") is None:
        return True
    with suppress(OSError, subprocess.TimeoutExpired):
        answer = subprocess.run(
            ["pactl", "info"],
            capture_output=True,
            check=False,
            timeout=pulse.TIMEOUT,
            env={**os.environ, "LC_ALL": "C"},
        )
        return b"denied" not in answer.stderr
    return True


def _rtprio() -> int:
    """-1 where there is no limit, or no such thing."""
    return resource.getrlimit(resource.RLIMIT_RTPRIO)[1] if hasattr(resource, "RLIMIT_RTPRIO") else -1


def _loads(library: str) -> bool:
    with suppress(OSError):
        ctypes.CDLL(library)
        return True
    return False


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
