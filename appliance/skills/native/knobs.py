"""The knobs that skills may turn: how each is read and set is given by who builds the box."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from appliance.errors import Fault
from appliance.skills.skill import Json, Memory


@dataclass(frozen=True, slots=True)
class Knob:
    """A number between `low` and `high`, both allowed; without them yes or no. A number that is `kept` is set
    again after a restart."""

    get: Callable[[], Json]
    set: Callable[[Json], None]
    low: float | None = None
    high: float | None = None
    kept: bool = True


def volume(get: Callable[[], float], set: Callable[[float], None]) -> Knob:
    """From 0 to 100, of a gain from 0 to 1. The ear hears ratios: half way is a quarter of the power, -12 dB."""
    return Knob(
        lambda: round(100 * get() ** 0.5),
        lambda value: set((float(value) / 100) ** 2),  # type: ignore[arg-type]  # checked to be a number
        0,
        100,
    )


class Knobs:
    """Controls by name. `memory` keeps what was set over a restart. Raises Fault, StorageFault."""

    def __init__(self, knobs: Mapping[str, Knob], memory: Memory | None = None) -> None:
        self._knobs, self._memory = knobs, memory
        for name, knob in knobs.items():
            kept = memory.read(f"knob.{name}") if memory and knob.kept else None
            value = _number(kept) if kept is not None else None
            if value is not None and knob.low is not None and knob.high is not None and knob.low <= value <= knob.high:
                knob.set(value)

    def get(self, name: str) -> Json:
        return self._knob(name).get()

    def set(self, name: str, value: Json) -> None:
        knob = self._knob(name)
        if knob.low is None or knob.high is None:
            if not isinstance(value, bool):
                raise Fault(f"{name} cannot be {value!r:.40}", "it is either true or false")
        elif isinstance(value, bool) or not isinstance(value, int | float) or not knob.low <= value <= knob.high:
            raise Fault(f"{name} cannot be {value!r:.40}", f"it lies between {knob.low:g} and {knob.high:g}")
        knob.set(value)
        if self._memory and knob.kept:
            self._memory.write(f"knob.{name}", str(value))

    def _knob(self, name: str) -> Knob:
        if name not in self._knobs:
            raise Fault(f"there is no knob {name!r:.40}", f"known are: {', '.join(self._knobs)}")
        return self._knobs[name]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
