"""The wake phrase goes, every word of the order stays."""

import string
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.events import (
    Attending,
    Draft,
    Event,
    Failed,
    NoSpeech,
    Partial,
    SpeechEnded,
    SpeechStarted,
    Transcript,
    Woken,
)
from appliance.stream import Events
from appliance.voice.address import ALONE, address, says, strip

PHRASES = ("okay nabu", "hey jarvis", "alexa")

RECOGNISED = (
    ("Okay, Naboo, what time is it?", "what time is it?"),
    ("Okay Naboo, turn on the light.", "turn on the light."),
    ("Okay, Naboo. Okay, now book a table for two.", "Okay, now book a table for two."),
    ("Okay, now, boo, stop.", "stop."),
    ("Ok now, Boo, what joy.", "what joy."),
    ("Okay now, boot. Stop.", "Stop."),
    ("Okay, Nabus, stop.", "stop."),
    ("OK Naboo set a timer for 10 minutes.", "set a timer for 10 minutes."),
    ("OK now boo", ""),
    ("Okay, Nabu", ""),
    ("Hey Jarvis, what time is it?", "what time is it?"),
    ("Hey Jarvis. Okay, now book a table.", "Okay, now book a table."),
    ("hey, Jarvis.", ""),
    ("A Jarvis, set a timer.", "set a timer."),
    ("Hey, Jardis, 100 divided by 4.", "100 divided by 4."),
    ("Alexa.", ""),
    ("Alexa?", ""),
    ("Alexa who wrote Hamlet?", "who wrote Hamlet?"),
    ("Alexa, 100 divided by 4.", "100 divided by 4."),
    ("Naboo. Stop.", "Stop."),
    ("...bu, what time is it", "what time is it"),
    ("Okay Nabu, okay Nabu, hello", "hello"),
    ('Okay, Nabu, "Hamlet" please', '"Hamlet" please'),
)

ORDERS = (
    "okay, now book a table",
    "Okay, now buy milk",
    "Okay, now be quiet.",
    "Okay, now boost the volume.",
    "Okay.",
    "okay, no",
    "Now play some jazz.",
    "Hey, how are you?",
    "Hey, is it raining?",
    "Is it raining?",
    "So, what time is it?",
    "Yes, please.",
    "Us two.",
    "Is... is it raining?",
    "S, as in Sam.",
    "Jarvis Cocker, who is he?",
    "Alexis is my name.",
    "Book a table, boo.",
    "A service, please.",
    "Relax.",
    "Who is Jarvis?",
    "Tell Alexa that I am late.",
    "100 divided by 4",
    "...",
    "",
)


@pytest.mark.parametrize(("heard", "wanted"), RECOGNISED)
def test_the_phrase_goes_however_it_is_spelled(heard, wanted):
    assert strip(heard, PHRASES) == wanted


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_stays_as_it_is(order):
    assert strip(order, PHRASES) == order


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("phrase", ["Okay, Naboo, ", "Hey Jarvis. ", "Alexa, "])
def test_an_order_stays_as_it_is_behind_the_phrase(phrase, order):
    assert strip(phrase + order, PHRASES).lstrip(".") == order.lstrip(".")


@given(st.text(max_size=60))
@settings(deadline=None)
def test_only_the_beginning_is_ever_taken(text):
    rest = strip(text, PHRASES)
    assert text.endswith(rest)
    assert strip(rest, PHRASES) == rest


@given(st.lists(st.text(string.ascii_lowercase, min_size=1, max_size=8), min_size=2, max_size=8))
@settings(deadline=None)
def test_no_more_than_the_phrase_is_taken(words):
    order = "please " + " ".join(words)
    assert strip(order, PHRASES) == order
    assert strip(f"Okay, Nabu, {order}", PHRASES) == order


def test_without_phrases_nothing_is_taken():
    assert strip("Okay, Nabu", ()) == "Okay, Nabu"


def test_a_phrase_is_found_wherever_it_is():
    assert says("and then: okay, naboo!", PHRASES)
    assert says("Alexa", PHRASES)
    assert not says("okay, now book a table", PHRASES)
    assert not says("", PHRASES)


# --- the stage -------------------------------------------------------------------------------------------------------


async def run(*given: Event) -> list[Event]:
    async def source() -> Events:
        for event in given:
            yield event

    return [event async for event in address(PHRASES)(source())]


def woken(word: str = "okay-nabu") -> Woken:
    return Woken(0, 0, word, 0, 0.9, 0.8)


def words(events: Iterable[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Draft | Transcript)]


async def test_the_turn_behind_a_wake_word_is_stripped_and_the_next_is_not():
    text = "Okay, Nabu, hello"
    said = (Draft(1, 1, text), Transcript(1, 1, text, 0.9))
    seen = await run(woken(), SpeechStarted(0, 1), *said, SpeechStarted(2, 2), Transcript(3, 2, text, 0.9))
    assert words(seen) == ["hello", "hello", text]


async def test_other_ways_to_hear_it_are_stripped_too():
    given = Transcript(1, 1, "Okay Nabu, a marker", 0.9, ("Okay Nabu, a mocha", "Okay, Nabu."))
    seen = await run(woken(), SpeechStarted(0, 1), given)
    assert seen[-1] == Transcript(1, 1, "a marker", 0.9, ("a mocha",))


async def test_the_turn_in_which_the_wake_word_is_heard_is_stripped_too():
    seen = await run(SpeechStarted(0, 1), woken(), Transcript(1, 1, "Hey Jarvis, hello", 0.9))
    assert words(seen) == ["hello"]


async def test_a_button_says_nothing():
    seen = await run(woken("button"), SpeechStarted(0, 1), Transcript(1, 1, "Hey Jarvis, hello", 0.9))
    assert words(seen) == ["Hey Jarvis, hello"]


async def test_the_wake_word_alone_is_no_speech():
    given = (Partial(1, 1, "", "Okay"), Partial(1, 1, "Okay", "Naboo"), Draft(2, 1, "Okay, Naboo."))
    seen = await run(woken(), SpeechStarted(0, 1), *given, Transcript(2, 1, "Okay, Naboo.", 0.9))
    assert seen[-1] == NoSpeech(2, 1, ALONE)
    assert words(seen) == []


@pytest.mark.parametrize("end", [NoSpeech(1, 1, "no speech"), Failed(1, 1, "hear", "deadline", "", "")])
async def test_a_turn_that_came_to_nothing_takes_its_wake_word_with_it(end):
    seen = await run(woken(), SpeechStarted(0, 1), end, SpeechStarted(2, 2), Transcript(3, 2, "Alexa, hello", 0.9))
    assert words(seen) == ["Alexa, hello"]


async def test_what_is_recognised_so_far_only_grows():
    given = (("", "Okay"), ("Okay", "now boo"), ("Okay, now boo,", "what"), ("Okay, now boo, what", "time is"))
    partials = [Partial(at, 1, committed, tail) for at, (committed, tail) in enumerate(given)]
    seen = await run(woken(), SpeechStarted(0, 1), *partials)
    shown = [(event.committed, event.tail) for event in seen if isinstance(event, Partial)]
    assert shown[-2:] == [("", "what"), ("what", "time is")]


async def test_a_phrase_that_was_shown_before_it_was_known_stays():
    seen = await run(
        SpeechStarted(0, 1), Partial(1, 1, "Hey Jarvis", ""), woken(), Partial(2, 1, "Hey Jarvis, what", "")
    )
    assert [event.committed for event in seen if isinstance(event, Partial)] == ["Hey Jarvis", "Hey Jarvis, what"]


@given(
    st.lists(st.sampled_from(["okay", "now", "boo", "nabu", "hey", "jarvis", "what", "time"]), max_size=8), st.data()
)
@settings(deadline=None)
async def test_committed_words_only_ever_grow(text, data):
    committed = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    calls = data.draw(st.integers(0, len(committed)))
    partials = [Partial(1, 1, " ".join(text[:number]), " ".join(text[number:])) for number in committed]
    seen = await run(SpeechStarted(0, 1), *partials[:calls], woken(), *partials[calls:])
    shown = [event.committed for event in seen if isinstance(event, Partial)]
    for before, after in pairwise(shown):
        assert after.startswith(before)


async def test_everything_else_passes():
    given = [Attending(0, 0, True, "word"), woken(), SpeechStarted(0, 1), SpeechEnded(1, 1, 1, "complete")]
    assert await run(*given) == given
