"""Weight matrices in blocks of 32 along the inputs, as onnxruntime's MatMulNBits wants them, from GGUF tensors.

The 4-bit types that store a minimum per block (w = d * q + m) have no exact form with an integer zero point, and
rounding it ruins the model (82 % of the argmaxes survive). They are kept exact as d * (q - 8) plus a constant per
block, `shift`: the graph adds the block sums of its input, times `shift`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from appliance.errors import SourceFault
from models.quantized.recipes.gguf_file import Bytes, Floats, Tensor

SIZE = 32


@dataclass(frozen=True, slots=True)
class Blocks:
    """A matrix [N, K] of B = K / 32 blocks: weight = scale * (q - zero) + shift.

    `q` uint8 [N, K] below 2**bits, `scale` float32 [N, B], `zero` uint8 [N, B] or None for 2**(bits - 1), `shift`
    float32 [N, B] or None for 0.
    """

    bits: int
    q: Bytes
    scale: Floats
    zero: Bytes | None = None
    shift: Floats | None = None

    @property
    def packed(self) -> Bytes:
        """[N, B, 32 * bits / 8]: within a byte the earlier weight has the lower bits."""
        q = self.q.reshape(*self.scale.shape, SIZE)
        return q if self.bits == 8 else q[..., ::2] | q[..., 1::2] << np.uint8(4)

    def dequantised(self) -> Floats:
        """float32 [N, K]."""
        zero = np.float32(1 << self.bits - 1) if self.zero is None else self.zero[..., None].astype(np.float32)
        weights = (self.q.reshape(*self.scale.shape, SIZE) - zero) * self.scale[..., None]
        if self.shift is not None:
            weights += self.shift[..., None]
        return weights.reshape(self.q.shape).astype(np.float32)

    def as_int8(self) -> Blocks:
        """The same weights in 8 bits; shifts become the nearest zero point."""
        return self if self.bits == 8 else nearest(self.dequantised())


def blocks(tensor: Tensor) -> Blocks:
    """Exact for Q4_0, Q4_1, Q4_K, Q5_0 and Q8_0; other types become the nearest 8-bit blocks. Raises SourceFault."""
    if len(tensor.shape) != 2 or tensor.shape[1] % SIZE:
        raise SourceFault(
            f"{tensor.name} of shape {tensor.shape} is no matrix of blocks of {SIZE}", "use another model"
        )
    exact = _EXACT.get(tensor.kind)
    return nearest(tensor.dequantised()) if exact is None else exact(tensor)


def nearest(weights: Floats) -> Blocks:
    """Rounds float32 [N, K] to 8 bits between the smallest and the largest of each block."""
    split = weights.reshape(len(weights), -1, SIZE)
    low, high = np.minimum(split.min(-1), 0), np.maximum(split.max(-1), 0)
    scale = ((high - low) / 255).astype(np.float32)
    scale[scale == 0] = 1
    zero = np.rint(-low / scale)
    q = np.clip(np.rint(split / scale[..., None]) + zero[..., None], 0, 255)
    return Blocks(8, q.astype(np.uint8).reshape(weights.shape), scale, zero.astype(np.uint8))


def stacked(parts: Sequence[Blocks]) -> Blocks:
    """One matrix of the parts' rows, in 4 bits where all of them have 4."""
    if len({part.bits for part in parts}) > 1:
        parts = [part.as_int8() for part in parts]
    zero = shift = None
    if any(part.zero is not None for part in parts):
        middle = np.uint8(1 << parts[0].bits - 1)
        zero = np.concatenate([np.full(p.scale.shape, middle) if p.zero is None else p.zero for p in parts])
    if any(part.shift is not None for part in parts):
        shift = np.concatenate([np.zeros_like(p.scale) if p.shift is None else p.shift for p in parts])
    scale = np.concatenate([part.scale for part in parts])
    return Blocks(parts[0].bits, np.concatenate([part.q for part in parts]), scale, zero, shift)


def picked(matrix: Blocks, rows: NDArray[np.int64]) -> Blocks:
    """The rows in another order."""
    zero = None if matrix.zero is None else matrix.zero[rows]
    return Blocks(
        matrix.bits, matrix.q[rows], matrix.scale[rows], zero, None if matrix.shift is None else matrix.shift[rows]
    )


def _half(data: Bytes) -> Floats:
    """Two bytes on the last axis to one float32."""
    return np.ascontiguousarray(data).view(np.float16)[..., 0].astype(np.float32)


def _nibbles(data: Bytes) -> Bytes:
    """[..., 16] bytes to [..., 32]: the low halves first."""
    return np.concatenate([data & np.uint8(15), data >> np.uint8(4)], -1)


def _split(tensor: Tensor, size: int) -> Bytes:
    return tensor.data.reshape(tensor.shape[0], -1, size)


def _q8_0(tensor: Tensor) -> Blocks:
    raw = _split(tensor, 34)
    return Blocks(8, (raw[..., 2:] ^ np.uint8(128)).reshape(tensor.shape), _half(raw[..., :2]))


def _q4_0(tensor: Tensor) -> Blocks:
    raw = _split(tensor, 18)
    return Blocks(4, _nibbles(raw[..., 2:]).reshape(tensor.shape), _half(raw[..., :2]))


def _q4_1(tensor: Tensor) -> Blocks:
    raw = _split(tensor, 20)
    scale = _half(raw[..., :2])
    return Blocks(4, _nibbles(raw[..., 4:]).reshape(tensor.shape), scale, shift=_half(raw[..., 2:4]) + 8 * scale)


def _q5_0(tensor: Tensor) -> Blocks:
    raw = _split(tensor, 22)
    fifth: Bytes = np.unpackbits(raw[..., 2:6], axis=-1, bitorder="little")
    scale = _half(raw[..., :2])
    q = (_nibbles(raw[..., 6:]) | fifth << 4).astype(np.uint8).reshape(tensor.shape)
    return Blocks(8, q, scale, np.full(scale.shape, 16, np.uint8))


def _q4_k(tensor: Tensor) -> Blocks:
    """Superblocks of 8 blocks: two halves, twelve bytes of 6-bit scales and minima, 128 bytes of pairs of nibbles."""
    raw = _split(tensor, 144)
    packed = raw[..., 4:16]
    low, high, mixed = packed[..., :4], packed[..., 4:8], packed[..., 8:]
    scales = np.concatenate([low & 63, mixed & 15 | low >> 6 << 4], -1)
    minima = np.concatenate([high & 63, mixed >> 4 | high >> 6 << 4], -1)
    scale = _half(raw[..., :2])[..., None] * scales
    minimum = _half(raw[..., 2:4])[..., None] * minima
    pairs = raw[..., 16:].reshape(*raw.shape[:2], 4, SIZE)
    q = np.stack([pairs & np.uint8(15), pairs >> np.uint8(4)], 3).astype(np.uint8).reshape(tensor.shape)
    flat = scale.reshape(tensor.shape[0], -1).astype(np.float32)
    return Blocks(4, q, flat, shift=(8 * scale - minimum).reshape(flat.shape).astype(np.float32))


_EXACT = {"Q4_0": _q4_0, "Q4_1": _q4_1, "Q4_K": _q4_k, "Q5_0": _q5_0, "Q8_0": _q8_0}
