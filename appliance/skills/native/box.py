"""The box itself: how loud and how fast it speaks, the microphone, what it said, what can be said to it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

from appliance.errors import Fault
from appliance.skills.intents.words import words
from appliance.skills.manifest import Manifest
from appliance.skills.native.base import Answer, Native, number, text
from appliance.skills.native.spoken import listed
from appliance.skills.skill import Call, Deed, Reply, Services

STEP = 15.0
"""Points of volume: clearly heard, and six of them from the quietest to the loudest."""
QUIETEST = 10.0
"""The volume below which "quieter" does not go: a box that cannot be heard cannot say how to be heard again."""
PACE = 1.15
"""Factor of "faster" and "slower"."""
SLOWEST, FASTEST = 0.5, 2.0

SHOWN = 3
"""Sentences that help names at once."""


class Box(Protocol):
    """What the box knows of itself; any thread may ask."""

    def last_said(self) -> str:
        """The last answer, as far as it was heard; "" before the first."""
        ...

    def examples(self) -> Mapping[str, Sequence[str]]:
        """Sentences that can be said, by the titles of skills."""
        ...

    def stop(self) -> bool:
        """Ends what rings or plays; whether there was anything."""
        ...


class Unknown:
    """A box without a voice loop."""

    def last_said(self) -> str:
        return ""

    def examples(self) -> Mapping[str, Sequence[str]]:
        return {}

    def stop(self) -> bool:
        return False


class AboutBox(Native):
    def __init__(self, manifest: Manifest, services: Services, box: Box | None = None) -> None:
        super().__init__(manifest, services)
        self.box: Box = box or Unknown()

    @property
    def answers(self) -> Mapping[str, Answer]:
        return {
            "Louder": self._louder,
            "Quieter": self._quieter,
            "SetVolume": self._set_volume,
            "Volume": self._volume,
            "Mute": self._mute,
            "Unmute": self._unmute,
            "Slower": self._slower,
            "Faster": self._faster,
            "NormalSpeed": self._normal_speed,
            "Stop": self._stop,
            "Repeat": self._repeat,
            "Help": self._help,
            "HelpWith": self._help_with,
            "WhoAreYou": self._who,
            "Offline": self._offline,
            "Version": self._version,
        }

    # --- how loud, how fast ------------------------------------------------------------------------------------------

    def _louder(self, call: Call) -> Reply:
        return self._turn(STEP * (2 if call.arguments.get("much") else 1))

    def _quieter(self, call: Call) -> Reply:
        return self._turn(-STEP * (2 if call.arguments.get("much") else 1))

    def _turn(self, points: float) -> Reply:
        before = self._knob("volume")
        least = min(before, QUIETEST)
        after = min(100.0, max(least, before + points))
        if after == before:
            return Reply("That's as loud as I get." if points > 0 else "I can't speak any more quietly.")
        return self._change("volume", after, f"Volume {after:.0f}.")

    def _set_volume(self, call: Call) -> Reply:
        level = number(call, "level")
        if level is None:
            return Reply("The volume goes from 0 to 100.", failed=True)
        level = level * 10 if call.arguments.get("tenths") else level
        if not 0 <= level <= 100:
            return Reply("The volume goes from 0 to 100.", failed=True)
        return self._change("volume", level, f"Volume {level:.0f}.")

    def _volume(self, call: Call) -> Reply:
        return Reply(f"The volume is {self._knob('volume'):.0f} of 100.", data=self._knob("volume"))

    def _slower(self, call: Call) -> Reply:
        return self._pace(1 / PACE, "I'm speaking more slowly.", "I can't speak any more slowly.")

    def _faster(self, call: Call) -> Reply:
        return self._pace(PACE, "I'm speaking faster.", "That's as fast as I can speak.")

    def _normal_speed(self, call: Call) -> Reply:
        return self._change("rate", 1.0, "I'm speaking at normal speed.")

    def _pace(self, factor: float, say: str, enough: str) -> Reply:
        before = self._knob("rate")
        after = min(FASTEST, max(SLOWEST, round(before * factor, 2)))
        return Reply(enough) if after == before else self._change("rate", after, say)

    # --- the microphone ----------------------------------------------------------------------------------------------

    def _mute(self, call: Call) -> Reply:
        say = "The microphone is off. I can't hear you: press mute, or type parley mute off, to turn it on again."
        return self._change("mute", True, say)

    def _unmute(self, call: Call) -> Reply:
        return self._change("mute", False, "The microphone is on.")

    def _change(self, name: str, value: float | bool, say: str) -> Reply:
        try:
            self.services.controls.set(name, value)
        except Fault as fault:
            say = f"Sorry, I couldn't change the {_NAMES[name]}."
            return Reply(say, failed=True, deeds=(Deed("control.set", False, f"{name}: {fault.message}"),))
        return Reply(say, deeds=(Deed("control.set", True, f"{name} {value}"),), data=value)

    def _knob(self, name: str) -> float:
        value = self.services.controls.get(name)
        return float(value) if isinstance(value, int | float) else 0.0

    # --- what was said, and what can be ------------------------------------------------------------------------------

    def _stop(self, call: Call) -> Reply:
        stopped = self.box.stop()
        return Reply("Okay.", deeds=(Deed("box.stop", True),) if stopped else ())

    def _repeat(self, call: Call) -> Reply:
        said = self.box.last_said().strip()
        return Reply(said or "I haven't said anything yet.")

    def _help(self, call: Call) -> Reply:
        """One sentence of each of the first skills, and the names of the rest."""
        examples = {title: list(found) for title, found in self.box.examples().items() if found}
        if not examples:
            return Reply("You can ask me questions.")
        titles = list(examples)
        shown = [f'"{examples[title][0]}"' for title in titles[:SHOWN]]
        rest = [title.lower() for title in titles[SHOWN:]]
        more = f" I also know about {listed(rest)}." if rest else ""
        say = f"You can say {listed(shown, 'or')}.{more} For more, say help with {titles[0].lower()}."
        return Reply(say, suggestions=tuple(examples[title][0] for title in titles))

    def _help_with(self, call: Call) -> Reply:
        wanted = text(call, "topic")
        examples = self.box.examples()
        title = _nearest(wanted, examples)
        if not title:
            titles = listed([known.lower() for known in examples])
            return Reply(f"I know nothing of {wanted}." + (f" There is {titles}." if titles else ""), failed=True)
        found = list(examples[title])
        shown = [f'"{sentence}"' for sentence in found[:SHOWN]]
        return Reply(f"With {title.lower()} you can say {listed(shown, 'or')}.", suggestions=tuple(found))

    def _who(self, call: Call) -> Reply:
        return Reply("I'm Parley, a voice assistant. I live in this box, and need no network.")

    def _offline(self, call: Call) -> Reply:
        return Reply("Yes. What you say is understood in this box and stays in it.")

    def _version(self, call: Call) -> Reply:
        try:
            return Reply(f"This is Parley, version {version('parley')}.", data=version("parley"))
        except PackageNotFoundError:
            return Reply("I don't know my version.", failed=True)


_NAMES = {"volume": "volume", "mute": "microphone", "rate": "speed"}


def _nearest(wanted: str, examples: Mapping[str, Sequence[str]]) -> str:
    """The title that is meant, or one whose sentences hold the words; "" where there is none."""
    titles = {title.lower(): title for title in examples}
    if close := difflib.get_close_matches(wanted.lower(), titles, n=1, cutoff=0.7):
        return titles[close[0]]
    telling = {_stem(word) for word in words(wanted)} - {"the", "my"}
    for title, found in examples.items():
        if telling and telling <= {_stem(word) for sentence in (title, *found) for word in words(sentence)}:
            return title
    return ""


def _stem(word: str) -> str:
    """ "reminders" and "remind" are about the same."""
    return word.removesuffix("s").removesuffix("er").removesuffix("ing")
