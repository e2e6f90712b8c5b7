"""The answer in pieces."""

from collections.abc import Iterator, Sequence

from appliance.events import Token, Transcript
from appliance.runtime.worker import Worker
from appliance.stream import line
from appliance.voice.conversation import Conversation, Message
from appliance.voice.prompt import Prompt, PromptRules
from appliance.voice.think import ThinkRules, think
from appliance.voice.turn import once


class Words:
    """Replies with what it was asked."""

    def write(self, messages: Sequence[Message], budget: int, sentences: int) -> Iterator[str]:
        yield ""
        yield from (f" {word}" for word in messages[-1].text.split()[:budget])


async def test_the_reply_comes_in_pieces_and_steps_without_text_are_not_events():
    worker = Worker("think")
    prompt = Prompt(PromptRules(()), Conversation(), lambda messages: 0)
    stages = think(Words(), prompt, worker, ThinkRules())
    try:
        async with line(once(Transcript(5, 1, "one two three", 0.9)), stages) as events:
            pieces = [event.text async for event in events if isinstance(event, Token)]
    finally:
        worker.close()
    assert pieces == [" one", " two", " three"]
