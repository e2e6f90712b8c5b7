"""A conversation on the terminal: the transcript and the answer as they come, and the waterfall of the turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from appliance.commands.console import console, escape, live_text, waterfall_lines
from appliance.config import Wake
from appliance.events import (
    Answered,
    Attending,
    Cited,
    Did,
    Event,
    Failed,
    Held,
    Kept,
    Mark,
    Muted,
    NoSpeech,
    Partial,
    Phrase,
    Recalled,
    SoundBack,
    SoundLost,
    Transcript,
    Understood,
)
from appliance.telemetry import Waterfall


@dataclass(slots=True)
class Turn:
    """What was seen of one turn."""

    number: int
    committed: str = ""
    tail: str = ""
    transcript: str | None = None
    confidence: float = 0.0
    written: str = ""
    said: str = ""
    reason: str = ""
    marks: list[Mark] = field(default_factory=list)
    failures: list[Failed] = field(default_factory=list)
    understood: list[Understood] = field(default_factory=list)
    did: list[Did] = field(default_factory=list)
    cited: Cited | None = None
    recalled: Recalled | None = None
    kept: Kept | None = None
    no_speech: str = ""

    def on(self, event: Event) -> None:
        match event:
            case Partial():
                self.committed, self.tail = event.committed, event.tail
            case Transcript():
                self.transcript, self.confidence = event.text, event.confidence
            case NoSpeech():
                self.no_speech = event.why
            case Phrase():
                self.written += event.text
            case Mark():
                self.marks.append(event)
            case Failed():
                self.failures.append(event)
            case Understood():
                self.understood.append(event)
            case Did():
                self.did.append(event)
            case Cited():
                self.cited = event
            case Recalled():
                self.recalled = event
            case Kept():
                self.kept = event
            case Answered():
                self.said, self.reason = event.said, event.reason

    @property
    def waterfall(self) -> Waterfall:
        return Waterfall.of(self.marks, self.number)

    @property
    def answer(self) -> str:
        return (self.said or self.written).strip()

    @property
    def source(self) -> str:
        """Where the answer was found: "" if not in a document."""
        return f"{self.cited.pack}/{self.cited.source}:{self.cited.line}" if self.cited else ""

    @property
    def grounds(self) -> dict[str, Any]:
        """What the answer rests on, for machines."""
        return {
            "understood": [
                {"skill": one.skill, "intent": one.intent, "slots": dict(one.slots), "score": round(one.score, 3)}
                for one in self.understood
            ],
            "did": [{"what": deed.what, "ok": deed.ok, "detail": deed.detail} for deed in self.did],
            "source": self.source,
            "recalled": list(self.recalled.ids) if self.recalled else [],
            "kept": {"turn": self.kept.id, "units": list(self.kept.units)} if self.kept else None,
        }

    def as_dict(self) -> dict[str, Any]:
        """For machines. Times in ms from the end of speech."""
        return {
            "turn": self.number,
            "transcript": self.transcript,
            "confidence": round(self.confidence, 4),
            "answer": self.answer,
            **self.grounds,
            "ended": self.reason or ("no speech" if self.no_speech else "unanswered"),
            "failures": [f"{failure.stage}: {failure.message}" for failure in self.failures],
            "waterfall_ms": self.waterfall.as_dict(),
        }


@dataclass(slots=True)
class Turns:
    """The turns of a conversation, by number; turn 0 is what belongs to none. Of more than `limit` the oldest go: a
    daemon's conversation has no end."""

    limit: int | None = None
    seen: dict[int, Turn] = field(default_factory=dict)

    def on(self, event: Event) -> Turn:
        turn = self.seen.setdefault(event.turn, Turn(event.turn))
        turn.on(event)
        if self.limit is not None and len(self.seen) > self.limit:
            del self.seen[min(self.seen)]
        return turn

    @property
    def answered(self) -> list[Turn]:
        """Those in which words were recognised."""
        return [turn for number, turn in sorted(self.seen.items()) if number and turn.transcript]


def _lines(turn: Turn) -> str:
    if turn.transcript is not None:
        words = f"[bold]{escape(turn.transcript)}[/]"
    else:
        words = f"{escape(turn.committed)} [dim]{escape(turn.tail)}[/]"
    answer = f"\n[cyan]Parley  {escape(turn.answer)}[/]" if turn.answer else ""
    return f"You     {words}{answer}{_grounds(turn)}"


def _grounds(turn: Turn) -> str:
    """What the answer rests on."""
    meant = [f"{found.skill}.{found.intent}" for found in turn.understood]
    deeds = [f"{deed.what} {'done' if deed.ok else 'failed'}" for deed in turn.did]
    grounds = ", ".join(filter(None, [*meant, *deeds, turn.source]))
    return f"\n        [dim]{escape(grounds)}[/]" if grounds else ""


@dataclass(slots=True)
class Status:
    """What a person has to know of the box besides the words. `hint` says how it is called."""

    hint: str = ""
    attending: bool = False
    muted: bool = False
    held: bool = False
    lost: str = ""

    def on(self, event: Event) -> str:
        """What is to stay on the screen; "" for most events."""
        match event:
            case Attending():
                self.attending = event.on
            case Muted():
                self.muted = event.on
                return "[yellow]muted:[/] the microphone is closed" if event.on else "the microphone is open again"
            case SoundLost():
                self.lost = event.message
                fix = f"\n  fix: {escape(event.fix)}" if event.fix else ""
                return f"[red]sound lost:[/] {escape(event.message)}{fix}"
            case SoundBack():
                self.lost = ""
                return f"[green]the sound is back[/] after {event.seconds:.1f} s"
            case Held():
                self.held = event.on
        return ""

    @property
    def line(self) -> str:
        if self.lost:
            return f"[red]no sound:[/] {escape(self.lost)}"
        if self.muted:
            return "[yellow]muted[/]"
        if self.held:
            return "[yellow]paused:[/] somebody speaks"
        return "[green]listening[/]" if self.attending else f"[dim]{escape(self.hint)}[/]"


def hint(wake: Wake, *, keyboard: bool) -> str:
    """How the box is called."""
    words = " or ".join(f'"{word.replace("-", " ")}"' for word in wake.words)
    ways = {"word": f"say {words}", "button": "press the button", "always": "speak"}[wake.mode]
    return f"{ways}; Enter is the button, m and Enter closes the microphone" if keyboard else ways


@contextmanager
def screen(turns: Turns, hint: str = "") -> Iterator[Callable[[Event], None]]:
    """Yields what is to be called with each event. A turn is shown live, and stays once it is answered; below it stands
    what the box is doing."""
    with live_text() as (update, keep):
        current, status = 0, Status(hint)
        shown = status.line
        update(shown)

        def on(event: Event) -> None:
            nonlocal current, shown
            turn = turns.on(event)
            if isinstance(event, Partial | Transcript):
                current = event.turn
            kept = status.on(event) or _kept(event, turn)
            if kept:
                keep(kept)
            picture = _picture(turns.seen.get(current) if current else None, status)
            if kept or picture != shown:
                shown = picture
                update(shown)

        yield on


def _kept(event: Event, turn: Turn) -> str:
    match event:
        case Answered():
            return _lines(turn)
        case Failed():
            return f"[red]{escape(event.stage)} failed:[/] {escape(event.message)}"
    return ""


def _picture(turn: Turn | None, status: Status) -> str:
    live = turn is not None and not turn.reason and not turn.no_speech
    return "\n".join(part for part in (_lines(turn) if turn and live else "", status.line) if part)


def print_waterfall(turn: Turn) -> None:
    out = console()
    out.print("\n[dim]the end of speech is 0[/]")
    for line in waterfall_lines(turn.waterfall):
        out.print(escape(line))
