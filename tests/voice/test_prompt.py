"""The prompt: a budget per section, and a beginning that stays the same."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from appliance.voice.conversation import MOST, Conversation, Message
from appliance.voice.prompt import Prompt, PromptRules

SYSTEM = Message("system", "be brief")


def count(messages: Sequence[Message]) -> int:
    """Words stand for tokens."""
    return sum(len(message.text.split()) for message in messages)


def prompt(
    conversation: Conversation, *, history: int = 100, known: Sequence[str] = (), now: Sequence[str] = ()
) -> Prompt:
    rules = PromptRules((SYSTEM,), history, memory_tokens=30, now_tokens=10)
    return Prompt(rules, conversation, count, lambda: known, lambda: now)


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40)), max_size=60))
def test_it_holds_the_system_message_whole_exchanges_and_the_question(lengths):
    conversation = Conversation()
    for asked, said in lengths:
        conversation.add("q " * asked, ("a " * said).strip())
        messages = prompt(conversation).messages("why?")
        assert messages[0] == SYSTEM
        assert messages[-1] == Message("user", "why?")
        history = messages[1:-1]
        assert count(history) <= 100
        assert not history or history[0].role == "user"
        assert conversation.messages[len(conversation.messages) - len(history) :] == history


def test_the_window_moves_seldom_so_that_its_beginning_is_not_read_again():
    conversation, begins = Conversation(), []
    for number in range(200):
        conversation.add(f"question {number}", f"answer number {number}")
        begins.append(prompt(conversation).so_far()[1].text)
    moves = sum(one != other for one, other in pairwise(begins))
    assert moves <= 20  # with every turn it would be 180
    assert begins[-1] != begins[0]


def test_what_is_known_comes_first_and_what_is_going_on_last_each_within_its_budget():
    conversation = Conversation()
    conversation.add("hello", "hi")
    known = [f"Fact number {number}." for number in range(40)]
    messages = prompt(conversation, known=known, now=["It is ten.", "much " * 40]).messages("why?")
    assert [message.role for message in messages] == ["system", "user", "assistant", "system", "user"]
    assert messages[0].text.startswith(SYSTEM.text)
    assert known[0] in messages[0].text
    assert known[-1] not in messages[0].text
    assert count([messages[0]]) <= 30 + count([SYSTEM])
    assert messages[3].text == "It is ten."


def test_without_anything_known_there_is_no_empty_section():
    assert prompt(Conversation()).messages("why?") == [SYSTEM, Message("user", "why?")]


def test_a_conversation_without_end_is_held_in_bounded_memory():
    conversation = Conversation()
    for number in range(MOST):
        conversation.add(f"question {number}", "answer")
        prompt(conversation).so_far()
    assert len(conversation.messages) == MOST
    assert prompt(conversation).so_far()[-2].text == f"question {MOST - 1}"
