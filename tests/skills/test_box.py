"""The box itself, through sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from natives import SpokenTo

from appliance.errors import Fault, StorageFault
from appliance.skills.native.knobs import Knob, Knobs, volume


@pytest.fixture
def box(tmp_path):
    return SpokenTo(tmp_path)


@pytest.mark.parametrize(
    ("said", "answer", "knob", "value"),
    [
        ("louder", "Volume 55.", "volume", 55),
        ("turn the volume up", "Volume 55.", "volume", 55),
        ("much louder", "Volume 70.", "volume", 70),
        ("you're too quiet", "Volume 55.", "volume", 55),
        ("quieter please", "Volume 25.", "volume", 25),
        ("turn it down a bit", "Volume 25.", "volume", 25),
        ("you are too loud", "Volume 25.", "volume", 25),
        ("set the volume to sixty percent", "Volume 60.", "volume", 60),
        ("volume to maximum", "Volume 100.", "volume", 100),
        ("set the volume to seven out of ten", "Volume 70.", "volume", 70),
        ("speak more slowly", "I'm speaking more slowly.", "rate", 0.87),
        ("slow down", "I'm speaking more slowly.", "rate", 0.87),
        ("faster", "I'm speaking faster.", "rate", 1.15),
        ("unmute the microphone", "The microphone is on.", "mute", False),
    ],
)
async def test_knobs(box, said, answer, knob, value):
    assert await box.says(said) == answer
    assert box.turned[knob] == value
    assert [deed.what for deed in box.last.deeds] == ["control.set"]


async def test_muting_says_how_to_be_heard_again(box):
    assert "parley mute off" in await box.says("mute the microphone")
    assert box.turned["mute"] is True


async def test_a_box_that_cannot_be_heard_cannot_help(box):
    for _ in range(8):
        answer = await box.says("quieter")
    assert box.turned["volume"] == 10
    assert answer == "I can't speak any more quietly."
    assert not box.last.deeds
    for _ in range(8):
        answer = await box.says("louder")
    assert answer == "That's as loud as I get."


async def test_how_loud(box):
    assert await box.says("how loud are you") == "The volume is 40 of 100."


async def test_a_volume_that_was_not_said(box):
    assert await box.says("set the volume") == "To what, from zero to a hundred?"
    assert await box.says("thirty") == "Volume 30."


async def test_what_cannot_be_changed_is_said(box, monkeypatch):
    def refuse(name, value):
        raise StorageFault("the disk is full", "free space")

    monkeypatch.setattr(box.controls, "set", refuse)
    assert await box.says("mute the microphone") == "Sorry, I couldn't change the microphone."
    assert [deed.ok for deed in box.last.deeds] == [False]


@pytest.mark.parametrize("said", ["repeat that", "what did you say", "say that again", "pardon", "I didn't get that"])
async def test_repeating(box, said):
    assert await box.says(said) == "I haven't said anything yet."
    box.box.said = "It's noon."
    assert await box.says(said) == "It's noon."


@pytest.mark.parametrize("said", ["what can I say", "help", "what can you do", "what do you understand"])
async def test_help(box, said):
    answer = await box.says(said)
    assert answer.startswith('You can say "')
    assert "For more, say help with" in answer
    assert not box.last.deeds


@pytest.mark.parametrize("said", ["help with timers", "what can I say about alarms", "help me with the reminders"])
async def test_help_with(box, said):
    answer = await box.says(said)
    assert answer.startswith('With timers you can say "set a pasta timer for eight minutes"')


async def test_help_with_what_is_not_there(box):
    reply = await box.call("box", "HelpWith", topic="quantum gravity")
    assert reply.failed
    assert "timers" in reply.say


@pytest.mark.parametrize(
    ("said", "part"),
    [
        ("who are you", "Parley"),
        ("what's your name", "Parley"),
        ("are you offline", "stays in it"),
        ("do you need the internet", "stays in it"),
        ("which version are you", "version"),
    ],
)
async def test_about_itself(box, said, part):
    assert part in await box.says(said)


async def test_stopping(box):
    first = await box.call("box", "Stop")
    second = await box.call("box", "Stop")
    assert (first.acted, second.acted) == (True, False)


async def test_every_example_is_understood(box):
    """What the box tells people to say, it understands."""
    for name in ("clock", "alarms", "box"):
        for intent, rule in box.skills[name].manifest.intents.items():
            assert box.understood(rule.say)[0] == f"{name}.{intent}", rule.say


# --- knobs -------------------------------------------------------------------------------------------------------


class Cell:
    def __init__(self, kept=None):
        self.kept = dict(kept or {})

    def read(self, key):
        return self.kept.get(key)

    def write(self, key, text):
        self.kept[key] = text

    def delete(self, key):
        return self.kept.pop(key, None) is not None

    def keys(self, prefix=""):
        return list(self.kept)


def test_what_was_set_is_set_after_a_restart():
    now, memory = {"rate": 1.0}, Cell()

    def knobs():
        return Knobs({"rate": Knob(lambda: now["rate"], lambda value: now.update(rate=value), 0.5, 2)}, memory)

    knobs().set("rate", 1.5)
    now["rate"] = 1.0
    knobs()
    assert now["rate"] == 1.5


@pytest.mark.parametrize("kept", ["", "fast", "nan", "7", "-1"])
def test_what_was_kept_and_is_no_value_is_passed_over(kept):
    now = {"rate": 1.0}
    Knobs({"rate": Knob(lambda: now["rate"], lambda value: now.update(rate=value), 0.5, 2)}, Cell({"knob.rate": kept}))
    assert now["rate"] == 1.0


@given(st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(), st.lists(st.integers())))
def test_only_what_is_a_value_is_set(value):
    now = {"rate": 1.0, "mute": False}
    knobs = Knobs(
        {
            "rate": Knob(lambda: now["rate"], lambda value: now.update(rate=value), 0.5, 2),
            "mute": Knob(lambda: now["mute"], lambda value: now.update(mute=value), kept=False),
        }
    )
    for name in ("rate", "mute", "colour"):
        try:
            knobs.set(name, value)
        except Fault:
            continue
    assert isinstance(now["mute"], bool)
    assert not isinstance(now["rate"], bool)
    assert 0.5 <= now["rate"] <= 2


@given(st.integers(0, 100))
def test_volume_is_what_was_set(points):
    gain = {"now": 1.0}
    knob = volume(lambda: gain["now"], lambda value: gain.update(now=value))
    knob.set(points)
    assert 0 <= gain["now"] <= 1
    assert knob.get() == points
