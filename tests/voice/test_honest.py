"""No claim without a deed."""

import pytest

from appliance.events import Phrase
from appliance.stream import Events, line
from appliance.voice.honest import TRUTH, claims_a_deed, honest


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
