"""The language model as a writer: one sentence, and a beginning that is read once."""

import pytest

from appliance.runtime.llm import LanguageModel
from appliance.voice.conversation import Message
from appliance.voice.writer import Writer

pytestmark = pytest.mark.models("smollm2-135m-instruct")
SYSTEM = Message("system", "You are a helpful voice assistant named Parley. Answer in one short sentence.")


@pytest.fixture(scope="module")
def model(shelf):
    return LanguageModel.open(shelf.built("smollm2-135m-instruct"))


@pytest.fixture
def writer(model, tmp_path):
    made = Writer(model, tmp_path)
    yield made
    made.close()


def reply(writer: Writer, asked: str, *, budget: int = 40, sentences: int = 1) -> str:
    return "".join(writer.write([SYSTEM, Message("user", asked)], budget, sentences)).strip()


def test_what_is_known_is_answered(writer):
    assert reply(writer, "What is the capital of France?") == "The capital of France is Paris."


def test_a_reply_ends_where_a_sentence_too_many_would_begin(writer):
    one, two = (reply(writer, "Tell me something about the moon.", sentences=n) for n in (1, 2))
    assert one.endswith(".")
    assert two.startswith(one)
    assert len(two) > len(one)


def test_a_reply_over_budget_ends_with_its_sentence(writer):
    text = reply(writer, "How do I change a flat tyre?", budget=4, sentences=9)
    assert len(text.split()) <= 6


def test_a_prepared_beginning_gives_the_same_reply_after_a_restart(model, tmp_path):
    replies, kept = [], []
    for _ in range(2):
        writer = Writer(model, tmp_path)
        writer.prepare([SYSTEM])
        replies.append(reply(writer, "Why is the sea salty?"))
        kept.append(sorted(path.name for path in tmp_path.iterdir()))
        writer.close()
    assert replies[0] == replies[1]
    assert kept[0] == kept[1]
    assert len(kept[0]) == 1


def test_an_answer_that_is_left_does_not_leak_into_the_next(writer):
    left = writer.write([SYSTEM, Message("user", "Tell me a story about a dog.")], 40, 3)
    for _ in range(8):
        next(left)
    left.close()
    assert reply(writer, "What is the capital of France?") == "The capital of France is Paris."
