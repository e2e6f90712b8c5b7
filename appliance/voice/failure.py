"""What each class of failure is called, and what the user is told: nobody should wonder why nothing happened."""

from __future__ import annotations

from appliance.errors import (
    DeadlineFault,
    DeviceFault,
    Fault,
    ModelFault,
    StorageFault,
)
from appliance.events import Failed

CUES: dict[type[Fault], tuple[str, str]] = {
    DeadlineFault: ("deadline", "Sorry, that took me too long. Please ask again."),
    ModelFault: ("model", "Sorry, a part of me is damaged. Please have me checked."),
    DeviceFault: ("device", "Sorry, I have trouble with the sound."),
    StorageFault: ("storage", "Sorry, my storage is full."),
    Fault: ("internal", "Sorry, something went wrong. Please ask again."),
}


def failed(at: int, turn: int, stage: str, error: Fault) -> Failed:
    """The event for an error: the closest class in CUES names its kind and its cue."""
    kind, cue = next(entry for family, entry in CUES.items() if isinstance(error, family))
    return Failed(at, turn, stage, kind, str(error), cue)
