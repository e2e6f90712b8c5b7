"""The graphs of a GGUF compute what the file says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import small_gguf
from gguf import GGMLQuantizationType as Kind
from lm_reference import Reference

from appliance.runtime.ort import OrtModel
from models.quantized.recipes import gguf_file, gguf_lm

IDS = np.random.default_rng(1).integers(0, len(small_gguf.PIECES), 40)
CAPACITY = 64


def run(folder: Path, graph: str, steps: list[list[int]]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The logits behind the last step, and the cache."""
    model = OrtModel(folder / f"{graph}.onnx")
    names = [name for name in model.inputs if name[0] in "kv"]
    cache = {name: np.zeros((1, small_gguf.KV_HEADS, CAPACITY, 16), np.float32) for name in names}
    total, logits = 0, np.zeros(0)
    with model.session(cache | {f"{name}.out": array for name, array in cache.items()}) as infer:
        for ids in steps:
            total += len(ids)
            given = {"ids": np.array(ids), "last": np.array([total - 1], np.int32), "total": np.array(total, np.int32)}
            logits = infer(given).get("logits", logits)
    return logits, cache


@pytest.mark.parametrize("family", ["llama", "qwen2"])
@pytest.mark.parametrize("kind", [Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q8_0, Kind.Q5_1, Kind.F16])
@pytest.mark.parametrize("tied", [True, False])
def test_logits_and_cache_are_those_of_the_file(tmp_path: Path, family: str, kind: Kind, tied: bool) -> None:
    found = gguf_file.read(small_gguf.write(tmp_path / "small.gguf", family, kind, tied=tied))
    gguf_lm.convert(found, tmp_path, CAPACITY, lambda note, fraction: None)
    wanted = Reference(found).logits(IDS.tolist())[-1]
    logits, decoded = run(tmp_path, "decode", [IDS[:30].tolist(), IDS[30:39].tolist(), IDS[39:].tolist()])
    _, filled = run(tmp_path, "prefill", [IDS[:30].tolist(), IDS[30:].tolist()])
    assert np.corrcoef(logits[0], wanted)[0, 1] > 0.999
    assert np.abs(logits[0] - wanted).max() < 0.2
    for name, entry in filled.items():
        assert np.abs(entry - decoded[name]).max() < 0.15
        assert entry[:, :, : len(IDS)].any(axis=(0, 1, 3)).all()
        assert not entry[:, :, len(IDS) :].any()


def test_prefill_is_exact(tmp_path: Path) -> None:
    """Its products are float32: one step over its cache gives the logits of the reference, all but rounding."""
    found = gguf_file.read(small_gguf.write(tmp_path / "small.gguf"))
    gguf_lm.convert(found, tmp_path, CAPACITY, lambda note, fraction: None)
    first, whole = (run(tmp_path, "prefill", steps)[1] for steps in ([[i] for i in IDS.tolist()], [IDS.tolist()]))
    for name, entry in whole.items():
        np.testing.assert_allclose(entry, first[name], atol=2e-5)


def test_the_same_file_gives_the_same_bytes(tmp_path: Path) -> None:
    found = gguf_file.read(small_gguf.write(tmp_path / "small.gguf"))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        gguf_lm.convert(found, tmp_path / name, CAPACITY, lambda note, fraction: None)
    for file in ("decode.onnx", "prefill.onnx", "weights.bin"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
