"""Voices are found by their structure: small ones of other sizes, rates and names are cut and say the same."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from appliance.errors import ManifestFault, SourceFault
from appliance.runtime.ort import OrtModel
from appliance.runtime.phonemes import SpokenWord
from appliance.runtime.tts import Voice
from models.quantized.recipes import piper

CHANNELS = 6
SYMBOLS = {"_": [0], "^": [1], "$": [2], " ": [3], "a": [4], "b": [5], ".": [6]}
CONFIG = {"audio": {"sample_rate": 16000}, "phoneme_id_map": SYMBOLS, "inference": {"noise_scale": 0.5}}


class Sketch:
    """Writes down a graph, node by node, under names that mean nothing."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []

    def add(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        names = [f"t{len(self.nodes)}_{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=f"n{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value: Any, kind: Any = np.int64) -> str:
        name = f"c{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(np.array(value, kind), name))
        return name

    def weight(self, *shape: int) -> str:
        return self.constant(self.random.standard_normal(shape) / np.sqrt(np.prod(shape[1:])), np.float32)

    def conv(self, given: str, outs: int, ins: int, kernel: int, dilation: int = 1) -> str:
        pad = (kernel - 1) * dilation // 2
        weight, bias = self.weight(outs, ins, kernel), self.weight(outs)
        return self.add("Conv", given, weight, bias, pads=[pad, pad], dilations=[dilation])

    def at(self, given: str, index: int, axis: int = 0) -> str:
        return self.add("Gather", given, self.constant(index), axis=axis)

    def swap(self, given: str) -> str:
        return self.add("Transpose", given, perm=[0, 2, 1])


def tiny_voice(path: Path, strides: tuple[int, ...] = (4, 2), speakers: int = 1, seed: int = 0) -> Path:
    """A VITS of random weights, with the exporter's idioms: masks, noise, spreading by a product, flips, mean-only
    couplings with gated layers, residual blocks between upsamplings, and a speaker's embedding if there are many."""
    sketch = Sketch(seed)
    add, const, conv = sketch.add, sketch.constant, sketch.conv
    voice = ""
    if speakers > 1:
        voice = add("Unsqueeze", add("Gather", sketch.weight(speakers, 4), "sid"), const([-1]))
    spread, length, wobble = (sketch.at("scales", index) for index in (0, 1, 2))

    text = sketch.swap(add("Gather", sketch.weight(len(SYMBOLS), CHANNELS), "input"))
    mask = text_mask(sketch, text)
    text = add("Mul", conv(text, CHANNELS, CHANNELS, 3), mask)
    mean, deviation = add("Split", add("Mul", conv(text, 2 * CHANNELS, CHANNELS, 1), mask), outputs=2, axis=1)
    shape = add("Concat", const([1, 2]), add("Slice", add("Shape", text), const([2]), const([3])), axis=0)
    noise = add("Mul", add("RandomNormalLike", add("ConstantOfShape", shape)), wobble)
    if voice:
        text = add("Add", text, conv(voice, CHANNELS, 4, 1))
    times = add("Exp", conv(add("Add", conv(text, 2, CHANNELS, 3), noise), 1, 2, 1))
    frames = add("Ceil", add("Mul", add("Mul", times, mask), length))

    count = add("Cast", add("ReduceSum", frames, const([1, 2]), keepdims=0), to=TensorProto.INT64)
    steps = add("Range", const(0), add("ReduceMax", count, keepdims=0), const(1))
    late = add("Cast", add("Less", add("Unsqueeze", steps, const([0])), add("Unsqueeze", count, const([1]))), to=1)
    frame_mask = add("Unsqueeze", late, const([1]))
    until = sketch.swap(add("CumSum", frames, const(2)))
    moment = add("Cast", add("Unsqueeze", add("Unsqueeze", steps, const([0])), const([0])), to=TensorProto.FLOAT)
    begun = add("Cast", add("Less", moment, until), to=1)
    before = add("Cast", add("Less", moment, add("Sub", until, sketch.swap(frames))), to=1)
    path_ = sketch.swap(add("Mul", add("Sub", begun, before), frame_mask))
    spread_mean = sketch.swap(add("MatMul", path_, sketch.swap(mean)))
    spread_deviation = sketch.swap(add("MatMul", path_, sketch.swap(deviation)))
    sound = add("Mul", add("Mul", add("RandomNormalLike", spread_mean), add("Exp", spread_deviation)), spread)
    sound = add("Add", spread_mean, sound)
    for _ in range(2):
        sound = coupling(sketch, sound, frame_mask, voice)
    sound = add("Mul", sound, frame_mask)

    width = 8
    sound = conv(sound, width, CHANNELS, 7)
    if voice:
        sound = add("Add", sound, conv(voice, width, 4, 1))
    for stride in strides:
        sound = add("LeakyRelu", sound, alpha=0.1)
        weight = sketch.weight(width, width // 2, 2 * stride)
        sound = add("ConvTranspose", sound, weight, strides=[stride], pads=[stride // 2, stride - stride // 2])
        width //= 2
        blocks = [residual(sketch, sound, width, kernel) for kernel in (3, 5)]
        sound = add("Div", add("Add", *blocks), const(2, np.float32))
    sound = add("Tanh", conv(add("LeakyRelu", sound, alpha=0.01), 1, width, 7))
    add("Unsqueeze", sound, const([1]))
    sketch.nodes[-1].output[0] = "output"

    make = helper.make_tensor_value_info
    inputs = [
        make("input", TensorProto.INT64, ["batch", "n"]),
        make("input_lengths", TensorProto.INT64, ["batch"]),
        make("scales", TensorProto.FLOAT, [3]),
        *([make("sid", TensorProto.INT64, ["batch"])] if voice else []),
    ]
    outputs = [make("output", TensorProto.FLOAT, ["batch", 1, "c", "time"])]
    graph = helper.make_graph(sketch.nodes, "voice", inputs, outputs, sketch.tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)])
    model.ir_version = 8
    path.write_bytes(model.SerializeToString())
    return path


def text_mask(sketch: Sketch, text: str) -> str:
    add, const = sketch.add, sketch.constant
    steps = add("Range", const(0), sketch.at(add("Shape", text), 2), const(1))
    known = add("Less", add("Unsqueeze", steps, const([0])), add("Unsqueeze", "input_lengths", const([1])))
    return add("Unsqueeze", add("Cast", known, to=TensorProto.FLOAT), const([1]))


def coupling(sketch: Sketch, sound: str, mask: str, voice: str) -> str:
    """The reverse of a flip and a mean-only coupling."""
    add, const, conv = sketch.add, sketch.constant, sketch.conv
    half = CHANNELS // 2
    flipped = add("Slice", sound, const([-1]), const([-(2**31)]), const([1]), const([-1]))
    kept, moved = add("Split", flipped, outputs=2, axis=1)
    inner = add("Mul", conv(kept, 4, half, 1), mask)
    total = add("ConstantOfShape", add("Shape", inner))
    for layer in range(2):
        wide = conv(inner, 8, 4, 5)
        wide = add("Add", wide, conv(voice, 8, 4, 1) if voice else add("ConstantOfShape", add("Shape", wide)))
        left, right = (add("Slice", wide, const([at]), const([at + 4]), const([1])) for at in (0, 4))
        gated = add("Mul", add("Tanh", left), add("Sigmoid", right))
        if layer == 0:
            both = conv(gated, 8, 4, 1)
            first, second = (add("Slice", both, const([at]), const([at + 4]), const([1])) for at in (0, 4))
            inner = add("Mul", add("Add", inner, first), mask)
            total = add("Add", total, second)
        else:
            total = add("Add", total, conv(gated, 4, 4, 1))
    mean = add("Mul", conv(add("Mul", total, mask), half, 4, 1), mask)
    still = add("ConstantOfShape", add("Shape", mean))
    moved = add("Mul", add("Mul", add("Sub", moved, mean), add("Exp", add("Neg", still))), mask)
    return str(add("Concat", kept, moved, axis=1))


def residual(sketch: Sketch, sound: str, width: int, kernel: int) -> str:
    for dilation in (1, 3):
        inner = sketch.conv(sketch.add("LeakyRelu", sound, alpha=0.1), width, width, kernel, dilation)
        sound = sketch.add("Add", sound, inner)
    return sound


def built(folder: Path, source: Path, config: dict[str, Any], speaker: int = 0) -> Any:
    (folder / "config.json").write_text(json.dumps(config))
    out = folder / "out"
    out.mkdir(exist_ok=True)
    card = SimpleNamespace(options={"speaker": speaker}, id="tiny", path=folder / "tiny.toml")
    piper.build(card, {"voice": source, "config": folder / "config.json"}, out, lambda *_: None)  # type: ignore[arg-type]
    names = {"config": "voice.json"}
    return SimpleNamespace(card=card, folder=out, file=lambda role, rung=None: out / names.get(role, f"{role}.onnx"))


@pytest.mark.parametrize("speakers", [1, 3])
@pytest.mark.parametrize("strides", [(4, 2), (8, 8, 4), (2, 2, 2)])
def test_a_voice_of_any_size_is_cut_and_says_the_same(tmp_path: Path, strides: tuple[int, ...], speakers: int) -> None:
    source = tiny_voice(tmp_path / "v.onnx", strides, speakers)
    voice = Voice(built(tmp_path, source, CONFIG | {"num_speakers": speakers}, speakers - 1))
    assert voice.hop == np.prod(strides)
    (tmp_path / "whole.onnx").write_bytes(piper.with_noise(source).SerializeToString())
    whole = OrtModel(tmp_path / "whole.onnx")
    (piece,) = voice.encode([SpokenWord("x", "abba"), SpokenWord("y", "ab" * 20 + ".")])
    sound = voice.utter(piece.ids, seed=9)
    noise = np.random.default_rng(9)
    given: dict[str, Any] = {
        "input": piece.ids[None],
        "input_lengths": np.array([len(piece.ids)]),
        "scales": np.array(voice.scales, np.float32),
        "duration_noise": noise.standard_normal((1, 2, len(piece.ids)), np.float32),
        "latent_noise": np.ascontiguousarray(noise.standard_normal((len(sound), CHANNELS), np.float32).T[None]),
    }
    if speakers > 1:
        given["sid"] = np.array([speakers - 1])
    with whole.session() as infer:
        wanted = infer(given)["samples"].reshape(-1)
    assert len(sound) > 60
    for windows in (None, [len(sound)], [1] * 20, [7, 30, 2]):
        made = np.concatenate(list(sound.stream(0, windows)))
        assert made.shape == wanted.shape
        assert np.abs(made - wanted).max() < 1e-5
    assert np.abs(np.diff(wanted)).max() > 1e-3


def test_speakers_differ(tmp_path: Path) -> None:
    source, config = tiny_voice(tmp_path / "v.onnx", speakers=3), CONFIG | {"num_speakers": 3}
    words = [SpokenWord("x", "abab")]
    first, other = (
        np.concatenate([chunk.samples for chunk in Voice(built(tmp_path, source, config, speaker)).speak(words)])
        for speaker in (0, 2)
    )
    assert len(first) != len(other) or not np.allclose(first, other)


@pytest.mark.parametrize("speaker", [3, -1, "joe"])
def test_a_speaker_that_is_not_there_is_refused(tmp_path: Path, speaker: Any) -> None:
    source, config = tiny_voice(tmp_path / "v.onnx", speakers=3), CONFIG | {"num_speakers": 3}
    with pytest.raises(ManifestFault, match="speaker"):
        Voice(built(tmp_path, source, config, speaker))


def test_the_same_source_gives_the_same_bytes(tmp_path: Path) -> None:
    source = tiny_voice(tmp_path / "v.onnx")
    first, again = tmp_path / "1", tmp_path / "2"
    made = []
    for folder in (first, again):
        folder.mkdir()
        made.append({path.name: path.read_bytes() for path in built(folder, source, CONFIG).folder.iterdir()})
    assert made[0] == made[1]
    assert set(made[0]) == {"text.onnx", "flow.onnx", "decoder.onnx", "voice.json"}


def test_the_parts_are_valid_onnx(tmp_path: Path) -> None:
    folder = built(tmp_path, tiny_voice(tmp_path / "v.onnx"), CONFIG).folder
    for name in ("text", "flow", "decoder"):
        model = onnx.load(folder / f"{name}.onnx")
        made = {output for node in model.graph.node for output in node.output}
        assert len(made) == sum(len(node.output) for node in model.graph.node)
        assert all(node.op_type != "RandomNormalLike" for node in model.graph.node)


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x08\x07" * 50])
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "v.onnx"
    path.write_bytes(content)
    with pytest.raises(SourceFault, match="Piper voice"):
        built(tmp_path, path, CONFIG)


@pytest.mark.parametrize("kind", ["Ceil", "RandomNormalLike", "ConvTranspose"])
def test_a_graph_of_another_kind_is_refused(tmp_path: Path, kind: str) -> None:
    path = tiny_voice(tmp_path / "v.onnx")
    model = onnx.load(path)
    for node in model.graph.node:
        if node.op_type == kind:
            node.op_type, node.domain = "Relu", ""
    path.write_bytes(model.SerializeToString())
    with pytest.raises(SourceFault, match="Piper voice"):
        built(tmp_path, path, CONFIG)


@pytest.mark.parametrize(
    "change",
    [
        {"audio": {}},
        {"audio": {"sample_rate": "fast"}},
        {"phoneme_id_map": {"a": [1]}},
        {"phoneme_id_map": {"a": "x"}},
        {"phoneme_id_map": None},
        {"inference": []},
    ],
)
def test_a_broken_configuration_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(SourceFault, match="configuration"):
        built(tmp_path, tiny_voice(tmp_path / "v.onnx"), CONFIG | change)
