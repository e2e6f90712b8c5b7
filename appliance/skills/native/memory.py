"""What the box remembers, by voice: to forget it, to keep nothing, and whose memory it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from appliance.errors import StorageFault
from appliance.skills.manifest import Manifest
from appliance.skills.native.base import Answer, Native, text
from appliance.skills.skill import Call, Deed, Reply, Services

LONGEST = 40
"""Characters of a profile's name."""
FAILED = "I couldn't delete it: my disk is failing. Please try again later."


class Mind(Protocol):
    """The box's memory; any thread may ask. What deletes raises StorageFault where it could not."""

    private: bool
    person: str

    def forget_last(self) -> Sequence[str]:
        """Deletes what was told last; its words."""
        ...

    def forget_about(self, text: str) -> int:
        """Deletes everything about it; how much."""
        ...

    def forget_everything(self) -> int: ...

    def tasks(self) -> str:
        """What the user has to do, as a sentence; "" for nothing."""
        ...


class Blank:
    """A box that remembers nothing."""

    private = True
    person = ""

    def forget_last(self) -> Sequence[str]:
        return ()

    def forget_about(self, text: str) -> int:
        return 0

    def forget_everything(self) -> int:
        return 0

    def tasks(self) -> str:
        return ""


class Remembering(Native):
    def __init__(self, manifest: Manifest, services: Services, mind: Mind | None = None) -> None:
        super().__init__(manifest, services)
        self.mind: Mind = mind or Blank()

    @property
    def answers(self) -> Mapping[str, Answer]:
        return {
            "ForgetLast": self._last,
            "ForgetAbout": self._about,
            "ForgetAll": self._all,
            "Private": lambda call: self._keep_nothing(on=True),
            "NotPrivate": lambda call: self._keep_nothing(on=False),
            "IsPrivate": self._is_private,
            "Profile": lambda call: self._turn_to(text(call, "name")),
            "NoProfile": lambda call: self._turn_to(""),
            "WhoseProfile": self._whose,
            "Tasks": self._tasks,
        }

    def _last(self, call: Call) -> Reply:
        try:
            gone = self.mind.forget_last()
        except StorageFault as fault:
            return _failed(fault)
        if not gone:
            return Reply("There is nothing that I could forget.")
        return Reply("I have forgotten it.", deeds=(Deed("memory.forget", True, f"{len(gone)}"),))

    def _about(self, call: Call) -> Reply:
        try:
            gone = self.mind.forget_about(text(call, "text"))
        except StorageFault as fault:
            return _failed(fault)
        if not gone:
            return Reply("I don't remember anything about that.")
        return Reply("I have forgotten it.", deeds=(Deed("memory.forget", True, f"{gone}"),))

    def _all(self, call: Call) -> Reply:
        try:
            gone = self.mind.forget_everything()
        except StorageFault as fault:
            return _failed(fault)
        return Reply("I have forgotten everything.", deeds=(Deed("memory.forget", True, f"{gone}"),))

    def _keep_nothing(self, *, on: bool) -> Reply:
        self.mind.private = on
        if self.mind.private != on:
            return Reply("I am set up to keep nothing at all.", failed=True)
        say = "Private mode is on. I keep nothing of what you say." if on else "Private mode is off."
        return Reply(say, deeds=(Deed("memory.private", True, str(on).lower()),))

    def _is_private(self, call: Call) -> Reply:
        return Reply("Private mode is on." if self.mind.private else "No. I remember what you tell me.")

    def _turn_to(self, name: str) -> Reply:
        if len(name) > LONGEST:
            return Reply("That is too long for a name.", failed=True)
        self.mind.person = name
        say = f"This is {name.title()}'s profile now." if name else "This is everybody's profile now."
        return Reply(say, deeds=(Deed("memory.profile", True),))

    def _tasks(self, call: Call) -> Reply:
        return Reply(self.mind.tasks() or "You haven't told me of anything to do.")

    def _whose(self, call: Call) -> Reply:
        person = self.mind.person
        return Reply(f"This is {person.title()}'s profile." if person else "This is everybody's profile.")


def _failed(fault: StorageFault) -> Reply:
    return Reply(FAILED, failed=True, deeds=(Deed("memory.forget", False, fault.message),))
