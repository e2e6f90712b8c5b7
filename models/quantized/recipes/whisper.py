"""Whisper of any size: CTranslate2 weights to an ONNX encoder and decoder.

    encoder   mel [1, bands, 2S], positions [S], weight [S]
                  -> key_i, value_i [1, heads, S, width] for each decoder layer i
    decoder   tokens [1, N], past [P, 2 * layers, model], key_i, value_i, weight [S], keep [1]
                  -> logits [keep, vocabulary], present [N, 2 * layers, model]

The keys and values that the decoder attends to are computed once, by the encoder. The audio context is free:
`positions` says which of Whisper's places in time the encoder sees, `weight` is the logarithm of how many places each
of them stands for and is added to every attention score, so that a few places of silence can stand for all of it.
`past` grows along its first axis: a caller keeps it in one buffer, and forgets the end of it to go back.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from appliance.errors import SourceFault
from appliance.runtime import asr
from appliance.runtime.card import Built, Card
from firmware.frame import RATE, Wave
from models.quantized.graph import FUSED, Graph
from models.quantized.recipes import Check, Progress, ct2

Floats = NDArray[np.float32]
PRECISIONS = ("fp32", "int8")
_FAR = 2**40
_MASKED = -1e9


def build(card: Card, sources: Mapping[str, Path], out: Path, progress: Progress) -> None:
    """Sources `weights`, `tokenizer` and `config`: the files of a CTranslate2 model. Raises SourceFault."""
    settings = _settings(sources["config"])
    net = _Net(sources["weights"])
    for number, precision in enumerate(PRECISIONS):
        progress(f"convert to {precision}", number / len(PRECISIONS))
        for role, graph in (("encoder", net.encoder(precision)), ("decoder", net.decoder(precision))):
            graph.save(out / f"{role}.{precision}.onnx", out / f"{role}.{precision}.bin")
    shutil.copyfile(sources["tokenizer"], out / "tokenizer.json")
    (out / "settings.json").write_text(json.dumps(settings, sort_keys=True))
    progress("convert", 1.0)


def verify(built: Built) -> list[Check]:
    """Against the scores that the published implementation gives to a few tokens for the same sound."""
    golden = built.card.golden
    wave = hum(golden["seconds"])
    expected = np.array(golden["logits"], np.float32)
    checks = []
    for rung, limit in golden["limits"].items():
        scores = asr.load(built, rung).first_scores(wave)[golden["tokens"]]
        difference = float(np.abs(scores - scores[0] - (expected - expected[0])).max())
        checks.append(Check(f"{rung}: largest difference of a score", difference, limit))
    return checks


def hum(seconds: float) -> Wave:
    """A tone of 32 harmonics that rises, in float64 so that every machine hears the same."""
    time = np.arange(int(seconds * RATE)) / RATE
    phase = 2 * np.pi * (110.0 + 20.0 * time) * time
    return np.asarray(sum(np.cos(k * phase) / k for k in range(1, 33)) * 0.05, np.float32)


def _settings(path: Path) -> dict[str, list[int]]:
    """The tokens that are never written, and those that cannot come first."""
    try:
        config = json.loads(path.read_bytes())
        return {key: [int(token) for token in config[key]] for key in ("suppress_ids", "suppress_ids_begin")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SourceFault(f"{path} is not the config.json of a Whisper model: {error!r}", "fetch it again") from error


class _Net:
    """The network of one set of weights. All sizes are read from these."""

    def __init__(self, path: Path) -> None:
        weights = ct2.read(path)
        if weights.spec != "WhisperSpec":
            raise SourceFault(f"{path} holds a {weights.spec}, not a WhisperSpec", "use the weights of a Whisper model")
        self._path, self._arrays = path, weights.arrays
        self.layers = {part: self._count(part) for part in ("encoder", "decoder")}
        self.vocabulary, self.model = self._array("decoder/embeddings/weight").shape
        self.bands = self._array("encoder/conv1/weight").shape[1]
        # Conversions of before 2022 do not store the number of heads; all of Whisper's are 64 wide.
        self.heads = int(self._arrays.get("decoder/num_heads", np.array(self.model // 64)))

    def _count(self, part: str) -> int:
        count = 0
        while f"{part}/layer_{count}/ffn/linear_0/weight" in self._arrays:
            count += 1
        return count

    def _array(self, name: str) -> Floats:
        if name not in self._arrays:
            raise SourceFault(f"{self._path} holds no {name}", "use the weights of a Whisper model")
        return self._arrays[name].astype(np.float32)

    def encoder(self, precision: str) -> Graph:
        graph = Graph("whisper-encoder")
        mel = graph.input("mel", (1, self.bands, "frames"))
        positions = graph.input("positions", ("places",), "int64")
        weight = graph.input("weight", ("places",))
        layer = _Layers(self, graph, precision)
        hidden = layer.convolution(mel, "encoder/conv1", stride=1)
        hidden = graph.op("Transpose", layer.convolution(hidden, "encoder/conv2", stride=2), perm=[0, 2, 1])
        hidden = graph.op(
            "Add", hidden, graph.op("Gather", layer.array("encoder/position_encodings/encodings"), positions)
        )
        length = graph.op("Shape", weight)
        scores = graph.op("Expand", weight, graph.op("Concat", graph.constant([1, 1]), length, length, axis=0))
        for number in range(self.layers["encoder"]):
            name = f"encoder/layer_{number}"
            query, key, value = layer.projections(hidden, f"{name}/self_attention")
            attended = layer.attention(query, key, value, scores)
            hidden = graph.op("Add", hidden, layer.linear(attended, f"{name}/self_attention/linear_1"))
            hidden = layer.feed_forward(hidden, f"{name}/ffn")
        hidden = layer.norm(hidden, "encoder/layer_norm")
        for number in range(self.layers["decoder"]):
            both = layer.linear(hidden, f"decoder/layer_{number}/attention/linear_1")
            both = graph.op("Reshape", both, graph.constant([1, -1, 2 * self.heads, self.model // self.heads]))
            parts = graph.ops("Split", graph.op("Transpose", both, perm=[0, 2, 1, 3]), count=2, axis=1)
            for kind, part in zip(("key", "value"), parts, strict=True):
                graph.output(f"{kind}_{number}", self._memory, part)
        return graph

    @property
    def _memory(self) -> tuple[int | str, ...]:
        return (1, self.heads, "places", self.model // self.heads)

    def decoder(self, precision: str) -> Graph:
        graph = Graph("whisper-decoder")
        count = self.layers["decoder"]
        tokens = graph.input("tokens", (1, "new"), "int64")
        past = graph.input("past", ("past", 2 * count, self.model))
        memory = [
            (graph.input(f"key_{number}", self._memory), graph.input(f"value_{number}", self._memory))
            for number in range(count)
        ]
        weight = graph.input("weight", ("places",))
        keep = graph.input("keep", (1,), "int64")
        layer = _Layers(self, graph, precision)
        zero, one = graph.constant([0]), graph.constant([1])

        before = graph.op("Slice", graph.op("Shape", past), zero, one)
        new = graph.op("Slice", graph.op("Shape", tokens), one, graph.constant([2]))
        total = graph.op("Add", before, new)
        scalar = [graph.constant(np.array(number, np.int64), f"scalar_{number}") for number in (0, 1)]
        everywhere = graph.op("Range", scalar[0], graph.op("Squeeze", total), scalar[1])
        places = graph.op("Slice", everywhere, before, total)
        hidden = graph.op("Add", layer.embedding(tokens), layer.positions("decoder", places))

        later = graph.op("Greater", graph.op("Unsqueeze", everywhere, zero), graph.op("Unsqueeze", places, one))
        masked = graph.op("Mul", graph.op("Cast", later, to=1), graph.constant(_MASKED))
        causal = graph.op("Unsqueeze", masked, graph.constant([0, 1]))
        shape = graph.op("Concat", graph.constant([1, 1]), new, graph.op("Shape", weight), axis=0)
        scores = graph.op("Expand", weight, shape)

        pasts = graph.ops("Split", past, count=2 * count, axis=1)
        row = graph.constant([1, -1, self.model])
        present = []
        for number, (key, value) in enumerate(memory):
            name = f"decoder/layer_{number}"
            query, *fresh = layer.projections(hidden, f"{name}/self_attention")
            present += fresh
            grown = [
                graph.op("Concat", graph.op("Reshape", old, row), added, axis=1)
                for old, added in zip(pasts[2 * number : 2 * number + 2], fresh, strict=True)
            ]
            attended = layer.attention(query, grown[0], grown[1], causal)
            hidden = graph.op("Add", hidden, layer.linear(attended, f"{name}/self_attention/linear_1"))
            query = layer.linear(layer.norm(hidden, f"{name}/attention/layer_norm"), f"{name}/attention/linear_0")
            attended = layer.attention(query, key, value, scores)
            hidden = graph.op("Add", hidden, layer.linear(attended, f"{name}/attention/linear_2"))
            hidden = layer.feed_forward(hidden, f"{name}/ffn")
        last = graph.op("Slice", hidden, graph.op("Neg", keep), graph.constant([_FAR]), one)
        last = layer.norm(last, "decoder/layer_norm")
        logits = layer.linear(last, "decoder/embeddings")
        graph.output("logits", ("keep", self.vocabulary), graph.op("Squeeze", logits, zero))
        joined = graph.op("Transpose", graph.op("Concat", *present, axis=0), perm=[1, 0, 2])
        graph.output("present", ("new", 2 * count, self.model), joined)
        return graph


class _Layers:
    """Whisper's layers, written into one graph at one precision."""

    def __init__(self, net: _Net, graph: Graph, precision: str) -> None:
        self._net, self._graph, self._precision = net, graph, precision

    def array(self, name: str) -> str:
        return self._graph.constant(self._net._array(name), name)

    def positions(self, part: str, places: str) -> str:
        return self._graph.op("Gather", self.array(f"{part}/position_encodings/encodings"), places)

    def embedding(self, tokens: str) -> str:
        """At int8 the table is stored in half precision, as it came: only the rows in use are ever read."""
        table = self._net._array("decoder/embeddings/weight")
        if self._precision == "fp32":
            return self._graph.op("Gather", self._graph.constant(table, "decoder/embeddings"), tokens)
        half = self._graph.constant(table.astype(np.float16), "decoder/embeddings")
        return self._graph.op("Cast", self._graph.op("Gather", half, tokens), to=1)

    def convolution(self, x: str, name: str, stride: int) -> str:
        arrays = [self.array(f"{name}/{kind}") for kind in ("weight", "bias")]
        return self._gelu(self._graph.op("Conv", x, *arrays, pads=[1, 1], strides=[stride]))

    def norm(self, x: str, name: str) -> str:
        arrays = [self.array(f"{name}/{kind}") for kind in ("gamma", "beta")]
        return self._graph.op("LayerNormalization", x, *arrays, epsilon=1e-5)

    def linear(self, x: str, name: str) -> str:
        weight = self._net._array(f"{name}/weight").T
        bias = [self.array(f"{name}/bias")] if f"{name}/bias" in self._net._arrays else []
        if self._precision == "fp32":
            product = self._graph.op("MatMul", x, self._graph.constant(weight, f"{name}/matrix"))
            return self._graph.op("Add", product, *bias) if bias else product
        return self._linear_int8(x, name, weight, bias)

    def _linear_int8(self, x: str, name: str, weight: Floats, bias: list[str]) -> str:
        """Each output of the matrix and each row of `x` has a scale of its own.

        One scale for all rows, as onnxruntime's dynamic quantisation has it, would cost the same and make a row's
        result depend on the rows beside it: a draft verified in one pass would not give what single tokens do.
        """
        graph = self._graph
        scale = np.maximum(np.abs(weight).max(axis=0), np.float32(1e-12)) / np.float32(127)
        matrix = graph.constant(np.rint(weight / scale).astype(np.int8), f"{name}/int8")
        largest = graph.op("ReduceMax", graph.op("Abs", x), axes=[-1], keepdims=1)
        step, middle = graph.constant(1 / 127, "step"), graph.constant(np.array(128, np.uint8), "middle")
        rows = graph.op("QuantizeLinear", graph.op("Div", x, largest), step, middle)
        scales = (
            graph.constant(scale, f"{name}/scale"),
            middle,
            graph.constant(np.zeros(len(scale), np.int8), f"{name}/zero"),
        )
        product = graph.op("MatMulIntegerToFloat", rows, matrix, step, *scales, domain=FUSED)
        product = graph.op("Mul", product, largest)
        return graph.op("Add", product, *bias) if bias else product

    def projections(self, hidden: str, name: str) -> list[str]:
        """Query, key and value of self-attention, each [1, N, model]."""
        fused = self.linear(self.norm(hidden, f"{name}/layer_norm"), f"{name}/linear_0")
        return self._graph.ops("Split", fused, count=3, axis=2)

    def attention(self, query: str, key: str, value: str, scores: str) -> str:
        inputs = (query, key, value, "", "", scores)
        return self._graph.op("MultiHeadAttention", *inputs, num_heads=self._net.heads, domain=FUSED)

    def feed_forward(self, hidden: str, name: str) -> str:
        inner = self._gelu(self.linear(self.norm(hidden, f"{name}/layer_norm"), f"{name}/linear_0"))
        return self._graph.op("Add", hidden, self.linear(inner, f"{name}/linear_1"))

    def _gelu(self, x: str) -> str:
        return self._graph.op("Gelu", x, domain=FUSED)
