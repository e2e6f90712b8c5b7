"""The dialogue: what is done, asked or said about the user's words, over several turns.

`plan` looks and decides, and changes nothing: it may be asked about words that are not final. `perform` carries a plan
out, `commit` makes what comes of it the state. Between them stands the confirmation of the turn (`voice.understand`).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, Protocol

from appliance.errors import Fault, SkillFault
from appliance.skills.manifest import IntentRule, Manifest
from appliance.skills.skill import Ask, Call, Deed, Effect, Expecting, Json, Match, Reading, Reply
from appliance.telemetry import log

OWN = "dialogue"
"""The skill name of what belongs to no skill: yes, no, cancel, a correction; and of what the dialogue asks itself."""

TELLING = 3
"""Words that something must have to be asked about: one or two that only sound like a command are noise."""

NEVER_MIND = "Okay, never mind."
LEFT = "Okay, let's leave that."
NO = "Okay."
WHAT_THEN = "What is it, then?"
LATE = "Sorry, that took too long. I don't know whether it was done."
BROKEN = "Sorry, that didn't work."
GONE = "Sorry, I can't do that any more."
DONE_ALREADY = "That is done already, and I can't change it."

_FOLLOWS = re.compile(r"^(?:and|but|so|okay|ok)?\W*(?:what about|how about|and|in|for|on)?\W+(?=\w)", re.IGNORECASE)
_CORRECTS = re.compile(
    r"^(?:no\b|nope\b|sorry\b|actually\b|wait\b|i (?:meant|mean|said)\b|make (?:it|that)\b|not\b)", re.IGNORECASE
)
_PLACE = re.compile(r"\{(\w+)\}")


class Intents(Protocol):
    """What the dialogue needs of a recogniser (`appliance.skills.intents.recognise`)."""

    def readings(
        self,
        texts: str | Sequence[str],
        *,
        expecting: Expecting | None = None,
        now: datetime | None = None,
        limit: int = 5,
    ) -> list[Reading]: ...


class Able(Protocol):
    """A skill with its manifest. `call` keeps within its limits, and raises SkillFault when it was stopped, trapped,
    refused, or answered nonsense; what it had done by then is in the fault's `deeds`."""

    @property
    def name(self) -> str: ...

    @property
    def manifest(self) -> Manifest: ...

    async def call(self, call: Call) -> Reply: ...


@dataclass(frozen=True, slots=True)
class DialogueRules:
    """Probabilities from which a command is done (`accept`), one without effect is (`sure`), and the box asks back
    (`ask`). A question is open for `patience_s` seconds and asked `tries` times; a call may take `deadline_s`."""

    accept: float = 0.8
    sure: float = 0.65
    ask: float = 0.5
    patience_s: float = 30.0
    tries: int = 2
    deadline_s: float = 5.0
    locale: str = "en-US"


@dataclass(frozen=True, slots=True)
class Command:
    """A call in the making. `agreed`: the user has confirmed it."""

    skill: str
    name: str
    values: Mapping[str, Json]
    text: str = ""
    score: float = 1.0
    context: Mapping[str, Json] = field(default_factory=dict)
    agreed: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """What the box has asked. `kind` slot: for the value of `slot`; confirm: whether to do it; meant: whether that was
    meant; which: which of `choices`; skill: the skill's own question. `rest` is done once it is answered."""

    kind: Literal["slot", "confirm", "meant", "which", "skill"]
    command: Command
    words: str
    asked: float
    slot: str = ""
    yes_no: bool = False
    choices: tuple[Command, ...] = ()
    rest: tuple[Command, ...] = ()
    tries: int = 1

    @property
    def expecting(self) -> Expecting:
        return Expecting(self.command.skill, self.command.name, self.slot, self.yes_no)


@dataclass(frozen=True, slots=True)
class State:
    """`last` is the command done last, with what its skill remembers of it; `at` when (seconds, monotonic)."""

    question: Question | None = None
    last: Command | None = None
    acted: bool = False
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """`does` in this order, then `says`, then the question that stays open. `meant` is what the words were taken for,
    where nothing is done."""

    does: tuple[Command, ...] = ()
    says: str = ""
    question: Question | None = None
    meant: tuple[Match, ...] = ()
    effect: Effect = "none"


@dataclass(frozen=True, slots=True)
class Part:
    """What came of one command."""

    command: Command
    reply: Reply


@dataclass(frozen=True, slots=True)
class Outcome:
    parts: tuple[Part, ...]
    says: str
    state: State
    """What the dialogue is in once this is committed."""

    @property
    def deeds(self) -> tuple[Deed, ...]:
        return tuple(deed for part in self.parts for deed in part.reply.deeds)


class Dialogue:
    """One conversation's. `skills` and `intents` are looked up anew for each turn: they may have been reloaded."""

    def __init__(
        self,
        skills: Callable[[], Mapping[str, Able]],
        intents: Callable[[], Intents],
        rules: DialogueRules | None = None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._skills, self._intents = skills, intents
        self.rules = rules or DialogueRules()
        self._now, self._clock = now, clock
        self.state = State()

    def forget(self) -> None:
        """Begins anew."""
        self.state = State()

    @property
    def expecting(self) -> Expecting | None:
        """What the next words may answer, if a question is open."""
        question = self._open
        return question.expecting if question else None

    # --- deciding ----------------------------------------------------------------------------------------------------

    def plan(self, texts: Sequence[str]) -> Plan | None:
        """What to make of the words, of which `texts` are the candidates, likeliest first. None: not for a skill."""
        question = self._open
        readings = self._readings(texts, question.expecting if question else None)
        if question:
            answer = self._titled(question, texts) or self._answer(question, readings)
            return answer or self._command(readings, question) or self._again(question)
        return self._correction(texts) or self._command(readings, None) or self._follow_up(texts)

    def proposal(self, command: Command, question: str) -> Plan:
        """A plan for what no sentence stands behind, such as a tool that a model chose. What acts is asked first."""
        effect = self._effect(command)
        if effect == "none":
            return Plan(does=(command,))
        return Plan(question=Question("confirm", command, question, self._clock(), yes_no=True))

    @property
    def _open(self) -> Question | None:
        question = self.state.question
        if question is None or self._clock() - question.asked > self.rules.patience_s:
            return None
        return question if question.command.skill in self._skills() else None

    def _readings(self, texts: Sequence[str], expecting: Expecting | None) -> list[Reading]:
        found = self._intents().readings(list(texts), expecting=expecting, now=self._now())
        return [reading for reading in found if reading.score >= self.rules.ask and reading.matches]

    def _answer(self, question: Question, readings: Sequence[Reading]) -> Plan | None:
        """The words as an answer to the open question."""
        if not readings:
            return None
        match = readings[0].matches[0]
        if match.skill == OWN:
            return self._own(question, match)
        command = question.command
        if (match.skill, match.intent) != (command.skill, command.name) or question.kind == "which":
            return self._choice(question, match)
        agreed = question.kind == "skill" and question.yes_no and not match.slots  # "Place it." to "Shall I place it?"
        filled = replace(command, values={**command.values, **match.values}, agreed=agreed)
        return self._doing((filled, *question.rest), meant=readings[0].matches)

    def _own(self, question: Question, match: Match) -> Plan | None:
        command = question.command
        match match.intent.lower():
            case "cancel":
                return Plan(says=NEVER_MIND, meant=(match,))
            case "no" if question.yes_no and question.kind == "skill" and question.slot:
                asked = replace(question, yes_no=False, words=WHAT_THEN, asked=self._clock())
                return Plan(question=asked, meant=(match,))
            case "no" if question.yes_no:
                return self._doing(question.rest, says=NO, meant=(match,))
            case "no":
                return Plan(says=NEVER_MIND, meant=(match,))
            case "yes" if question.yes_no:
                return self._doing((replace(command, agreed=True, score=1.0), *question.rest), meant=(match,))
            case "correct" if match.slots:
                context = {**command.context, "amend": True} if question.kind == "skill" else command.context
                values = {**command.values, **match.values}
                changed = replace(command, values=values, context=context, agreed=False)
                return self._doing((changed, *question.rest), meant=(match,))
        return None

    def _titled(self, question: Question, texts: Sequence[str]) -> Plan | None:
        """Which of two skills is meant, by a word of its title: "the lists, please"."""
        said = {word.lower() for text in texts for word in re.findall(r"\w+", text)}
        named = [
            one for one in question.choices if said & set(self._skills()[one.skill].manifest.title.lower().split())
        ]
        if len(named) != 1:
            return None
        return self._doing((replace(named[0], score=1.0), *question.rest))

    def _choice(self, question: Question, match: Match) -> Plan | None:
        for choice in question.choices:
            if (choice.skill, choice.name) == (match.skill, match.intent):
                return self._doing((replace(choice, score=1.0), *question.rest), meant=(match,))
        return None

    def _again(self, question: Question) -> Plan | None:
        """Words that are no answer: the question is asked once more, and then left to whoever understands them."""
        if question.tries >= self.rules.tries:
            return None
        asked = replace(question, tries=question.tries + 1, asked=self._clock())
        return Plan(says="Sorry?", question=asked)

    def _command(self, readings: Sequence[Reading], question: Question | None) -> Plan | None:
        """The words as commands, with another question open or none."""
        readings = [found for found in readings if all(match.skill in self._skills() for match in found.matches)]
        if not readings:
            return None
        best = self._nearest(readings)
        if rival := self._rival(readings):
            return self._which(best, rival)
        commands = tuple(
            Command(match.skill, match.intent, match.values, match.text, best.score, self._context(match))
            for match in best.matches
        )
        effect = max((self._effect(command) for command in commands), key=_EFFECTS.index)
        if best.score < (self.rules.sure if effect == "none" else self.rules.accept):
            return self._meant(commands, best) if len(best.text.split()) >= TELLING else None
        plan = self._doing(commands, meant=best.matches)
        nested = question and question.kind != "skill" and plan.question is None and question.tries < self.rules.tries
        if question and nested:
            return replace(plan, question=replace(question, tries=question.tries + 1, asked=self._clock()))
        return plan

    def _nearest(self, readings: Sequence[Reading]) -> Reading:
        """The best, or one as good by the skill that was just spoken with."""
        best, last = readings[0], self._last
        ours = [one for one in readings if last and one.matches[0].skill == last.skill]
        return ours[0] if ours and best.score - ours[0].score <= 0.05 else best

    def _rival(self, readings: Sequence[Reading]) -> Reading | None:
        """A reading by another skill that is as likely as the best."""
        best, last = readings[0], self._last
        for other in readings[1:]:
            if last and last.skill in (best.matches[0].skill, other.matches[0].skill):
                continue  # "cancel it" is about what was just spoken of
            near = best.score - other.score <= 0.05 and other.score >= self.rules.accept
            if (
                near
                and len(other.matches) == len(best.matches) == 1
                and other.matches[0].skill != best.matches[0].skill
            ):
                return other
        return None

    def _which(self, one: Reading, other: Reading) -> Plan:
        choices = tuple(
            Command(match.skill, match.intent, match.values, match.text) for match in (one.matches[0], other.matches[0])
        )
        titles = [self._skills()[choice.skill].manifest.title for choice in choices]
        words = f"Is that for {titles[0]}, or for {titles[1]}?"
        question = Question("which", choices[0], words, self._clock(), choices=choices)
        return Plan(question=question, meant=(one.matches[0], other.matches[0]))

    def _meant(self, commands: tuple[Command, ...], reading: Reading) -> Plan:
        words = f'Did you mean "{reading.text.strip(" .?!")}"?'
        question = Question("meant", commands[0], words, self._clock(), yes_no=True, rest=commands[1:])
        return Plan(question=question, meant=reading.matches)

    def _context(self, match: Match) -> Mapping[str, Json]:
        """What the skill said goes with its last reply, while that is fresh."""
        last = self._last
        return last.context if last and last.skill == match.skill else {}

    @property
    def _last(self) -> Command | None:
        fresh = self._clock() - self.state.at <= self.rules.patience_s
        return self.state.last if fresh and self.state.last and self.state.last.skill in self._skills() else None

    def _follow_up(self, texts: Sequence[str]) -> Plan | None:
        """ "And tomorrow?": the last question once more, with another value."""
        last = self._last
        rule = self._rule(last) if last else None
        if last is None or rule is None or rule.effect != "none":
            return None
        rests = [
            rest for text in texts if (rest := _FOLLOWS.sub("", text, count=1).strip(" .?!")) != text.strip(" .?!")
        ]
        if not rests:
            return None
        for slot in rule.follows:
            for reading in self._readings(rests, Expecting(last.skill, last.name, slot)):
                match = reading.matches[0]
                if (match.skill, match.intent) == (last.skill, last.name) and slot in match.slots:
                    command = replace(last, values={**last.values, **match.values}, score=reading.score)
                    return self._doing((command,), meant=(match,))
        return None

    def _correction(self, texts: Sequence[str]) -> Plan | None:
        """ "No, fifteen": the last command with another value. What was done already is changed only by a skill that
        knows what to change: one that left a context."""
        last = self._last
        if last is None or not any(_CORRECTS.match(text.strip()) for text in texts):
            return None
        for reading in self._readings(texts, Expecting(last.skill, last.name)):
            match = reading.matches[0]
            ours = (match.skill, match.intent.lower()) in ((OWN, "correct"), (last.skill, last.name.lower()))
            if not ours or not match.slots:
                continue
            if self.state.acted and not last.context:
                return Plan(says=DONE_ALREADY, meant=(match,))
            values = {**last.values, **match.values}
            command = replace(last, values=values, context={**last.context, "amend": True}, agreed=False)
            return self._doing((command,), meant=(match,))
        return None

    def _doing(self, commands: tuple[Command, ...], *, says: str = "", meant: Sequence[Match] = ()) -> Plan:
        """The commands up to the first that lacks something, and the question about that."""
        does: list[Command] = []
        for number, command in enumerate(commands):
            command = self._completed(command)
            if question := self._lacks(command, commands[number + 1 :]):
                return Plan(tuple(does), says, question, tuple(meant), self._highest(does))
            does.append(command)
        return Plan(tuple(does), says, None, tuple(meant), self._highest(does))

    def _highest(self, commands: Sequence[Command]) -> Effect:
        return max((self._effect(command) for command in commands), key=_EFFECTS.index, default="none")

    def _completed(self, command: Command) -> Command:
        rule = self._rule(command)
        defaults = {name: slot.default for name, slot in rule.slots.items() if slot.default is not None} if rule else {}
        return replace(command, values={**defaults, **command.values}) if defaults else command

    def _lacks(self, command: Command, rest: tuple[Command, ...]) -> Question | None:
        rule = self._rule(command)
        if rule is None:
            return None
        for name, slot in rule.slots.items():
            if slot.required and command.values.get(name) in (None, ""):
                words = slot.ask or f"What {name.replace('_', ' ')}?"
                return Question("slot", command, words, self._clock(), slot=name, rest=rest)
        if rule.effect == "costs" and not command.agreed:
            words = _filled(rule.confirm, command.values) or f"Shall I {command.text}?"
            return Question("confirm", command, words, self._clock(), yes_no=True, rest=rest)
        return None

    def _rule(self, command: Command) -> IntentRule | None:
        skill = self._skills().get(command.skill)
        return skill.manifest.intents.get(command.name) if skill else None

    def _effect(self, command: Command) -> Effect:
        """Of an intent or a tool; what is not known is taken for the worst."""
        skill = self._skills().get(command.skill)
        if skill is None:
            return "none"
        manifest = skill.manifest
        found = manifest.intents.get(command.name) or manifest.tools.get(command.name)
        return found.effect if found else "costs"

    # --- doing -------------------------------------------------------------------------------------------------------

    async def perform(self, plan: Plan) -> Outcome:
        """Calls what the plan calls, in order; one that fails does not keep the rest from being done. An act that has
        begun is finished even if nobody waits for it any more."""
        if plan.effect != "none":
            # the question that led here must not be answered a second time, should this be interrupted
            self.state = replace(self.state, question=None)
        parts = []
        for command in plan.does:
            parts.append(Part(command, await self._call(command)))
        return self._outcome(plan, tuple(parts))

    def commit(self, outcome: Outcome) -> None:
        self.state = outcome.state

    async def _call(self, command: Command) -> Reply:
        skill = self._skills().get(command.skill)
        if skill is None:
            return Reply(GONE, failed=True)
        call = Call(command.name, command.values, command.text, self.rules.locale, command.context)
        task = asyncio.create_task(skill.call(call))
        try:
            async with asyncio.timeout(self.rules.deadline_s):
                return await asyncio.shield(task)
        except TimeoutError:
            task.add_done_callback(_late)
            return Reply(LATE, failed=True, deeds=(Deed(f"{command.skill}.{command.name}", False, "late"),))
        except asyncio.CancelledError:
            task.add_done_callback(_late)
            raise
        except SkillFault as fault:
            log("skill failed", skill=command.skill, intent=command.name, reason=str(fault))
            deeds = tuple(deed for deed in fault.deeds if isinstance(deed, Deed))
            failed = Deed(f"{command.skill}.{command.name}", False, fault.message)
            return Reply(BROKEN, failed=True, deeds=(*deeds, failed))
        except Fault as fault:
            log("skill failed", skill=command.skill, intent=command.name, reason=str(fault))
            deed = Deed(f"{command.skill}.{command.name}", False, fault.message)
            return Reply(BROKEN, failed=True, deeds=(deed,))

    def _outcome(self, plan: Plan, parts: tuple[Part, ...]) -> Outcome:
        question = plan.question
        asks = [part for part in parts if part.reply.ask]
        if question is None and asks:
            part = asks[-1]
            assert part.reply.ask is not None
            question = self._asked(part, part.reply.ask)
        says = [plan.says, *(_told(part.reply, last=part is parts[-1]) for part in parts)]
        if plan.question:
            says.append(plan.question.words)
        last, acted = self.state.last, self.state.acted
        if parts:
            done = parts[-1]
            last = replace(done.command, context=done.reply.context, agreed=False)
            acted = any(part.reply.acted for part in parts)
        state = State(question, last, acted, self._clock() if parts else self.state.at)
        return Outcome(parts, " ".join(filter(None, (text.strip() for text in says))), state)

    def _asked(self, part: Part, ask: Ask) -> Question:
        """A skill's own question. Where it asks for the missing slot of the same intent, what was said stays."""
        values = part.command.values if ask.intent == part.command.name and not part.reply.context else {}
        command = Command(part.command.skill, ask.intent, values, part.command.text, context=part.reply.context)
        return Question("skill", command, part.reply.say, self._clock(), slot=ask.slot, yes_no=ask.yes_no)


_QUESTION = re.compile(r"(?:^|(?<=[.!?])\s)[^.!?]*\?\s*$")


def _told(reply: Reply, *, last: bool) -> str:
    """What is said of a command; a question that another command comes behind is not asked."""
    return reply.say if last or not reply.ask else _QUESTION.sub("", reply.say)


_EFFECTS: tuple[Effect, ...] = ("none", "acts", "costs")


def _filled(template: str, values: Mapping[str, Json]) -> str:
    """The question with its places filled; "" where a value is missing."""
    names = _PLACE.findall(template)
    if any(values.get(name) in (None, "") for name in names):
        return ""
    return _PLACE.sub(lambda place: str(values[place.group(1)]), template)


def _late(task: asyncio.Task[Reply]) -> None:
    """What was done by a call that nobody waits for any more is at least written down."""
    if task.cancelled():
        return
    error = task.exception()
    deeds = task.result().deeds if error is None else getattr(error, "deeds", ())
    log("late skill", reason=str(error or ""), deeds=[f"{deed.what} {deed.ok}" for deed in deeds])
