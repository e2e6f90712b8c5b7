"""Memory in a turn: noted before it is said, asked, kept as it was heard, and never out of a draft."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing

import pytest

from appliance.events import (
    Answered,
    Cited,
    Did,
    Event,
    Kept,
    Phrase,
    Recalled,
    SpeechStarted,
    Token,
    Transcript,
    Understood,
)
from appliance.runtime.worker import Worker
from appliance.store.memory import Memory, MemoryRules
from appliance.store.units import Turn
from appliance.stream import line
from appliance.voice.remember import UNSAFE, keep, remember
from appliance.voice.turn import Answer, once


@pytest.fixture
def memory(tmp_path):
    with closing(Memory(tmp_path, None, MemoryRules(retry_s=0.05))) as made:
        yield made


async def ask(memory: Memory, text: str, *others: str, documents: bool = False, confirmed: bool = True) -> list[Event]:
    transcript = Transcript(0, 1, text, 1.0, others)
    answer, worker = Answer(transcript), Worker("recall")
    if confirmed:
        answer.confirmed.set()
    stage = remember(memory, worker, answer, documents=documents, deadline_s=5.0)
    try:
        async with line(once(transcript), stage) as events:
            return [event async for event in events]
    finally:
        worker.close()


def words(events: list[Event]) -> str:
    assert all(event.by == "memory" for event in events if isinstance(event, Token))
    return " ".join(event.text for event in events if isinstance(event, Token))


async def test_what_is_to_last_is_on_the_disk_when_that_is_said(memory):
    events = await ask(memory, "My order number is AB4711.")
    assert [type(event) for event in events] == [Kept, Token]
    assert words(events) == "Noted. Your order number is AB4711."
    with closing(Memory(memory.path.parent, None)) as other:
        assert [unit.value for unit in other.units()] == ["AB4711"]


async def test_a_draft_notes_nothing(memory):
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await ask(memory, "My order number is AB4711.", confirmed=False)
    memory.flush()
    assert memory.turns() == []


async def test_what_is_told_in_passing_is_answered_with_a_nod_and_kept(memory):
    events = await ask(memory, "the boiler makes a strange noise")
    assert words(events) == "Okay."
    assert [unit.text for unit in memory.units()] == ["the boiler makes a strange noise"]


async def test_a_mood_is_for_the_model_to_answer(memory):
    assert [type(event) for event in await ask(memory, "I'm so tired")] == [Transcript]


async def test_what_is_done_is_said_to_be(memory):
    await ask(memory, "I have to renew my passport.")
    assert words(await ask(memory, "I renewed my passport.")) == "Okay."
    assert words(await ask(memory, "What do I have to do?")) == "You haven't told me of anything to do."


async def test_a_question_is_answered_with_what_it_rests_on(memory):
    await ask(memory, "My name is Anna.")
    events = await ask(memory, "What's my name?")
    (recalled,) = [event for event in events if isinstance(event, Recalled)]
    assert recalled.ids == (1,)
    assert words(events) == "Your name is Anna."


async def test_another_way_to_hear_the_question_is_tried(memory):
    await ask(memory, "My locker code is 4711.")
    assert words(await ask(memory, "What's my lock a code?", "What's my locker code?")) == "Your locker code is 4711."


@pytest.mark.parametrize("documents", [False, True])
async def test_what_only_the_user_can_know_is_not_left_to_a_model(memory, documents):
    assert words(await ask(memory, "What's my name?", documents=documents)) == "I don't know your name yet."


async def test_what_documents_may_know_is_left_to_them(memory):
    assert isinstance((await ask(memory, "What is my warranty?", documents=True))[-1], Transcript)
    assert words(await ask(memory, "What is my warranty?")) == "You haven't told me that."


@pytest.mark.parametrize("text", ["What is the capital of France?", "Hello.", "Tell me a joke", "What time is it?"])
async def test_other_questions_are_passed_on(memory, text):
    events = await ask(memory, text)
    assert [event for event in events if not hasattr(event, "wall")] == [Transcript(0, 1, text, 1.0)]


async def test_a_complaint_is_heard(memory):
    assert "sorry" in words(await ask(memory, "This is unacceptable, the coffee was cold."))


async def test_in_private_it_is_said_that_nothing_is_kept(memory):
    memory.private = True
    assert "private" in words(await ask(memory, "My order number is AB4711."))
    assert memory.turns() == []


async def test_without_a_disk_the_promise_is_a_smaller_one(tmp_path):
    place = tmp_path / "file"
    place.write_text("")
    with closing(Memory(place, None, MemoryRules(retry_s=0.05))) as memory:
        assert words(await ask(memory, "My order number is AB4711.")) == UNSAFE
        assert words(await ask(memory, "What is my order number?")) == "Your order number is AB4711."


# --- keeping -----------------------------------------------------------------------------------------------------


async def through(memory: Memory, *events: Event) -> list[Event]:
    async def source() -> AsyncIterator[Event]:
        for event in events:
            yield event

    async with line(source(), keep(memory)) as seen:
        return [event async for event in seen]


def answered(turn: int, asked: str, said: str, reason: str = "complete") -> Answered:
    return Answered(0, turn, said, reason, asked)  # type: ignore[arg-type]


async def test_a_turn_is_kept_as_it_was_heard(memory):
    events = (
        Understood(0, 1, "kiosk", "Order", {"drink": "latte"}, 0.9),
        Did(0, 1, "mqtt.publish", True, "orders"),
        Did(0, 1, "mqtt.publish", False, "till"),
        Phrase(0, 1, "A latte. Coming", "a latte", by="skill"),
        answered(1, "a latte please", "A latte.", "interrupted"),
    )
    seen = await through(memory, *events)
    assert seen[:-1] == list(events)
    assert seen[-1] == Kept(0, 1, 1, ())
    (turn,) = memory.turns()
    assert (turn.asked, turn.said, turn.reason, turn.by) == ("a latte please", "A latte.", "interrupted", "skill")
    assert (turn.intent, turn.slots, turn.deeds) == ("kiosk.Order", {"drink": "latte"}, ("mqtt.publish orders",))


async def test_what_was_answered_with_is_used(memory):
    await asyncio.wrap_future(memory.keep(Turn("My name is Anna")))
    await through(memory, Recalled(0, 2, (1,), "My name is Anna"), answered(2, "what's my name", "Your name is Anna."))
    assert memory.units()[0].used == 2


async def test_a_question_that_went_on_is_one_turn(memory):
    await through(memory, answered(1, "what is", "", "interrupted"), answered(2, "what is the time", "Ten."))
    assert [turn.asked for turn in memory.turns()] == ["what is the time"]


async def test_a_question_that_was_given_up_is_kept(memory):
    await through(memory, answered(1, "what is", "", "interrupted"), answered(2, "hello", "Hi."))
    assert [turn.asked for turn in memory.turns()] == ["what is", "hello"]
    await through(memory, answered(1, "where was", "", "interrupted"))
    memory.flush()
    assert memory.turns()[-1].asked == "where was"


async def test_what_was_noted_is_not_kept_twice_and_has_what_was_heard(memory):
    noted = await ask(memory, "My name is Anna.")
    await through(memory, *noted, answered(1, "My name is Anna.", "Noted.", "interrupted"))
    memory.flush()
    assert [(turn.said, turn.reason) for turn in memory.turns()] == [("Noted.", "interrupted")]


async def test_a_wish_to_forget_is_not_kept_word_for_word(memory):
    forgot = Understood(0, 1, "memory", "ForgetAbout", {"text": "code 4711"}, 0.9)
    await through(memory, forgot, answered(1, "forget that my code is 4711", "I have forgotten it."))
    (turn,) = memory.turns()
    assert "4711" not in f"{turn.asked}{turn.slots}"
    assert memory.units() == []


async def test_everything_passes(memory):
    events = [SpeechStarted(5, 1), Cited(0, 1, "shop", "menu.csv", 3, "latte 3.50"), answered(1, "price", "3.50")]
    assert (await through(memory, *events))[:3] == events
    assert memory.turns()[0].by == "pack"
