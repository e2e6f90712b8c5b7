from __future__ import annotations

import pytest

from appliance.commands import show
from appliance.commands.console import waterfall_lines
from appliance.events import Answered, Event, Failed, Mark, NoSpeech, Partial, Phrase, Transcript
from appliance.telemetry import Waterfall

EVENTS: list[Event] = [
    Partial(0, 1, "what is", "the [cap"),
    Mark(0, 1, "endpoint", "speech end", 1.0),
    Mark(0, 1, "hear", "start", 1.1),
    Transcript(0, 1, "What is [bold] in rich?", 0.9),
    Phrase(0, 1, "Mark", "mark"),
    Phrase(0, 1, "up.", "up."),
    Mark(0, 1, "say", "first sound", 1.3),
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
        "ended": "complete",
        "failures": [],
        "waterfall_ms": {"hear start": 100.0, "say first sound": 300.0},
    }
    assert turns.seen[2].as_dict()["ended"] == "no speech"
    assert turns.seen[3].as_dict()["failures"] == ["think: too late"]


def test_what_is_kept_is_printed_as_it_was_said(capsys: pytest.CaptureFixture[str]) -> None:
    with show.screen(show.Turns()) as on:
        for event in EVENTS:
            on(event)
    out = capsys.readouterr().out
    assert "What is [bold] in rich?" in out
    assert "Parley  Markup." in out
    assert "think failed: too late" in out


def test_waterfall_bars_fit_and_follow_each_other() -> None:
    marks = [event for event in EVENTS if isinstance(event, Mark)]
    lines = list(waterfall_lines(Waterfall.of(marks, 1), width=30))
    assert [line.split()[-2] for line in lines] == ["100.0", "300.0"]
    assert lines[0].index("█") < lines[1].index("█")
    assert all(len(line) == len(lines[0]) for line in lines)
    assert list(waterfall_lines(Waterfall(()))) == []
