"""A decoder of the llama and qwen2 families in numpy, float32, straight from the GGUF: slow, written to be read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from models.quantized.recipes.gguf_file import Gguf

Floats = NDArray[np.float32]


class Reference:
    """Weights are dequantised once; `logits` runs a whole sequence."""

    def __init__(self, gguf: Gguf) -> None:
        family = gguf.metadata["general.architecture"]
        self._get = lambda key, default=None: gguf.metadata.get(f"{family}.{key}", default)
        self._weights = {name: tensor.dequantised() for name, tensor in gguf.tensors.items()}
        self._neighbours = family == "llama"

    def logits(self, ids: Sequence[int]) -> Floats:
        """float32 [len(ids), vocabulary]."""
        weights = self._weights
        x = weights["token_embd.weight"][list(ids)]
        for index in range(self._get("block_count")):
            block = f"blk.{index}."
            x = x + self._attention(block, self._norm(x, weights[f"{block}attn_norm.weight"]))
            normed = self._norm(x, weights[f"{block}ffn_norm.weight"])
            gate, up = (normed @ weights[f"{block}ffn_{part}.weight"].T for part in ("gate", "up"))
            x = x + (gate / (1 + np.exp(-gate)) * up) @ weights[f"{block}ffn_down.weight"].T
        head = weights.get("output.weight", weights["token_embd.weight"])
        result: Floats = self._norm(x, weights["output_norm.weight"]) @ head.T
        return result

    def _attention(self, block: str, x: Floats) -> Floats:
        heads = self._get("attention.head_count")
        q, k, v = (self._projected(f"{block}attn_{part}", x) for part in "qkv")
        width = q.shape[1] // heads
        q, k = self._rotated(q.reshape(len(x), -1, width)), self._rotated(k.reshape(len(x), -1, width))
        v = v.reshape(len(x), -1, width)
        k, v = (part.repeat(heads // part.shape[1], axis=1) for part in (k, v))
        scores = np.einsum("qhw,khw->hqk", q, k) * np.float32(width**-0.5)
        scores += np.triu(np.full((len(x), len(x)), -np.inf, np.float32), 1)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        mixed = np.einsum("hqk,khw->qhw", scores, v).reshape(len(x), -1)
        return self._projected(f"{block}attn_output", mixed)

    def _projected(self, name: str, x: Floats) -> Floats:
        result: Floats = x @ self._weights[f"{name}.weight"].T + self._weights.get(f"{name}.bias", np.float32(0))
        return result

    def _rotated(self, x: Floats) -> Floats:
        half = x.shape[-1] // 2
        speed = self._get("rope.freq_base", 10_000.0) ** (-np.arange(half) / half)
        angle = (np.arange(len(x))[:, None] * speed)[:, None]
        cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        first, second = (x[..., ::2], x[..., 1::2]) if self._neighbours else (x[..., :half], x[..., half:])
        turned = first * cos - second * sin, first * sin + second * cos
        if self._neighbours:
            return np.stack(turned, -1).reshape(x.shape)
        return np.concatenate(turned, -1)

    def _norm(self, x: Floats, weight: Floats) -> Floats:
        mean = (x * x).mean(-1, keepdims=True) + self._get("attention.layer_norm_rms_epsilon")
        result: Floats = x / np.sqrt(mean) * weight
        return result
