"""The vocabulary: everything that flows through a line.

Every event carries `at`, a sample index at 16 kHz on the device clock, and `turn`, the number of the turn it belongs
to (0 before the first). Speech logic counts samples, never the wall clock, so a recording replays faster than real time
with equal results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from firmware.frame import Pcm, Role, Wave


@dataclass(frozen=True, slots=True)
class Event:
    at: int
    turn: int


# --- hearing -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Heard(Event):
    """A frame of clean near-end sound, int16 mono at 16 kHz, and the voice detector's probability [0, 1].

    `live` is False where no microphone stands behind it (muted, or the card is away): silence that no model has seen.
    `doubt` in [0, 1] is how little a voice proves while the box itself is heard (see `firmware.frame.Frame`)."""

    samples: Pcm
    speech: float
    live: bool = True
    doubt: float = 0.0


@dataclass(frozen=True, slots=True)
class Woken(Event):
    """A wake word was heard, or a button pressed (`word` is "button" or "api"). `at` is the word's last sample,
    `begin` its first; `score` crossed `threshold`. With the role "stop" it ends an answer and opens no turn."""

    word: str
    begin: int
    score: float
    threshold: float
    role: Role = "wake"


@dataclass(frozen=True, slots=True)
class Attending(Event):
    """The box began to attend to the user, or ceased to; `why` says what opened or closed it."""

    on: bool
    why: str


@dataclass(frozen=True, slots=True)
class SoundLost(Event):
    """The sound card does not work; it is opened again until it does. `kind` names how it fails."""

    kind: str
    message: str
    fix: str


@dataclass(frozen=True, slots=True)
class SoundBack(Event):
    """The sound card works again, `seconds` after it failed."""

    kind: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Muted(Event):
    """The microphone was closed, or opened again, by the user."""

    on: bool


@dataclass(frozen=True, slots=True)
class SpeechStarted(Event):
    """The user began to speak; `at` is the first sample of the speech, a little before the decision."""


@dataclass(frozen=True, slots=True)
class SpeechPaused(Event):
    """The first plausible end: speculation may start. `at` is the last sample of speech."""


@dataclass(frozen=True, slots=True)
class SpeechResumed(Event):
    """The user went on: what was prepared since the pause is void."""


@dataclass(frozen=True, slots=True)
class SpeechEnded(Event):
    """The turn is the box's now. `at` is the last sample of speech, `decided` the sample at which that was decided."""

    decided: int
    reason: Literal["complete", "hold", "cap", "flush"]


@dataclass(frozen=True, slots=True)
class Partial(Event):
    """What is recognised so far. `committed` only ever grows within a turn, `tail` may still change."""

    committed: str
    tail: str


@dataclass(frozen=True, slots=True)
class Draft(Event):
    """The words up to a pause, before it is certain that the turn has ended. `alternatives` as in Transcript."""

    text: str
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Transcript(Event):
    """The words of a finished turn. `confidence` is the mean token probability [0, 1]. `alternatives` are other ways to
    hear the same sound, by one who expects what the box can do, likeliest first."""

    text: str
    confidence: float
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoSpeech(Event):
    """A turn that dissolved: what was heard held no words. `why` names the guard that said so."""

    why: str


# --- answering ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Understood(Event):
    """What the words were taken to mean: `intent` of `skill` with `slots` (canonical values), and how sure that is
    ([0, 1]). `skill` is "dialogue" for what the dialogue itself answers (a question back, a cancellation)."""

    skill: str
    intent: str
    slots: Mapping[str, object]
    score: float


@dataclass(frozen=True, slots=True)
class Did(Event):
    """An act that was carried out (`ok`), or failed, in this turn: what a claim may rest on. `what` names its kind
    ("timer.set", "mqtt.publish")."""

    what: str
    ok: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Cited(Event):
    """The passage that the answer rests on: of which `pack` and file (`source`), at which `line`."""

    pack: str
    source: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Recalled(Event):
    """What the user has told, on which the answer rests: the numbers of units in memory, and their words."""

    ids: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Kept(Event):
    """The turn is in memory, on the disk, as number `id`; `units` are the words of what it told. While the disk fails
    there is none."""

    id: int
    units: tuple[str, ...]


Author = Literal["model", "skill", "pack", "memory"]


@dataclass(frozen=True, slots=True)
class Token(Event):
    """A piece of the answer as it is written: by the language model, or word for word by a skill, from a document or
    from memory."""

    text: str
    by: Author = "model"


@dataclass(frozen=True, slots=True)
class Phrase(Event):
    """A clause to be spoken. `text` is what the conversation remembers, `spoken` the same for the ear: numbers
    written out, nothing that cannot be said."""

    text: str
    spoken: str
    by: Author = "model"


@dataclass(frozen=True, slots=True)
class Rang(Event):
    """A timer, an alarm or a reminder is due, or over (`on` is False). `text` is what is said about it."""

    id: int
    kind: str
    text: str
    on: bool = True


@dataclass(frozen=True, slots=True)
class Speech(Event):
    """Synthesised sound, float32 mono [-1, 1] at `rate` samples per second. `words` are those that end within it, each
    with the sample of this chunk behind which it has been heard whole. `last` marks a phrase's final chunk."""

    samples: Wave
    rate: int
    words: tuple[tuple[str, int], ...]
    last: bool


@dataclass(frozen=True, slots=True)
class Played(Event):
    """Sound that left the box: `words` are those whose last sample has been played."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Held(Event):
    """The answer fell silent because somebody seems to speak over it (`on`); or not any more, since that was nothing
    and it goes on, or since it was left."""

    on: bool


@dataclass(frozen=True, slots=True)
class Answered(Event):
    """The answer to `asked` is over. `said` holds what was really heard of it; `reason` is why it ended."""

    said: str
    reason: Literal["complete", "interrupted", "failed"]
    asked: str = field(default="", compare=False)


# --- the turn itself ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """A stage failed. `kind` is the class of failure (its metric's label), `cue` what the user is told."""

    stage: str
    kind: str
    message: str
    cue: str


@dataclass(frozen=True, slots=True)
class Mark(Event):
    """A point on the waterfall: `stage` reached `name` at `wall` (seconds, monotonic clock)."""

    stage: str
    name: str
    wall: float
