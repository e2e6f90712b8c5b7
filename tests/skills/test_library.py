"""Skills come, change and go while the box runs; what cannot be used is told, and the rest loads."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from guests import FAULTS, folder, services, wat

from appliance.errors import SkillFault
from appliance.skills.library import Library, Native
from appliance.skills.signature import Keys
from appliance.skills.skill import Call

HI = "[intents.Hi]\nsay = 'hi there'"
SENTENCES = 'language: en\nintents:\n  Hi:\n    data:\n      - sentences: ["{}"]\n'


@pytest.fixture(autouse=True)
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))


def add(root: Path, name: str, say: str = "Hello.", sentence: str = "hi there", intents: str = HI) -> Path:
    place = folder(root, name, wat(f"{{\\22say\\22: \\22{say}\\22}}"), intents=intents)
    (place / "intents").mkdir(exist_ok=True)
    (place / "intents/en.yaml").write_text(SENTENCES.format(sentence))
    return place


def library(
    root: Path, keys: Keys | None = None, disabled: tuple[str, ...] = (), native: Native | None = None
) -> Library:
    clock = iter(range(0, 10_000, 10)).__next__
    made = Library(services(), (root,), keys=keys, disabled=disabled, native=native, shipped=root / "none", clock=clock)
    made.load()
    return made


def said(made: Library, name: str) -> str:
    return asyncio.run(made.skills[name].call(Call("Hi", {}))).say


def test_a_skill_is_found_changed_and_removed(tmp_path: Path) -> None:
    made = library(tmp_path)
    assert not made.skills
    add(tmp_path, "greeter")
    assert made.poll()
    assert said(made, "greeter") == "Hello."
    assert made.intents.readings("hi there")[0].matches[0].skill == "greeter"
    assert not made.poll()
    add(tmp_path, "greeter", "Good day.", "good day")
    assert made.poll()
    assert said(made, "greeter") == "Good day."
    assert made.intents.readings("good day")[0].matches[0].skill == "greeter"
    shutil.rmtree(tmp_path / "greeter")
    assert made.poll()
    assert not made.skills


def test_a_broken_version_leaves_the_old_one_running(tmp_path: Path) -> None:
    place = add(tmp_path, "greeter")
    made = library(tmp_path)
    old = made.skills["greeter"]
    (place / "skill.toml").write_text("abi = ")
    assert made.poll()
    assert made.skills["greeter"] is old
    assert "skill.toml cannot be read" in made.faults[0].message


def test_a_bad_skill_keeps_no_other_from_loading(tmp_path: Path) -> None:
    add(tmp_path, "good")
    add(tmp_path, "bad", intents="[intents.Other]")
    made = library(tmp_path)
    assert list(made.skills) == ["good"]
    assert "does not know the intent Hi" in made.faults[0].message


def test_a_bad_sentence_keeps_no_other_from_loading(tmp_path: Path) -> None:
    place = add(tmp_path, "greeter")
    (place / "intents/en.yaml").write_text(SENTENCES.format('hi (there", "hi there'))
    made = library(tmp_path)
    assert made.intents.readings("hi there")
    assert "line 5" in made.faults[0].message


def test_two_skills_that_claim_a_sentence_are_told(tmp_path: Path) -> None:
    add(tmp_path, "one")
    add(tmp_path, "two")
    made = library(tmp_path)
    assert set(made.skills) == {"one", "two"}
    assert "both claim it" in made.faults[0].message


def test_a_disabled_skill_is_not_there(tmp_path: Path) -> None:
    add(tmp_path, "greeter")
    assert not library(tmp_path, disabled=("greeter",)).skills


def test_only_the_product_brings_native_skills(tmp_path: Path) -> None:
    place = add(tmp_path, "greeter")
    text = (place / "skill.toml").read_text()
    (place / "skill.toml").write_text(text.replace('module = "skill.wasm"', 'native = "clock"'))
    made = library(tmp_path, native={})
    assert "only a part of Parley" in made.faults[0].message


# --- signatures ------------------------------------------------------------------------------------------------------


def test_what_is_signed_loads_and_what_is_not_does_not(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys")
    place = add(tmp_path / "skills", "greeter")
    assert "is not signed" in library(tmp_path / "skills", keys).faults[0].message
    keys.sign(place)
    assert "greeter" in library(tmp_path / "skills", keys).skills


def test_without_the_check_a_changed_skill_would_load(tmp_path: Path) -> None:
    """The test of the test above."""
    place = add(tmp_path / "skills", "greeter")
    Keys(tmp_path / "keys").sign(place)
    add(tmp_path / "skills", "greeter", "Changed.")
    assert said(library(tmp_path / "skills", keys=None), "greeter") == "Changed."
    assert not library(tmp_path / "skills", keys=Keys(tmp_path / "keys")).skills


def test_the_users_own_data_file_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    place = add(tmp_path / "skills", "greeter", sentence="hi {name}")
    (place / "data").mkdir()
    (place / "data/names.toml").write_text('[[names]]\nname = "anna"\n')
    with (place / "intents/en.yaml").open("a") as file:
        file.write("lists:\n  name: { data: names.toml, table: names }\n")
    made = library(tmp_path / "skills")
    assert made.intents.readings("hi anna")
    assert not made.intents.readings("hi zebedee")
    own = tmp_path / "config/parley/skills/greeter"
    own.mkdir(parents=True)
    (own / "names.toml").write_text('[[names]]\nname = "zebedee"\n')
    assert made.poll()
    assert made.intents.readings("hi zebedee")


def test_a_skill_that_is_loaded_again_is_benched_no_more(tmp_path: Path) -> None:
    place = add(tmp_path, "greeter")
    folder(tmp_path, "greeter", FAULTS["traps"], intents=HI)
    made = library(tmp_path)
    for _ in range(3):
        with pytest.raises(SkillFault, match="it gave up"):
            said(made, "greeter")
    with pytest.raises(SkillFault, match="left alone"):
        said(made, "greeter")
    assert add(tmp_path, "greeter") == place
    assert made.poll()
    assert said(made, "greeter") == "Hello."


async def test_a_call_that_runs_ends_on_the_old_version(tmp_path: Path) -> None:
    add(tmp_path, "greeter", "Old.")
    made = library(tmp_path)
    running = asyncio.create_task(made.skills["greeter"].call(Call("Hi", {})))
    await asyncio.sleep(0)
    add(tmp_path, "greeter", "New.")
    assert made.poll()
    assert (await running).say == "Old."
    assert (await made.skills["greeter"].call(Call("Hi", {}))).say == "New."
