"""Silero VAD: the 16 kHz half of the published graph, without the branches that the other half needs.

input [1, 576] (64 samples of the chunk before, then 512 new ones), state [2, 1, 128]
    -> output [1, 1], the probability of speech, stateN [2, 1, 128]
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from appliance.errors import SourceFault
from appliance.runtime.card import Built, Card
from appliance.runtime.model import Array, Model
from appliance.runtime.ort import OrtModel
from models.quantized.graph import Graph, read_constants
from models.quantized.recipes import Check, Progress

CONTEXT, CHUNK, WIDTH = 64, 512, 128
_STRIDES = (1, 2, 2, 1)


def build(card: Card, sources: Mapping[str, Path], out: Path, progress: Progress) -> None:
    progress("convert", 0.0)
    constants = read_constants(sources["graph"])
    prefix = str(card.options["prefix"])
    weights = {name.removeprefix(prefix): value for name, value in constants.items() if name.startswith(prefix)}
    if "decoder.rnn.weight_ih" not in weights:
        raise SourceFault(f"{sources['graph']} holds no weights named {prefix}…", f"correct `prefix` in {card.path}")
    network(weights).save(out / "vad.onnx")
    progress("convert", 1.0)


def verify(built: Built) -> list[Check]:
    """Against the probabilities that the published graph gives for the same sound."""
    expected = built.card.golden["probabilities"]
    found = probabilities(OrtModel(built.file("graph")), len(expected))
    return [Check("largest difference of a probability", float(np.abs(np.subtract(expected, found)).max()), 1e-4)]


def probabilities(model: Model, chunks: int) -> list[float]:
    """What the model says to each chunk of the golden sound."""
    state, context, found = np.zeros((2, 1, WIDTH), np.float32), np.zeros(CONTEXT, np.float32), []
    with model.session() as infer:
        for chunk in sound(chunks * CHUNK).reshape(-1, CHUNK):
            heard = np.concatenate([context, chunk])[None]
            answer = infer({"input": heard, "state": state, "sr": np.array(16_000)})
            state, context = answer["stateN"], chunk[-CONTEXT:]
            found.append(float(answer["output"][0, 0]))
    return found


def sound(samples: int) -> Array:
    """Vowel-like: a 120 Hz pulse train through two resonances, on for a half of the time. In float64, so that every
    machine hears the same."""
    time = np.arange(samples) / 16_000
    voice = sum(np.cos(2 * np.pi * 120 * k * time) * _formants(120.0 * k) for k in range(1, 33))
    return np.asarray(0.05 * voice * (np.sin(2 * np.pi * 3 * time) > 0), np.float32)


def _formants(hertz: float) -> float:
    return sum(1.0 / (1.0 + ((hertz - centre) / width) ** 2) for centre, width in ((650.0, 80.0), (1100.0, 110.0)))


def network(weights: Mapping[str, Array]) -> Graph:
    graph = Graph("silero-vad")
    sound, state = graph.input("input", (1, CONTEXT + CHUNK)), graph.input("state", (2, 1, WIDTH))
    graph.input("sr", (), "int64")
    pad = graph.op("Pad", sound, graph.constant([0, 0, 0, CONTEXT]), mode="reflect")
    framed = graph.op("Unsqueeze", pad, graph.constant([1]))
    basis = weights["stft.forward_basis_buffer"]
    spectrum = graph.op("Conv", framed, graph.constant(basis, "stft"), strides=[len(basis) // 2 - 1])
    real, imaginary = graph.ops("Split", spectrum, count=2, axis=1)
    power = graph.op("Add", graph.op("Mul", real, real), graph.op("Mul", imaginary, imaginary))
    hidden = graph.op("Sqrt", power)
    for number, stride in enumerate(_STRIDES):
        name = f"encoder.{number}.reparam_conv"
        filters = [graph.constant(weights[f"{name}.{kind}"], f"{name}.{kind}") for kind in ("weight", "bias")]
        hidden = graph.op("Relu", graph.op("Conv", hidden, *filters, strides=[stride], pads=[1, 1]))
    step = graph.op("Transpose", hidden, perm=[2, 0, 1])
    h, c = graph.ops("Split", state, count=2, axis=0)
    _, h, c = graph.ops("LSTM", step, *_lstm(graph, weights), "", h, c, count=3, hidden_size=WIDTH)
    graph.output("stateN", (2, 1, WIDTH), graph.op("Concat", h, c, axis=0))
    last = graph.op("Relu", graph.op("Squeeze", h, graph.constant([0])))
    weight = graph.constant(weights["decoder.decoder.2.weight"].reshape(1, WIDTH), "decoder.weight")
    score = graph.op("Gemm", last, weight, graph.constant(weights["decoder.decoder.2.bias"], "decoder.bias"), transB=1)
    graph.output("output", (1, 1), graph.op("Sigmoid", score))
    return graph


def _lstm(graph: Graph, weights: Mapping[str, Array]) -> list[str]:
    """The gates in ONNX's order (input, output, forget, cell); they come as input, forget, cell, output."""

    def ordered(kind: str) -> Array:
        first, forget, cell, last = np.split(weights[f"decoder.rnn.{kind}"], 4)
        return np.concatenate([first, last, forget, cell])

    bias = np.concatenate([ordered("bias_ih"), ordered("bias_hh")])
    arrays = {"rnn.input": ordered("weight_ih"), "rnn.state": ordered("weight_hh"), "rnn.bias": bias}
    return [graph.constant(array[None], name) for name, array in arrays.items()]
