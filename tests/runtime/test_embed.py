"""The real embedding model: what it says of sentences, alone and in company."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from appliance.errors import ModelDamaged
from appliance.runtime.card import Shelf
from appliance.runtime.embed import WIDTH, Embedder
from appliance.runtime.ort import OrtModel
from models.quantized.verify import verify

pytestmark = pytest.mark.models("minilm-l6")


@pytest.fixture(scope="module")
def embedder(shelf: Shelf) -> Embedder:
    built = shelf.built("minilm-l6")
    return Embedder(OrtModel(built.file("graph")), built.file("tokenizer"))


def test_the_golden_sentences(shelf: Shelf) -> None:
    (verdict,) = verify(shelf, ["minilm-l6"])
    assert verdict.passed, verdict


def test_what_means_the_same_is_near(embedder: Embedder) -> None:
    lights, lamp, rain = embedder.embed(["turn on the kitchen lights", "switch the kitchen lamp on", "will it rain?"])
    assert lights @ lamp > 0.6
    assert lights @ rain < 0.3


def test_rows_have_length_one_and_do_not_depend_on_their_company(embedder: Embedder) -> None:
    texts = ["", " ", "[SEP]", "Grüße 🙂 \x00 \ud800", "word " * 2000]
    together = embedder.embed(texts)
    assert together.shape == (5, WIDTH)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for text, row in zip(texts, together, strict=True):
        assert np.array_equal(embedder.embed([text])[0], row)
    assert embedder.embed([]).shape == (0, WIDTH)


def test_what_lies_behind_the_longest_text_is_not_read(embedder: Embedder) -> None:
    long = "word " * 300
    assert np.array_equal(*embedder.embed([long, long + "and more"]))


def test_a_damaged_tokenizer_is_named(tmp_path: Path, shelf: Shelf) -> None:
    broken = tmp_path / "tokenizer.json"
    broken.write_text("{}")
    with pytest.raises(ModelDamaged, match=r"tokenizer\.json"):
        Embedder(OrtModel(shelf.built("minilm-l6").file("graph")), broken)
