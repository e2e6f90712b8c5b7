"""What is known of sound cards by their names, and by what a sound server says of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["hdmi", "bluetooth", "usb", "other"]

LEAD_IN: dict[Kind, float] = {"hdmi": 1.5, "bluetooth": 0.8, "usb": 0.3, "other": 0.0}
"""Seconds of silence that wake a sink which has gone to sleep: it swallows as much of what comes first."""

_KINDS: tuple[tuple[Kind, str], ...] = (
    ("hdmi", r"hdmi|displayport"),
    ("bluetooth", r"bluez|bluetooth|bluealsa|a2dp"),
    ("usb", r"\busb\b|usb audio|usb-audio"),
)
_CANCELLER = r"echo.?cancel"
"""module-echo-cancel of PulseAudio and PipeWire, under the names that they give it."""
_SPEAKERPHONES = r"jabra|powerconf|\bpoly\b|polycom|\bemeet\b|xvf-?3[0-9]{3}|xmos|vocalfusion|respeaker.*uac"
"""Conference speakerphones: they cancel what they play themselves."""


@dataclass(frozen=True, slots=True)
class Node:
    """A source or a sink: its name, what it is called for people, and its properties."""

    name: str
    description: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)

    def words(self) -> Iterator[str]:
        yield from (self.name, self.description, *self.properties.values())

    def says(self, pattern: str) -> str:
        """The first match in what it is called, or ""."""
        found = (re.search(pattern, word, re.IGNORECASE) for word in self.words())
        return next((match.group() for match in found if match), "")


def kind(sink: Node) -> Kind:
    return next((kind for kind, pattern in _KINDS if sink.says(pattern)), "other")


def cancels_echo(source: Node, sink: Node) -> str:
    """Why the echo of `sink` does not reach us through `source`; "" where it does. A speakerphone takes away only what
    it plays itself."""
    if source.says(_CANCELLER):
        return f"{source.name} is an echo canceller of the sound server"
    heard, played = source.says(_SPEAKERPHONES), sink.says(_SPEAKERPHONES)
    if heard and heard.lower() == played.lower():
        return f"{source.description or source.name} cancels its own echo"
    return ""


def one_canceller(wanted: str, reason: str) -> tuple[str, str]:
    """The setting audio.echo and why the card cancels echo itself ("" where it does not) -> the back-end to use, and a
    warning where both were asked for: two cancellers undo one another."""
    if not reason:
        return ("webrtc" if wanted == "auto" else wanted), ""
    if wanted in ("auto", "off"):
        return "off", ""
    return "off", f"audio.echo = {wanted!r} is left out, since {reason}"
