from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from appliance.commands import show
from appliance.commands.console import waterfall_lines
from appliance.config import Wake
from appliance.events import (
    Answered,
    Attending,
    Cited,
    Did,
    Event,
    Failed,
    Held,
    Mark,
    Muted,
    NoSpeech,
    Partial,
    Phrase,
    SoundBack,
    SoundLost,
    Transcript,
    Understood,
)
from appliance.telemetry import Waterfall

EVENTS: list[Event] = [
    Partial(0, 1, "what is", "the [cap"),
    Mark(0, 1, "endpoint", "speech end", 1.0),
    Mark(0, 1, "hear", "start", 1.1),
    Transcript(0, 1, "What is [bold] in rich?", 0.9),
    Phrase(0, 1, "Mark", "mark"),
    Phrase(0, 1, "up.", "up."),
    Mark(0, 1, "say", "first sound", 1.3),
    Understood(0, 1, "clock", "Time", {"place": "Oslo"}, 0.98765),
    Did(0, 1, "timer.set", True, "five minutes"),
    Cited(0, 1, "shop", "prices.csv", 3, "latte,3.20"),
    Answered(0, 1, "Markup.", "complete"),
    NoSpeech(0, 2, "silence"),
    Failed(0, 3, "think", "deadline", "too late", "Sorry."),
]


def test_turns_gather_what_was_seen() -> None:
    turns = show.Turns()
    for event in EVENTS:
        turns.on(event)
    (turn,) = turns.answered
    assert turn.as_dict() == {
        "turn": 1,
        "transcript": "What is [bold] in rich?",
        "confidence": 0.9,
        "answer": "Markup.",
        "understood": [{"skill": "clock", "intent": "Time", "slots": {"place": "Oslo"}, "score": 0.988}],
        "did": [{"what": "timer.set", "ok": True, "detail": "five minutes"}],
        "source": "shop/prices.csv:3",
        "recalled": [],
        "kept": None,
        "ended": "complete",
        "failures": [],
        "waterfall_ms": {"hear start": 100.0, "say first sound": 300.0},
    }
    assert turns.seen[2].as_dict()["ended"] == "no speech"
    assert turns.seen[3].as_dict()["failures"] == ["think: too late"]


def test_a_daemon_remembers_its_latest_turns() -> None:
    turns = show.Turns(limit=2)
    for number in range(100):
        turns.on(Transcript(0, number, "Hello.", 1.0))
    assert list(turns.seen) == [98, 99]
    turns.on(Mark(0, 97, "hear", "start", 1.0))
    assert list(turns.seen) == [98, 99]


def test_what_is_kept_is_printed_as_it_was_said(capsys: pytest.CaptureFixture[str]) -> None:
    with show.screen(show.Turns()) as on:
        for event in EVENTS:
            on(event)
    out = capsys.readouterr().out
    assert "What is [bold] in rich?" in out
    assert "Parley  Markup." in out
    assert "clock.Time, timer.set done, shop/prices.csv:3" in out
    assert "think failed: too late" in out


@pytest.mark.parametrize(
    ("mode", "said"), [("word", 'say "okay nabu" or "hey jarvis"'), ("button", "press the button"), ("always", "speak")]
)
def test_the_hint_says_how_the_box_is_called(mode: str, said: str) -> None:
    assert show.hint(Wake(mode=mode), keyboard=False) == said
    assert show.hint(Wake(mode=mode), keyboard=True).startswith(f"{said}; Enter is the button")


def test_waterfall_bars_fit_and_follow_each_other() -> None:
    marks = [event for event in EVENTS if isinstance(event, Mark)]
    lines = list(waterfall_lines(Waterfall.of(marks, 1), width=30))
    assert [line.split()[-2] for line in lines] == ["100.0", "300.0"]
    assert lines[0].index("█") < lines[1].index("█")
    assert all(len(line) == len(lines[0]) for line in lines)
    assert list(waterfall_lines(Waterfall(()))) == []


def test_the_screen_says_what_the_box_does(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[str] = []
    seen: list[str] = []

    @contextmanager
    def recorded() -> Iterator[tuple[Callable[[str], None], Callable[[str], None]]]:
        yield seen.append, kept.append

    monkeypatch.setattr(show, "live_text", recorded)
    lost = SoundLost(0, 0, "unplugged", "the microphone [usb] is gone", "plug it in again")
    expected: list[tuple[Event, str]] = [
        (Attending(0, 0, True, "word"), "listening"),
        (Partial(0, 1, "what is", ""), "what is"),
        (Transcript(0, 1, "What is it?", 0.9), "What is it?"),
        (Phrase(0, 1, "It is a box.", ""), "It is a box."),
        (Held(0, 1, True), "somebody speaks"),
        (Held(0, 1, False), "listening"),
        (Answered(0, 1, "It is a box.", "complete"), "listening"),
        (lost, "no sound:[/] the microphone \\[usb] is gone"),
        (SoundBack(0, 0, "unplugged", 2.04), "listening"),
        (Partial(0, 2, "ha", ""), "ha"),
        (NoSpeech(0, 2, "silence"), "listening"),
        (Attending(0, 0, False, "patience"), "press Enter"),
        (Muted(0, 0, True), "muted"),
        (Muted(0, 0, False), "press Enter"),
    ]
    with show.screen(show.Turns(), "press Enter") as on:
        assert seen == ["[dim]press Enter[/]"]
        for event, words in expected:
            on(event)
            assert words in seen[-1], event
            assert seen[-1].startswith("You") == (event.turn > 0 and not isinstance(event, Answered | NoSpeech)), event
            on(Mark(0, 1, "hear", "start", 1.0))
    assert len(seen) == 1 + len(expected), "it is drawn when it changes, and only then"
    assert "It is a box." not in seen[-1]
    assert [text.split("\n")[0] for text in kept] == [
        "You     [bold]What is it?[/]",
        "[red]sound lost:[/] the microphone \\[usb] is gone",
        "[green]the sound is back[/] after 2.0 s",
        "[yellow]muted:[/] the microphone is closed",
        "the microphone is open again",
    ]
    assert "fix: plug it in again" in kept[1]
