"""The door to TensorFlow Lite: the only file that imports it, under the name that is installed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from appliance.errors import ModelDamaged, ModelFault
from appliance.runtime.model import Array, Infer, Tensors

try:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
except ImportError:  # the same interpreter, by the name that it had before
    from tflite_runtime.interpreter import Interpreter, OpResolverType

PLAIN = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
"""The library's own kernels: XNNPACK's are 1.4 ms of CPU cheaper per second of wake word, but they round otherwise than
the publishers' packages do (by up to 0.05 of a score), and write a line on stderr that is no log entry."""


class TflModel:
    """One TensorFlow Lite graph on the CPU, on one thread. `inputs` and `outputs` map tensor names to shapes,
    `sha256` is the file's.

    Tensors of integers are given and returned as float32: the graph says by which scale and zero point. What a graph
    keeps between calls (its variables) lives in the session, which begins with their initial values.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._content = path.read_bytes()
        except OSError as error:
            raise ModelDamaged(f"{path} cannot be read: {error.strerror}", "run `parley models build`") from error
        self.sha256 = hashlib.sha256(self._content).hexdigest()
        self._path = path
        interpreter = self._open()
        self.inputs = _shapes(interpreter.get_input_details())
        self.outputs = _shapes(interpreter.get_output_details())

    @contextmanager
    def session(self) -> Iterator[Infer]:
        """Sessions are independent of each other. Raises ModelFault where a tensor is not what the graph takes."""
        interpreter = self._open()
        inputs = {detail["name"]: detail for detail in interpreter.get_input_details()}
        outputs = interpreter.get_output_details()

        def infer(tensors: Tensors) -> dict[str, Array]:
            if tensors.keys() != inputs.keys():
                raise ModelFault(f"{self._path} takes {list(inputs)}, not {list(tensors)}", "name what it takes")
            try:
                for name, array in tensors.items():
                    interpreter.set_tensor(inputs[name]["index"], _quantised(array, inputs[name]))
                interpreter.invoke()
            except (ValueError, RuntimeError) as error:
                raise ModelFault(f"{self._path} cannot be run: {error}", "run `parley models build`") from error
            return {detail["name"]: _plain(interpreter.get_tensor(detail["index"]), detail) for detail in outputs}

        yield infer

    def _open(self) -> Any:
        try:
            interpreter = Interpreter(model_content=self._content, num_threads=1, experimental_op_resolver_type=PLAIN)
            interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            raise ModelDamaged(f"{self._path} cannot be loaded: {error}", "run `parley models build`") from error
        return interpreter


def _shapes(details: list[dict[str, Any]]) -> dict[str, tuple[int | str, ...]]:
    return {detail["name"]: tuple(int(size) for size in detail["shape"]) for detail in details}


def _quantised(array: Array, detail: dict[str, Any]) -> Array:
    """float32 in the tensor's own type: to the nearest step, what lies outside at the end of the range."""
    kind = detail["dtype"]
    if not np.issubdtype(kind, np.integer):
        return array.astype(kind, copy=False)
    scale, zero = detail["quantization"]
    limits = np.iinfo(kind)
    whole: Array = np.clip(np.rint(array / scale + zero), limits.min, limits.max).astype(kind)
    return whole


def _plain(array: Array, detail: dict[str, Any]) -> Array:
    if not np.issubdtype(detail["dtype"], np.integer):
        return array
    scale, zero = detail["quantization"]
    return (array.astype(np.float32) - np.float32(zero)) * np.float32(scale)


__all__ = ["TflModel"]
