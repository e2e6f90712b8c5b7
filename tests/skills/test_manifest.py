"""A skill's manifest: what is wrong in it is named, with its place and what to write."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from guests import folder, wat
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.errors import SkillFault
from appliance.skills import manifest


def test_what_is_written_is_read(tmp_path: Path) -> None:
    text = """
[grants]
ask = true
http = ["api.example.com", "10.0.0.7:8080"]
publish = ["home/+/set"]
[limits]
acts = 2
"""
    intents = """
[intents.Buy]
effect = "costs"
confirm = "Buy {item}?"
[intents.Buy.slots.item]
required = true
ask = "What?"
[tools.look]
description = "Looks."
effect = "none"
parameters = { properties = { what = { type = "string" } } }
examples = [{ request = "look there", arguments = { what = "there" } }]
"""
    found = manifest.read(folder(tmp_path, "shop", wat(), manifest=text, intents=intents))
    assert found.grants.http == ("api.example.com", "10.0.0.7:8080")
    assert found.grants.memory == 0
    assert (found.limits.acts, found.limits.fuel) == (2, manifest.Limits().fuel)
    assert found.intents["Buy"].slots["item"] == manifest.SlotRule(required=True, ask="What?")
    assert found.tools["look"].parameters["type"] == "object"
    assert found.tools["look"].examples == (("look there", {"what": "there"}),)


@settings(max_examples=40, deadline=None)
@given(text=st.text(max_size=200))
def test_any_manifest_is_read_or_a_fault(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    place = tmp_path_factory.mktemp("skill")
    (place / "skill.toml").write_text(text, encoding="utf-8", errors="replace")
    with pytest.raises(SkillFault):
        manifest.read(place)


BAD = [
    ("abi = 1", "abi = 2", "abi is 2"),
    ('name = "x"', 'name = "X y"', "is no name"),
    ("[grants]", "[grants]\nhttp = true", "grants.http is True"),
    ("[grants]", "[grants]\nmemroy = 1", "did you mean memory"),
    ("[grants]", "[limits]\nfuel = 1", "write a number from"),
    ("[grants]", "[grants]\nhttp = ['a b']", "grants.http names 'a b'"),
    ("[grants]", "[grants]\npublish = ['a/#/b']", "grants.publish names 'a/#/b'"),
    ("[grants]", "[grants]\ncontrols = ['power']", "grants.controls names 'power'"),
    ("[grants]", "[grants]\nmemory = -1", "grants.memory is out of range"),
    ("[intents.Do]", "[intents.'a b']", "is no name of an intent"),
    ("[intents.Do]", "[intents.Do]\nslots = 3", "slots is 3"),
    ("[intents.Do]", "[tools.t]\ndescription = 'd'\neffect = 'none'\nexamples = [1]", "holds no request"),
    ("[intents.Do]", "[intents.Do]\neffect = 'costs'", "nothing is asked first"),
    ("[intents.Do]", "[intents.Do]\neffect = 'maybe'", "effect is 'maybe'"),
    ("[intents.Do]", "[intents.Do.slots.a]\nrequired = 1", "required is 1"),
    ("[intents.Do]", "[tools.t]\ndescription = 'd'\neffect = 'acts'", "say is missing"),
    ("[intents.Do]", "[tools.t]\ndescription = 'd'\neffect = 'none'\nparameters = { type = 7 }", "is no schema"),
    ('module = "skill.wasm"', 'module = "../x.wasm"', "is no module of this folder"),
    ('module = "skill.wasm"', "", "either a module or a native part"),
]


@pytest.mark.parametrize(("old", "new", "message"), BAD)
def test_a_bad_manifest_names_what_is_wrong_and_where(tmp_path: Path, old: str, new: str, message: str) -> None:
    place = folder(tmp_path, "x", wat(), manifest="[grants]", intents="[intents.Do]")
    path = place / "skill.toml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(SkillFault, match=message) as caught:
        manifest.read(place)
    assert str(path) in caught.value.message
    assert caught.value.fix


def test_the_line_is_named(tmp_path: Path) -> None:
    place = folder(tmp_path, "x", wat(), manifest="[limits]\nfuel = 1")
    with pytest.raises(SkillFault, match=r"skill\.toml, line 8: limits\.fuel"):
        manifest.read(place)


values = st.recursive(
    st.one_of(st.booleans(), st.integers(-5, 10**12), st.text("ab-_{}.#+/ ", max_size=6)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["effect", "slots", "ask", "a"]), inner, max_size=3),
    ),
    max_leaves=6,
)
keys = st.sampled_from(
    [*manifest._KEYS, "grants", "limits", "intents", "tools", "extra"]  # those whose values are tables, more often
)


@settings(max_examples=60, deadline=None)
@given(changes=st.dictionaries(keys, values, max_size=4))
def test_any_table_is_a_manifest_or_a_fault(changes: dict[str, Any]) -> None:
    """Without its file: what a TOML table can hold."""
    found = {"abi": 1, "name": "x", "version": "1", "title": "X", "native": "x"} | changes
    with suppress(SkillFault):
        assert manifest._Reader(Path("skill.toml"), "").manifest(Path(), found).name == found["name"]


def test_a_module_that_is_not_the_one_named_is_refused(tmp_path: Path) -> None:
    place = folder(tmp_path, "x", wat())
    (place / "skill.wasm").write_bytes(b"")
    with pytest.raises(SkillFault, match="is not the module that"):
        manifest.read(place)


def test_a_huge_module_is_refused(tmp_path: Path) -> None:
    place = folder(tmp_path, "x", wat())
    with (place / "skill.wasm").open("wb") as file:
        file.truncate(manifest.LARGEST + 1)
    with pytest.raises(SkillFault, match="is larger than"):
        manifest.read(place)
