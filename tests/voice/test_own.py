"""The box's own voice: its last words are nobody's turn, a user's question about them is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.voice.own import own_voice, share, words

SAID = words("The weather tomorrow will be sunny, with a light breeze from the west.")


@pytest.mark.parametrize(
    "heard",
    [
        "The weather tomorrow will be sunny",
        "weather tomorrow will be",
        "with a light breeze.",
        "Whether tomorrow will be sunny?",
    ],
)
def test_an_echo_is_the_boxes_own_voice(heard):
    assert own_voice(words(heard), SAID, doubt=False)
    assert own_voice(words(heard), SAID, doubt=True)


@pytest.mark.parametrize(
    "heard",
    [
        "What about tomorrow?",
        "Is the breeze from the west strong?",
        "You said it will be sunny, but is it warm?",
        "No wait.",
        "Stop.",
        "Sunny tomorrow?",
    ],
)
def test_a_question_about_the_answer_is_a_question(heard):
    assert not own_voice(words(heard), SAID, doubt=False)
    assert not own_voice(words(heard), SAID, doubt=True)


def test_a_single_word_is_an_echo_only_in_doubt():
    assert own_voice(["tomorrow"], SAID, doubt=True)
    assert not own_voice(["tomorrow"], SAID, doubt=False)


def test_an_echo_with_mistakes_is_believed_only_in_doubt():
    heard = words("whether tomorrow will be sonny with a light breeze")
    assert own_voice(heard, SAID, doubt=True)
    assert not own_voice(heard, SAID, doubt=False)


def test_words_are_compared_without_case_and_marks():
    assert words("Uh-huh, that’s IT — 5 o'clock…") == ["uh", "huh", "that's", "it", "5", "o'clock"]


def test_nothing_heard_and_nothing_said_is_no_echo():
    assert share([], SAID) == 0
    assert share(["stop"], []) == 0
    assert not own_voice([], SAID, doubt=True)


WORDS = st.lists(
    st.sampled_from(["the", "weather", "is", "fine", "in", "west", "east", "now"]), min_size=1, max_size=12
)


@given(WORDS, WORDS, WORDS)
def test_what_was_said_is_found_wherever_it_lies(before, heard, behind):
    assert share(heard, before + heard + behind) == 1


@given(WORDS, WORDS)
def test_a_share_is_one_only_for_the_very_words(heard, said):
    found = share(heard, said)
    assert 0 <= found <= 1
    places = range(len(said) - len(heard) + 1)
    assert (found == 1) == any(said[place : place + len(heard)] == heard for place in places)


def test_in_doubt_half_a_word_and_one_that_sounds_alike_are_echoes_too():
    said = words("The capital of France is Paris.")
    assert own_voice(words("The cap."), said, doubt=True)
    assert own_voice(words("Harris."), said, doubt=True)
    assert not own_voice(words("The cap."), said, doubt=False)
    assert not own_voice(words("Never mind."), said, doubt=True)
    assert not own_voice(words("A hat."), said, doubt=True)
