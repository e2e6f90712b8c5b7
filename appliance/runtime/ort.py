"""The door to onnxruntime: the only file that imports it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import numpy as np
import onnxruntime as ort

from appliance.errors import ModelDamaged, ModelFault
from appliance.runtime.model import Array, Infer, Tensors

NOTHING: Mapping[str, Array] = MappingProxyType({})


class OrtModel:
    """One ONNX graph on the CPU provider.

    `threads` counts intra-op threads. They do not spin: with several sessions in one process on few cores, a spinning
    pool slows others (2.9 against 12.8 ms for the same matrix product, measured), and itself on busy cores.
    `spin` lets them wait busily for that many microseconds between the products of a call, never between calls.
    """

    def __init__(self, path: Path, *, threads: int = 1, spin: int = 0) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "1" if spin else "0")
        options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        options.add_session_config_entry("session.force_spinning_stop", "1")
        if spin:
            options.add_session_config_entry("session.intra_op.spin_duration_us", str(spin))
        options.log_severity_level = 3
        try:
            self._session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime raises bare subclasses of Exception, and many of them
            raise ModelDamaged(f"{path} cannot be loaded: {error}", "run `parley models build`") from error
        self.inputs = {node.name: tuple(node.shape) for node in self._session.get_inputs()}
        self._outputs = [node.name for node in self._session.get_outputs()]

    @contextmanager
    def session(self, state: Mapping[str, Array] = NOTHING) -> Iterator[Infer]:
        """`state` names inputs and outputs that live in the caller's arrays: the graph reads and writes them in place,
        and they are neither given to the `Infer` nor returned by it. Sessions may run at the same time if they share
        no state."""
        if state:
            yield self._bound(state)
            return

        def infer(tensors: Tensors) -> dict[str, Array]:
            return dict(zip(self._outputs, self._session.run(None, dict(tensors)), strict=True))

        yield infer

    def _bound(self, state: Mapping[str, Array]) -> Infer:
        unknown = state.keys() - self.inputs.keys() - set(self._outputs)
        if unknown:
            raise ModelFault(f"the graph has no input or output {sorted(unknown)}", "name those that it has")
        binding = self._session.io_binding()
        for name, array in state.items():
            place = "cpu", 0, array.dtype.type, array.shape, array.ctypes.data
            if name in self.inputs:
                binding.bind_input(name, *place)
            if name in self._outputs:
                binding.bind_output(name, *place)
        free = [name for name in self._outputs if name not in state]
        kept = len(self._outputs) - len(free)

        def infer(tensors: Tensors) -> dict[str, Array]:
            given = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
            for name, array in given.items():
                binding.bind_cpu_input(name, array)
            for name in free:  # anew each time: the memory of the last result belongs to the caller
                binding.bind_output(name, "cpu")
            self._session.run_with_iobinding(binding)
            results = binding.get_outputs()[kept:]
            return {name: result.numpy() for name, result in zip(free, results, strict=True)}

        return infer
