"""Skills that are about the box itself, in Python; everything else runs in the sandbox."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from appliance.skills.manifest import Manifest
from appliance.skills.native.alarms import Reminding
from appliance.skills.native.base import Native
from appliance.skills.native.box import AboutBox, Box
from appliance.skills.native.clock import Clock
from appliance.skills.native.memory import Mind, Remembering
from appliance.skills.skill import Services

Factory = Callable[[Manifest, Services], Native]


def natives(box: Box, mind: Mind | None = None) -> Mapping[str, Factory]:
    """By the name that a manifest gives as `native`; `box` and `mind` are what they speak of."""
    return {
        **NATIVE,
        "box": lambda manifest, services: AboutBox(manifest, services, box),
        "memory": lambda manifest, services: Remembering(manifest, services, mind),
    }


NATIVE: Mapping[str, Factory] = {"clock": Clock, "alarms": Reminding, "box": AboutBox, "memory": Remembering}
"""For a box without a voice loop."""
