"""What else is playing gives way while the box attends to somebody."""

from __future__ import annotations

from contextlib import ExitStack

from appliance.events import Attending
from appliance.stream import Events, Stage
from firmware.mixer import Mixer


def duck(mixer: Mixer) -> Stage:
    """Passes everything on; players that give way are quiet from Attending(on) to Attending(off), or to the end."""

    async def stage(events: Events) -> Events:
        with ExitStack() as quiet:
            async for event in events:
                if isinstance(event, Attending):
                    quiet.close()
                    if event.on:
                        quiet.enter_context(mixer.duck())
                yield event

    return stage
