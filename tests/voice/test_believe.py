"""A doubtful voice opens no turn until it has lasted."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from appliance.events import Event, Heard, Muted, Woken
from appliance.stream import Events, line
from appliance.voice.bargein import InterruptRules
from appliance.voice.believe import Belief, believe
from firmware.frame import FRAME

RULES = InterruptRules(speech_ms=120, doubt_ms=500)
SILENCE = np.zeros(FRAME, np.int16)


def frames(*spans: tuple[int, float, float]) -> list[Heard]:
    """(number, speech, doubt) each."""
    wanted = [(speech, doubt) for count, speech, doubt in spans for _ in range(count)]
    return [Heard(number * FRAME, 0, SILENCE, speech, True, doubt) for number, (speech, doubt) in enumerate(wanted)]


def through(given: list[Heard]) -> list[Heard]:
    belief = Belief(RULES)
    found = [heard for frame in given for heard in belief.step(frame)]
    return [*found, *belief.end(believed=False)]


def voiced(found: list[Heard]) -> list[int]:
    return [heard.at // FRAME for heard in found if heard.speech > 0]


def test_what_is_not_in_doubt_is_not_touched() -> None:
    given = frames((5, 0.0, 0.0), (3, 0.9, 0.0), (5, 0.1, 0.0), (50, 0.9, 0.0))
    belief = Belief(RULES)
    assert [list(belief.step(frame)) for frame in given] == [[frame] for frame in given]


def test_a_short_voice_in_doubt_is_none() -> None:
    """C10: the first second of the first reply leaks through a canceller that knows nothing yet."""
    found = through(frames((10, 0.0, 1.0), (50, 0.9, 1.0), (100, 0.0, 0.0)))
    assert voiced(found) == []
    assert [heard.at for heard in found] == [number * FRAME for number in range(160)]


def test_a_voice_that_lasts_is_heard_from_its_beginning() -> None:
    """C10: who really speaks over it is not lost, nor his first syllable."""
    given = frames((10, 0.0, 1.0), (80, 0.9, 1.0), (30, 0.0, 0.0))
    assert through(given) == given


def test_less_doubt_asks_for_less() -> None:
    short = frames((20, 0.9, 0.0), (60, 0.0, 0.0)), frames((1, 0.0, 0.2), (25, 0.9, 0.2), (60, 0.0, 0.2))
    assert [len(voiced(through(given))) for given in short] == [20, 25]
    assert voiced(through(frames((1, 0.0, 1.0), (25, 0.9, 1.0), (60, 0.0, 1.0)))) == []


def test_a_voice_that_was_believed_is_not_doubted_when_the_box_begins_to_speak() -> None:
    given = frames((30, 0.9, 0.0), (100, 0.9, 1.0))
    belief = Belief(RULES)
    assert [list(belief.step(frame)) for frame in given] == [[frame] for frame in given]


def test_without_a_microphone_nothing_is_kept() -> None:
    given = frames((10, 0.9, 1.0), (1, 0.0, 0.0))
    given[-1] = replace(given[-1], live=False)
    belief = Belief(RULES)
    found = [heard for frame in given for heard in belief.step(frame)]
    assert len(found) == 11
    assert voiced(found) == []


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.4, 0.6, 1.0]), st.sampled_from([0.0, 0.3, 1.0]), st.booleans())))
def test_every_frame_is_passed_once_in_order_and_soon(steps: list[tuple[float, float, bool]]) -> None:
    given = [
        Heard(number * FRAME, 0, SILENCE, speech if live else 0.0, live, doubt)
        for number, (speech, doubt, live) in enumerate(steps)
    ]
    belief, found = Belief(RULES), []
    for number, frame in enumerate(given):
        found += belief.step(frame)
        assert number + 1 - len(found) <= 2 * 62 + 1
    found += belief.end(believed=False)
    assert [heard.at for heard in found] == [frame.at for frame in given]
    assert all(heard.speech in (0.0, frame.speech) for heard, frame in zip(found, given, strict=True))


async def test_a_wake_word_is_believed_at_once_and_other_events_pass() -> None:
    given: list[Event] = [*frames((30, 0.9, 1.0)), Muted(0, 0, False), Woken(30 * FRAME, 0, "alexa", 0, 1.0, 0.5)]

    async def source() -> Events:
        for event in given:
            yield event

    async with line(source(), believe(RULES)) as events:
        seen = [event async for event in events]
    assert seen == [given[-2], *given[:30], given[-1]]
