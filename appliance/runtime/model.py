"""The words that every adapter and every engine shares.

Nothing above an adapter knows which library runs a model: an engine is given a `Model`, opens a session and calls the
`Infer` that it yields. Streaming state (KV cache, recurrent state) lives and dies with the session.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Tensors = Mapping[str, Array]
Infer = Callable[[Tensors], dict[str, Array]]
"""Named inputs to named outputs. The outputs belong to the caller and do not change with a later call."""

T = TypeVar("T")
Steps = Generator[None, None, T]
"""A computation cut into steps: each `next` runs one bounded piece of work (one decode step, one chunk), the return
value is the result. Closing it between two steps abandons the work; that is the longest thing an interruption waits
for."""


class Model(Protocol):
    """A loaded graph. `inputs` maps input names to shapes; symbolic dimensions are strings."""

    inputs: dict[str, tuple[int | str, ...]]

    def session(self) -> AbstractContextManager[Infer]: ...


def finish(steps: Steps[T]) -> T:
    """Runs all steps at once, for callers that will not be interrupted."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Over the last axis, numerically safe."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)  # type: ignore[no-any-return]
