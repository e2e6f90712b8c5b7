"""The arithmetic of forgetting: bounds, directions, and clocks that lie."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.store.decay import (
    DAY,
    HALF_LIVES,
    LASTING,
    WEIGHT,
    YEAR,
    Curve,
    activation,
    elapsed,
    fading,
    half_life,
    score,
    worth,
)

AGES = st.floats(0, 50 * YEAR)
TIMES = st.lists(AGES, min_size=1, max_size=8)


@pytest.mark.parametrize("power", [0.2, 0.5, 1.0])
def test_at_its_half_life_half_is_left(power):
    assert fading(0.0, DAY, power) == 1.0
    assert fading(DAY, DAY, power) == pytest.approx(0.5)


def test_it_is_a_power_law_whose_tail_is_long():
    year, two = fading(YEAR, 3 * DAY), fading(2 * YEAR, 3 * DAY)
    assert two / year == pytest.approx(0.5**0.5, rel=0.01)
    assert year > 0.05


@given(AGES, AGES)
def test_what_is_older_is_never_more_present(one, other):
    young, old = sorted((one, other))
    assert fading(old, DAY) <= fading(young, DAY)


@given(TIMES, st.floats(0, YEAR), st.integers(0, 100))
def test_each_use_makes_it_more_present_and_never_beyond_one(times, more, used):
    now = max(times)
    before = activation(times, max(used, len(times)), now, DAY)
    after = activation([*times, now], max(used, len(times)) + 1, now, DAY)
    assert 0.0 <= before <= after <= 1.0
    assert activation(times, max(used, len(times)), now + more, DAY) <= before + 1e-12


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_age_takes_no_more_than_the_floor_leaves(relevance, active, importance, floor):
    value = score(relevance, active, importance, Curve(floor))
    assert relevance * floor <= value + 1e-12
    assert value <= relevance * (1 + WEIGHT) + 1e-12
    assert score(relevance, active, importance, Curve(decay=False)) >= value - 1e-12


def test_what_is_lasting_does_not_fade_with_the_rest():
    assert half_life("fact", LASTING) >= 3 * HALF_LIVES["fact"]
    assert fading(30 * DAY, half_life("fact", 0.9)) > fading(30 * DAY, half_life("fact", 0.4))
    assert fading(30 * DAY, half_life("fact", 0.4)) < 0.2


@given(TIMES, st.floats(0, 1))
def test_what_was_used_more_is_worth_more(times, importance):
    now = max(times)
    assert worth([*times, now], len(times) + 1, now, importance) > worth(times, len(times), now, importance)
    assert worth(times, len(times), now, 1.0) >= worth(times, len(times), now, importance)


@given(st.floats(-60 * YEAR, 60 * YEAR), st.none() | st.floats(0, YEAR))
def test_no_clock_makes_memories_much_older_than_it_is_believed(wall, steady):
    lived = elapsed(wall, steady)
    assert 0.0 <= lived <= YEAR
    if 0 <= wall <= YEAR:
        assert lived == wall


@pytest.mark.parametrize("years", [-56, -50, 50])
def test_a_clock_that_jumps_by_decades_ages_nothing(years):
    assert elapsed(years * YEAR, 10.0) == 10.0
    assert elapsed(years * YEAR, None) == 0.0
