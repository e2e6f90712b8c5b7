"""The arithmetic of forgetting: pure, with the clock passed in.

What fades is how readily a unit comes to mind, never whether it exists: age lowers its place among what is equally
relevant, and no further than to a floor. A power law, since retention follows one better than an exponential (Wixted
and Carpenter 2007), as ACT-R's base level does over all uses of a memory; floor and exponent were measured on 1,535
questions (FINDINGS M) and on ours (LOG).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from appliance.store.units import Kind

DAY = 86_400.0
YEAR = 366 * DAY

HALF_LIVES: dict[Kind, float] = {
    "fact": 3 * DAY,
    "preference": 7 * DAY,
    "task": 5 * DAY,
    "decision": 7 * DAY,
    "emotion": 3 * DAY,
    "entity": 1 * DAY,
    "summary": 7 * DAY,
}
"""After which activation by a single use is one half, at no importance."""

TIMES_TO_LIVE: dict[Kind, float] = {"entity": 30 * DAY, "emotion": 90 * DAY, "task": 180 * DAY}
"""After which a unit of little importance that nobody used is archived: found by its words only."""

LASTING = 0.75
"""Importance from which a unit keeps its place: an order's number, a complaint, an allergy, a name."""

SLOWER = 3.0
"""By which what is lasting fades more slowly in ranking. With ten and a hundred, numbers and names stood before what
was asked for, and questions about old things lost two points more. What is lasting is answered by its slot however old
it is, never archived, and the last to be pruned."""

REMEMBERED = 8
"""Uses whose times are kept."""

PRUNING_HALF_LIFE = 365 * DAY
"""Under a byte budget age says nothing by itself (FINDINGS M: age alone keeps no more than chance does); how often
something was used, and what it is, do. So the same law runs slowly there."""

WEIGHT = 0.05
"""Of importance, beside relevance."""


@dataclass(frozen=True, slots=True)
class Curve:
    """`floor` in [0, 1] is what is left of relevance at any age; `power` the exponent. `decay` False: nothing fades."""

    floor: float = 0.7
    power: float = 0.5
    decay: bool = True


def half_life(kind: Kind, importance: float) -> float:
    """Seconds."""
    return HALF_LIVES[kind] * (SLOWER if importance >= LASTING else 1.0)


def fading(age: float, half: float, power: float = 0.5) -> float:
    """(0, 1]: what is left of one use, `age` seconds ago. One from the future (a clock was set) counts as now."""
    scale = half / (2 ** (1 / power) - 1)
    return float((1.0 + max(0.0, age) / scale) ** -power)


def activation(times: Sequence[float], used: int, now: float, half: float, power: float = 0.5) -> float:
    """(0, 1]: how present something is that was said or used at `times` (seconds, the latest of `used` in all).

    Each use leaves its trace; together they are like chances of which one suffices. Those whose times are not kept
    count like the oldest that is."""
    if not times:
        return 0.0
    lost = 1.0
    for time in times:
        lost *= 1.0 - fading(now - time, half, power)
    if used > len(times):
        lost *= (1.0 - fading(now - min(times), half, power)) ** (used - len(times))
    return 1.0 - lost


def score(relevance: float, active: float, importance: float, curve: Curve) -> float:
    """By which what was found is ranked. `relevance` [0, 1]."""
    fresh = active if curve.decay else 1.0
    return relevance * (curve.floor + (1.0 - curve.floor) * fresh) + WEIGHT * importance * relevance


def worth(times: Sequence[float], used: int, now: float, importance: float) -> float:
    """By which what is kept is chosen where not everything can be: reinforcement times importance."""
    traces = sum(fading(now - time, PRUNING_HALF_LIFE) for time in times)
    more = max(0, used - len(times)) * (fading(now - min(times), PRUNING_HALF_LIFE) if times else 0.0)
    return (traces + more) * (0.1 + importance)


def elapsed(wall: float, steady: float | None) -> float:
    """Seconds that the box has lived between two looks at its clocks, which moved by `wall` and `steady` (None: not
    comparable, the machine was off in between).

    The wall clock is believed where it can be true. A box without a battery wakes up in 1970, a wrong server sets it to
    2076: neither makes memories old."""
    if 0.0 <= wall <= YEAR:
        return wall
    return max(0.0, steady or 0.0)
