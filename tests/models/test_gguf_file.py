"""GGUF files, whole and damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import small_gguf
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.errors import SourceFault
from models.quantized.recipes import gguf_file, gguf_lm


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return small_gguf.write(tmp_path_factory.mktemp("gguf") / "small.gguf").read_bytes()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged") / "damaged.gguf"


def test_reads_what_was_written(whole: bytes, place: Path) -> None:
    place.write_bytes(whole)
    found = gguf_file.read(place)
    assert found.get("llama.block_count", int) == small_gguf.LAYERS
    assert found.get("tokenizer.ggml.tokens", list) == small_gguf.PIECES
    assert found.get("tokenizer.ggml.add_bos_token", bool) is False
    tensor = found.tensor("blk.1.ffn_down.weight", small_gguf.WIDTH, small_gguf.HIDDEN)
    assert tensor.kind == "Q4_1"
    assert np.isfinite(tensor.dequantised()).all()


def outcome(place: Path) -> None:
    """Reads everything, in all ways: all that may come out is the tensors, or a SourceFault that names the file."""
    faults: list[SourceFault] = []
    try:
        found = gguf_file.read(place)
        gguf_lm.read_shape(found)
        gguf_lm.gguf_tokenizer.convert(found)
    except SourceFault as fault:
        faults.append(fault)
    assert all(str(place) in fault.message and fault.fix for fault in faults)


def test_every_truncation_is_a_fault(whole: bytes, place: Path) -> None:
    for size in [*range(0, 4096, 7), *range(4096, len(whole), 997)]:
        place.write_bytes(whole[:size])
        with pytest.raises(SourceFault, match=r"damaged\.gguf"):
            gguf_file.read(place)


@settings(max_examples=300, deadline=None)
@given(damage=st.lists(st.tuples(st.integers(0, 12_000), st.integers(0, 255)), min_size=1, max_size=8))
def test_damage_is_a_fault_or_another_file(whole: bytes, place: Path, damage: list[tuple[int, int]]) -> None:
    data = bytearray(whole)
    for at, value in damage:
        data[at % len(data)] = value
    place.write_bytes(data)
    outcome(place)


@settings(max_examples=200, deadline=None)
@given(tail=st.binary(max_size=200))
def test_noise_behind_the_magic_number(place: Path, tail: bytes) -> None:
    place.write_bytes(b"GGUF\x03\x00\x00\x00" + tail)
    outcome(place)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: b"GGML" + data[4:], "not a GGUF"),
        (lambda data: data[:4] + b"\x09" + data[5:], "version 9"),
        (lambda data: data[:16] + b"\xff" * 8 + data[24:], "offset"),
        (lambda data: b"", "cannot be read"),
    ],
)
def test_says_what_is_wrong(whole: bytes, place: Path, change: Callable[[bytes], bytes], said: str) -> None:
    place.write_bytes(change(whole))
    with pytest.raises(SourceFault, match=said):
        gguf_file.read(place)


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"llama__rope__scaling__type": "yarn"}, "yarn"),
        ({"llama__expert_count": 8}, "experts"),
        ({"llama__attention__key_length": 7}, "partial rotation"),
    ],
)
def test_what_the_graphs_cannot_express_is_refused(tmp_path: Path, metadata: dict[str, object], said: str) -> None:
    path = small_gguf.write(tmp_path / "odd.gguf", **metadata)
    with pytest.raises(SourceFault, match=said):
        gguf_lm.read_shape(gguf_file.read(path))


def test_other_families_are_refused(tmp_path: Path) -> None:
    path = small_gguf.write(tmp_path / "other.gguf", family="mamba")
    with pytest.raises(SourceFault, match="mamba"):
        gguf_lm.read_shape(gguf_file.read(path))
