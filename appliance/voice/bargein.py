"""Barge-in: a voice over an answer holds it at once, and what the voice says decides whether it is left or goes on.

The hold needs no words and can be undone, so it comes early; it is decided where frames come in, in front of everything
that may have to wait for a model. Words come later, and only they end an answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from appliance.events import Event, Heard, Held
from appliance.stream import Events, Stage
from appliance.voice.own import own_voice, words
from firmware.frame import RATE
from firmware.mixer import Player

VOICE = 0.5
"""Probability from which a frame counts as voice."""

QUIET = RATE // 5
"""Samples without voice after which an answer that is held may go on."""

LONGEST = 32 * RATE
"""Samples for which a voice without words may hold an answer: no turn is longer than 30 s."""


@dataclass(frozen=True, slots=True)
class InterruptRules:
    """Milliseconds: `speech_ms` of voice hold an answer, `doubt_ms` more where its echo may be heard; `decide_ms` after
    the hold it goes on if no words were made out. What a listener says without wanting the floor, and what ends an
    answer and needs no other."""

    speech_ms: int = 120
    doubt_ms: int = 500
    decide_ms: int = 1500
    backchannels: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()


# --- what words mean over an answer ----------------------------------------------------------------------------------

Verdict = Literal["own voice", "stop", "back-channel", "words"]

_RUN = re.compile(r"(.)\1+")
_REPEATED = re.compile(r"\b(\w\w)\1+\b")


@dataclass(frozen=True, slots=True)
class Over:
    """What the box was saying meanwhile: its words, lately; whether their echo may have been heard (`doubt`); whether
    its last phrase was a question (`asked`)."""

    said: Sequence[str]
    doubt: bool = False
    asked: bool = False


class Judge:
    """What a turn's words are. `for_the_ear` writes heard numbers as they are spoken, as the answer's words are."""

    def __init__(self, rules: InterruptRules, for_the_ear: Callable[[str], str] = str) -> None:
        self.for_the_ear = for_the_ear
        self._backchannel = _made_of(rules.backchannels)
        self._stop = _made_of(rules.stop)
        self._nodding_stop = _made_of((*rules.backchannels, *rules.stop))

    def __call__(self, text: str, over: Over | None) -> Verdict:
        """`over` is None for words that were not spoken over an answer."""
        heard = words(self.for_the_ear(text))
        if over and own_voice(heard, words(" ".join(over.said)), doubt=over.doubt):
            return "own voice"
        plain = _plain(text)
        asked = over is not None and over.asked
        if self._stop.fullmatch(plain):
            return "stop"
        if over is None or asked:
            return "words"
        if self._backchannel.fullmatch(plain):
            return "back-channel"
        return "stop" if self._nodding_stop.fullmatch(plain) else "words"


def _plain(text: str) -> str:
    """Words as they are compared, drawn-out sounds shortened: "Hmmm, ha ha" -> "hm ha ha", "hahaha" -> "ha"."""
    return _REPEATED.sub(r"\1", _RUN.sub(r"\1", " ".join(words(text))))


def _made_of(phrases: Iterable[str]) -> re.Pattern[str]:
    """Matches a text that consists of these phrases and nothing else."""
    known = sorted({plain for phrase in phrases if (plain := _plain(phrase))}, key=len, reverse=True)
    either = "|".join(map(re.escape, known)) or "(?!)"
    return re.compile(rf"(?:{either})(?: (?:{either}))*")


# --- who has the floor -----------------------------------------------------------------------------------------------


class Evidence:
    """How sure it is that somebody speaks, from 0 to 1: each frame of voice adds its share of the voice that is needed,
    each other frame takes as much away."""

    def __init__(self, rules: InterruptRules) -> None:
        self._rules = rules
        self.reset()

    def reset(self) -> None:
        self._sum = 0.0

    @property
    def none(self) -> bool:
        """Nobody seems to speak."""
        return self._sum == 0.0

    def push(self, speech: float, samples: int, doubt: float) -> bool:
        """Takes the next frame's voice probability and doubt; True where it is certain."""
        needed = (self._rules.speech_ms + doubt * self._rules.doubt_ms) * RATE / 1000
        step = samples / needed if speech >= VOICE else -samples / needed
        self._sum = min(1.0, max(0.0, self._sum + step))
        return self._sum > 1.0 - 1e-9


class Floor:
    """Who may speak: holds the player of an answer when a voice comes, and lets it go on when that was nothing.

    `hear` is fed with every frame, and says whether the answer fell silent or goes on; `left` is called when an answer
    was left. `held` is the sample at which it fell silent, or -1; `now` the end of the last frame.
    """

    def __init__(self, player: Player, rules: InterruptRules) -> None:
        self._player = player
        self._rules = rules
        self._evidence = Evidence(rules)
        self.held = self._settled = -1
        self._silence = 0
        self._armed = True
        self._echoes = False
        self._sounded = self._doubted = -1
        self.now = 0

    def hear(self, heard: Heard) -> Held | None:
        size = len(heard.samples)
        self.now = heard.at + size
        self._silence = 0 if heard.speech >= VOICE else self._silence + size
        self._armed = self._armed or self._silence >= QUIET
        sounding = self._player.pending > 0
        if sounding:
            self._sounded = self.now
        self._echoes = self._echoes and sounding
        if heard.doubt > 0:
            self._doubted = self.now
        sure = self._evidence.push(heard.speech, size, heard.doubt)
        if self.held >= 0:
            return self._wait(heard)
        if sounding and sure and self._armed and not self._echoes:
            self._player.hold()
            self.held = self.now
            return Held(self.now, heard.turn, True)
        return None

    def settle(self, hold: int, *, echo: bool = False) -> None:
        """What was said over the answer was nothing: the hold that began at sample `hold` ends as soon as it is quiet.
        Where it was an `echo` of the answer, no voice holds the rest of it: the answer would stutter."""
        self._settled = hold
        self._echoes = echo or self._echoes

    def sounded(self, since: int) -> bool:
        """Whether an answer was heard behind sample `since`."""
        return self._sounded > since

    def doubted(self, since: int) -> bool:
        """Whether an echo may have been heard behind sample `since`."""
        return self._doubted > since

    def left(self) -> None:
        """The answer was left: whoever speaks now has the floor, and what comes next is not held by the same voice."""
        self.held = -1
        self._armed = False
        self._evidence.reset()
        self._player.resume()

    def release(self) -> Held | None:
        """The answer goes on, whatever is heard; the voice that goes on does not hold it again."""
        if self.held < 0:
            return None
        self.left()
        return Held(self.now, 0, False)

    def _wait(self, heard: Heard) -> Held | None:
        time = self.now - self.held
        decided = self._settled == self.held or time >= self._rules.decide_ms * RATE // 1000
        quiet = self._silence >= QUIET
        return self.release() if (decided and quiet) or time >= LONGEST else None


def bargein(floor: Floor) -> Stage:
    """Passes everything on; adds Held. Comes first behind the ears: a hold must not wait for a recognition."""

    async def stage(events: Events) -> Events:
        held: Event | None
        async for event in events:
            held = floor.hear(event) if isinstance(event, Heard) else None
            yield event
            if held:
                yield held
        if held := floor.release():
            yield held

    return stage
