"""Weights in blocks equal what the gguf package makes of the same tensors."""

from __future__ import annotations

import gguf
import numpy as np
import pytest

from appliance.errors import SourceFault
from models.quantized.recipes.blocks import Blocks, blocks, nearest, picked, stacked
from models.quantized.recipes.gguf_file import Tensor

ROWS, INPUTS = 6, 512


def tensor(kind: str, seed: int = 0) -> Tensor:
    """Random blocks with sane scales (the type's own quantiser where gguf has one)."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(0.02, 0.1, (ROWS, INPUTS)).astype(np.float32)
    if kind == "Q4_K":
        raw = rng.integers(0, 256, (ROWS, INPUTS // 256, 144), dtype=np.uint8)
        raw[..., :4] = rng.uniform(0.001, 0.01, (ROWS, INPUTS // 256, 2)).astype(np.float16).view(np.uint8)
    elif kind == "Q6_K":
        raw = rng.integers(0, 256, (ROWS, INPUTS // 256, 210), dtype=np.uint8)
        raw[..., 208:] = rng.uniform(0.001, 0.01, (ROWS, INPUTS // 256, 1)).astype(np.float16).view(np.uint8)
    else:
        raw = gguf.quants.quantize(weights, gguf.GGMLQuantizationType[kind]).view(np.uint8)
    return Tensor(f"a.{kind}", kind, (ROWS, INPUTS), raw.reshape(ROWS, -1))


@pytest.mark.parametrize(("kind", "bits"), [("Q4_0", 4), ("Q4_1", 4), ("Q4_K", 4), ("Q5_0", 8), ("Q8_0", 8)])
def test_exact_types(kind: str, bits: int) -> None:
    found = tensor(kind)
    made = blocks(found)
    assert made.bits == bits
    np.testing.assert_allclose(made.dequantised(), found.dequantised(), atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", ["Q5_1", "Q6_K", "F16", "BF16", "F32"])
def test_other_types_become_the_nearest_8_bits(kind: str) -> None:
    found = tensor(kind)
    made, wanted = blocks(found), found.dequantised()
    step = made.scale.repeat(32, axis=1)
    assert np.all(np.abs(made.dequantised() - wanted) <= step * 0.501 + 1e-6)


def test_constant_and_one_sided_blocks() -> None:
    for weights in (np.zeros((2, 64)), np.full((2, 64), 3.0), np.linspace(1, 2, 128).reshape(2, 64)):
        made = nearest(weights.astype(np.float32)).dequantised()
        np.testing.assert_allclose(made, weights, atol=0.005)


def test_stacking_keeps_every_row() -> None:
    for kinds in (("Q4_0", "Q4_1"), ("Q8_0", "Q5_0"), ("Q4_1", "Q8_0")):
        parts = [blocks(tensor(kind, seed)) for seed, kind in enumerate(kinds)]
        wanted = np.concatenate([part.dequantised() for part in parts])
        np.testing.assert_allclose(stacked(parts).dequantised(), wanted, atol=2e-3)


def test_rows_in_another_order() -> None:
    made = blocks(tensor("Q4_1"))
    order = np.array([5, 4, 3, 2, 1, 0])
    np.testing.assert_array_equal(picked(made, order).dequantised(), made.dequantised()[::-1])


def test_packing_puts_the_earlier_weight_into_the_lower_bits() -> None:
    q = np.arange(32, dtype=np.uint8)[None] % 16
    assert Blocks(4, q, np.ones((1, 1), np.float32)).packed[0, 0, :2].tolist() == [0x10, 0x32]


def test_a_matrix_that_has_no_blocks_is_refused() -> None:
    found = Tensor("odd", "F32", (2, 33), np.zeros((2, 132), np.uint8))
    with pytest.raises(SourceFault, match="odd"):
        blocks(found)
