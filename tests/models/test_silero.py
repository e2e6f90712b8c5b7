"""The rebuilt Silero graph against the network written out in numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from small import PREFIX, shelf, write_manifest, write_source

from appliance.errors import SourceFault
from appliance.runtime.ort import OrtModel
from models.quantized.build import build_many
from models.quantized.graph import read_constants
from models.quantized.recipes.silero import CHUNK, CONTEXT, network

Floats = NDArray[np.float64]


def sigmoid(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-x))


def convolve(x: Floats, weight: Floats, stride: int) -> Floats:
    """x [channels, time], weight [out, channels, taps]."""
    windows = sliding_window_view(x, weight.shape[2], axis=1)[:, ::stride]
    return np.einsum("ctk,ock->ot", windows, weight)


def speech(weights: dict[str, Floats], sound: Floats, h: Floats, c: Floats) -> tuple[float, Floats, Floats]:
    padded = np.concatenate([sound, sound[-2 : -CONTEXT - 2 : -1]])
    spectrum = convolve(padded[None], weights["stft.forward_basis_buffer"], 128)
    x = np.hypot(spectrum[:129], spectrum[129:])
    for number, stride in enumerate((1, 2, 2, 1)):
        name = f"encoder.{number}.reparam_conv"
        x = convolve(np.pad(x, ((0, 0), (1, 1))), weights[f"{name}.weight"], stride) + weights[f"{name}.bias"][:, None]
        x = np.maximum(x, 0)
    gates = weights["decoder.rnn.weight_ih"] @ x[:, 0] + weights["decoder.rnn.bias_ih"]
    gates = gates + weights["decoder.rnn.weight_hh"] @ h + weights["decoder.rnn.bias_hh"]
    first, forget, cell, last = np.split(gates, 4)
    c = sigmoid(forget) * c + sigmoid(first) * np.tanh(cell)
    h = sigmoid(last) * np.tanh(c)
    score = weights["decoder.decoder.2.weight"][0, :, 0] @ np.maximum(h, 0) + weights["decoder.decoder.2.bias"][0]
    return float(sigmoid(score)), h, c


def test_the_graph_is_the_network(tmp_path: Path) -> None:
    write_source(tmp_path / "weights.onnx", seed=3)
    constants = read_constants(tmp_path / "weights.onnx")
    weights = {name.removeprefix(PREFIX): value for name, value in constants.items()}
    network(weights).save(tmp_path / "vad.onnx")
    doubles = {name: value.astype(np.float64) for name, value in weights.items()}
    state, h, c = np.zeros((2, 1, 128), np.float32), np.zeros(128), np.zeros(128)
    noise = np.random.default_rng(4)
    with OrtModel(tmp_path / "vad.onnx").session() as infer:
        for _ in range(5):
            sound = (noise.standard_normal(CONTEXT + CHUNK) * 0.3).astype(np.float32)
            answer = infer({"input": sound[None], "state": state, "sr": np.array(16_000)})
            state = answer["stateN"]
            expected, h, c = speech(doubles, sound.astype(np.float64), h, c)
            assert answer["output"][0, 0] == pytest.approx(expected, abs=1e-5)
            assert np.allclose(state[:, 0], [h, c], atol=1e-4)


def test_a_graph_of_something_else_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "weights.onnx"
    write_source(source)
    path = write_manifest(tmp_path / "manifests", source, f'file = "{source}"')
    path.write_text(path.read_text().replace(f'prefix = "{PREFIX}"', 'prefix = "other."'))
    with pytest.raises(SourceFault, match=r"no weights named other\."):
        build_many(shelf(tmp_path))
