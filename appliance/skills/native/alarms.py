"""Timers, alarms and reminders by voice. What was set is repeated, so that a mishearing is noticed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

from appliance.errors import StorageFault
from appliance.skills.intents.words import words
from appliance.skills.native import spoken
from appliance.skills.native.base import Answer, Native, days, number, text
from appliance.skills.native.spoken import counted, duration, listed
from appliance.skills.native.which import due, label, left, meant, purpose
from appliance.skills.numbers import duration as duration_of
from appliance.skills.skill import Alarm, Ask, Call, Deed, Json, Reply

SNOOZE = 600.0
"""Seconds, where the user does not say for how long."""

TOLD = 5
"""Timers, alarms and reminders that are listed one by one."""

Kind = Literal["timer", "alarm", "reminder"]

_YOURS = {"my": "your", "me": "you", "i": "you", "i'm": "you're", "myself": "yourself", "mine": "yours", "am": "are"}


class Reminding(Native):
    """`Call.context`: "id" is what was spoken of last ("pause it"); "action", "kind" and "carried" are of a question
    which one is meant: the arguments that are carried to the answer."""

    @property
    def answers(self) -> Mapping[str, Answer]:
        return {
            "SetTimer": self._set_timer,
            "SetAlarm": self._set_alarm,
            "Remind": self._remind,
            "Cancel": self._cancel,
            "CancelAll": self._cancel_all,
            "List": self._list,
            "Left": self._left,
            "Pause": self._pause,
            "Resume": self._resume,
            "Extend": self._extend,
            "Change": self._change,
            "Rename": self._rename,
            "Snooze": self._snooze,
            "Dismiss": self._dismiss,
        }

    async def call(self, call: Call) -> Reply:
        carried = call.context.get("carried")
        if isinstance(carried, Mapping) and call.context.get("action") == call.name and "name" in call.arguments:
            call = replace(call, arguments={**carried, **call.arguments})
        try:
            return await super().call(call)
        except StorageFault as fault:
            return Reply(
                "Sorry, I couldn't keep that.", failed=True, deeds=(Deed(f"alarm.{call.name}", False, fault.message),)
            )

    # --- setting -----------------------------------------------------------------------------------------------------

    def _set_timer(self, call: Call) -> Reply:
        seconds, name = number(call, "duration"), _name(call)
        if not seconds or seconds < 0:
            return Reply("For how long?", ask=Ask("SetTimer", "duration"))
        return self._set(call, "timer", name=name, seconds=seconds)

    def _set_alarm(self, call: Call) -> Reply:
        name, wait, repeat = _name(call), number(call, "wait"), days(call, "days")
        if wait and wait > 0:
            return self._set(call, "alarm", name=name, seconds=wait)
        when = self._when(call)
        if when is None:
            question = "What time?" if repeat else "For what time?"
            return Reply(question, ask=Ask("SetAlarm", "time" if call.arguments.get("wake") or repeat else "when"))
        if when <= self.services.now() and not repeat:
            return _past(when, self.services.now())
        return self._set(call, "alarm", name=name, when=when, repeat=repeat)

    def _remind(self, call: Call) -> Reply:
        what, about = _yours(text(call, "text")), _yours(text(call, "about"))
        what = what or (f"about {about}" if about else "")
        when, repeat = self._when(call), days(call, "days")
        wait = number(call, "wait") or self._wait(call, when)
        if not what:
            return Reply("What shall I remind you of?", ask=Ask("Remind", "text"))
        if wait and wait > 0:
            return self._set(call, "reminder", seconds=wait, what=what)
        if when is None:
            return Reply("When shall I remind you?", ask=Ask("Remind", "time" if repeat else "when"))
        if when <= self.services.now() and not repeat:
            return _past(when, self.services.now())
        return self._set(call, "reminder", when=when, repeat=repeat, what=what)

    def _when(self, call: Call) -> datetime | None:
        """The next time that is meant, by the wall clock: seven is seven also where summer time lies between."""
        now = self.services.now()
        if given := text(call, "when"):
            when = datetime.fromisoformat(given).replace(tzinfo=now.tzinfo)
            later = when + timedelta(hours=12)
            return later if when <= now and when.hour < 12 and later.date() == now.date() and later > now else when
        if not (time := text(call, "time")):
            return None
        hour, minute = map(int, time.split(":")[:2])
        day = text(call, "day")
        date = datetime.fromisoformat(day[:10]).date() if day else now.date()
        when = datetime(date.year, date.month, date.day, hour, minute, tzinfo=now.tzinfo)
        return when if day or when > now else when + timedelta(days=1)

    def _wait(self, call: Call, when: datetime | None) -> float | None:
        """Seconds where the words said how long, not when: those run by a clock that nobody sets."""
        said = words(call.text)
        for place, word in enumerate(said):
            found = duration_of(said, place + 1) if word == "in" else None
            seconds = float(found[0]) if found and isinstance(found[0], int | float) else 0.0
            if when and seconds and abs((when - self.services.now()).total_seconds() - seconds) < 60:
                return seconds
        return None

    def _set(
        self,
        call: Call,
        kind: Kind,
        *,
        name: str = "",
        seconds: float = 0.0,
        when: datetime | None = None,
        repeat: Sequence[str] = (),
        what: str = "",
    ) -> Reply:
        before = self._remembered(call) if call.context.get("amend") else None
        due = None if seconds else when
        made = self.services.alarms.add(
            kind, name=name or (before.name if before else ""), seconds=seconds, due=due, text=what, repeat=repeat
        )
        deeds = [Deed("alarm.set", True, f"{kind} {made.id} due {made.due.isoformat(timespec='seconds')}")]
        if before and self.services.alarms.cancel(before.id):
            deeds.append(Deed("alarm.cancel", True, f"{before.kind} {before.id}"))
        return Reply(self._told(made, seconds), context={"id": made.id}, deeds=tuple(deeds), data=made.id)

    def _told(self, made: Alarm, seconds: float) -> str:
        now = self.services.now()
        when = f"in {duration(seconds)}" if seconds else due(made, now)
        if made.kind == "reminder":
            at = when if seconds or when.startswith(("tomorrow", *spoken.WEEKDAYS)) else f"at {when}"
            return f"I'll remind you {at} {purpose(made.text)}."
        called = f"{made.name} {made.kind}" if made.name else made.kind
        if made.kind == "timer":
            return f"{_capital(called)} set for {duration(made.seconds)}."
        if seconds:
            return f"{_capital(called)} set for {due(made, now)}, {when}."
        return f"{_capital(called)} set for {when}."

    # --- telling -----------------------------------------------------------------------------------------------------

    def _list(self, call: Call) -> Reply:
        kind = text(call, "kind")
        alarms, now = self._all(kind), self.services.now()
        if not alarms:
            return Reply(_none(kind))
        parts = [self._described(alarm, now) for alarm in alarms[:TOLD]]
        more = len(alarms) - TOLD
        if more > 0:
            parts.append(f"{more} more")
        if len(alarms) == 1:
            return Reply(f"You have one: {parts[0]}.", context={"id": alarms[0].id})
        noun = kind if kind in ("timer", "alarm", "reminder") else ""
        count = counted(len(alarms), noun) if noun else f"{len(alarms)} things waiting"
        return Reply(f"You have {count}: {'; '.join(parts)}.")

    def _described(self, alarm: Alarm, now: datetime) -> str:
        if alarm.state == "ringing":
            return f"the {label(alarm, now)}, which is ringing"
        if alarm.kind == "timer":
            how = "paused with " if alarm.paused is not None else ""
            return f"the {label(alarm, now)}, {how}{spoken.left(left(alarm, now))} left"
        if alarm.kind == "alarm" and not alarm.name:
            return f"an alarm for {due(alarm, now)}"
        return f"the {label(alarm, now)}, {due(alarm, now)}"

    def _left(self, call: Call) -> Reply:
        kind, now = text(call, "kind") or "timer", self.services.now()
        alarms = self._meant(call, kind)
        if not alarms:
            return self._no_such(call, kind)
        if len(alarms) == 1:
            alarm = alarms[0]
            return Reply(self._time_left(alarm, now), context={"id": alarm.id}, data=round(left(alarm, now)))
        if kind == "timer":
            parts = [f"{spoken.left(left(alarm, now))} on the {label(alarm, now)}" for alarm in alarms[:TOLD]]
            return Reply(f"{_capital(listed(parts))}.")
        return Reply(f"The next is the {label(alarms[0], now)}, {due(alarms[0], now)}.", context={"id": alarms[0].id})

    def _time_left(self, alarm: Alarm, now: datetime) -> str:
        name = label(alarm, now)
        if alarm.state == "ringing":
            return f"The {name} is ringing."
        if alarm.kind == "timer":
            how = ", but it is paused" if alarm.paused is not None else ""
            return f"{_capital(spoken.left(left(alarm, now)))} left on the {name}{how}."
        called = f"The {name} is for" if alarm.name or alarm.kind == "reminder" else "It's for"
        return f"{called} {due(alarm, now)}, in {spoken.left(left(alarm, now))}."

    # --- changing ----------------------------------------------------------------------------------------------------

    def _cancel(self, call: Call) -> Reply:
        def cancel(alarm: Alarm) -> Reply:
            done = self.services.alarms.cancel(alarm.id)
            return self._did("alarm.cancel", alarm, done, f"{_capital(self._label(alarm))} cancelled.")

        return self._one(call, "Cancel", "cancel", cancel)

    def _cancel_all(self, call: Call) -> Reply:
        """Of a kind; where there are several the user is asked first."""
        agreed = "all" in call.context and "kind" not in call.arguments
        kind = str(call.context.get("all", "")) if agreed else text(call, "kind")
        alarms = self._all(kind)
        if not alarms:
            return Reply(_none(kind))
        if len(alarms) > 1 and not agreed:
            noun = kind if kind in ("timer", "alarm", "reminder") else ""
            what = f"all {counted(len(alarms), noun)}" if noun else f"all {len(alarms)} of them"
            return Reply(f"Shall I cancel {what}?", ask=Ask("CancelAll", yes_no=True), context={"all": kind or "all"})
        deeds = tuple(
            Deed("alarm.cancel", self.services.alarms.cancel(alarm.id), f"{alarm.kind} {alarm.id}") for alarm in alarms
        )
        if len(alarms) == 1:
            return Reply(f"{_capital(self._label(alarms[0]))} cancelled.", deeds=deeds)
        noun = kind if kind in ("timer", "alarm", "reminder") else ""
        what = f"{len(alarms)} {noun}s" if noun else f"all {len(alarms)}"
        return Reply(f"{_capital(what)} cancelled.", deeds=deeds)

    def _pause(self, call: Call) -> Reply:
        def pause(alarm: Alarm) -> Reply:
            name = self._label(alarm)
            if alarm.paused is not None:
                return Reply(f"The {name} is paused already.", context={"id": alarm.id})
            done = self.services.alarms.pause(alarm.id)
            left_ = spoken.left(left(alarm, self.services.now()))
            return self._did("alarm.pause", alarm, done, f"{_capital(name)} paused with {left_} left.")

        return self._one(call, "Pause", "pause", pause, only="timer", ready=lambda alarm: alarm.paused is None)

    def _resume(self, call: Call) -> Reply:
        def resume(alarm: Alarm) -> Reply:
            name = self._label(alarm)
            if alarm.paused is None:
                return Reply(f"The {name} isn't paused.", context={"id": alarm.id})
            done = self.services.alarms.resume(alarm.id)
            left_ = spoken.left(left(alarm, self.services.now()))
            return self._did("alarm.resume", alarm, done, f"{_capital(name)} goes on: {left_} left.")

        return self._one(call, "Resume", "resume", resume, only="timer", ready=lambda alarm: alarm.paused is not None)

    def _extend(self, call: Call) -> Reply:
        seconds = number(call, "duration") or 0.0
        seconds = -seconds if call.arguments.get("less") else seconds
        if not seconds:
            return Reply("By how much?", ask=Ask("Extend", "duration"))

        def extend(alarm: Alarm) -> Reply:
            done = self.services.alarms.extend(alarm.id, seconds)
            changed = next((found for found in self.services.alarms.all() if found.id == alarm.id), alarm)
            now = self.services.now()
            rest = f"{spoken.left(left(changed, now))} left" if changed.kind == "timer" else due(changed, now)
            much = f"{duration(abs(seconds))} {'more' if seconds > 0 else 'less'}"
            return self._did("alarm.extend", alarm, done, f"{_capital(much)} on the {self._label(alarm)}: {rest}.")

        carried: dict[str, Json] = {"duration": abs(seconds), "less": seconds < 0}
        only = "timer" if self._all("timer") else ""
        return self._one(call, "Extend", "add to" if seconds > 0 else "shorten", extend, carried=carried, only=only)

    def _change(self, call: Call) -> Reply:
        """To another length or time: it is set anew, and then the old one goes."""

        def change(alarm: Alarm) -> Reply:
            context = {"id": alarm.id, "amend": True}
            anew = Call(call.name, call.arguments, call.text, call.locale, context)
            seconds, when = number(call, "duration"), self._when(call)
            if alarm.kind == "timer" and seconds and seconds > 0:
                return self._set(anew, "timer", seconds=seconds)
            if alarm.kind != "timer" and when is not None:
                repeat = days(call, "days") or alarm.repeat
                return self._set(anew, alarm.kind, when=when, repeat=repeat, what=alarm.text)
            slot = "duration" if alarm.kind == "timer" else "when"
            return Reply("To what?", ask=Ask("Change", slot), context={"id": alarm.id})

        carried = {
            slot: call.arguments[slot] for slot in ("duration", "when", "time", "days") if slot in call.arguments
        }
        kind = "timer" if number(call, "duration") else ""
        if kind and _name(call) and not self._meant(call, kind):
            return self._set_timer(call)
        return self._one(call, "Change", "change", change, carried=carried, only=kind)

    def _rename(self, call: Call) -> Reply:
        new = text(call, "new")
        if not new:
            return Reply("What shall I call it?", ask=Ask("Rename", "new"), context=call.context)

        def rename(alarm: Alarm) -> Reply:
            done = self.services.alarms.rename(alarm.id, new)
            return self._did("alarm.rename", alarm, done, f"It's called the {new} {alarm.kind} now.")

        return self._one(call, "Rename", "rename", rename, carried={"new": new})

    # --- what rings --------------------------------------------------------------------------------------------------

    def _snooze(self, call: Call) -> Reply:
        seconds = number(call, "duration") or 60 * (number(call, "minutes") or 0) or SNOOZE
        count = self.services.alarms.snooze(seconds)
        if not count:
            return Reply("Nothing is ringing.")
        return Reply(
            f"Again in {duration(seconds)}.", deeds=(Deed("alarm.snooze", True, f"{count} for {seconds:g} s"),)
        )

    def _dismiss(self, call: Call) -> Reply:
        """ "Stop the timer": what rings, or else what runs."""
        if count := self.services.alarms.dismiss():
            return Reply("Okay.", deeds=(Deed("alarm.dismiss", True, f"{count}"),))
        if text(call, "kind") or _name(call) or number(call, "length"):
            return self._cancel(call)
        return Reply("Nothing is ringing.")

    # --- which one ---------------------------------------------------------------------------------------------------

    def _one(
        self,
        call: Call,
        intent: str,
        verb: str,
        act: Callable[[Alarm], Reply],
        *,
        only: str = "",
        ready: Callable[[Alarm], bool] = lambda alarm: True,
        carried: Mapping[str, Json] | None = None,
    ) -> Reply:
        """Acts on the one that is meant; asks which where that may be several. `carried` is kept for the answer."""
        kind = text(call, "kind") or only or str(call.context.get("kind", ""))
        alarms = self._meant(call, kind)
        if not alarms:
            return self._no_such(call, kind)
        fit = [alarm for alarm in alarms if ready(alarm)] or alarms
        if len(fit) == 1:
            return act(fit[0])
        names = list(dict.fromkeys(f"the {self._told_apart(alarm, fit)}" for alarm in fit))
        if len(names) == 1:  # nothing tells them apart, so any is as good
            return act(fit[0])
        say = f"Which one shall I {verb}: {listed(names[:TOLD], 'or')}?"
        return Reply(
            say, ask=Ask(intent, "name"), context={"action": intent, "kind": kind, "carried": dict(carried or {})}
        )

    def _meant(self, call: Call, kind: str) -> list[Alarm]:
        alarms, now = self._all(kind), self.services.now()
        said = _name(call)
        if (seconds := number(call, "length")) and seconds > 0:
            alarms = [alarm for alarm in alarms if alarm.seconds == seconds]
        if given := text(call, "at"):
            return meant(alarms, given, now)
        if said:
            return meant(alarms, said, now)
        remembered = self._remembered(call)
        if remembered and number(call, "length") is None and (call.arguments.get("it") or "amend" in call.context):
            return [remembered]
        return alarms

    def _remembered(self, call: Call) -> Alarm | None:
        return next((alarm for alarm in self.services.alarms.all() if alarm.id == call.context.get("id")), None)

    def _all(self, kind: str) -> list[Alarm]:
        return [alarm for alarm in self.services.alarms.all() if kind in ("", "all", alarm.kind)]

    def _label(self, alarm: Alarm) -> str:
        return label(alarm, self.services.now())

    def _told_apart(self, alarm: Alarm, among: Sequence[Alarm]) -> str:
        """Its name, with what is left where another one has the same."""
        name, now = self._label(alarm), self.services.now()
        if sum(self._label(other) == name for other in among) < 2:
            return name
        return (
            f"{name} with {spoken.left(left(alarm, now))} left"
            if alarm.kind == "timer"
            else f"{name}, {due(alarm, now)}"
        )

    def _no_such(self, call: Call, kind: str) -> Reply:
        said, alarms = _name(call) or text(call, "at"), self._all(kind)
        if not alarms:
            return Reply(_none(kind))
        names = [f"the {self._label(alarm)}" for alarm in alarms[:TOLD]]
        missing = f"no {said} {kind}".rstrip() if said else f"no such {kind}".rstrip()
        return Reply(f"There is {missing}. There is {listed(names)}.")

    def _did(self, what: str, alarm: Alarm, done: bool, say: str) -> Reply:
        deed = Deed(what, done, f"{alarm.kind} {alarm.id}")
        if not done:
            return Reply(f"Sorry, the {self._label(alarm)} is gone already.", deeds=(deed,), failed=True)
        return Reply(say, deeds=(deed,), context={"id": alarm.id})


def _name(call: Call) -> str:
    """Without what belongs to the sentence around it."""
    return re.sub(r"^(?:the|my|a|an|called|named) |(?: timer| alarm| reminder| one)$", "", text(call, "name"))


def _yours(said: str) -> str:
    """The user's words, said back: "call my mother" -> "call your mother"."""
    return " ".join(_YOURS.get(word.lower(), word) for word in said.split())


def _capital(said: str) -> str:
    return said[:1].upper() + said[1:]


def _none(kind: str) -> str:
    return {
        "timer": "There is no timer.",
        "alarm": "There is no alarm.",
        "reminder": "There is no reminder.",
    }.get(kind, "There are no timers, alarms or reminders.")


def _past(when: datetime, now: datetime) -> Reply:
    return Reply(f"{_capital(spoken.moment(when, now))} is past already.", failed=True)
