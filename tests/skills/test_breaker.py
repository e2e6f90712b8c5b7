"""A skill that keeps failing is left alone, longer each time, and comes back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from appliance.skills.breaker import FIRST, LONGEST, Breaker


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_bench_lasts_longer_each_time_and_ends_with_success() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    assert [breaker.failed() for _ in range(3)] == [False, False, True]
    assert breaker.benched == 60
    clock.now += 61
    assert breaker.benched == 0
    assert breaker.failed(), "a trial that fails benches at once"
    assert breaker.benched == 120
    clock.now += 121
    breaker.worked()
    assert [breaker.failed() for _ in range(3)] == [False, False, True]


def test_rare_failures_do_not_bench() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(10):
        assert not breaker.failed()
        clock.now += 61


def test_what_works_between_failures_does_not_hide_them() -> None:
    breaker = Breaker(Clock())
    for _ in range(2):
        assert not breaker.failed()
        breaker.worked()
    assert breaker.failed()


@given(st.lists(st.tuples(st.integers(0, 5_000), st.booleans()), max_size=60))
def test_the_bench_is_never_longer_than_an_hour_and_never_before_a_failure(steps: list[tuple[int, bool]]) -> None:
    clock = Clock()
    breaker = Breaker(clock)
    failures = 0
    for seconds, works in steps:
        clock.now += seconds
        if breaker.benched:
            continue
        if works:
            breaker.worked()
            assert not breaker.benched
        else:
            failures += 1
            assert breaker.failed() == bool(breaker.benched)
            assert not breaker.benched or failures >= 3
            assert breaker.benched in (0, *(min(FIRST * 2**n, LONGEST) for n in range(8)))
