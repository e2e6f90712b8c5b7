"""Writes ONNX graphs, node by node. The same calls give the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from appliance.runtime.model import Array

Shape = tuple[int | str, ...]

OPSET = 17
_IR = 8
FUSED = "com.microsoft"
"""The domain of onnxruntime's own operators; pass it as `domain`."""
_ALIGNMENT = 4096  # so that onnxruntime can map a constant from its file
_SMALL = 1024  # bytes: shapes and indices stay in the graph, where they are looked at
_TYPES = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "int32": TensorProto.INT32}


class Graph:
    """A graph under construction. Tensors are named by strings; `op` returns the name of what it computes."""

    def __init__(self, name: str, opset: int = OPSET) -> None:
        self._name = name
        self._opset = opset
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, Array] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, shape: Shape, type: str = "float32") -> str:
        self._inputs.append(helper.make_tensor_value_info(name, _TYPES[type], shape))
        return name

    def output(self, name: str, shape: Shape, of: str, type: str = "float32") -> None:
        """Makes the tensor `of` an output called `name`."""
        self._nodes.append(helper.make_node("Identity", [of], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, _TYPES[type], shape))

    def constant(self, value: Array | float | list[int], name: str = "") -> str:
        """Python floats become float32 and lists of int become int64, as ONNX wants them."""
        array = (
            value if isinstance(value, np.ndarray) else np.array(value, np.int64 if isinstance(value, list) else "f4")
        )
        label = name or f"c{len(self._constants)}"
        self._constants[label] = np.ascontiguousarray(array).reshape(array.shape)
        return label

    def op(self, type: str, *inputs: str, **attributes: Any) -> str:
        return self.ops(type, *inputs, count=1, **attributes)[0]

    def ops(self, type: str, *inputs: str, count: int, **attributes: Any) -> list[str]:
        """An operator with `count` outputs; an input that is left out is ""."""
        outputs = [f"t{len(self._nodes)}_{number}" for number in range(count)]
        self._nodes.append(helper.make_node(type, inputs, outputs, **attributes))
        return outputs

    def save(self, path: Path, weights: Path | None = None) -> None:
        """With `weights`, large constants go into that file, beside `path`: it is mapped when the graph is loaded,
        and may exceed the 2 GB that a graph may have."""
        if weights is None:
            constants = [numpy_helper.from_array(array, name) for name, array in self._constants.items()]
        else:
            constants = self._write(weights)
        graph = helper.make_graph(self._nodes, self._name, self._inputs, self._outputs, constants)
        fused = [helper.make_opsetid(FUSED, 1)] if any(node.domain == FUSED for node in self._nodes) else []
        imports = [helper.make_opsetid("", self._opset), *fused]
        model = helper.make_model(graph, opset_imports=imports, ir_version=_IR)
        model.producer_name = "parley"
        if weights is None:
            onnx.checker.check_model(model)
        path.write_bytes(model.SerializeToString(deterministic=True))

    def _write(self, weights: Path) -> list[onnx.TensorProto]:
        constants = []
        with weights.open("wb") as file:
            for name, array in self._constants.items():
                if array.nbytes < _SMALL:
                    constants.append(numpy_helper.from_array(array, name))
                    continue
                file.write(bytes(-file.tell() % _ALIGNMENT))
                constants.append(_external(name, array, weights.name, file.tell()))
                file.write(array.data)
        return constants


def _external(name: str, array: Array, location: str, offset: int) -> onnx.TensorProto:
    tensor = onnx.TensorProto(name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype))
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", array.nbytes)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def read_constants(path: Path) -> dict[str, Array]:
    """Every constant tensor of a graph and of the graphs inside it, by name."""
    found: dict[str, Array] = {}

    def visit(graph: onnx.GraphProto) -> None:
        found.update({tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer})
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.TENSOR:
                    found[node.output[0]] = numpy_helper.to_array(attribute.t)
                elif attribute.type == onnx.AttributeProto.GRAPH:
                    visit(attribute.g)

    visit(onnx.load(str(path)).graph)
    return found
