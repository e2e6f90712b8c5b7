"""GGUF language models of the llama and qwen2 families as two ONNX graphs over one KV cache.

`decode.onnx` computes with 8-bit activations, which is quickest for a few tokens at once, and gives the logits behind
the last of them. Only queries, keys and values are multiplied in float32: 4 % more time, 40 % less divergence.
`prefill.onnx` multiplies in float32 throughout, which is quickest from some tens of tokens on, has no head and leaves
nothing but its rows in the cache. Both read the same `weights.bin`.

Inputs: `ids` int64 [S]; `last` int32 [1], the index of the last token; `total` int32 [], the tokens in the cache behind
this step; `k.N` and `v.N` float32 [1, KV heads, capacity, head width], also the outputs `k.N.out` and `v.N.out`, to be
bound to the same memory. Output of `decode.onnx`: `logits` float32 [1, vocabulary].
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appliance.errors import SourceFault
from appliance.runtime.card import Built, Card
from appliance.runtime.chat import Said
from appliance.runtime.llm import LanguageModel
from appliance.runtime.model import finish
from models.quantized.graph import FUSED, Graph, Weights
from models.quantized.recipes import Check, Progress, gguf_file, gguf_tokenizer
from models.quantized.recipes.blocks import SIZE, Blocks, blocks, picked, stacked
from models.quantized.recipes.gguf_file import Floats, Gguf

VERSION = 2
CONTEXT = 2048
"""Tokens of context where the manifest's options do not say."""

_OPSET = 18
_INT8, _FLOAT32 = 4, 1
"""MatMulNBits accuracy levels."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The decoder's geometry. `rotation` holds the rotary frequencies [head width / 2] in radians per token."""

    family: str
    layers: int
    width: int
    hidden: int
    heads: int
    kv_heads: int
    head_width: int
    vocabulary: int
    epsilon: float
    rotation: NDArray[np.float64]


def build(card: Card, sources: Mapping[str, Path], out: Path, progress: Progress) -> None:
    """Writes decode.onnx, prefill.onnx, weights.bin, tokenizer.json and chat.json from the one source, a GGUF file.

    Options: `context` (tokens), `chat_template` (in place of the file's). Raises SourceFault.
    """
    progress("reading", 0.0)
    (path,) = sources.values()
    gguf = gguf_file.read(path)
    context = min(card.options.get("context", CONTEXT), gguf.get(f"{_family(gguf)}.context_length", int))
    tokenizer, chat = gguf_tokenizer.convert(gguf)
    chat |= {"context": context, "template": card.options.get("chat_template", chat["template"])}
    _write_json(out / "tokenizer.json", tokenizer)
    _write_json(out / "chat.json", chat)
    convert(gguf, out, context, progress)


def verify(built: Built) -> list[Check]:
    """Golden: `text` and its `ids`; `asked` and the greedy `reply` to it, compared as shares of equal tokens."""
    golden = built.card.golden
    model = LanguageModel.open(built)
    ids = model.tokenizer.encode(golden["text"])
    wanted = model.tokenizer.encode(golden["reply"])
    with model.session() as decoder:
        finish(decoder.prefill(model.chat.prompt([Said("user", golden["asked"])])))
        reply = [token.id for token in decoder.generate(budget=len(wanted))]
    return [
        Check("tokens as recorded", float(ids == golden["ids"]), 1.0, at_least=True),
        Check("reply as recorded", _common(reply, wanted) / len(wanted), golden.get("agree", 1.0), at_least=True),
    ]


def convert(gguf: Gguf, out: Path, context: int, progress: Progress) -> None:
    """Writes the graphs and their weights."""
    shape = read_shape(gguf)
    angles = np.arange(context)[:, None] * shape.rotation
    with Weights(out / "weights.bin") as weights:
        table = blocks(gguf.tensor("token_embd.weight", shape.vocabulary, shape.width))
        tied = "output.weight" not in gguf.tensors
        head = table if tied else blocks(gguf.tensor("output.weight", shape.vocabulary, shape.width))
        graphs = [_Decoder("decode", weights, shape, _INT8), _Decoder("prefill", weights, shape, _FLOAT32)]
        for graph in graphs:
            graph.begin(table.as_int8(), np.cos(angles), np.sin(angles))
        for index in range(shape.layers):
            progress("converting", index / shape.layers)
            layer = _layer(gguf, shape, index)
            for graph in graphs:
                graph.layer(index, layer, only_cache=graph is graphs[1] and index == shape.layers - 1)
        norm = _vector(gguf, "output_norm.weight", shape.width)
        graphs[0].logits(norm, "embedding" if tied else "head", head.as_int8())
        graphs[0].save(out / "decode.onnx")
        graphs[1].save(out / "prefill.onnx")
    progress("converted", 1.0)


def read_shape(gguf: Gguf) -> Shape:
    """Raises SourceFault for what these graphs cannot express: other families, experts, partial or scaled rotation."""
    family = _family(gguf)

    def number(key: str, default: int | None = None) -> int:
        value = gguf.get(f"{family}.{key}", int, default)
        if not 0 < value < 1 << 24:
            raise SourceFault(f"{gguf.path}: metadata '{family}.{key}' is {value}", "use another model")
        return value

    heads, width = number("attention.head_count"), number("embedding_length")
    kv_heads = number("attention.head_count_kv", heads)
    head_width = number("attention.key_length", max(width // heads, 1))
    scaling = gguf.metadata.get(f"{family}.rope.scaling.type", "none")
    unsupported = {
        "experts": bool(gguf.metadata.get(f"{family}.expert_count")),
        f"rotary scaling {scaling!r}": scaling not in ("none", "linear"),
        "partial rotation": number("rope.dimension_count", head_width) != head_width,
        "heads that do not divide": bool(heads % kv_heads or head_width % 2),
    }
    for what, found in unsupported.items():
        if found:
            raise SourceFault(f"{gguf.path}: {what}: not supported", "use another model of the llama or qwen2 family")
    base = gguf.get(f"{family}.rope.freq_base", float, 10_000.0)
    slower = gguf.get(f"{family}.rope.scaling.factor", float, 1.0) if scaling == "linear" else 1.0
    rotation = base ** (-np.arange(0, head_width, 2) / head_width) / slower
    if "rope_freqs.weight" in gguf.tensors:
        rotation = rotation / _vector(gguf, "rope_freqs.weight", head_width // 2)
    return Shape(
        family=family,
        layers=number("block_count"),
        width=width,
        hidden=number("feed_forward_length"),
        heads=heads,
        kv_heads=kv_heads,
        head_width=head_width,
        vocabulary=len(gguf.get("tokenizer.ggml.tokens", list)),
        epsilon=gguf.get(f"{family}.attention.layer_norm_rms_epsilon", float),
        rotation=rotation,
    )


@dataclass(frozen=True, slots=True)
class _Layer:
    """`qkv`, `out`, `gate_up`, `down` with their norms in front; `bias` is added to qkv."""

    attention_norm: Floats
    qkv: Blocks
    bias: Floats | None
    out: Blocks
    feed_norm: Floats
    gate_up: Blocks
    down: Blocks


def _layer(gguf: Gguf, shape: Shape, index: int) -> _Layer:
    q_rows, kv_rows = shape.heads * shape.head_width, shape.kv_heads * shape.head_width

    def matrix(name: str, rows: int, inputs: int) -> Blocks:
        return blocks(gguf.tensor(f"blk.{index}.{name}.weight", rows, inputs))

    def vector(name: str, size: int) -> Floats:
        return _vector(gguf, f"blk.{index}.{name}", size)

    order = _rotary_order(shape, shape.heads), _rotary_order(shape, shape.kv_heads)
    q, k = matrix("attn_q", q_rows, shape.width), matrix("attn_k", kv_rows, shape.width)
    bias = None
    if f"blk.{index}.attn_q.bias" in gguf.tensors:
        named = {"attn_q.bias": q_rows, "attn_k.bias": kv_rows, "attn_v.bias": kv_rows}
        parts = [vector(name, size) for name, size in named.items()]
        bias = np.concatenate([parts[0][order[0]], parts[1][order[1]], parts[2]])
    return _Layer(
        attention_norm=vector("attn_norm.weight", shape.width),
        qkv=stacked([picked(q, order[0]), picked(k, order[1]), matrix("attn_v", kv_rows, shape.width)]),
        bias=bias,
        out=matrix("attn_output", shape.width, q_rows),
        feed_norm=vector("ffn_norm.weight", shape.width),
        gate_up=stacked([matrix(name, shape.hidden, shape.width) for name in ("ffn_gate", "ffn_up")]),
        down=matrix("ffn_down", shape.width, shape.hidden),
    )


def _rotary_order(shape: Shape, heads: int) -> NDArray[np.int64]:
    """llama's GGUF files interleave the two halves of each head for a rotation of neighbours; onnxruntime's kernel
    is quicker on halves."""
    rows = np.arange(heads * shape.head_width)
    if shape.family == "llama":
        rows = rows.reshape(heads, shape.head_width // 2, 2).swapaxes(1, 2).reshape(-1)
    return rows


def _vector(gguf: Gguf, name: str, size: int) -> Floats:
    return gguf.tensor(name, size).dequantised()


def _family(gguf: Gguf) -> str:
    family = gguf.get("general.architecture", str)
    if family not in ("llama", "qwen2"):
        raise SourceFault(f"{gguf.path} is of the {family!r} family", "use a model of the llama or qwen2 family")
    return family


def _common(left: list[int], right: list[int]) -> int:
    return sum(a == b for a, b in zip(left, right, strict=False))


def _write_json(path: Path, values: dict[str, Any]) -> None:
    path.write_text(json.dumps(values, ensure_ascii=False, sort_keys=True), "utf-8")


class _Decoder:
    """Writes one graph. Activations are [S, width]; only attention wants a batch axis around them."""

    def __init__(self, name: str, weights: Weights, shape: Shape, accuracy: int) -> None:
        self._graph = Graph(name, opset=_OPSET, weights=weights)
        self._shape = shape
        self._accuracy = accuracy
        self._stream = self._delta = ""
        self._graph.input("ids", ("S",), "int64")
        self._graph.input("last", (1,), "int32")
        self._graph.input("total", (), "int32")
        self._batch = self._graph.constant([0], "batch")
        self._blocked = self._graph.constant([0, -1, SIZE], "blocked")
        self._final = self._graph.constant([-1], "final")

    def begin(self, table: Blocks, cos: NDArray[np.float64], sin: NDArray[np.float64]) -> None:
        constant = self._graph.constant
        self._turns = constant(cos.astype(np.float32), "cos"), constant(sin.astype(np.float32), "sin")
        inputs = [constant(table.q, "embedding.rows"), "ids", constant(table.scale, "embedding.scale")]
        if table.zero is not None:
            inputs.append(constant(table.zero, "embedding.zero"))
        sizes = {"bits": 8, "block_size": SIZE, "quantize_axis": 1, "gather_axis": 0}
        self._stream = self._graph.op("GatherBlockQuantized", *inputs, domain=FUSED, **sizes)

    def layer(self, index: int, layer: _Layer, only_cache: bool) -> None:
        """With `only_cache` the layer ends behind its attention: nobody reads what would follow."""
        op, name = self._graph.op, f"layer.{index}"
        normed = self._norm(f"{name}.attention_norm", layer.attention_norm)
        product = self._product(f"{name}.qkv", normed, layer.qkv, layer.bias, accuracy=_FLOAT32)
        qkv = op("Unsqueeze", product, self._batch)
        attended = self._attention(index, qkv)
        if only_cache:
            return
        self._delta = self._product(f"{name}.out", op("Squeeze", attended, self._batch), layer.out)
        normed = self._norm(f"{name}.feed_norm", layer.feed_norm)
        gate_up = self._product(f"{name}.gate_up", normed, layer.gate_up)
        gate, up = self._graph.ops("Split", gate_up, count=2, axis=-1, num_outputs=2)
        silu = op("QuickGelu", gate, domain=FUSED, alpha=1.0)
        self._delta = self._product(f"{name}.down", op("Mul", silu, up), layer.down)

    def logits(self, weight: Floats, name: str, head: Blocks) -> None:
        last = self._graph.op("Gather", self._norm("norm", weight), self._final, axis=0)
        self._graph.output("logits", (1, self._shape.vocabulary), self._product(name, last, head))

    def save(self, path: Path) -> None:
        self._graph.save(path)

    def _attention(self, index: int, qkv: str) -> str:
        shape = self._shape
        entries = [f"k.{index}", f"v.{index}"]
        outputs = [f"{entry}.out" for entry in entries]
        size = (1, shape.kv_heads, "capacity", shape.head_width)
        attended = f"attended.{index}"
        self._graph.node(
            "GroupQueryAttention",
            [qkv, "", "", *(self._graph.input(entry, size) for entry in entries), "last", "total", *self._turns],
            [attended, *outputs],
            domain=FUSED,
            num_heads=shape.heads,
            kv_num_heads=shape.kv_heads,
            do_rotary=1,
            scale=shape.head_width**-0.5,
        )
        for output in outputs:
            self._graph.output(output, size, output)
        return attended

    def _norm(self, name: str, weight: Floats) -> str:
        """Adds the pending delta to the stream and gives its norm."""
        gamma, epsilon = self._graph.constant(weight, name), self._shape.epsilon
        if not self._delta:
            return self._graph.op("SimplifiedLayerNormalization", self._stream, gamma, epsilon=epsilon, axis=-1)
        normed, stream = f"{name}.normed", f"{name}.stream"
        inputs = [self._stream, self._delta, gamma]
        self._graph.node(
            "SkipSimplifiedLayerNormalization", inputs, [normed, "", "", stream], domain=FUSED, epsilon=epsilon
        )
        self._stream = stream
        return normed

    def _product(self, name: str, x: str, matrix: Blocks, bias: Floats | None = None, accuracy: int = 0) -> str:
        op, constant = self._graph.op, self._graph.constant
        rows, inputs = matrix.q.shape
        given = [x, constant(matrix.packed, f"{name}.q"), constant(matrix.scale, f"{name}.scale")]
        given.append("" if matrix.zero is None else constant(matrix.zero, f"{name}.zero"))
        if bias is not None:
            given += ["", constant(bias, f"{name}.bias")]
        sizes = {"K": inputs, "N": rows, "bits": matrix.bits, "block_size": SIZE}
        product = op("MatMulNBits", *given, domain=FUSED, accuracy_level=accuracy or self._accuracy, **sizes)
        if matrix.shift is None:
            return product
        sums = op("ReduceSum", op("Reshape", x, self._blocked), self._final, keepdims=0)
        return op("Gemm", sums, constant(np.ascontiguousarray(matrix.shift.T), f"{name}.shift"), product)
