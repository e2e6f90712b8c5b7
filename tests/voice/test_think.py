"""The prompt: a token budget that the system message is never pushed out by."""

from collections.abc import Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from appliance.events import Token, Transcript
from appliance.runtime.worker import Worker
from appliance.stream import line
from appliance.voice.conversation import Conversation, Message
from appliance.voice.think import ThinkRules, prompt, think
from appliance.voice.turn import once

SYSTEM = Message("system", "be brief")


class Words:
    """Counts words for tokens, and replies with what it was asked."""

    def count(self, messages: Sequence[Message]) -> int:
        return sum(len(message.text.split()) for message in messages)

    def write(self, messages: Sequence[Message], budget: int, sentences: int) -> Iterator[str]:
        yield ""
        yield from (f" {word}" for word in messages[-1].text.split()[:budget])


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40)), max_size=60))
def test_the_prompt_holds_the_system_message_whole_exchanges_and_the_question(lengths):
    conversation = Conversation()
    for asked, said in lengths:
        conversation.add("q " * asked, ("a " * said).strip())
    messages = prompt(ThinkRules((SYSTEM,), history_tokens=100), conversation, "why?", Words())
    assert messages[0] == SYSTEM
    assert messages[-1] == Message("user", "why?")
    history = messages[1:-1]
    assert Words().count(history) <= 100
    assert not history or history[0].role == "user"
    assert conversation.messages[len(conversation.messages) - len(history) :] == history


async def test_the_reply_comes_in_pieces_and_steps_without_text_are_not_events():
    worker = Worker("think")
    stages = think(Words(), Conversation(), worker, ThinkRules(()))
    try:
        async with line(once(Transcript(5, 1, "one two three", 0.9)), stages) as events:
            pieces = [event.text async for event in events if isinstance(event, Token)]
    finally:
        worker.close()
    assert pieces == [" one", " two", " three"]
