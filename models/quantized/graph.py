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
_TYPES = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "int32": TensorProto.INT32}


class Graph:
    """A graph under construction. Tensors are named by strings; `op` returns the name of what it computes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
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
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), label))
        return label

    def op(self, type: str, *inputs: str, **attributes: Any) -> str:
        return self.ops(type, *inputs, count=1, **attributes)[0]

    def ops(self, type: str, *inputs: str, count: int, **attributes: Any) -> list[str]:
        """An operator with `count` outputs; an input that is left out is ""."""
        outputs = [f"t{len(self._nodes)}_{number}" for number in range(count)]
        self._nodes.append(helper.make_node(type, inputs, outputs, **attributes))
        return outputs

    def save(self, path: Path) -> None:
        graph = helper.make_graph(self._nodes, self._name, self._inputs, self._outputs, self._constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=_IR)
        model.producer_name = "parley"
        onnx.checker.check_model(model)
        path.write_bytes(model.SerializeToString(deterministic=True))


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
