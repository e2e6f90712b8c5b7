"""The whole box with its skills and documents, on real models: spoken to in one turn after another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from appliance import config
from appliance.compose import Abilities, Engines, abilities, reply, talk
from appliance.events import Answered, Cited, Did, Event, Phrase, Transcript, Understood
from appliance.voice.conversation import Conversation
from firmware import wav
from firmware.fake import Fake
from firmware.frame import RATE, Pcm, to_pcm
from firmware.resample import resample

pytestmark = pytest.mark.models
PACKS = Path(__file__).parent / "bench/data/packs"


@pytest.fixture(scope="module")
def engines(shelf) -> Engines:  # type: ignore[no-untyped-def]
    settings = config.parse("[think]\nmax_tokens = 40")
    return Engines(replace(settings, knowledge=replace(settings.knowledge, folders=(PACKS,))), shelf)


@pytest.fixture
def able(engines: Engines, tmp_path: Path) -> Iterator[Abilities]:
    settings = replace(engines.config, skills=replace(engines.config.skills, folders=()))
    with abilities(engines, Conversation(), config=settings, state=tmp_path) as made:
        yield made


def spoken(engines: Engines, *texts: str) -> Pcm:
    """The texts as a quiet room hears them, ten seconds from one to the next."""
    parts = []
    for text in texts:
        sound = np.concatenate([chunk.samples for chunk in engines.speaker.say(text)])
        near = resample(sound, engines.speaker.rate, RATE)
        parts += [np.zeros(RATE // 2, np.float32), near, np.zeros(10 * RATE, np.float32)]
    near = np.concatenate(parts[:-1])
    return to_pcm(near + np.random.default_rng(0).normal(0, 3e-4, len(near)).astype(np.float32))


async def hear(engines: Engines, able: Abilities, sound: Fake) -> list[Event]:
    async with talk(engines, sound, Conversation(), able=able) as events:
        return [event async for event in events]


async def typed(engines: Engines, able: Abilities, text: str) -> list[Event]:
    return [event async for event in reply(engines, Conversation(), text, able)]


async def test_a_timer_is_set_and_asked_about_by_voice(engines: Engines, able: Abilities) -> None:
    sound = Fake(spoken(engines, "Set a timer for ten minutes.", "How long is left on the timer?"), tail=4.0)
    events = await hear(engines, able, sound)
    understood = [(event.skill, event.intent) for event in events if isinstance(event, Understood)]
    assert understood == [("alarms", "SetTimer"), ("alarms", "Left")]
    assert [(event.what, event.ok) for event in events if isinstance(event, Did)] == [("alarm.set", True)]
    assert [alarm.seconds for alarm in able.alarms.all()] == [600]
    said = [event.said for event in events if isinstance(event, Answered)]
    assert "10 minutes" in said[0]


async def test_a_draft_does_nothing(engines: Engines, able: Abilities) -> None:
    """What has an effect waits until it is certain that the user has finished: "...and a half" came behind a pause."""
    parts = spoken(engines, "Set a timer for ten minutes")
    rest = spoken(engines, "and a half.")
    pause = np.zeros(round(0.12 * RATE), np.int16)
    await hear(engines, able, Fake(np.concatenate([parts, pause, rest[RATE // 2 :]]), tail=4.0))
    assert len(able.alarms.all()) <= 1


async def test_documents_answer_with_their_source_or_not_at_all(engines: Engines, able: Abilities) -> None:
    events = await typed(engines, able, "what is the torque of the caliper bracket?")
    cited = next(event for event in events if isinstance(event, Cited))
    phrase = "".join(event.text for event in events if isinstance(event, Phrase))
    assert "110" in cited.text
    assert "110" in phrase
    nothing = await typed(engines, able, "how much is a bicycle?")
    assert not any(isinstance(event, Cited) for event in nothing)
    assert "nothing about that" in "".join(event.text for event in nothing if isinstance(event, Phrase))


async def test_to_a_command_that_no_skill_takes_nothing_is_claimed(engines: Engines, able: Abilities) -> None:
    events = await typed(engines, able, "Please turn off the light in the hall.")
    said = "".join(event.text for event in events if isinstance(event, Phrase))
    assert not any(isinstance(event, Did) for event in events)
    assert "can't" in said or said.rstrip().endswith("?")


@pytest.mark.shared
async def test_a_recorded_order_is_placed_only_after_its_yes(engines: Engines, able: Abilities, shared_audio) -> None:  # type: ignore[no-untyped-def]
    recording = next(one for one in shared_audio if one.path.name.startswith("d97d5d95"))
    label = json.loads(recording.label.partition(") ")[2])["slots"]
    sound = wav.read(recording.path).samples
    events = await hear(engines, able, Fake(sound, tail=6.0))
    assert any(isinstance(event, Transcript) for event in events)
    understood = [event for event in events if isinstance(event, Understood)]
    assert understood[0].skill == "kiosk"
    assert understood[0].slots["drink"] == label["coffeeDrink"]
    assert all(event.what != "mqtt.publish" for event in events if isinstance(event, Did))
