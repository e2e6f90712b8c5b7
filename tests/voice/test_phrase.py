"""Clauses: where they end, that nothing is lost, and that the stage keeps the order of events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.events import Answered, Event, Mark, Phrase, Token
from appliance.runtime.normalise import normaliser
from appliance.voice.phrase import Phraser, PhraseRules, phrase
from appliance.voice.sanitise import sanitise

TABLE = [
    "Yes.| It is five o'clock.",
    "Sure! |I can help with that. |What is it?",
    "The weather in Paris is sunny, |with a high of 21.5 degrees today.",
    "Well, it is 3.5 or 1,000 of them.",
    "Dr. Smith and Mrs. Jones live on Oak St. in Boston.",
    "J. R. Smith works for the U.S. Army at 8 a.m. every day.",
    "It opens at 8 a.m. |Then it closes.",
    "He said \"Go home. Rest well.\" |And left.",
    "See www.example.com/a.b?c=d for more, |e.g. the prices, i.e. all of them.",
    "On March 5, 2024, |it rained.",
    "First come, |first served, they say. |Second come, second served, they say, but not as often as the first.",
    "Really?! |Yes... |No. |Yes… well.",
    "1. Open it. |2. Close it.",
    "Buy these:\n|milk\n|eggs and\n|bread",
    "It is (as I said. Twice.) fine. |Good.",
    "Version 2. |Next.",
    "Give me no. 5 please.",
    "你好。|我很好！|你呢",
    "Was it you and I? |It was I. |Fine.",
]  # fmt: skip
RUN_ON = (
    "open the app and go to the settings which you will find in the upper right corner of the screen next to "
    "the button with the three dots then scroll down until you see the entry for the network "
    "and tap it once more to change it"
)
TEXT = st.text(st.sampled_from("ab3 .,!?\n\"'()“”—:;DrA1é"), max_size=120)


def cut(pieces: Iterable[str], rules: PhraseRules | None = None) -> list[str]:
    phraser = Phraser(rules or PhraseRules())
    return [found for piece in pieces for found in phraser.feed(piece)] + phraser.flush()


@pytest.mark.parametrize("marked", TABLE)
def test_boundaries(marked: str) -> None:
    expected = [part for part in marked.replace(".| It", ". |It").split("|") if part]
    assert cut([marked.replace("|", "")], PhraseRules(first_hold=70)) == expected


@settings(max_examples=300, deadline=None)
@given(TEXT, st.integers(1, 7))
def test_nothing_is_lost_and_pieces_change_nothing(text: str, size: int) -> None:
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    assert "".join(cut(pieces)) == text
    assert cut(pieces) == cut([text])


def test_the_first_phrase_comes_early_and_no_phrase_late() -> None:
    rules = PhraseRules()
    parts = cut([RUN_ON], rules)
    assert len(parts[0]) <= rules.first_hold
    assert all(len(part) <= rules.hold for part in parts)
    assert "".join(parts) == RUN_ON
    assert cut(["x" * 1000])[0]


def test_a_decimal_waits_for_what_follows() -> None:
    phraser = Phraser(PhraseRules())
    assert phraser.feed("It is about 3.") == []
    assert phraser.feed("5 meters.") == []
    assert phraser.feed(" The") == ["It is about 3.5 meters. "]


async def run(events: list[Event]) -> list[Event]:
    async def source() -> AsyncIterator[Event]:
        for event in events:
            yield event

    return [event async for event in phrase(normaliser("en-US"))(source())]


def tokens(text: str, turn: int = 1) -> list[Event]:
    return [Token(n, turn, text[n : n + 3]) for n in range(0, len(text), 3)]


async def test_phrases_for_the_ear() -> None:
    found = await run(tokens("**Sure!** It costs $5, Mr. Smith. 😀 <|im_end|>"))
    assert [(event.text, event.spoken) for event in found if isinstance(event, Phrase)] == [
        ("Sure! ", "Sure!"),
        ("It costs $5, Mr. Smith.  ", "It costs five dollars, Mister Smith."),
    ]
    assert all(event.turn == 1 for event in found)


async def test_flush_before_the_answer_ends_and_marks_pass() -> None:
    mark = Mark(9, 1, "think", "last token", 0.0)
    ending = Answered(10, 1, "Five past", "complete")
    found = await run([*tokens("Five past"), mark, ending])
    assert [type(event) for event in found] == [Mark, Phrase, Answered]


async def test_a_new_turn_flushes_the_old_one() -> None:
    found = await run([*tokens("Half of it", 1), *tokens("Another one", 2)])
    assert [(event.turn, event.text) for event in found if isinstance(event, Phrase)] == [
        (1, "Half of it"),
        (2, "Another one"),
    ]


async def test_nothing_to_say_is_no_phrase() -> None:
    assert await run(tokens("```\ncode\n``` *** 😀 --- ")) == []


async def test_list_items_end_in_a_pause() -> None:
    found = await run(tokens("- milk\n- eggs\n"))
    assert [event.spoken for event in found if isinstance(event, Phrase)] == ["milk.", "eggs."]


@settings(max_examples=60, deadline=None)
@given(TEXT)
async def test_the_phrases_are_the_sanitised_text(text: str) -> None:
    found = await run([Token(0, 1, char) for char in text])
    joined = "".join(event.text for event in found if isinstance(event, Phrase))
    whole = sanitise(text)
    assert whole.startswith(joined)
    assert not any(c.isalnum() for c in whole[len(joined) :])
