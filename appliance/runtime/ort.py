"""The door to onnxruntime: the only file that imports it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnxruntime as ort

from appliance.errors import ModelDamaged
from appliance.runtime.model import Array, Infer, Tensors


class OrtModel:
    """One ONNX graph on the CPU provider.

    Spinning is off: with several sessions in one process on few cores, a spinning pool slows every other session
    (2.9 against 12.8 ms for the same matrix product, measured). `threads` counts intra-op threads.
    """

    def __init__(self, path: Path, *, threads: int = 1) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        options.log_severity_level = 3
        try:
            self._session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime raises bare subclasses of Exception, and many of them
            raise ModelDamaged(f"{path} cannot be loaded: {error}", "run `parley models build`") from error
        self.inputs = {node.name: tuple(node.shape) for node in self._session.get_inputs()}
        self._outputs = [node.name for node in self._session.get_outputs()]

    @contextmanager
    def session(self) -> Iterator[Infer]:
        def infer(tensors: Tensors) -> dict[str, Array]:
            return dict(zip(self._outputs, self._session.run(None, dict(tensors)), strict=True))

        yield infer
