"""`models verify` says what is damaged, what no longer gives the golden answers, and what is no original."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from small import ID, shelf, write_manifest, write_source

from appliance.errors import ModelMissing
from models.quantized.build import build_many
from models.quantized.verify import verify


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "origin" / "weights.onnx"
    path.parent.mkdir()
    write_source(path)
    write_manifest(tmp_path / "manifests", path, f'file = "{path}"\nupstream_url = "http://127.0.0.1:1/x"')
    return path


def test_a_whole_model_passes(tmp_path: Path, source: Path) -> None:
    assert verify(shelf(tmp_path)) == []
    build_many(shelf(tmp_path))
    (verdict,) = verify(shelf(tmp_path))
    assert verdict.passed
    assert verdict.checks
    assert not verdict.upstream


def test_a_bit_that_fell_over_is_named_and_the_next_build_mends_it(tmp_path: Path, source: Path) -> None:
    (built,) = build_many(shelf(tmp_path))
    path = built.file("graph")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    stat = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # as it is when the disk and not a program did it
    (verdict,) = verify(shelf(tmp_path), [ID])
    assert (verdict.state, verdict.damaged, verdict.passed) == ("damaged", (str(path),), False)
    build_many(shelf(tmp_path))
    (verdict,) = verify(shelf(tmp_path))
    assert verdict.passed


def test_a_model_that_is_not_built_is_missing(tmp_path: Path, source: Path) -> None:
    (verdict,) = verify(shelf(tmp_path), [ID])
    assert (verdict.state, verdict.passed) == ("missing", False)
    with pytest.raises(ModelMissing, match="did you mean"):
        verify(shelf(tmp_path), [f"{ID}y"])


def test_golden_values_are_judged_again(tmp_path: Path, source: Path) -> None:
    build_many(shelf(tmp_path))
    path = tmp_path / "manifests" / f"{ID}.toml"
    path.write_text(path.read_text().replace("probabilities = [", "probabilities = [1, "))
    (verdict,) = verify(shelf(tmp_path))
    assert (verdict.state, verdict.passed) == ("built", False)


def test_no_network_is_no_failure(tmp_path: Path, source: Path) -> None:
    build_many(shelf(tmp_path))
    (verdict,) = verify(shelf(tmp_path), upstream=True)
    assert verdict.passed
    assert verdict.upstream[0].outcome == "not compared"
