"""C71: why sound cannot work, and the exact fix."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from firmware import preflight
from firmware.preflight import System, obstacles

WELL = System(
    "ann",
    1000,
    groups=frozenset({"ann", "audio"}),
    devices=frozenset({"audio"}),
    usable=True,
    cards=1,
    runtime="/run/user/1000",
    server="answers",
    rtprio=95,
)
NO_GROUP = replace(WELL, groups=frozenset({"ann"}), usable=False, server="absent")
NO_CARD = replace(WELL, devices=frozenset(), usable=False, cards=0, server="absent")


def test_nothing_stands_in_the_way() -> None:
    assert obstacles(WELL) == []
    assert obstacles(replace(WELL, server="absent")) == [], "a card needs no server"
    assert obstacles(replace(NO_CARD, server="answers")) == [], "a server needs no card of ours"
    assert obstacles(replace(WELL, user="root", uid=0, groups=frozenset(), rtprio=0)) == []
    root = replace(NO_CARD, user="root", uid=0, groups=frozenset())
    assert not any("group" in obstacle.found for obstacle in obstacles(root)), "no group keeps root away"


@pytest.mark.parametrize(
    ("system", "found", "fix"),
    [
        (NO_GROUP, "ann is not in the group audio", "sudo usermod -aG audio ann"),
        (replace(NO_GROUP, assigned=frozenset({"audio"})), "until the next login", "log out and in again"),
        (replace(NO_GROUP, container=True), "ann is not in the group audio", "--group-add audio"),
        (replace(NO_GROUP, devices=frozenset({"29"})), "ann is not in the group 29", "sudo usermod -aG 29 ann"),
        (replace(NO_CARD, container=True), "/dev/snd is missing in this container", "--device /dev/snd"),
        (NO_CARD, "no sound card", "plug one in"),
        (replace(NO_CARD, runtime=""), "XDG_RUNTIME_DIR is not set", "export XDG_RUNTIME_DIR=/run/user/1000"),
        (NO_CARD, "no sound server at /run/user/1000/pulse/native", "systemctl --user start"),
        (replace(NO_CARD, container=True), "no sound server's socket in this container", "PULSE_SERVER=unix:"),
        (replace(NO_CARD, server="refused"), "nobody answers", "systemctl --user restart"),
        (replace(NO_CARD, server="cookie"), "its cookie is another one", "~/.config/pulse/cookie"),
        (replace(NO_CARD, server="denied"), "ann may not use the sound server's socket", "PULSE_SERVER"),
        (replace(WELL, binding=False), "Python binding is missing", "pip install parley[audio]"),
        (replace(WELL, portaudio=False), "PortAudio is missing", "apt-get install libportaudio2"),
    ],
)
def test_the_fix_is_named(system: System, found: str, fix: str) -> None:
    hits = [obstacle for obstacle in obstacles(system) if found in obstacle.found]
    assert len(hits) == 1
    assert hits[0].severe
    assert fix in hits[0].fix


@pytest.mark.parametrize(
    ("system", "fix"),
    [
        (replace(WELL, rtprio=0), "@audio - rtprio 95"),
        (replace(WELL, rtprio=0, container=True), "--ulimit rtprio=95"),
        (replace(WELL, server="cookie"), "~/.config/pulse/cookie"),
    ],
)
def test_what_leaves_some_sound_is_not_severe(system: System, fix: str) -> None:
    (obstacle,) = obstacles(system)
    assert not obstacle.severe
    assert fix in obstacle.fix


def test_a_user_without_the_group_is_told_so_on_a_box_without_a_card() -> None:
    """A service user in a container: both are missing, and both are said."""
    nobody = System("nobody", 65534, container=True)
    found = [obstacle.found for obstacle in obstacles(nobody) if obstacle.severe]
    assert found[0] == "nobody is not in the group audio"
    assert "/dev/snd is missing in this container" in found


@pytest.mark.parametrize("state", ["absent", "refused", "answers"])
def test_the_system_is_read(state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULSE_SERVER", raising=False)
    monkeypatch.delenv("PULSE_RUNTIME_PATH", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(preflight, "_admitted", lambda: True)
    (tmp_path / "pulse").mkdir()
    with socket.socket(socket.AF_UNIX) as door:
        if state != "absent":
            door.bind(str(tmp_path / "pulse/native"))
        if state == "answers":
            door.listen()
        system = preflight.system()
    assert system.server == state
    assert system.uid == os.getuid()
    assert system.user
    assert system.runtime == str(tmp_path)
    assert system.groups


def test_a_server_that_wants_another_cookie_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What pactl says of it."""
    said = tmp_path / "pactl"
    said.write_text("#!/bin/sh\necho 'Connection failure: Access denied' >&2\nexit 1\n")
    said.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("PULSE_SERVER", f"unix:{tmp_path}/native")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "native"))
        door.listen()
        assert preflight.system().server == "cookie"
