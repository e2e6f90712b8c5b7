"""Sentence embeddings: a BERT encoder from safetensors, with pooling and normalisation in the graph.

    ids int64 [1, T] -> embedding [1, width], of length 1

One sentence at a time and without padding: an int8 activation's scale is that of its whole tensor, and an embedding
must not depend on the company it was computed in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from appliance.errors import SourceFault
from appliance.runtime.card import Built, Card
from appliance.runtime.embed import Embedder
from appliance.runtime.model import Array
from appliance.runtime.ort import OrtModel
from models.quantized.graph import Graph
from models.quantized.recipes import Check, Progress

EPSILON = 1e-12
Weights = Mapping[str, Array]


def build(card: Card, sources: Mapping[str, Path], out: Path, progress: Progress) -> None:
    try:
        weights = load_file(sources["weights"])
    except SafetensorError as error:
        raise SourceFault(f"{sources['weights']} is no safetensors file: {error}", f"correct {card.path}") from error
    heads = int(card.options["heads"])
    for number, rung in enumerate(card.rungs.values()):
        progress(f"convert {rung.precision}", number / len(card.rungs))
        _network(weights, heads, rung.precision == "int8").save(out / rung.files["graph"])
    _write_tokenizer(sources["tokenizer"], out / "tokenizer.json")
    progress("convert", 1.0)


def _write_tokenizer(source: Path, path: Path) -> None:
    """The published one cuts and pads every text to 128 tokens, which is for training in batches."""
    tokenizer = json.loads(source.read_bytes())
    path.write_text(json.dumps({**tokenizer, "padding": None, "truncation": None}, ensure_ascii=False), "utf-8")


def verify(built: Built) -> list[Check]:
    """fp32 against the similarities that the reference implementation publishes, the other rungs against fp32."""
    texts = built.card.golden["sentences"]
    published = np.array(built.card.golden["similarities"], np.float32)
    found = {name: _embedder(built, name).embed(texts) for name in built.card.rungs}
    exact = found["fp32"]
    worst = float(np.abs(exact @ exact.T - published).max())
    checks = [Check("fp32: largest difference from a published similarity", worst, 1e-3)]
    for name, embeddings in found.items():
        cosine = float((embeddings * exact).sum(axis=1).min())
        checks.append(Check(f"{name}: smallest cosine with fp32", cosine, built.card.golden["cosine"], at_least=True))
    return checks


def _embedder(built: Built, rung: str) -> Embedder:
    return Embedder(OrtModel(built.file("graph", rung)), built.file("tokenizer", rung))


def _network(weights: Weights, heads: int, int8: bool) -> Graph:
    graph = Graph("sentence-embedding")
    ids = graph.input("ids", (1, "T"), "int64")
    words = weights["embeddings.word_embeddings.weight"]
    width = words.shape[1]
    linear = _linear_int8 if int8 else _linear
    hidden = graph.op("Add", _lookup(graph, words, ids, int8), _positions(graph, weights, ids))
    hidden = _norm(graph, weights, "embeddings.LayerNorm", hidden)
    for number in range(sum(name.endswith("attention.self.query.weight") for name in weights)):
        layer = {name.split(f"layer.{number}.", 1)[1]: w for name, w in weights.items() if f".layer.{number}." in name}
        mixed = linear(graph, layer, "attention.output.dense", _attend(graph, layer, hidden, heads, width, linear))
        hidden = _norm(graph, layer, "attention.output.LayerNorm", graph.op("Add", mixed, hidden))
        inner = _gelu(graph, linear(graph, layer, "intermediate.dense", hidden))
        outer = linear(graph, layer, "output.dense", inner)
        hidden = _norm(graph, layer, "output.LayerNorm", graph.op("Add", outer, hidden))
    mean = graph.op("ReduceMean", hidden, axes=[1], keepdims=0)
    graph.output("embedding", (1, width), graph.op("LpNormalization", mean, axis=1, p=2))
    return graph


def _attend(graph: Graph, layer: Weights, hidden: str, heads: int, width: int, linear: Linear) -> str:
    """All heads at once: queries, keys and values from one product, with 1/sqrt(size) in the queries' weights."""
    size = width // heads
    scale = np.float32(size**-0.5)
    fused = {
        f"qkv.{kind}": np.concatenate(
            [
                layer[f"attention.self.{part}.{kind}"] * (scale if part == "query" else 1)
                for part in ("query", "key", "value")
            ]
        ).astype(np.float32)
        for kind in ("weight", "bias")
    }
    split = graph.op("Reshape", linear(graph, fused, "qkv", hidden), graph.constant([1, -1, 3, heads, size]))
    parts = graph.ops("Split", graph.op("Transpose", split, perm=[2, 0, 3, 1, 4]), count=3, axis=0)
    query, key, value = (graph.op("Squeeze", part, graph.constant([0])) for part in parts)
    scores = graph.op("MatMul", query, graph.op("Transpose", key, perm=[0, 1, 3, 2]))
    mixed = graph.op("MatMul", graph.op("Softmax", scores, axis=-1), value)
    return graph.op("Reshape", graph.op("Transpose", mixed, perm=[0, 2, 1, 3]), graph.constant([1, -1, width]))


def _positions(graph: Graph, weights: Weights, ids: str) -> str:
    """Position and token type, which is always the first, are one table."""
    table = weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][:1]
    length = graph.op("Slice", graph.op("Shape", ids), graph.constant([1]), graph.constant([2]))
    return graph.op("Slice", graph.constant(table), graph.constant([0]), length, graph.constant([0]))


def _lookup(graph: Graph, table: Array, ids: str, int8: bool) -> str:
    if not int8:
        return graph.op("Gather", graph.constant(table, "words"), ids)
    rounded, scale = quantise(table, axis=1)
    row = graph.op("Cast", graph.op("Gather", graph.constant(rounded, "words"), ids), to=1)
    return graph.op("Mul", row, graph.op("Gather", graph.constant(scale, "words.scale"), ids))


Linear = Callable[[Graph, Weights, str, str], str]


def _linear(graph: Graph, weights: Weights, name: str, x: str) -> str:
    product = graph.op("MatMul", x, graph.constant(np.ascontiguousarray(weights[f"{name}.weight"].T)))
    return graph.op("Add", product, graph.constant(weights[f"{name}.bias"]))


def _linear_int8(graph: Graph, weights: Weights, name: str, x: str) -> str:
    """Weights in int8, one scale per output; activations are measured and rounded on the way.

    Every token is first divided by its largest value: the operator has one scale for all of them, and a single loud
    token behind the GELU costs the others their precision (smallest cosine 0.981 without, 0.996 with; same time).
    """
    rounded, scale = quantise(weights[f"{name}.weight"].T, axis=0)
    loudest = graph.op("ReduceMax", graph.op("Abs", x), axes=[-1], keepdims=1)
    x8, x_scale, x_zero = graph.ops("DynamicQuantizeLinear", graph.op("Div", x, loudest), count=3)
    zeros = graph.constant(np.zeros(rounded.shape[1], np.int8))
    product = graph.op("MatMulInteger", x8, graph.constant(np.ascontiguousarray(rounded)), x_zero, zeros)
    scales = graph.op("Mul", x_scale, graph.constant(scale.reshape(-1)))
    levelled = graph.op("Mul", graph.op("Mul", graph.op("Cast", product, to=1), scales), loudest)
    return graph.op("Add", levelled, graph.constant(weights[f"{name}.bias"]))


def quantise(table: Array, axis: int) -> tuple[Array, Array]:
    """Symmetric int8 with one float32 scale per row or column: the maximum along `axis` becomes 127."""
    scale = np.maximum(np.abs(table).max(axis=axis, keepdims=True), np.float32(1e-12)) / np.float32(127)
    return np.rint(table / scale).astype(np.int8), scale.astype(np.float32)


def _norm(graph: Graph, weights: Weights, name: str, x: str) -> str:
    pair = [graph.constant(weights[f"{name}.{kind}"]) for kind in ("weight", "bias")]
    return graph.op("LayerNormalization", x, *pair, axis=-1, epsilon=EPSILON)


def _gelu(graph: Graph, x: str) -> str:
    bent = graph.op("Erf", graph.op("Div", x, graph.constant(float(np.sqrt(2.0)))))
    return graph.op("Mul", graph.op("Mul", x, graph.op("Add", bent, graph.constant(1.0))), graph.constant(0.5))
