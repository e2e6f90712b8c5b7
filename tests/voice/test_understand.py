"""Between the words and what is done about them stands the confirmation of the turn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest

from appliance.events import Did, Event, Mark, Token, Transcript, Understood
from appliance.skills.dialogue import BROKEN, Dialogue
from appliance.skills.manifest import IntentRule, Manifest
from appliance.skills.skill import Call, Deed, Expecting, Match, Reading, Reply
from appliance.stream import Events, line
from appliance.voice.turn import Answer, once
from appliance.voice.understand import understand


class Skill:
    name = "light"
    manifest = Manifest(Path(), "light", "1", "Light", intents={"On": IntentRule("acts"), "State": IntentRule()})

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.calls: list[str] = []

    async def call(self, call: Call) -> Reply:
        self.calls.append(call.name)
        return self.reply


class Words:
    """Knows the names of the intents."""

    def readings(
        self,
        texts: str | Sequence[str],
        *,
        expecting: Expecting | None = None,
        now: datetime | None = None,
        limit: int = 5,
    ) -> list[Reading]:
        return [
            Reading((Match("light", text, {}, 1.0),), 1.0, text) for text in texts if text in Skill.manifest.intents
        ]


DONE = Reply("The light is on now.", deeds=(Deed("control.set", True, "light"),))


async def answering(
    text: str, skill: Skill, *, confirm_after: float | None, others: tuple[str, ...] = ()
) -> list[Event]:
    answer = Answer(Transcript(7, 1, text, 1.0, others))
    dialogue = Dialogue(lambda: {"light": skill}, Words)
    if confirm_after == 0:
        answer.confirmed.set()
    elif confirm_after:
        asyncio.get_running_loop().call_later(confirm_after, answer.confirmed.set)
    seen: list[Event] = []

    async def read(events: Events) -> None:
        async for event in events:
            if not isinstance(event, Mark):
                seen.append(event)

    async with line(once(answer.to), understand(dialogue, answer)) as events:
        await asyncio.wait({asyncio.create_task(read(events))}, timeout=0.3)
    assert answer.acted == any(isinstance(event, Did) and event.ok for event in seen)
    return seen


async def test_nothing_is_done_before_the_turn_is_confirmed() -> None:
    skill = Skill(DONE)
    assert [type(event) for event in await answering("On", skill, confirm_after=None)] == [Understood]
    assert skill.calls == []


async def test_what_was_done_comes_before_the_words_about_it() -> None:
    skill = Skill(DONE)
    seen = await answering("On", skill, confirm_after=0.05)
    assert seen == [
        Understood(7, 1, "light", "On", {}, 1.0),
        Did(7, 1, "control.set", True, "light"),
        Token(7, 1, "The light is on now.", by="skill"),
    ]


async def test_what_only_reads_is_prepared_while_the_turn_may_still_go_on() -> None:
    skill = Skill(Reply("It is on."))
    seen = await answering("State", skill, confirm_after=None)
    assert isinstance(seen[-1], Token)
    assert skill.calls == ["State"]


async def test_the_other_hearing_counts_too() -> None:
    assert isinstance((await answering("Onn", Skill(DONE), confirm_after=0, others=("On",)))[-1], Token)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(), BROKEN),
        (Reply(deeds=(Deed("x", True),)), "Done."),
        (Reply(deeds=(Deed("x", False),)), BROKEN),
    ],
)
async def test_a_skill_that_says_nothing_is_spoken_for(reply: Reply, said: str) -> None:
    assert (await answering("On", Skill(reply), confirm_after=0))[-1] == Token(7, 1, said, by="skill")


async def test_words_for_nobody_pass() -> None:
    words = Transcript(7, 1, "How are you?", 1.0)
    assert await answering("How are you?", Skill(DONE), confirm_after=0) == [words]
