"""A voice that may be the box's own echo is believed when it lasts: until then nothing of it opens a turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from appliance.events import Event, Heard, Woken
from appliance.stream import Events, Stage
from appliance.voice.bargein import VOICE, Evidence, InterruptRules


class Belief:
    """Keeps the frames of a doubtful voice until it has lasted as long as their doubt asks for, and gives them as they
    are; or until it is over, and gives them as frames without a voice. Where nothing is in doubt, nothing is kept."""

    def __init__(self, rules: InterruptRules) -> None:
        self._evidence = Evidence(rules)
        self._kept: list[Heard] = []
        self._believed = False

    def step(self, heard: Heard) -> Iterator[Heard]:
        sure = self._evidence.push(heard.speech, len(heard.samples), heard.doubt)
        if self._evidence.none or not heard.live:
            self._believed = False
            yield from self._release(believed=False)
        elif self._believed or sure or (heard.doubt == 0.0 and not self._kept):
            self._believed = True
            yield from self._release(believed=True)
        elif self._kept or heard.speech >= VOICE:
            self._kept.append(heard)
            return
        yield heard

    def _release(self, *, believed: bool) -> Iterator[Heard]:
        kept, self._kept = self._kept, []
        yield from kept if believed else (replace(heard, speech=0.0) for heard in kept)

    def end(self, *, believed: bool) -> Iterator[Heard]:
        """Gives what is kept, whatever has been decided."""
        self._believed = self._believed or believed
        yield from self._release(believed=believed)


def believe(rules: InterruptRules) -> Stage:
    """Passes everything on; frames in doubt come later, or without their voice. A wake word is believed at once."""

    async def stage(events: Events) -> Events:
        belief = Belief(rules)
        found: Event
        async for event in events:
            if isinstance(event, Heard):
                for found in belief.step(event):
                    yield found
                continue
            if isinstance(event, Woken):
                for found in belief.end(believed=True):
                    yield found
            yield event
        for found in belief.end(believed=False):
            yield found

    return stage
