"""Skills come, change and go while the box runs; what cannot be used is told, and the rest loads."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from guests import folder, services, wat

from appliance.errors import SkillFault
from appliance.skills.library import Library
from appliance.skills.signature import Keys, digest
from appliance.skills.skill import Call

HI = "[intents.Hi]\nsay = 'hi there'"
SENTENCES = 'language: en\nintents:\n  Hi:\n    data:\n      - sentences: ["{}"]\n'


def add(root: Path, name: str, say: str = "Hello.", sentence: str = "hi there", intents: str = HI) -> Path:
    place = folder(root, name, wat(f"{{\\22say\\22: \\22{say}\\22}}"), intents=intents)
    (place / "intents").mkdir(exist_ok=True)
    (place / "intents/en.yaml").write_text(SENTENCES.format(sentence))
    return place


def library(root: Path, keys: Keys | None = None, **more: object) -> Library:
    made = Library(
        services(), (root,), keys=keys, shipped=root / "none", clock=iter(range(0, 10_000, 10)).__next__, **more
    )  # type: ignore[arg-type]
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
    made = library(tmp_path, native={"clock": lambda manifest, given: None})
    assert "only a part of Parley" in made.faults[0].message


# --- signatures ------------------------------------------------------------------------------------------------------


def test_what_is_signed_loads_and_what_is_not_does_not(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys")
    place = add(tmp_path / "skills", "greeter")
    assert "is not signed" in library(tmp_path / "skills", keys).faults[0].message
    keys.sign(place)
    assert "greeter" in library(tmp_path / "skills", keys).skills


@pytest.mark.parametrize("change", ["module", "manifest", "sentences", "added", "removed", "renamed"])
def test_a_change_behind_the_signature_is_noticed(tmp_path: Path, change: str) -> None:
    keys = Keys(tmp_path / "keys")
    place = add(tmp_path / "skills", "greeter")
    (place / "data").mkdir()
    (place / "data/a.txt").write_text("a")
    keys.sign(place)
    keys.check(place)
    match change:
        case "module":
            with (place / "skill.wasm").open("ab") as file:
                file.write(b"\0")
        case "manifest":
            (place / "skill.toml").write_text((place / "skill.toml").read_text() + "[grants]\nmemory = 1\n")
        case "sentences":
            (place / "intents/en.yaml").write_text(SENTENCES.format("good day"))
        case "added":
            (place / "data/b.txt").write_text("")
        case "removed":
            (place / "data/a.txt").unlink()
        case "renamed":
            (place / "data/a.txt").rename(place / "data/b.txt")
    with pytest.raises(SkillFault, match="has changed since it was signed"):
        keys.check(place)


def test_without_the_check_a_changed_skill_would_load(tmp_path: Path) -> None:
    """The test of the test above."""
    place = add(tmp_path / "skills", "greeter")
    Keys(tmp_path / "keys").sign(place)
    add(tmp_path / "skills", "greeter", "Changed.")
    assert said(library(tmp_path / "skills", keys=None), "greeter") == "Changed."
    assert not library(tmp_path / "skills", keys=Keys(tmp_path / "keys")).skills


def test_another_boxs_signature_counts_where_its_key_is_trusted(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    maker = Keys(tmp_path / "maker")
    place = add(tmp_path / "skills", "greeter")
    maker.sign(place)
    with pytest.raises(SkillFault, match="signed by nobody who is trusted"):
        Keys(tmp_path / "box").check(place)
    private = Ed25519PrivateKey.from_private_bytes((tmp_path / "maker/box.key").read_bytes())
    (tmp_path / "trusted").mkdir()
    (tmp_path / "trusted/maker.pub").write_text(private.public_key().public_bytes_raw().hex())
    Keys(tmp_path / "box", (tmp_path / "trusted",)).check(place)


def test_the_boxs_key_is_its_own(tmp_path: Path) -> None:
    Keys(tmp_path / "keys").sign(add(tmp_path, "greeter"))
    assert (tmp_path / "keys/box.key").stat().st_mode & 0o077 == 0


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    place = add(tmp_path, "greeter")
    (place / "data").symlink_to("/etc")
    with pytest.raises(SkillFault, match="is a link"):
        digest(place)
