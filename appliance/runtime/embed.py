"""What a sentence means, as a point on a sphere: near ones mean nearly the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from appliance.errors import ModelDamaged
from appliance.runtime.model import Model
from appliance.runtime.tokenizer import Tokenizer

WIDTH = 384
LONGEST = 256
"""Tokens of a text that are read, with the two around it; what lies behind them is not."""


class Embedder:
    """`model` takes `ids` int64 [1, T] and gives `embedding` float32 [1, WIDTH] of length 1. Raises ModelDamaged when
    the tokenizer cannot be read."""

    def __init__(self, model: Model, tokenizer: Path) -> None:
        self._model = model
        self._tokenizer = Tokenizer(tokenizer)
        try:
            self._first, self._last = (self._tokenizer.specials[name] for name in ("[CLS]", "[SEP]"))
        except KeyError as error:
            raise ModelDamaged(f"{tokenizer} has no token {error}", "run `parley models build`") from error

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32 [len(texts), WIDTH], rows of length 1, so that their dot product is the cosine. A text's row does not
        depend on the others."""
        with self._model.session() as infer:
            rows = [infer({"ids": np.array([self._ids(text)], np.int64)})["embedding"] for text in texts]
        return np.concatenate(rows) if rows else np.zeros((0, WIDTH), np.float32)

    def _ids(self, text: str) -> list[int]:
        return [self._first, *self._tokenizer.encode(text)[: LONGEST - 2], self._last]
