from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from worked import SHIPPED, Worked, conversation

from appliance.skills import manifest
from appliance.skills.manifest import Grants
from appliance.skills.skill import Json, Reply

FORM = (SHIPPED / "report/data/form.toml").read_text()
SLOW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def report(tmp_path: Path) -> Iterator[Worked]:
    folder = tmp_path / "report"
    shutil.copytree(SHIPPED / "report", folder)
    worked = Worked(folder)
    yield worked
    worked.skill.close()


def form(report: Worked, text: str) -> None:
    (report.folder / "data/form.toml").write_text(text, encoding="utf-8")


def values(report: Worked, key: str = "draft") -> object:
    return json.loads(report.memory.texts[key])["values"]


async def fill(report: Worked) -> None:
    """Everything but the notes."""
    await report.call("Start")
    await report.call("Answer", text="north yard")
    await report.call("Answer", date="2026-11-30")
    await report.call("Answer", number=4.2)
    await report.call("Answer", number=61)
    await report.call("Answer", choice="good")


READ = 'Site: "north yard". Date: November 30, 2026. Pressure: 4.2 bar. Temperature: 61 degrees. Condition: good.'


# --- through the form ------------------------------------------------------------------------------------------------


async def test_a_report_question_by_question(report: Worked) -> None:
    assert await report.says("Start") == "New pump inspection. Which site are you at?"
    assert report.last.ask is not None
    assert (report.last.ask.intent, report.last.ask.slot) == ("Answer", "text")
    assert await report.says("Answer", text="north yard") == 'Site: "north yard". Which day was the inspection?'
    assert report.last.ask.slot == "date"
    assert await report.says("Answer", date="2026-11-30") == "Date: November 30, 2026. What is the pressure?"
    assert report.last.ask.slot == "number"
    assert await report.says("Answer", number=4.2) == "Pressure: 4.2 bar. What is the bearing temperature?"
    assert (await report.says("Answer", number=61)).endswith("in? good, worn, leaking or out of order?")
    assert report.last.ask.slot == "choice"
    assert await report.says("Answer", choice="good") == "Condition: good. Any notes?"
    assert await report.says("Answer", text="seal is new") == (
        f'Notes: "seal is new". {READ} Notes: "seal is new". Shall I store the report?'
    )
    assert await report.yes() == "Report 1 is stored on this box. It has not been sent yet."
    stored = json.loads(report.memory.texts["stored/00000001"])
    assert stored["values"] == {
        "site": "north yard",
        "date": "2026-11-30",
        "pressure": 4.2,
        "temperature": 61,
        "condition": "good",
        "notes": "seal is new",
    }
    assert stored["state"] == "waiting"
    assert "draft" not in report.memory.texts


async def test_every_answer_outlives_a_power_cut(report: Worked) -> None:
    await report.call("Start")
    await report.call("Answer", text="north yard")
    report.restart()
    report.pass_time(days=3)
    assert await report.says("Resume") == "One answer of six. Which day was the inspection?"
    assert await report.says("Answer", date="2026-11-30") == "Date: November 30, 2026. What is the pressure?"
    assert await report.says("Pause") == "The report is kept, with two answers of six."
    assert report.last.ask is None
    report.restart()
    assert await report.says("Start") == (
        "A report of December 1, 2026 is open, with two answers of six. Shall I continue it?"
    )
    assert await report.yes() == "Two answers of six. What is the pressure?"


async def test_a_value_beyond_the_limits_is_doubted_and_kept_only_on_yes(report: Worked) -> None:
    await report.call("Start")
    assert await report.says("Answer", field="pressure", number=42) == (
        "That is above the limit of 10 bar. Is 42 right?"
    )
    assert values(report) == {}
    assert await report.says("Answer", number=4.2) == "Pressure: 4.2 bar. What is the bearing temperature?"
    await report.call("Correct", field="pressure", number=-1)
    assert report.last.say == "That is below the limit of 0 bar. Is -1 right?"
    assert values(report) == {"pressure": 4.2}
    await report.yes()
    assert values(report) == {"pressure": -1}


async def test_limits_themselves_are_no_doubt(report: Worked) -> None:
    await report.call("Start")
    for edge in (0, 10):
        await report.call("Answer", field="pressure", number=edge)
        assert values(report) == {"pressure": edge}


async def test_moving_through_the_form(report: Worked) -> None:
    await report.call("Start")
    assert await report.says("Back") == "This is the first question. Which site are you at?"
    assert await report.says("Next") == "Which day was the inspection?"
    assert await report.says("RepeatQuestion") == "Which day was the inspection?"
    await report.call("Answer", date="2026-11-30")
    assert await report.says("Back") == "So far: November 30, 2026. Which day was the inspection?"
    assert await report.says("Skip") == "Date stays as it is. What is the pressure?"
    assert (await report.says("Skip")).startswith("Skipped for now: it is needed before")
    for _ in range(2):
        await report.call("Next")
    assert (await report.says("Next")).startswith("That was the last question. Site is missing.")


async def test_commands_are_no_dictation(report: Worked) -> None:
    await report.call("Start")
    assert await report.says("Answer", "next", text="Next") == "Which day was the inspection?"
    await report.call("Back")
    assert (await report.says("Answer", text="pause")).startswith("The report is kept")
    assert values(report) == {}


async def test_what_is_no_answer_is_asked_again(report: Worked) -> None:
    await report.call("Start")
    assert await report.says("Answer", field="pressure", text="lots") == (
        "I need a number in bar. What is the pressure?"
    )
    assert await report.says("Answer", number=60, unit="psi") == "Pressure is in bar. What is the pressure?"
    assert (await report.says("Answer", field="condition", text="purple")).startswith("That is none of the choices.")
    assert (await report.says("Answer", field="date", date="soon")).startswith("I need a day.")
    assert values(report) == {}
    await report.call("Answer", field="condition", text="Not working")
    assert values(report) == {"condition": "out of order"}


async def test_a_correction_comes_back_to_the_question_that_was_open(report: Worked) -> None:
    await report.call("Start")
    await report.call("Answer", text="north yard")
    await report.call("Next")
    assert await report.says("Correct", field="site", text="south yard") == 'Site: "south yard". What is the pressure?'
    assert await report.says("Correct") == "Which answer shall I correct?"
    assert await report.says("Correct", field="site") == 'So far: "south yard". Which site are you at?'


async def test_no_behind_the_next_question_puts_right_the_answer_before(report: Worked) -> None:
    await report.call("Start")
    await report.call("Answer", field="pressure", number=4.2)
    report.last = Reply(context={**report.last.context, "amend": True})
    assert await report.says("Answer", number=5) == "Pressure: 5 bar. What is the bearing temperature?"
    assert values(report) == {"pressure": 5}


async def test_notes_grow(report: Worked) -> None:
    await fill(report)
    await report.call("AddTo", text="the seal is new")
    await report.call("AddTo", field="notes", text="no leak")
    assert values(report)["notes"] == "the seal is new. no leak"  # type: ignore[index]
    await report.call("AddTo", field="pressure", text="a bit")
    assert values(report)["pressure"] == 4.2  # type: ignore[index]


async def test_a_long_dictation_is_not_said_back_at_once(report: Worked) -> None:
    await fill(report)
    long = " ".join(f"w{n}" for n in range(40))
    assert (await report.says("Answer", text=long)).startswith(
        'Notes: "w0 w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11" and so on. Site'
    )
    assert values(report)["notes"] == long  # type: ignore[index]


async def test_through_the_dialogue_a_doubt_is_answered_with_yes_and_storing_is_asked_once(report: Worked) -> None:
    await fill(report)
    script: dict[str, tuple[str, dict[str, Json]]] = {
        "the pressure is forty two": ("Answer", {"field": "pressure", "number": 42}),
        "four": ("Answer", {"number": 4}),
        "skip": ("Skip", {}),
        "done": ("Finish", {}),
    }
    turns = ["the pressure is forty two", "yes", "the pressure is forty two", "four", "skip", "yes"]
    said = await conversation(report, script, *turns)
    assert said[:4] == [
        "That is above the limit of 10 bar. Is 42 right?",
        "Pressure: 42 bar. Any notes?",
        "That is above the limit of 10 bar. Is 42 right?",
        "Pressure: 4 bar. Any notes?",
    ]
    assert said[4].endswith("Shall I store the report?")
    assert said[5] == "Report 1 is stored on this box. It has not been sent yet."


# --- the end ---------------------------------------------------------------------------------------------------------


async def test_only_a_whole_report_that_was_read_out_is_stored(report: Worked) -> None:
    assert await report.says("Store") == "No report is open."
    await report.call("Start")
    assert await report.says("Store") == "Site is missing. Which site are you at?"
    await report.call("Discard")
    await fill(report)
    report.new_dialogue()
    assert await report.says("Store") == f"{READ} Shall I store the report?"
    read = report.last
    await report.call("Correct", field="pressure", number=5)
    report.last = read
    assert "5 bar" in await report.yes()
    assert not report.memory.keys("stored/")
    await report.yes()
    assert len(report.memory.keys("stored/")) == 1
    assert await report.says("Store") == "No report is open."


async def test_stored_reports_are_listed_read_and_deleted(report: Worked) -> None:
    assert await report.says("Reports") == "There are no reports."
    for _ in range(2):
        await fill(report)
        await report.call("Finish")
        await report.yes()
    assert await report.says("Reports") == (
        "There are two reports: report 2 of December 1, 2026 and report 1 of December 1, 2026. "
        "Two have not been sent yet."
    )
    assert await report.says("ReadStored", number=2) == f"Report 2, pump inspection. {READ}"
    assert await report.says("Delete", number=7) == "There is no report 7."
    assert report.last.deeds == ()
    assert await report.says("Delete", number=2) == "Report 2 is deleted."
    assert report.memory.keys("stored/") == ["stored/00000001"]
    assert "report 1 of" in await report.says("Reports")


async def test_discarding_keeps_what_is_stored(report: Worked) -> None:
    await fill(report)
    await report.call("Finish")
    await report.yes()
    await fill(report)
    assert await report.says("Discard") == "The report is thrown away."
    assert await report.says("Discard") == "No report is open."
    assert report.memory.keys() == ["sequence", "stored/00000001"]


# --- the folder and any input ----------------------------------------------------------------------------------------


async def test_an_error_in_the_form_is_told_with_its_line(report: Worked) -> None:
    form(report, FORM.replace("high = 10", "high = ten"))
    line = FORM[: FORM.index("high = 10")].count("\n") + 1
    assert await report.says("Start") == (
        f"I cannot read the form: form.toml, line {line}: 'ten' is no number or text in quotes."
    )
    form(report, FORM.replace('type = "date"', 'type = "photo"'))
    assert "field 2: the type is one of text, number, choice, date" in await report.says("Start")
    form(report, FORM.replace('field = "condition"', 'field = "state"'))
    assert "field 5: there are no choices for condition" in await report.says("Start")


async def test_a_form_that_changes_under_a_report_loses_nothing(report: Worked) -> None:
    await fill(report)
    form(report, FORM.replace('id = "pressure"', 'id = "outlet"'))
    assert await report.says("Finish") == "Pressure is missing. What is the pressure?"
    await report.call("Answer", number=3)
    assert values(report)["pressure"] == 4.2  # type: ignore[index]
    assert values(report)["outlet"] == 3  # type: ignore[index]


def test_the_manifest_is_honest() -> None:
    report = manifest.read(SHIPPED / "report")
    assert {name for name, rule in report.intents.items() if rule.effect == "costs"} == {"Store", "Discard", "Delete"}
    granted = {name for name in Grants.__dataclass_fields__ if getattr(report.grants, name)}
    assert granted == {"ask", "clock", "data", "memory"}


async def test_what_only_reads_changes_nothing(report: Worked) -> None:
    await fill(report)
    before = dict(report.memory.texts)
    for name, rule in report.manifest.intents.items():
        if rule.effect == "none":
            reply = await report.call(name, number=1)
            assert reply.deeds == (), name
    assert report.memory.texts == before


TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=60)


@SLOW
@given(text=TEXT)
async def test_dictation_is_kept_letter_by_letter(report: Worked, text: str) -> None:
    report.memory.texts.clear()
    report.new_dialogue()
    await report.call("Start")
    await report.call("Answer", text=f"q{text}q")
    assert values(report) == {"site": f"q{text}q"}


@SLOW
@given(number=st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53))
async def test_a_number_is_kept_as_it_was_said(report: Worked, number: float) -> None:
    report.memory.texts.clear()
    report.new_dialogue()
    await report.call("Start")
    await report.call("Answer", field="pressure", number=number)
    if report.last.ask is not None and report.last.ask.yes_no:
        await report.yes()
    assert values(report) == {"pressure": number}


ARGUMENTS = st.dictionaries(
    st.sampled_from(["field", "text", "number", "choice", "date", "unit"]),
    st.sampled_from(["site", "pressure", "notes", "good", "next", "2026-02-30", "bar", ""]) | st.integers() | st.none(),
    max_size=3,
)
NAMES = ["Start", "Answer", "Next", "Back", "Skip", "Correct", "AddTo", "ReadBack", "Finish", "Resume", "Pause", "yes"]


@SLOW
@given(steps=st.lists(st.tuples(st.sampled_from(NAMES), ARGUMENTS), max_size=10))
async def test_whatever_is_said_only_a_yes_stores(report: Worked, steps: list[tuple[str, dict[str, object]]]) -> None:
    report.memory.texts.clear()
    report.new_dialogue()
    for name, arguments in steps:
        asked = report.last.ask
        if name == "yes" and not (asked and asked.yes_no):
            continue
        stored = len(report.memory.keys("stored/"))
        assert await (report.yes() if name == "yes" else report.says(name, **arguments))  # type: ignore[arg-type]
        if len(report.memory.keys("stored/")) > stored:
            assert name == "yes"
            assert asked is not None
            assert asked.intent == "Store"
