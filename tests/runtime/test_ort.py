"""The door to onnxruntime: graphs with and without state in the caller's arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from appliance.errors import ModelDamaged, ModelFault
from appliance.runtime.ort import OrtModel
from models.quantized.graph import Graph


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> OrtModel:
    """Adds `x` to `sum` in place, and gives twice the sum."""
    graph = Graph("counter")
    total = graph.op("Add", graph.input("sum", ("N",)), graph.input("x", ("N",)))
    graph.output("sum.out", ("N",), total)
    graph.output("twice", ("N",), graph.op("Add", total, total))
    path = tmp_path_factory.mktemp("ort") / "counter.onnx"
    graph.save(path)
    return OrtModel(path)


def test_state_stays_in_the_callers_arrays(counter: OrtModel) -> None:
    total, x = np.zeros(3, np.float32), np.array([1, 2, 3], np.float32)
    with counter.session({"sum": total, "sum.out": total}) as infer:
        results = [infer({"x": x}) for _ in range(3)]
    assert total.tolist() == [3, 6, 9]
    assert [list(result) for result in results] == [["twice"]] * 3
    assert [result["twice"].tolist() for result in results] == [[2, 4, 6], [4, 8, 12], [6, 12, 18]]


def test_without_state_everything_is_given_and_returned(counter: OrtModel) -> None:
    x = np.array([1, 2], np.float32)
    with counter.session() as infer:
        assert sorted(infer({"x": x, "sum": x})) == ["sum.out", "twice"]


def test_what_the_graph_does_not_have_is_told(counter: OrtModel) -> None:
    with pytest.raises(ModelFault, match="nothing"), counter.session({"nothing": np.zeros(1, np.float32)}):
        pass


def test_a_damaged_graph_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.onnx").write_bytes(b"no graph")
    with pytest.raises(ModelDamaged, match=r"x\.onnx"):
        OrtModel(tmp_path / "x.onnx")
