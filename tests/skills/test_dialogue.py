"""What is done, asked and said, over several turns: with scripted readings, so that only the dialogue decides."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from appliance.errors import SkillFault
from appliance.skills import dialogue as d
from appliance.skills.dialogue import Command, Dialogue, DialogueRules, Outcome, Plan
from appliance.skills.manifest import IntentRule, Manifest, SlotRule, Tool
from appliance.skills.skill import Ask, Call, Deed, Expecting, Json, Match, Reading, Reply, Slot

RULES = DialogueRules(deadline_s=0.2)


def match(skill: str, intent: str, **values: Json) -> Match:
    return Match(skill, intent, {name: Slot(value, str(value)) for name, value in values.items()}, 1.0, intent)


YES, NO, CANCEL = match("dialogue", "Yes"), match("dialogue", "No"), match("dialogue", "Cancel")


class Script:
    """Knows the readings of each text: a list is one reading with all its matches, a tuple are rivals; a score may
    stand in front."""

    def __init__(self, readings: Mapping[str, Any]) -> None:
        self.table: dict[str, tuple[float, Any]] = {
            text: given if isinstance(given[0], float) else (1.0, given) for text, given in readings.items()
        }
        self.expected: list[Expecting | None] = []

    def readings(
        self,
        texts: str | Sequence[str],
        *,
        expecting: Expecting | None = None,
        now: datetime | None = None,
        limit: int = 5,
    ) -> list[Reading]:
        self.expected.append(expecting)
        found = []
        for text in texts:
            score, given = self.table.get(text, (1.0, ()))
            for matches in [tuple(given)] if isinstance(given, list) else [(one,) for one in given]:
                found.append(Reading(matches, score, text))
        return found[:limit]


class Recorder:
    """A skill that does what it is told, and notes it."""

    def __init__(self, name: str, intents: Mapping[str, IntentRule], tools: Mapping[str, Tool] | None = None) -> None:
        self.manifest = Manifest(Path(), name, "1.0.0", name.title(), intents=intents, tools=tools or {})
        self.name = name
        self.calls: list[Call] = []
        self.replies: dict[str, Reply | Exception | float] = {}

    async def call(self, call: Call) -> Reply:
        self.calls.append(call)
        reply = self.replies.get(call.name, Reply(f"{call.name}."))
        if isinstance(reply, float):
            await asyncio.sleep(reply)
            return Reply("late", deeds=(Deed("late", True),))
        if isinstance(reply, Exception):
            raise reply
        found = self.manifest.intents.get(call.name)
        if found and found.effect != "none" and not reply.deeds:
            return replace(reply, deeds=(Deed(call.name, True),))
        return reply


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def box(table: Mapping[str, Any], *skills: Recorder) -> tuple[Dialogue, Script, Clock]:
    script, clock = Script(table), Clock()
    known = {skill.name: skill for skill in skills}
    return Dialogue(lambda: known, lambda: script, RULES, clock=clock), script, clock


async def say(dialogue: Dialogue, *texts: str) -> Outcome | None:
    plan = dialogue.plan(texts)
    if plan is None:
        return None
    outcome = await dialogue.perform(plan)
    dialogue.commit(outcome)
    return outcome


def timers(**replies: Reply) -> Recorder:
    skill = Recorder(
        "timers",
        {
            "Set": IntentRule("acts", slots={"length": SlotRule(True, "For how long?"), "name": SlotRule()}),
            "Left": IntentRule(follows=("name",)),
            "Clear": IntentRule("costs", confirm="Cancel all {count} timers?", slots={"count": SlotRule(default=2)}),
        },
    )
    skill.replies.update(replies)
    return skill


async def test_a_command_is_done_and_said() -> None:
    skill = timers()
    dialogue, _, _ = box({"set five": [match("timers", "Set", length=300)]}, skill)
    outcome = await say(dialogue, "set five")
    assert outcome is not None
    assert (outcome.says, [call.arguments for call in skill.calls]) == ("Set.", [{"length": 300}])
    assert [deed.ok for deed in outcome.deeds] == [True]


async def test_words_for_nobody_are_passed_on() -> None:
    dialogue, _, _ = box({}, timers())
    assert dialogue.plan(["how are you"]) is None


def test_a_plan_changes_nothing_and_is_the_same_again() -> None:
    skill = timers()
    dialogue, _, _ = box({"set": [match("timers", "Set")]}, skill)
    before = dialogue.state
    assert dialogue.plan(["set"]) == dialogue.plan(["set"])
    assert dialogue.state == before
    assert not skill.calls


async def test_what_is_missing_is_asked_for_and_the_answer_fills_it() -> None:
    skill = timers()
    table = {"set": [match("timers", "Set", name="tea")], "five": [match("timers", "Set", length=300)]}
    dialogue, script, _ = box(table, skill)
    outcome = await say(dialogue, "set")
    assert outcome is not None
    assert outcome.says == "For how long?"
    await say(dialogue, "five")
    assert script.expected[-1] == Expecting("timers", "Set", "length")
    assert [call.arguments for call in skill.calls] == [{"name": "tea", "length": 300}]
    assert dialogue.state.question is None


@pytest.mark.parametrize(
    ("answer", "calls", "said"),
    [("yes", 1, "Clear."), ("no", 0, d.NO), ("cancel", 0, d.NEVER_MIND)],
)
async def test_what_costs_is_asked_first(answer: str, calls: int, said: str) -> None:
    skill = timers()
    table = {"clear": [match("timers", "Clear")], "yes": [YES], "no": [NO], "cancel": [CANCEL]}
    dialogue, _, _ = box(table, skill)
    asked = await say(dialogue, "clear")
    assert asked is not None
    assert asked.says == "Cancel all 2 timers?"
    assert not skill.calls
    outcome = await say(dialogue, answer)
    assert outcome is not None
    assert (len(skill.calls), outcome.says) == (calls, said)
    assert await say(dialogue, "yes") is None, "a yes counts once"


async def test_a_question_is_asked_again_once_and_then_left() -> None:
    dialogue, _, _ = box({"set": [match("timers", "Set")]}, timers())
    await say(dialogue, "set")
    again = await say(dialogue, "mumble")
    assert again is not None
    assert again.says == "Sorry? For how long?"
    assert await say(dialogue, "mumble") is None


async def test_an_open_question_has_its_time() -> None:
    skill = timers()
    dialogue, _, clock = box({"clear": [match("timers", "Clear")], "yes": [YES]}, skill)
    await say(dialogue, "clear")
    clock.now += RULES.patience_s + 1
    assert await say(dialogue, "yes") is None
    assert not skill.calls


async def test_a_correction_of_what_is_asked() -> None:
    skill = timers()
    table = {
        "clear": [match("timers", "Clear")],
        "no three": [match("dialogue", "Correct", count=3)],
        "yes": [YES],
    }
    dialogue, _, _ = box(table, skill)
    await say(dialogue, "clear")
    asked = await say(dialogue, "no three")
    assert asked is not None
    assert asked.says == "Cancel all 3 timers?"
    await say(dialogue, "yes")
    assert skill.calls[0].arguments == {"count": 3}


@pytest.mark.parametrize("context", [{}, {"id": 7}])
async def test_a_correction_of_what_is_done_needs_a_skill_that_knows_what(context: Mapping[str, Json]) -> None:
    skill = timers(Set=Reply("Set.", context=context))
    table = {"set five": [match("timers", "Set", length=300)], "no, ten": [match("dialogue", "Correct", length=600)]}
    dialogue, _, _ = box(table, skill)
    await say(dialogue, "set five")
    outcome = await say(dialogue, "no, ten")
    assert outcome is not None
    if context:
        assert skill.calls[-1].arguments == {"length": 600}
        assert skill.calls[-1].context == {"id": 7, "amend": True}
    else:
        assert outcome.says == d.DONE_ALREADY
        assert len(skill.calls) == 1


async def test_a_question_goes_on_with_another_value() -> None:
    skill = timers()
    table = {"left on tea": [match("timers", "Left", name="tea")], "eggs": [match("timers", "Left", name="eggs")]}
    dialogue, script, _ = box(table, skill)
    await say(dialogue, "left on tea")
    await say(dialogue, "And what about eggs?")
    assert script.expected[-1] == Expecting("timers", "Left", "name")
    assert skill.calls[-1].arguments == {"name": "eggs"}


async def test_two_commands_in_one_sentence_and_one_that_fails() -> None:
    skill, other = timers(), Recorder("lists", {"Add": IntentRule("acts")})
    skill.replies["Set"] = SkillFault("it broke")
    dialogue, _, _ = box({"both": [match("timers", "Set", length=1), match("lists", "Add", item="milk")]}, skill, other)
    outcome = await say(dialogue, "both")
    assert outcome is not None
    assert outcome.says == f"{d.BROKEN} Add."
    assert [deed.ok for deed in outcome.deeds] == [False, True]


async def test_the_second_command_waits_for_what_the_first_lacks() -> None:
    skill, other = timers(), Recorder("lists", {"Add": IntentRule("acts")})
    table = {"both": [match("timers", "Set"), match("lists", "Add")], "five": [match("timers", "Set", length=300)]}
    dialogue, _, _ = box(table, skill, other)
    await say(dialogue, "both")
    assert not other.calls
    await say(dialogue, "five")
    assert len(skill.calls) == len(other.calls) == 1


async def test_what_is_less_than_sure_is_asked_back() -> None:
    skill = timers()
    dialogue, _, _ = box({"maybe for five": (0.7, [match("timers", "Set", length=300)]), "yes": [YES]}, skill)
    outcome = await say(dialogue, "maybe for five")
    assert outcome is not None
    assert outcome.says == 'Did you mean "maybe for five"?'
    assert not skill.calls
    await say(dialogue, "yes")
    assert len(skill.calls) == 1


async def test_a_word_that_only_sounds_like_a_command_is_not_asked_about() -> None:
    dialogue, _, _ = box({"hm": (0.7, [match("timers", "Set", length=300)])}, timers())
    assert await say(dialogue, "hm") is None


async def test_a_question_that_is_less_than_sure_is_answered() -> None:
    skill = timers()
    dialogue, _, _ = box({"maybe": (0.7, [match("timers", "Left")])}, skill)
    await say(dialogue, "maybe")
    assert len(skill.calls) == 1


@pytest.mark.parametrize("answer", ["it", "The oven, please."])
async def test_two_skills_that_claim_a_sentence_are_asked_about(answer: str) -> None:
    skill, other = timers(), Recorder("oven", {"Set": IntentRule("acts")})
    one, two = match("timers", "Set", length=300), match("oven", "Set", length=300)
    table = {"set five": (1.0, (one, two)), **({"it": [match("oven", "Set")]} if answer == "it" else {})}
    dialogue, _, _ = box(table, skill, other)
    outcome = await say(dialogue, "set five")
    assert outcome is not None
    assert outcome.says == "Is that for Timers, or for Oven?"
    await say(dialogue, answer)
    assert (len(skill.calls), [call.arguments for call in other.calls]) == (0, [{"length": 300}])


async def test_another_command_between_and_the_question_comes_again_once() -> None:
    skill, other = timers(), Recorder("lists", {"Add": IntentRule("acts")})
    dialogue, _, _ = box({"set": [match("timers", "Set")], "add": [match("lists", "Add")]}, skill, other)
    await say(dialogue, "set")
    outcome = await say(dialogue, "add")
    assert outcome is not None
    assert outcome.says == "Add. For how long?"
    outcome = await say(dialogue, "add")
    assert outcome is not None
    assert outcome.says == "Add."


async def test_a_skills_own_question_and_its_context() -> None:
    skill = Recorder("kiosk", {"Finish": IntentRule(), "Place": IntentRule("costs", confirm="Place it?")})
    skill.replies["Finish"] = Reply("A latte, 3.20. Shall I place it?", Ask("Place", yes_no=True), {"order": 1})
    dialogue, _, _ = box({"that's all": [match("kiosk", "Finish")], "yes": [YES], "no": [NO]}, skill)
    await say(dialogue, "that's all")
    outcome = await say(dialogue, "yes")
    assert outcome is not None
    assert (skill.calls[-1].name, skill.calls[-1].context) == ("Place", {"order": 1})
    assert [call.name for call in skill.calls] == ["Finish", "Place"], "what was read out is not asked twice"


async def test_a_skill_that_is_gone_takes_its_question_along() -> None:
    skill = timers()
    known = {"timers": skill}
    script = Script({"clear": [match("timers", "Clear")], "yes": [YES]})
    dialogue = Dialogue(lambda: known, lambda: script, RULES)
    await say(dialogue, "clear")
    known.clear()
    assert await say(dialogue, "yes") is None


async def test_a_late_skill_is_told_honestly() -> None:
    skill = timers()
    skill.replies["Set"] = 5.0
    dialogue, _, _ = box({"set five": [match("timers", "Set", length=300)]}, skill)
    outcome = await say(dialogue, "set five")
    assert outcome is not None
    assert outcome.says == d.LATE
    assert not any(deed.ok for deed in outcome.deeds)


async def test_an_act_is_not_agreed_to_twice_when_it_is_interrupted() -> None:
    skill = timers()
    skill.replies["Clear"] = 0.1
    dialogue, _, _ = box({"clear": [match("timers", "Clear")], "yes": [YES]}, skill)
    await say(dialogue, "clear")
    plan = dialogue.plan(["yes"])
    assert plan is not None
    task = asyncio.create_task(dialogue.perform(plan))
    await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert dialogue.plan(["yes"]) is None
    await asyncio.sleep(0.15)
    assert len(skill.calls) == 1


def test_a_tool_that_acts_is_proposed_and_one_that_reads_is_called() -> None:
    tools = {
        name: Tool(name, "", effect, {"type": "object"})  # type: ignore[arg-type]
        for name, effect in (("look", "none"), ("send", "acts"))
    }
    dialogue, _, _ = box({}, Recorder("mail", {}, tools))
    assert dialogue.proposal(Command("mail", "look", {}), "?").does
    asked = dialogue.proposal(Command("mail", "send", {}), "Shall I send it?")
    assert not asked.does
    assert asked.question is not None
    assert asked.question.yes_no


class Talks(RuleBasedStateMachine):
    """Whatever is said, in whatever order: nothing that costs is done without a yes right after its question, a turn
    does no more than it plans, and a cancelled question is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.skill = timers()
        table = {
            "set": [match("timers", "Set")],
            "five": [match("timers", "Set", length=300)],
            "clear": [match("timers", "Clear")],
            "left": [match("timers", "Left", name="tea")],
            "yes": [YES],
            "no": [NO],
            "cancel": [CANCEL],
            "no, ten": [match("dialogue", "Correct", length=600)],
        }
        self.dialogue, _, self.clock = box(table, self.skill)

    @rule(text=st.sampled_from(["set", "five", "clear", "left", "yes", "no", "cancel", "no, ten", "mumble"]))
    def speak(self, text: str) -> None:
        question, before = self.dialogue.state.question, len(self.skill.calls)
        plan = self.dialogue.plan([text])
        assert plan is None or isinstance(plan, Plan)
        if plan is None:
            return
        outcome = asyncio.run(self.dialogue.perform(plan))
        self.dialogue.commit(outcome)
        made = self.skill.calls[before:]
        assert len(made) == len(plan.does) <= 1
        assert outcome.says
        if any(call.name == "Clear" for call in made):
            assert text == "yes"
            assert question is not None
            assert question.kind == "confirm"
        if text == "cancel":
            assert self.dialogue.state.question is None

    @rule(seconds=st.sampled_from([1.0, 40.0]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @invariant()
    def nothing_is_left_running(self) -> None:
        assert self.dialogue.state.question is None or self.dialogue.state.question.tries <= RULES.tries


TestTalks = Talks.TestCase
TestTalks.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
