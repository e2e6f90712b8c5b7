"""The door to TensorFlow Lite, and wake words from the shelf."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from appliance.errors import ManifestFault, ModelDamaged, ModelFault, SourceFault
from appliance.runtime.card import Built, Shelf
from appliance.runtime.tfl import TflModel
from appliance.runtime.wakeword import open_word, open_words
from models.quantized.build import build_many
from models.quantized.files import digest

ID = "wake-okay-nabu"

pytestmark = pytest.mark.models(ID)


@pytest.fixture(scope="module")
def graph(shelf) -> Path:  # type: ignore[no-untyped-def]
    return shelf.built(ID).file("graph")  # type: ignore[no-any-return]


def own(tmp_path: Path, graph: Path, options: str = 'phrase = "Halt"\nthreshold = 0.5\nwindow = 5') -> Shelf:
    """A shelf with a user's own word, which lies beside its manifest."""
    (tmp_path / "manifests").mkdir()
    shutil.copyfile(graph, tmp_path / "manifests/halt.tflite")
    (tmp_path / "manifests/wake-halt.toml").write_text(f"""
id = "wake-halt"
kind = "wake"
summary = "a word of mine"
licence = "none"
recipe = "micro"
default_rung = "int8"
[[source]]
name = "graph"
sha256 = "{digest(graph)}"
size = {graph.stat().st_size}
file = "halt.tflite"
[[artefact]]
name = "wake.tflite"
[rung.int8]
precision = "int8"
files.graph = "wake.tflite"
[options]
{options}
""")
    return Shelf(tmp_path / "cache", (tmp_path / "manifests",))


def test_shapes_are_known_and_numbers_are_plain(graph: Path) -> None:
    model = TflModel(graph)
    ((name, shape),) = model.inputs.items()
    assert shape == (1, 3, 40)
    with model.session() as infer:
        (score,) = infer({name: np.zeros(shape, np.float32)}).values()
    assert (score.shape, score.dtype) == ((1, 1), np.float32)


def test_sessions_keep_their_state_to_themselves(shelf, graph: Path) -> None:  # type: ignore[no-untyped-def]
    sounds = np.random.default_rng(0).uniform(0, 26, (40, 1, 3, 40)).astype(np.float32)
    model = TflModel(graph)
    (name,) = model.inputs
    with model.session() as one, model.session() as other:
        first = [one({name: sound}) for sound in sounds]
        other({name: sounds[0]})
        again = [other({name: sound}) for sound in sounds[1:]]
    assert [list(each.values()) for each in first[1:]] == [list(each.values()) for each in again]


def test_what_is_no_input_is_told(graph: Path) -> None:
    model = TflModel(graph)
    (name,) = model.inputs
    with model.session() as infer:
        with pytest.raises(ModelFault, match="not \\['features'\\]"):
            infer({"features": np.zeros((1, 3, 40), np.float32)})
        with pytest.raises(ModelFault, match=r"wake\.tflite cannot be run"):
            infer({name: np.zeros((1, 2, 40), np.float32)})


@pytest.mark.parametrize("size", [0, 10, 30_000, -1])
def test_a_truncated_graph_is_named(tmp_path: Path, graph: Path, size: int) -> None:
    path = tmp_path / "short.tflite"
    path.write_bytes(graph.read_bytes()[:size])
    with pytest.raises(ModelDamaged, match=r"short\.tflite cannot be loaded"):
        TflModel(path)


def test_a_graph_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelDamaged, match=r"none\.tflite cannot be read"):
        TflModel(tmp_path / "none.tflite")


def test_one_word_that_cannot_be_used_leaves_the_others_alone(shelf, tmp_path: Path, graph: Path) -> None:  # type: ignore[no-untyped-def]
    own(tmp_path, graph)
    both = Shelf(shelf.cache, (*shelf.folders, tmp_path / "manifests"))
    with open_words(both, [ID, "wake-halt", "wake-nothing"]) as (words, faults):
        assert [word.name for word in words] == ["okay-nabu"]
        assert len(faults) == 2
        assert "wake-halt is not built" in str(faults[0])


def test_a_bit_that_fell_over_is_found_when_the_word_is_opened(shelf, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    built = shelf.built(ID)
    content = bytearray(built.file("graph").read_bytes())
    content[40_000] ^= 1
    (tmp_path / "wake.tflite").write_bytes(content)
    with (
        pytest.raises(ModelDamaged, match=rf"wake\.tflite.*build --force {ID}"),
        open_word(Built(built.card, tmp_path)),
    ):
        pass


def test_a_users_own_word_may_be_one_that_stops(tmp_path: Path, graph: Path) -> None:
    mine = own(tmp_path, graph, 'phrase = "Halt"\nthreshold = 0.5\nwindow = 5\nrole = "stop"\nlate_ms = 100')
    (built,) = build_many(mine)
    with open_word(built) as word:
        assert (word.name, word.phrase, word.role) == ("halt", "Halt", "stop")
        assert (word.threshold, word.window, word.stride, word.late) == (0.5, 5, 3, 1600)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("threshold = 0.5\nwindow = 5", r"wake-halt\.toml: options\.phrase is missing"),
        ('phrase = "Halt"\nthreshold = "low"\nwindow = 5', r"options\.threshold is 'low'"),
        ('phrase = "Halt"\nthreshold = 1.5\nwindow = 5', r"options\.threshold is 1\.5"),
        ('phrase = "Halt"\nthreshold = 0.5\nwindow = 0', r"options\.window is 0"),
    ],
)
def test_options_that_do_not_fit_are_named(tmp_path: Path, graph: Path, options: str, told: str) -> None:
    with pytest.raises(ManifestFault, match=told):
        build_many(own(tmp_path, graph, options))


def test_a_role_that_is_none_is_named_when_it_is_built(tmp_path: Path, graph: Path) -> None:
    with pytest.raises(ManifestFault, match=r"options\.role is 'halt'"):
        build_many(own(tmp_path, graph, 'phrase = "Halt"\nthreshold = 0.5\nwindow = 5\nrole = "halt"'))


def test_a_source_that_is_no_wake_word_is_named(tmp_path: Path, graph: Path) -> None:
    mine = own(tmp_path, graph)
    path = tmp_path / "manifests/halt.tflite"
    path.write_bytes(b"no graph")
    manifest = tmp_path / "manifests/wake-halt.toml"
    manifest.write_text(manifest.read_text().replace(digest(graph), digest(path)))
    with pytest.raises(SourceFault, match=r"halt\.tflite cannot be loaded"):
        build_many(mine)
