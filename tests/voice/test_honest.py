"""No claim without a deed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.events import Did, Event, Phrase
from appliance.stream import Events, line
from appliance.voice.claims import kind
from appliance.voice.honest import FAILED, TRUTH, UNKNOWN, claims_a_deed, honest


@pytest.mark.parametrize(
    "text",
    [
        "I have set a timer for ten minutes.",
        "I've just turned off the lights.",
        "I’ve turned the heating up.",
        "I'm calling your wife now.",
        "I am setting an alarm.",
        "I'll send the message right away.",
        "I will remind you at five.",
        "I can turn on the kitchen light.",
        "Timer set for ten minutes.",
        "Okay, lights turned off.",
        "Your order has been placed.",
        "The lights are now turned off.",
        "The message has already been sent.",
        "I successfully booked a table.",
        "I looked up the weather.",
    ],
)
def test_a_claim_is_recognised(text):
    assert claims_a_deed(text)


@pytest.mark.parametrize(
    "text",
    [
        "Paris is the capital of France.",
        "You can set a timer with the clock app.",
        "I can't set a timer yet.",
        "I am Parley, and I run on this device.",
        "The moon is about four hundred thousand kilometres away.",
        "I would turn it off first.",
        "A message is a text that was sent by somebody.",
        "I'm happy to help.",
        "I don't know what was ordered.",
        "Set the oven to two hundred degrees.",
    ],
)
def test_what_is_no_claim_passes(text):
    assert not claims_a_deed(text)


async def test_the_truth_is_said_once_and_the_rest_of_the_story_is_dropped():
    async def answer() -> Events:
        for text in (" Sure.", " I have set a timer.", " It rings at five."):
            yield Phrase(0, 1, text, text.strip())

    async with line(answer(), honest()) as events:
        spoken = [event.spoken async for event in events if isinstance(event, Phrase)]
    assert spoken == ["Sure.", TRUTH]


async def say(*events: Event, asked: str = "") -> list[str]:
    async def answer() -> Events:
        for event in events:
            yield event

    async with line(answer(), honest(asked)) as found:
        return [event.spoken async for event in found if isinstance(event, Phrase)]


def by(author: str, *texts: str) -> list[Phrase]:
    return [Phrase(0, 1, f" {text}", text, author) for text in texts]


@pytest.mark.parametrize(
    ("deeds", "spoken"),
    [([], FAILED), ([False], FAILED), ([True], "The order is placed."), ([True, False], "The order is placed.")],
)
async def test_a_skill_is_believed_where_something_was_done(deeds, spoken):
    done = [Did(0, 1, "mqtt.publish", ok) for ok in deeds]
    assert await say(*done, *by("skill", "The order is placed.")) == [spoken]


async def test_what_was_done_in_another_turn_supports_nothing():
    assert await say(Did(0, 0, "alarm.set", True), *by("skill", "Timer set.")) == [FAILED]


async def test_a_model_is_not_believed_whatever_was_done():
    assert await say(Did(0, 1, "alarm.set", True), *by("model", "I have set a timer.")) == [TRUTH]


async def test_a_document_is_quoted():
    assert await say(*by("pack", "Your order has been placed once you get a mail.")) == [
        "Your order has been placed once you get a mail."
    ]


async def test_a_claim_in_two_phrases_is_one():
    assert await say(*by("model", "I have, as you asked,", "set a timer.")) == ["I have, as you asked,", TRUTH]


@pytest.mark.parametrize(
    ("text", "spoken"), [("Whatever you say.", TRUTH), ("For how long?", "For how long?"), ("I can't.", "I can't.")]
)
async def test_to_a_command_that_nobody_took_a_model_has_nothing_to_say(text, spoken):
    assert await say(*by("model", text), asked="Please turn off the lights") == [spoken]


async def test_what_only_a_look_can_tell_is_not_known():
    assert await say(*by("model", "The battery is at eighty percent.")) == [UNKNOWN]


@given(st.text())
def test_any_text_is_judged(text):
    assert kind(text) in ("", "deed", "outcome", "state", "syntax")
