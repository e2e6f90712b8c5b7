"""Writes ONNX graphs, node by node. The same calls give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from appliance.errors import SourceFault
from appliance.runtime.model import Array

Shape = tuple[int | str, ...]

OPSET = 17
_IR = 8
FUSED = "com.microsoft"
"""The domain of onnxruntime's own operators; pass it as `domain`."""
_ALIGNMENT = 4096  # so that onnxruntime can map a constant from its file
_SMALL = 1024  # bytes: shapes and indices stay in the graph, where they are looked at
_TYPES = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "int32": TensorProto.INT32}


class Weights:
    """A file of constants beside one or several graphs. Equal bytes are stored once, whatever shape they have where."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._name = path.name
        self._at: dict[bytes, int] = {}

    def __enter__(self) -> Weights:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def put(self, name: str, array: Array) -> onnx.TensorProto:
        """A tensor that refers to the file."""
        digest = blake2b(array.data.cast("B") if array.size else b"").digest()
        if digest not in self._at:
            self._file.write(bytes(-self._file.tell() % _ALIGNMENT))
            self._at[digest] = self._file.tell()
            self._file.write(array.data)
        return _external(name, array, self._name, self._at[digest])


class Graph:
    """A graph under construction. Tensors are named by strings; `op` returns the name of what it computes. With
    `weights`, large constants go into that open file at once, and may be shared with other graphs."""

    def __init__(self, name: str, opset: int = OPSET, weights: Weights | None = None) -> None:
        self._name = name
        self._weights = weights
        self._opset = opset
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, Array | onnx.TensorProto] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, shape: Shape, type: str = "float32") -> str:
        self._inputs.append(helper.make_tensor_value_info(name, _TYPES[type], shape))
        return name

    def output(self, name: str, shape: Shape, of: str, type: str = "float32") -> None:
        """Makes the tensor `of` an output called `name`, which may be its own name."""
        if of != name:
            self._nodes.append(helper.make_node("Identity", [of], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, _TYPES[type], shape))

    def constant(self, value: Array | float | list[int], name: str = "") -> str:
        """Python floats become float32 and lists of int become int64, as ONNX wants them."""
        array = (
            value if isinstance(value, np.ndarray) else np.array(value, np.int64 if isinstance(value, list) else "f4")
        )
        label = name or f"c{len(self._constants)}"
        array = np.ascontiguousarray(array).reshape(array.shape)
        large = self._weights is not None and array.nbytes >= _SMALL
        self._constants[label] = self._weights.put(label, array) if large and self._weights else array
        return label

    def op(self, type: str, *inputs: str, **attributes: Any) -> str:
        return self.ops(type, *inputs, count=1, **attributes)[0]

    def ops(self, type: str, *inputs: str, count: int, **attributes: Any) -> list[str]:
        """An operator with `count` outputs; an input that is left out is ""."""
        outputs = [f"t{len(self._nodes)}_{number}" for number in range(count)]
        self.node(type, inputs, outputs, **attributes)
        return outputs

    def node(self, type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        """An operator whose outputs have names of their own, or are left out as ""."""
        self._nodes.append(helper.make_node(type, inputs, outputs, **attributes))

    def save(self, path: Path, weights: Path | None = None) -> None:
        """With `weights`, large constants go into that file, beside `path`: it is mapped when the graph is loaded,
        and may exceed the 2 GB that a graph may have."""
        if weights is None:
            constants = [_inline(name, value) for name, value in self._constants.items()]
        else:
            constants = self._write(weights)
        graph = helper.make_graph(self._nodes, self._name, self._inputs, self._outputs, constants)
        fused = [helper.make_opsetid(FUSED, 1)] if any(node.domain == FUSED for node in self._nodes) else []
        imports = [helper.make_opsetid("", self._opset), *fused]
        model = helper.make_model(graph, opset_imports=imports, ir_version=_IR)
        model.producer_name = "parley"
        if weights is None and self._weights is None:
            onnx.checker.check_model(model)
        path.write_bytes(model.SerializeToString(deterministic=True))

    def _write(self, path: Path) -> list[onnx.TensorProto]:
        with Weights(path) as weights:
            return [
                weights.put(name, value)
                if isinstance(value, np.ndarray) and value.nbytes >= _SMALL
                else _inline(name, value)
                for name, value in self._constants.items()
            ]


def _inline(name: str, value: Array | onnx.TensorProto) -> onnx.TensorProto:
    return numpy_helper.from_array(value, name) if isinstance(value, np.ndarray) else value


def _external(name: str, array: Array, location: str, offset: int) -> onnx.TensorProto:
    tensor = onnx.TensorProto(name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype))
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", array.nbytes)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def read_constants(path: Path) -> dict[str, Array]:
    """Every constant tensor of a graph and of the graphs inside it, by name. Raises SourceFault."""
    found: dict[str, Array] = {}

    def visit(graph: onnx.GraphProto) -> None:
        found.update({tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer})
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.TENSOR:
                    found[node.output[0]] = numpy_helper.to_array(attribute.t)
                elif attribute.type == onnx.AttributeProto.GRAPH:
                    visit(attribute.g)

    try:
        visit(onnx.load(str(path)).graph)
    except Exception as error:  # protobuf's, which onnx does not rename
        raise SourceFault(f"{path} is no ONNX graph: {error}", "correct the manifest's source") from error
    return found
