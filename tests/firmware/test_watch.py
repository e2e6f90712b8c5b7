from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware.frame import FRAME, RATE, Frame, Trouble
from firmware.watch import Lookout, Reading, Watch

TICK = FRAME / RATE


def looks(until: float, step: float = 0.1, **shown: object) -> Iterator[Reading]:
    """A card that sounds for 5 s; from then on it shows what is given."""
    now = 0.0
    while now < until:
        now += step
        usual = {"heard": round(now * RATE)}
        yield Reading(now, **(usual if now < 5 else {"heard": 5 * RATE, **shown}))  # type: ignore[arg-type]


def first(lookout: Lookout, readings: Iterator[Reading]) -> tuple[str, float] | None:
    for reading in readings:
        if trouble := lookout.step(reading):
            assert trouble.message
            assert trouble.fix
            return trouble.kind, reading.now
    return None


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("frozen", {}),
        ("unplugged", {"alive": False}),
        ("unplugged", {"place": "", "heard": 9 * RATE}),
        ("moved", {"place": "other", "heard": 9 * RATE}),
        ("server", {"server": False, "alive": False}),
        ("server", {"server": False}),
    ],
)
def test_a_card_is_in_trouble_within_two_seconds_and_by_name(kind: str, shown: dict[str, object]) -> None:
    lookout = Lookout(0.0)
    if "place" in shown:
        lookout.step(Reading(0.0, 0, place="mic"))
    noticed = first(lookout, looks(10.0, **shown))
    assert noticed is not None
    assert noticed[0] == kind
    assert 5.0 <= noticed[1] <= 7.0


def test_the_name_of_a_dead_stream_waits_for_its_cause() -> None:
    lookout = Lookout(0.0)
    assert lookout.step(Reading(0.1, 10, alive=False)) is None
    assert lookout.step(Reading(0.2, 10, alive=False, server=False)) == Trouble(
        "server", "the sound server is gone", "start it again; it is found when it is back"
    )


@pytest.mark.parametrize("place", [None, "", "mic"])
def test_a_place_that_was_never_known_or_never_changes_is_no_trouble(place: str | None) -> None:
    lookout = Lookout(0.0)
    assert all(lookout.step(Reading(n / 10, n * 100, place=place)) is None for n in range(1, 50))
    assert all(lookout.step(Reading(n / 10, n * 100, place=place or "mic")) is None for n in range(50, 99))


def test_a_first_sound_may_come_late() -> None:
    assert first(Lookout(0.0), iter([Reading(n / 10, 0) for n in range(1, 29)])) is None
    noticed = first(Lookout(0.0), iter([Reading(n / 10, 0) for n in range(1, 99)]))
    assert noticed is not None
    assert noticed[0] == "frozen"
    assert noticed[1] == pytest.approx(3.0, abs=0.11)


def test_a_loop_that_did_not_look_says_nothing_of_the_card() -> None:
    """The whole box stood still for a minute, and the loop woke before the card's thread."""
    lookout = Lookout(0.0)
    assert lookout.step(Reading(0.1, 100)) is None
    assert lookout.step(Reading(60.0, 100)) is None
    assert lookout.step(Reading(60.1, 200)) is None


# --- frames ------------------------------------------------------------------------------------------------------


def frame(number: int, value: int = 1, *, live: bool = True) -> Frame:
    return Frame(number * FRAME, np.full(FRAME, value, np.int16), live=live)


def test_exact_silence_is_noticed_and_one_bit_is_none() -> None:
    watch = Watch()
    seen = [watch.step(frame(n, 0 if n >= 100 else 1), n, n * TICK, (n + 1) * TICK) for n in range(300)]
    begin = next(n for n, trouble in enumerate(seen) if trouble)
    assert begin == 100 + 149
    assert {trouble.kind for trouble in seen[begin:] if trouble} == {"silence"}
    assert all(seen[begin:]), "it is said for as long as it lasts"
    assert watch.step(frame(300), 300, 3.0, 3.01) is None


def test_a_muted_microphone_is_no_trouble() -> None:
    watch = Watch()
    assert not any(watch.step(frame(n, 0, live=False), n, n * TICK, (n + 1) * TICK) for n in range(500))


def test_a_loudspeaker_that_takes_nothing_is_frozen() -> None:
    watch = Watch()
    seen = [watch.step(frame(n), min(n, 100), n * TICK, (n + 1) * TICK) for n in range(300)]
    begin = next(n for n, trouble in enumerate(seen) if trouble)
    assert seen[begin].kind == "frozen"  # type: ignore[union-attr]
    assert 240 <= begin <= 260


def test_frames_that_come_in_a_heap_say_nothing_of_the_loudspeaker() -> None:
    watch = Watch()
    assert not any(watch.step(frame(n), 1, 2.0, 2.0 + n * 1e-5) for n in range(1000))


def arrive(watch: Watch, times: np.ndarray[Any, Any], cost: float = 0.0) -> float | None:
    """Frames that come at `times`, read one after the other by a loop that needs `cost` seconds for each; when the rate
    is said to be wrong, or None."""
    now = 0.0
    for number, time in enumerate(times):
        before, now = now, max(now, time)
        trouble = watch.step(frame(number), number, before, now)
        if trouble is not None:
            assert trouble.kind == "rate"
            return now
        now += cost
    return None


def jitter(seed: int, count: int) -> np.ndarray[Any, Any]:
    """Of half a period."""
    return np.random.default_rng(seed).uniform(0, TICK / 2, count)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.3, 3.0).filter(lambda speed: abs(speed - 1) > 0.025), st.integers(0, 50), st.integers(0, 99))
def test_a_wrong_rate_is_noticed_within_two_seconds_of_the_first_sound(speed: float, burst: int, seed: int) -> None:
    """A heap of sound at the start, and jitter."""
    times = 0.1 + np.maximum(0, np.arange(900) - burst) * TICK / speed + jitter(seed, 900)
    noticed = arrive(Watch(), np.maximum.accumulate(times))
    assert noticed is not None
    assert noticed - 0.1 <= 2.0


@settings(max_examples=60, deadline=None)
@given(
    st.floats(0.985, 1.015),
    st.integers(0, 30),
    st.floats(0, 0.009),
    st.lists(st.tuples(st.integers(0, 2900), st.floats(0, 1.5)), max_size=8),
    st.lists(st.tuples(st.integers(0, 2900), st.floats(0, 0.5)), max_size=2),
    st.integers(0, 99),
)
def test_a_right_rate_is_right_whatever_the_box_does(
    speed: float,
    burst: int,
    cost: float,
    holdups: list[tuple[int, float]],
    losses: list[tuple[int, float]],
    seed: int,
) -> None:
    """Bursts at the start, frames held up and coming in a heap, sound lost for good, a loop that is nearly too slow."""
    times = np.maximum(0, np.arange(3000) - burst) * TICK / speed + jitter(seed, 3000)
    for at, seconds in losses:
        times[at:] += seconds
    for at, seconds in holdups:
        times[at:] = np.maximum(times[at:], times[at] + seconds)
    assert arrive(Watch(), np.maximum.accumulate(times), cost) is None


def test_sound_that_comes_and_goes_in_waves_is_no_wrong_rate() -> None:
    """A radio link that is late every other moment."""
    times = np.arange(3000) * TICK
    assert arrive(Watch(), np.maximum.accumulate(times + 0.1 * (times // 0.4 % 2))) is None


def test_a_loop_that_is_too_slow_says_nothing_of_the_rate() -> None:
    """It reads what lies ready: when that came is not known."""
    assert arrive(Watch(), np.arange(3000) * TICK, cost=0.015) is None
