"""`parley memory`: what is remembered, on the command line."""

import json
from contextlib import closing

import pytest

from appliance.__main__ import main
from appliance.config import state_home
from appliance.store.memory import Memory
from appliance.store.units import Turn


@pytest.fixture(autouse=True)
def told(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with closing(Memory(state_home(), None)) as memory:
        for text in ("My name is Ana.", "My order number is AB4711.", "the boiler makes a strange noise"):
            memory.keep(Turn(text, "Noted.")).result(10)
        memory.person = "bob"
        memory.keep(Turn("My name is Bob.")).result(10)


def run(capsys, *arguments: str) -> tuple[int, str]:
    code = main(["memory", *arguments])
    return code, capsys.readouterr().out


def test_show_by_person(capsys):
    assert [unit["value"] for unit in json.loads(run(capsys, "show", "--json")[1])] == ["Ana", "AB4711", ""]
    assert "Bob" in run(capsys, "show", "--person", "Bob")[1]
    assert "Ana" in run(capsys, "show")[1]


@pytest.mark.models
def test_edit_puts_the_correction_in_its_place(capsys):
    assert run(capsys, "edit", "1", "My name is Anna.")[0] == 0
    shown = json.loads(run(capsys, "show", "--past", "--json")[1])
    assert (shown[0]["value"], shown[0]["current"]) == ("Ana", False)
    assert "Anna" in [unit["value"] for unit in shown if unit["current"]]


def test_forget_and_gone(capsys):
    assert run(capsys, "forget", "2")[1] == "forgotten: 1\n"
    assert "AB4711" not in run(capsys, "show", "--past")[1]
    assert json.loads(run(capsys, "forget", "--about", "boiler", "--json")[1])["forgotten"] >= 1
    assert run(capsys, "forget", "--about", "the moon")[1] == "nothing of that is remembered\n"
    assert run(capsys, "forget", "--everything")[0] == 0
    assert run(capsys, "show")[1] == "nothing is remembered\n"
    assert "asked to" in run(capsys, "gone")[1]
    assert b"AB4711" not in b"".join(path.read_bytes() for path in state_home().iterdir() if path.is_file())


def test_export_is_a_line_each(capsys):
    lines = [json.loads(line) for line in run(capsys, "export")[1].splitlines()]
    assert [line["type"] for line in lines] == ["fact", "fact", "fact", "turn", "turn", "turn"]


def test_check_says_that_it_is_sound(capsys):
    assert run(capsys, "check")[1].startswith("sound, ")


@pytest.mark.parametrize("wish", [[], ["1", "--everything"], ["--about", "x", "--everything"]])
def test_a_wish_that_is_not_clear_forgets_nothing(capsys, wish):
    assert main(["memory", "forget", *wish]) == 2
    assert len(json.loads(run(capsys, "show", "--json")[1])) == 3


def test_a_number_that_is_not_there(capsys):
    assert main(["memory", "edit", "99", "x"]) == 1
    assert "no memory 99" in capsys.readouterr().err


def test_a_damaged_file_is_told(capsys):
    path = state_home() / "memory.db"
    path.write_bytes(b"\0" * 200 + path.read_bytes()[200:])
    assert "damaged file was moved to" in run(capsys, "check")[1]


def test_a_newer_file_is_an_error_and_unchanged(capsys):
    import sqlite3

    path = state_home() / "memory.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("pragma user_version = 99")
    before = path.read_bytes()
    assert main(["memory", "show"]) == 6
    assert "newer version" in capsys.readouterr().err
    assert path.read_bytes() == before
