"""A manifest is read whole or refused with the file, the key and the fix; the shelf shows only what is really there."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import ManifestFault, ModelDamaged, ModelMissing
from appliance.runtime.card import RECORD, Shelf, read_card
from models.quantized import MANIFESTS

GOOD = """
id = "tiny"
kind = "vad"
summary = "a tiny model"
language = ["en"]
licence = "MIT"
recipe = "silero"
default_rung = "fp32"

[[source]]
name = "graph"
sha256 = "{digest}"
size = 12
package = "some-package==1.0"
member = "some/file.onnx"

[[artefact]]
name = "vad.onnx"
sha256 = "{digest}"

[rung.fp32]
precision = "fp32"
threads = 2
[rung.fp32.files]
graph = "vad.onnx"

[golden]
probabilities = [0.5]
""".format(digest="ab" * 32)

BROKEN = {
    "no id": ('id = "tiny"', "", ["`id`", "missing"]),
    "an id that is a path": ('id = "tiny"', 'id = "../tiny"', ["`id`", "lower-case"]),
    "a kind that there is not": ('kind = "vad"', 'kind = "vda"', ["`kind`", "did you mean 'vad'?"]),
    "a misspelt key": ("licence =", "license =", ["`licence`", "missing"]),
    "a key too many": ('licence = "MIT"', 'licence = "MIT"\nlicense = "MIT"', ["`license`", "did you mean 'licence'?"]),
    "an empty summary": ('"a tiny model"', '" "', ["`summary`", "empty"]),
    "a wrong type": ("size = 12", 'size = "12"', ["`source[0].size`", "a number of bytes"]),
    "a size that is a truth": ("size = 12", "size = true", ["`source[0].size`", "a number of bytes"]),
    "a negative size": ("size = 12", "size = -12", ["`source[0].size`", "-12"]),
    "a short digest": (f'sha256 = "{"ab" * 32}"\nsize', 'sha256 = "abc"\nsize', ["`source[0].sha256`", "64 hex"]),
    "a package without a version": ("some-package==1.0", "some-package", ["`source[0].package`", "pinned"]),
    "an option for pip": ("some-package==1.0", "--index-url=x==1", ["`source[0].package`", "pinned"]),
    "no member": ('member = "some/file.onnx"', "", ["`source[0].member`", "package"]),
    "no origin": ('package = "some-package==1.0"\nmember = "some/file.onnx"', "", ["`source[0]`", "exactly one"]),
    "two origins": ('member = "some/file.onnx"', 'file = "x"', ["`source[0]`", "exactly one"]),
    "an address of another kind": (
        'package = "some-package==1.0"\nmember = "some/file.onnx"',
        'url = "file:///etc/passwd"',
        ["`source[0].url`", "http"],
    ),
    "a misspelt key of a source": ("member =", "membr =", ["`source[0].member`", "both or neither"]),
    "an artefact elsewhere": ('name = "vad.onnx"', 'name = "../vad.onnx"', ["`artefact[0].name`", "plain file name"]),
    "an artefact in the record's place": ('name = "vad.onnx"', f'name = "{RECORD}"', ["`artefact[0].name`", "taken"]),
    "a file that is not built": ('graph = "vad.onnx"', 'graph = "vda.onnx"', ["`rung.fp32.files.graph`", "'vad.onnx'"]),
    "a default rung that there is not": ('"fp32"\n\n[[s', '"fp23"\n\n[[s', ["`default_rung`", "'fp32'"]),
    "a rung that is no table": ("[rung.fp32]\n", "[rung]\nint8 = 8\n[rung.fp32]\n", ["`rung.int8`", "a table"]),
    "a language that is a number": ('["en"]', "[3]", ["`language`", "strings"]),
    "no TOML": ('id = "tiny"', "id = tiny", ["TOML"]),
}


def write(folder: Path, text: str, name: str = "tiny.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_a_manifest_is_read(tmp_path: Path) -> None:
    card = read_card(write(tmp_path, GOOD))
    assert (card.id, card.kind, card.language, card.optional) == ("tiny", "vad", ("en",), False)
    assert card.sources[0].parts[0].package == "some-package==1.0"
    assert dict(card.artefacts) == {"vad.onnx": "ab" * 32}
    assert card.rungs["fp32"].options == {"threads": 2}
    assert card.golden["probabilities"] == [0.5]


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_manifest_is_refused_with_file_and_key(tmp_path: Path, name: str) -> None:
    old, new, words = BROKEN[name]
    assert old in GOOD
    path = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(ManifestFault) as caught:
        read_card(path)
    for word in (str(path), *words):
        assert word in str(caught.value)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_card_or_a_fault(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    path = tmp_path_factory.mktemp("noise") / "noise.toml"
    path.write_bytes(noise)
    with pytest.raises(ManifestFault, match=r"noise\.toml"):
        read_card(path)


VALUES = [
    "1",
    "-1",
    "true",
    "1.5",
    "nan",
    '""',
    '"x"',
    "[]",
    "[[]]",
    "{}",
    "{a = 1}",
    "1979-05-27",
    '["a", 1]',
    "9" * 5000,
]


@given(st.data())
def test_any_changed_value_is_a_card_or_a_fault(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    lines = GOOD.strip().splitlines()
    number = data.draw(st.sampled_from([n for n, line in enumerate(lines) if " = " in line]))
    key = lines[number].split(" = ")[0]
    lines[number] = data.draw(st.sampled_from([f"{key} = {value}" for value in VALUES] + ["", f"{key}x = 1"]))
    path = tmp_path_factory.mktemp("changed") / "changed.toml"
    path.write_text("\n".join(lines))
    with suppress(ManifestFault):
        assert len(read_card(path).key) == 16


def test_deep_nesting_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(ManifestFault, match="TOML"):
        read_card(write(tmp_path, "id = " + "[" * 100_000))


def test_the_key_names_what_the_artefacts_depend_on(tmp_path: Path) -> None:
    key = read_card(write(tmp_path, GOOD)).key
    assert read_card(write(tmp_path, GOOD.replace("a tiny model", "another text"))).key == key
    assert read_card(write(tmp_path, GOOD.replace('["en"]', '["de"]'))).key == key
    for old, new in (("threads = 2", "threads = 3"), ("ab" * 32, "cd" * 32), ('"silero"', '"whisper"')):
        assert read_card(write(tmp_path, GOOD.replace(old, new))).key != key


def test_later_folders_replace_and_broken_ones_leave_the_others_alone(tmp_path: Path) -> None:
    write(tmp_path / "ours", GOOD)
    write(tmp_path / "theirs", GOOD.replace("a tiny model", "a better one"))
    write(tmp_path / "theirs", GOOD.replace('"vad"', '"vda"'), "other.toml")
    shelf = Shelf(tmp_path / "cache", (tmp_path / "ours", tmp_path / "theirs", tmp_path / "not there"))
    assert [card.summary for card in shelf.cards().values()] == ["a better one"]
    assert ["other.toml" in str(fault) for fault in shelf.faults()] == [True]
    with pytest.raises(ManifestFault, match="kind"):
        shelf.card("other")


def test_a_broken_manifest_that_a_later_one_replaces_is_no_fault(tmp_path: Path) -> None:
    write(tmp_path / "ours", GOOD.replace('"vad"', '"vda"'))
    write(tmp_path / "theirs", GOOD)
    shelf = Shelf(tmp_path / "cache", (tmp_path / "ours", tmp_path / "theirs"))
    assert shelf.card("tiny").kind == "vad"
    assert not shelf.faults()


def test_an_unknown_model_is_answered_with_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    shelf = Shelf(tmp_path / "cache", (tmp_path,))
    with pytest.raises(ModelMissing, match="did you mean 'tiny'"):
        shelf.card("tinny")
    with pytest.raises(ModelMissing, match="models list"):
        shelf.card("elephant")


def shelve(tmp_path: Path, record: object) -> Shelf:
    write(tmp_path, GOOD)
    shelf = Shelf(tmp_path / "cache", (tmp_path,))
    folder = shelf.folder(shelf.card("tiny"))
    folder.mkdir(parents=True)
    (folder / "vad.onnx").write_bytes(b"12345")
    (folder / RECORD).write_text(record if isinstance(record, str) else json.dumps(record))
    return shelf


def test_a_built_model_is_found_by_role(tmp_path: Path) -> None:
    built = shelve(tmp_path, {"artefacts": {"vad.onnx": {"size": 5, "sha256": ""}}}).built("tiny")
    assert built.file("graph").read_bytes() == built.file("graph", "fp32").read_bytes() == b"12345"
    with pytest.raises(ModelMissing, match=r"no rung 'int8'.*fp32"):
        built.file("graph", "int8")
    with pytest.raises(ModelMissing, match=r"no 'encoder'.*graph"):
        built.file("encoder")


@pytest.mark.parametrize(
    "record",
    [
        {"artefacts": {"vad.onnx": {"size": 6, "sha256": ""}}},
        {"artefacts": {}},
        {"artefacts": {"vad.onnx": {"size": 5}}},
        {"artefacts": {"vad.onnx": 5}},
        {"artefacts": [1]},
        [],
        "{",
        "",
    ],
)
def test_a_model_that_is_not_what_was_recorded_is_damaged(tmp_path: Path, record: object) -> None:
    with pytest.raises(ModelDamaged, match=r"tiny.*parley models build tiny"):
        shelve(tmp_path, record).built("tiny")


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    shelf = shelve(tmp_path, {"artefacts": {"vad.onnx": {"size": 5, "sha256": ""}}})
    (shelf.folder(shelf.card("tiny")) / "vad.onnx").unlink()
    with pytest.raises(ModelDamaged, match=r"vad\.onnx of tiny is gone"):
        shelf.built("tiny")


def test_a_model_without_a_record_is_not_built(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    with pytest.raises(ModelMissing, match=r"not built.*parley models build tiny"):
        Shelf(tmp_path / "cache", (tmp_path,)).built("tiny")


def test_the_manifests_that_ship_are_complete() -> None:
    """Every artefact pinned, every wheel pinned, every original named."""
    shelf = Shelf(Path("nowhere"), (MANIFESTS,))
    assert not shelf.faults()
    for card in shelf.cards().values():
        assert card.path.stem == card.id
        assert card.attribution, card.id
        assert all(card.artefacts.values()), f"{card.id}: an artefact without sha256"
        for source in card.sources:
            assert source.upstream_url, f"{card.id}: {source.name} names no original"
            assert all(part.wheel_sha256 for part in source.parts if part.package), f"{card.id}: {source.name}"
