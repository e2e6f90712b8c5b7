from __future__ import annotations

from typing import Any

import pytest

from firmware.cards import Node
from firmware.pulse import Streams, sockets, streams


def listed() -> dict[str, Any]:
    ours = {"application.process.id": "42"}
    return {
        "sources": [
            {"index": 2, "name": "mic", "description": "A microphone", "properties": {"device.bus": "usb"}},
            {"index": 7, "name": "other", "description": "Another", "properties": {}},
        ],
        "sinks": [{"index": 0, "name": "spk", "description": None, "properties": {}}],
        "source_outputs": [
            {"index": 3, "source": 7, "properties": ours},
            {"index": 10, "source": 2, "properties": ours},
            {"index": 11, "source": 7, "properties": {"application.process.id": "43"}},
            {"index": 12, "source": 7, "properties": {}},
        ],
        "sink_inputs": [],
    }


def test_the_newest_stream_of_ours_counts() -> None:
    assert streams(listed(), 42) == Streams(Node("mic", "A microphone", {"device.bus": "usb"}), None)
    assert streams(listed(), 1) == Streams(None, None)


def test_a_stream_that_is_attached_to_nothing() -> None:
    """PipeWire shows it with an index that no source has."""
    said = listed()
    said["source_outputs"][1]["source"] = 0xFFFFFFFF
    said["sink_inputs"] = [{"index": 1, "sink": 0, "properties": {"application.process.id": "42"}}]
    assert streams(said, 42) == Streams(None, Node("spk"))


@pytest.mark.parametrize(
    ("environment", "first"),
    [
        ({"PULSE_SERVER": "unix:/a/native"}, "/a/native"),
        ({"PULSE_SERVER": "{machine}unix:/a/native tcp:b"}, "/a/native"),
        ({"PULSE_SERVER": "/a/native"}, "/a/native"),
        ({"PULSE_SERVER": "tcp:host"}, None),
        ({"XDG_RUNTIME_DIR": "/run/user/5"}, "/run/user/5/pulse/native"),
        ({"PULSE_RUNTIME_PATH": "/p", "XDG_RUNTIME_DIR": "/run/user/5"}, "/p/native"),
    ],
)
def test_where_the_server_is_looked_for(
    environment: dict[str, str], first: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PULSE_SERVER", "PULSE_RUNTIME_PATH", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert next(iter(sockets()), None) == first
