"""Endpointing: fed with probabilities, it counts samples and nothing else."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.events import Attending, Event, Heard, SpeechEnded, SpeechPaused, SpeechResumed, SpeechStarted
from appliance.runtime.worker import Worker
from appliance.stream import Events, line
from appliance.voice.endpoint import Endpointer, EndpointRules, endpoint
from firmware.frame import FRAME, RATE

MS = RATE // 1000
SILENCE = np.zeros(FRAME, np.int16)


def frames(*parts: tuple[float, int], start: int = 0) -> list[Heard]:
    """Parts of (speech probability, milliseconds) as 10 ms frames."""
    chances = [chance for chance, ms in parts for _ in range(ms // 10)]
    return [Heard(start + index * FRAME, 0, SILENCE, chance) for index, chance in enumerate(chances)]


class Model:
    """Answers with the probabilities it is given, the last one for ever."""

    def __init__(self, *answers: float) -> None:
        self.answers = list(answers)
        self.asked: list[int] = []

    def probability(self, wave):
        self.asked.append(len(wave))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def run(heard: list[Event], model: Model, rules: EndpointRules | None = None) -> list[Event]:
    async def source() -> Events:
        for frame in heard:
            yield frame

    worker = Worker("turn end")
    kinds = SpeechStarted | SpeechPaused | SpeechResumed | SpeechEnded
    try:
        async with line(source(), endpoint(rules or EndpointRules(), model, worker)) as events:
            return [event async for event in events if isinstance(event, kinds)]
    finally:
        worker.close()


async def test_a_complete_phrase_ends_at_the_first_check():
    seen = await run(frames((0.0, 500), (0.9, 1000), (0.0, 1000)), Model(0.9))
    assert [type(event) for event in seen] == [SpeechStarted, SpeechPaused, SpeechEnded]
    ended = seen[-1]
    assert isinstance(ended, SpeechEnded)
    assert (ended.at, ended.decided, ended.reason) == (1500 * MS, 1700 * MS, "complete")
    assert seen[0].at == 200 * MS  # 300 ms of pre-roll


async def test_an_incomplete_phrase_is_held_and_then_ended():
    seen = await run(frames((0.9, 1000), (0.0, 3000)), Model(0.0))
    ended = seen[-1]
    assert isinstance(ended, SpeechEnded)
    assert ended.reason == "hold"
    assert ended.decided - ended.at == EndpointRules().hold_ms * MS


async def test_a_doubtful_phrase_is_believed_as_the_silence_grows():
    seen = await run(frames((0.9, 1000), (0.0, 3000)), Model(0.3))
    ended = seen[-1]
    assert isinstance(ended, SpeechEnded)
    assert ended.reason == "complete"
    assert 200 * MS < ended.decided - ended.at < 1200 * MS


async def test_a_pause_in_mid_phrase_is_one_turn():
    seen = await run(frames((0.9, 1000), (0.0, 900), (0.9, 800), (0.0, 1000)), Model(0.0, 0.0, 0.0, 0.0, 0.9))
    assert [type(event) for event in seen] == [SpeechStarted, SpeechPaused, SpeechResumed, SpeechPaused, SpeechEnded]
    assert {event.turn for event in seen} == {1}


async def test_speech_without_end_is_capped():
    seen = await run(frames((0.9, 6000)), Model(0.9), EndpointRules(cap_s=5.0))
    capped = next(event for event in seen if isinstance(event, SpeechEnded))
    assert capped.reason == "cap"


async def test_the_end_of_the_sound_ends_the_turn():
    seen = await run(frames((0.9, 1000)), Model(0.9))
    ended = seen[-1]
    assert isinstance(ended, SpeechEnded)
    assert (ended.at, ended.reason) == (1000 * MS, "flush")


def later(heard: list[Heard]) -> list[Event]:
    """The frames of a box that has not attended for a while."""
    return [Attending(0, 0, False, "patience"), *(replace(frame, at=frame.at + 60 * RATE) for frame in heard)]


async def test_attention_that_ends_ends_the_turn():
    seen = await run([*frames((0.9, 1000)), *later(frames((0.0, 1000)))], Model(0.0))
    assert [type(event) for event in seen] == [SpeechStarted, SpeechEnded]
    assert (seen[1].at, seen[1].decided, seen[1].reason) == (1000 * MS, 1000 * MS, "flush")


async def test_half_a_beginning_is_forgotten_with_the_end_of_attention():
    assert await run([*frames((0.9, 80)), *later(frames((0.9, 80), (0.0, 500)))], Model(0.9)) == []


async def test_the_model_hears_nothing_from_before_attention_ended():
    model = Model(0.9)
    await run([*frames((0.0, 3000)), *later(frames((0.9, 1000), (0.0, 1000)))], model)
    assert model.asked == [1200 * MS]


async def test_two_phrases_are_two_turns():
    seen = await run(frames((0.9, 500), (0.0, 800), (0.9, 500), (0.0, 800)), Model(0.9))
    assert [event.turn for event in seen if isinstance(event, SpeechEnded)] == [1, 2]


async def test_silence_is_no_turn_and_asks_no_model():
    model = Model(0.9)
    assert await run(frames((0.1, 5000)), model) == []
    assert model.asked == []


async def test_the_model_hears_the_silence_that_would_follow():
    model = Model(0.9)
    await run(frames((0.9, 1000), (0.0, 1000)), model)
    assert model.asked == [1200 * MS]


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 300)), max_size=30), st.floats(0, 1))
@settings(deadline=None)
def test_turns_open_and_close_in_order_whatever_is_heard(parts, answer):
    logic = Endpointer(EndpointRules())
    seen: list[Event] = []
    for frame in frames(*((chance, ms * 10) for chance, ms in parts)):
        seen += logic.step(frame)
        if logic.check:
            seen += logic.judge(answer)
    seen += logic.flush()
    follows = {
        SpeechStarted: {SpeechPaused, SpeechEnded},
        SpeechPaused: {SpeechResumed, SpeechEnded},
        SpeechResumed: {SpeechPaused, SpeechEnded},
        SpeechEnded: {SpeechStarted},
    }
    for before, after in pairwise(seen):
        assert type(after) in follows[type(before)]
        assert after.turn == before.turn + isinstance(after, SpeechStarted)
    if seen:
        assert isinstance(seen[0], SpeechStarted)
        assert isinstance(seen[-1], SpeechEnded)


@pytest.mark.parametrize("silence_ms", [200, 700, 1200])
def test_the_threshold_falls_with_the_silence(silence_ms):
    rules = EndpointRules(check_ms=200, hold_ms=1200, complete_threshold=0.5)
    assert rules.threshold(silence_ms * MS) == pytest.approx(0.5 * (1200 - silence_ms) / 1000)
