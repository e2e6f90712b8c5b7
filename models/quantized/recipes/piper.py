"""Piper voices (VITS, any size): one ONNX graph cut into three that speak while they work.

    text      ids [1, N], lengths [1], scales [3], noise [1, 2, N]  -> mean, deviation [1, C, N], frames [1, 1, N]
    flow      latent [1, C, T], inside [2]                          -> sound [1, C, T']
    decoder   sound [1, C, T], inside [2]                           -> samples [1, 1, hop * T']

`frames` says how many frames each symbol lasts, so whoever calls can spread mean and log-deviation over time, add the
noise, and run flow and decoder over any window of frames. `inside` is 1 for a side on which the window has `context`
frames of neighbours: these are dropped on the way, as soon as no later layer sees them, so that the answer is that
of the whole graph (T' = T minus the contexts) and little is computed twice. On a side where it is 0 the utterance ends
and the padding of the original graph is right.

Nothing goes by node names: the parts are found by what is peculiar to them (the one Ceil, the two noises, the first
transposed convolution), so every voice of the family is built by a manifest alone. The convolutions over time become
convolutions over [1, time], for which onnxruntime has much the faster kernels.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from appliance.errors import SourceFault
from appliance.runtime.card import Built, Card
from appliance.runtime.phonemes import SpokenWord
from appliance.runtime.tts import Voice
from models.quantized.recipes import Check, Progress

VERSION = 1

INPUTS = ("input", "input_lengths", "scales")
"""What every exported Piper voice calls its inputs; a voice of many speakers has `sid` besides."""

_ALONG = frozenset(
    {"Add", "Sub", "Mul", "Div", "LeakyRelu", "Tanh", "Sigmoid", "Neg", "Exp", "Split", "Slice", "Concat"}
)
"""Operations that keep every moment to itself."""

_AXIS_TIME = 3


def build(card: Card, sources: Mapping[str, Path], out: Path, progress: Progress) -> None:
    """Writes text.onnx, flow.onnx, decoder.onnx and voice.json. Raises SourceFault."""
    progress("reading", 0.0)
    graph = Graph.read(sources["voice"])
    config = _config(sources["config"])
    joints = find(graph)
    progress("cutting", 0.2)
    parts = {"text": text_part(graph, joints), "flow": flow_part(graph, joints), "decoder": decoder_part(graph, joints)}
    for number, (name, part) in enumerate(parts.items()):
        progress(f"writing {name}", 0.5 + number / 6)
        _write(part.model, out / f"{name}.onnx")
    config |= {
        "hop": parts["decoder"].rate,
        "context": {name: parts[name].context for name in ("flow", "decoder")},
    }
    (out / "voice.json").write_text(json.dumps(config, ensure_ascii=False, indent=1, sort_keys=True), encoding="utf-8")
    progress("done", 1.0)


def verify(built: Built) -> list[Check]:
    """Speaks the golden phonemes and compares with what the whole graph said under the same noise."""
    golden = built.card.golden
    voice = Voice(built)
    (piece,) = voice.encode(SpokenWord(word, word) for word in golden["phonemes"].split())
    samples = np.concatenate(list(voice.utter(piece.ids, seed=golden["seed"]).stream()))
    length = Check("samples, difference in number", abs(len(samples) - golden["length"]), 0)
    if not length.passed:
        return [length]
    differ = np.abs(samples[:: golden["every"]] - np.array(golden["samples"], np.float32)).max()
    return [length, Check("samples, largest difference to the whole graph", float(differ), 1e-4)]


def _config(path: Path) -> dict[str, Any]:
    """The part of a Piper configuration that a voice needs. Raises SourceFault."""
    try:
        given = json.loads(path.read_bytes())
        scales = given.get("inference", {})
        symbols = {symbol: list(map(int, ids)) for symbol, ids in given["phoneme_id_map"].items()}
        config = {
            "rate": int(given["audio"]["sample_rate"]),
            "scales": [
                float(scales.get("noise_scale", 0.667)),
                float(scales.get("length_scale", 1.0)),
                float(scales.get("noise_w", 0.8)),
            ],
            "speakers": int(given.get("num_speakers", 1)),
            "symbols": symbols,
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _no_voice(f"its configuration {path} cannot be used: {type(error).__name__} {error}") from error
    for mark in ("_", "^", "$"):
        if mark not in symbols:
            raise _no_voice(f"its configuration has no symbol {mark!r}")
    return config


# --- the graph -----------------------------------------------------------------------------------------------------


class Graph:
    """An ONNX graph with its wiring: who makes and who reads each tensor."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.nodes: list[onnx.NodeProto] = list(model.graph.node)
        self.constants: dict[str, onnx.TensorProto] = {tensor.name: tensor for tensor in model.graph.initializer}
        for node in self.nodes:
            if node.op_type == "Constant":
                self.constants[node.output[0]] = node.attribute[0].t
        self.nodes = [node for node in self.nodes if node.op_type != "Constant"]
        self.maker = {name: node for node in self.nodes for name in node.output}

    @classmethod
    def read(cls, path: Path) -> Graph:
        try:
            return cls(onnx.load(path))
        except (OSError, ValueError, onnx.checker.ValidationError) as error:
            raise _no_voice(f"{path} cannot be read as ONNX: {error}") from error
        except Exception as error:  # protobuf's DecodeError derives from Exception alone
            if type(error).__name__ != "DecodeError":
                raise
            raise _no_voice(f"{path} is not an ONNX file") from error

    def only(self, kind: str, nodes: Iterable[onnx.NodeProto] | None = None) -> onnx.NodeProto:
        found = [node for node in (self.nodes if nodes is None else nodes) if node.op_type == kind]
        if len(found) != 1:
            raise _no_voice(f"there should be one {kind} here, there are {len(found)}")
        return found[0]

    def value(self, name: str) -> NDArray[Any]:
        return numpy_helper.to_array(self.constants[name])

    def after(self, names: Iterable[str], nodes: Iterable[onnx.NodeProto] | None = None) -> set[str]:
        """The tensors that depend on these (which are among them). `Shape` ends a dependency: sizes are no content."""
        reached = set(names)
        for node in self.nodes if nodes is None else nodes:
            if node.op_type != "Shape" and not reached.isdisjoint(node.input):
                reached.update(node.output)
        return reached

    def before(self, names: Iterable[str], stop: Iterable[str] = ()) -> list[onnx.NodeProto]:
        """The nodes needed to compute these tensors from `stop`, in order."""
        ends = set(stop)
        wanted = set(names) - ends
        kept: list[onnx.NodeProto] = []
        for node in reversed(self.nodes):
            if not wanted.isdisjoint(node.output):
                kept.append(node)
                wanted.update(set(node.input) - ends)
        return kept[::-1]


@dataclass(frozen=True, slots=True)
class Joints:
    """Where the graph comes apart; all are names of tensors."""

    duration_noise: str
    frames: str
    mean: str
    deviation: str
    latent_noise: str
    latent: str
    masks: frozenset[str]
    sound: str
    samples: str


def find(graph: Graph) -> Joints:
    """Finds the joints of a Piper voice. Raises SourceFault."""
    names = {tensor.name for tensor in graph.model.graph.input}
    if not names.issuperset(INPUTS) or names - {*INPUTS, "sid"}:
        raise _no_voice(f"its inputs are {', '.join(sorted(names))}")
    frames = graph.only("Ceil").output[0]
    timing = graph.after([frames])
    early = graph.before([frames])
    duration_noise = graph.only("RandomNormalLike", early)
    latent_noise = graph.only("RandomNormalLike", [node for node in graph.nodes if timing.issuperset(node.output)])
    spread = latent_noise.input[0]
    noisy = graph.after(latent_noise.output)
    latent = graph.only("Add", [n for n in graph.nodes if spread in n.input and noisy.issuperset(n.output)]).output[0]
    deviation = graph.only("Exp", [node for node in graph.before([latent]) if timing.issuperset(node.output)]).input[0]
    spoken = graph.after([latent])
    samples = graph.model.graph.output[0].name
    sound = _first_of_decoder(graph, spoken).input[0]
    flow = [node for node in graph.before([sound], [latent]) if not spoken.isdisjoint(node.output)]
    read = {name for node in flow for name in node.input}
    return Joints(
        duration_noise=duration_noise.output[0],
        frames=frames,
        mean=_unspread(graph, spread, timing),
        deviation=_unspread(graph, deviation, timing),
        latent_noise=latent_noise.output[0],
        latent=latent,
        masks=frozenset((read & timing) - spoken),
        sound=sound,
        samples=samples,
    )


def _first_of_decoder(graph: Graph, spoken: set[str]) -> onnx.NodeProto:
    """The convolution ahead of the first upsampling."""
    node = next((node for node in graph.nodes if node.op_type == "ConvTranspose"), None)
    while node is not None:
        node = next((graph.maker[name] for name in node.input if name in spoken and name in graph.maker), None)
        if node is not None and node.op_type == "Conv":
            return node
    raise _no_voice("it has no decoder of transposed convolutions")


def _unspread(graph: Graph, name: str, timing: set[str]) -> str:
    """The tensor per symbol that was spread over the frames by a product with the alignment."""
    while name in timing:
        node = graph.maker[name]
        if node.op_type == "MatMul":
            name = node.input[0] if node.input[1] in timing else node.input[1]
        elif node.op_type == "Transpose":
            name = node.input[0]
        else:
            raise _no_voice(f"{node.op_type} is unexpected between text and frames")
    node = graph.maker[name]
    if node.op_type != "Transpose":
        raise _no_voice(f"{node.op_type} is unexpected before the alignment")
    return str(node.input[0])


def with_noise(path: Path) -> onnx.ModelProto:
    """The whole voice with its two noises as inputs, `duration_noise` [1, 2, N] and `latent_noise` [1, C, T]: what the
    parts are compared with. Raises SourceFault."""
    graph = Graph.read(path)
    joints = find(graph)
    inputs = {joints.duration_noise: "duration_noise", joints.latent_noise: "latent_noise"}
    return _Part(graph, inputs, {joints.samples: "samples"}, "voice").finish().model


# --- the parts -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cut:
    """A part ready to be written. `context` is what it sees on either side, in frames; `rate` its steps per frame."""

    model: onnx.ModelProto
    context: int = 0
    rate: int = 1


def text_part(graph: Graph, joints: Joints) -> Cut:
    inputs = {"input": "ids", "input_lengths": "lengths", joints.duration_noise: "noise"}
    outputs = {joints.mean: "mean", joints.deviation: "deviation", joints.frames: "frames"}
    return _Part(graph, inputs, outputs, "text").finish()


def flow_part(graph: Graph, joints: Joints) -> Cut:
    part = _Part(graph, {joints.latent: "latent"}, {joints.sound: "sound"}, "flow", joints.masks)
    return part.stream()


def decoder_part(graph: Graph, joints: Joints) -> Cut:
    return _Part(graph, {joints.sound: "sound"}, {joints.samples: "samples"}, "decoder").stream()


@dataclass
class _Part:
    """A part of the graph while it is being rebuilt. `inputs` and `outputs` map tensors to the names they are given."""

    graph: Graph
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    name: str
    masks: frozenset[str] = frozenset()
    nodes: list[onnx.NodeProto] = field(init=False)
    added: dict[str, onnx.TensorProto] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        names = {**self.inputs, **self.outputs}
        nodes = self.graph.before(self.outputs, [*self.inputs, *self.masks])
        self.nodes = [_renamed(node, names) for node in _neutral(self.graph, nodes, self.masks)]
        self._prune()

    def _prune(self) -> None:
        wanted = set(self.outputs.values())
        kept = []
        for node in reversed(self.nodes):
            if not wanted.isdisjoint(node.output):
                kept.append(node)
                wanted.update(node.input)
        self.nodes = kept[::-1]

    def stream(self) -> Cut:
        """The part as a convolution over [1, time] that drops the context it was given."""
        source, target = next(iter(self.inputs.values())), next(iter(self.outputs.values()))
        self._two_dimensional(source, target)
        needs = self._needs(source, target)
        rate = self._crop(source, target, needs)
        return Cut(self._model(extra={"inside": (onnx.TensorProto.INT64, [2])}), needs[source], rate)

    def finish(self) -> Cut:
        return Cut(self._model(extra={}))

    def _two_dimensional(self, source: str, target: str) -> None:
        """[1, C, T] becomes [1, C, 1, T] for everything that depends on the source."""
        moving = self.graph.after([source], self.nodes)
        flat = f"{source}/flat"
        self._constant("axis/height", np.array([2]))
        nodes = [helper.make_node("Unsqueeze", [source, "axis/height"], [flat], name="unsqueeze")]
        for node in self.nodes:
            if moving.isdisjoint(node.output):
                nodes.append(node)
                continue
            if node.op_type == "Unsqueeze":  # [1, C, T] to [1, 1, C, T] at the very end: C is 1, the shape is the same
                node = _renamed(node, {})
                if list(node.output) != [target]:
                    raise _no_voice("Unsqueeze is unexpected among the convolutions")
                nodes.append(helper.make_node("Identity", [node.input[0]], [target], name="last"))
                continue
            still = [name for name in node.input[:2] if name not in moving]
            renames = {source: flat}
            if node.op_type in ("Conv", "ConvTranspose"):
                self._flatten(node)
                renames[node.input[1]] = f"{node.input[1]}/flat"
            elif node.op_type in ("Add", "Sub", "Mul", "Div"):
                renames |= {name: self._raised(name, nodes) for name in still}
            nodes.append(_renamed(node, renames, outputs=False))
        self.nodes = nodes
        self._squeeze(target)

    def _squeeze(self, target: str) -> None:
        """Gives the result the shape [1, C, T] again."""
        last = next(node for node in self.nodes if target in node.output)
        if last.op_type == "Identity":
            source = last.input[0]
            self.nodes.remove(last)
        else:
            source = f"{target}/flat"
            self.nodes = [_renamed(node, {target: source}) for node in self.nodes]
        self.nodes.append(helper.make_node("Squeeze", [source, "axis/height"], [target], name="squeeze"))

    def _flatten(self, node: onnx.NodeProto) -> None:
        weight = self._value(node.input[1])
        if weight.ndim != 3:
            raise _no_voice(f"{node.op_type} of {weight.ndim - 2} dimensions")
        self._constant(f"{node.input[1]}/flat", weight[:, :, None, :])

    def _raised(self, name: str, nodes: list[onnx.NodeProto]) -> str:
        """A tensor that does not move in time, for use beside one of four dimensions."""
        if name in self.graph.constants:
            value = self._value(name)
            if value.ndim < 2:
                return name
            self._constant(f"{name}/flat", value[..., None, :])
        elif not any(f"{name}/flat" in node.output for node in nodes):
            nodes.append(helper.make_node("Unsqueeze", [name, "axis/height"], [f"{name}/flat"], name=f"{name}/flat"))
        return f"{name}/flat"

    def _needs(self, source: str, target: str) -> dict[str, int]:
        """How many steps of each moving tensor outside a window, at that tensor's rate, its result depends on."""
        moving = self.graph.after([source], self.nodes)
        needs = {target: 0}
        for node in reversed(self.nodes):
            reach = max((needs.get(name, 0) for name in node.output), default=0)
            if node.op_type == "Shape" or moving.isdisjoint(node.output):
                continue
            reach = self._reach(node, reach)
            for name in moving.intersection(node.input):
                needs[name] = max(needs.get(name, 0), reach)
        return needs

    def _reach(self, node: onnx.NodeProto, reach: int) -> int:
        if node.op_type in ("Unsqueeze", "Squeeze", "Shape"):
            return reach
        if node.op_type in ("Conv", "ConvTranspose"):
            return _Convolution.of(node, self._value(node.input[1])).reach(reach)
        if node.op_type not in _ALONG:
            raise _no_voice(f"{node.op_type} is unexpected among the convolutions")
        if node.op_type == "Slice" and list(self._value(node.input[3])) != [1]:
            raise _no_voice("a Slice along something other than channels")
        return reach

    def _crop(self, source: str, target: str, needs: Mapping[str, int]) -> int:
        """Drops context at every tensor that all of the work passes through, where later layers need at least a frame
        less of it. Returns the steps per frame at the end."""
        nodes: list[onnx.NodeProto] = []
        have, rate = needs[source], 1
        renames: dict[str, str] = {}
        for node, through in self._passages(source):
            nodes.append(_renamed(node, renames, outputs=False))
            if node.op_type == "ConvTranspose":
                stride = _Convolution.of(node, self._value(node.input[1])).stride
                have, rate = have * stride, rate * stride
            spare = have - needs[through] if through else 0
            if through and (spare >= rate or (through == target and spare)):
                renames[through] = through if through == target else f"{through}/cropped"
                self._drop(nodes, through, renames[through], spare, 2 if through == target else _AXIS_TIME)
                have -= spare
        self.nodes = nodes
        return rate

    def _passages(self, source: str) -> Iterable[tuple[onnx.NodeProto, str]]:
        """Each node and, when all that follows depends on its output alone, the name of that output."""
        moving = self.graph.after([source], self.nodes)
        last = {name: number for number, node in enumerate(self.nodes) for name in node.input}
        live: set[str] = set()
        for number, node in enumerate(self.nodes):
            live.update(moving.intersection(node.output))
            live = {name for name in live if last.get(name, len(self.nodes)) > number}
            alone = live == set(node.output) and source not in node.output and node.name != "unsqueeze"
            yield node, node.output[0] if alone else ""

    def _drop(self, nodes: list[onnx.NodeProto], name: str, cropped: str, steps: int, axis: int) -> None:
        """Drops `steps` at each side that is `inside`."""
        whole = f"{name}/whole" if cropped == name else name
        if whole != name:
            nodes[-1] = _renamed(nodes[-1], {name: whole})
        own = f"crop/{len(nodes)}"
        self._constant(f"{own}/steps", np.array([steps]))
        self._constant(f"{own}/axis", np.array([axis]))
        for key, at in (("left", 0), ("right", 1), ("next", 2)):
            self._constant(f"crop/{key}", np.array([at]))
        make = helper.make_node
        nodes += [
            make("Slice", ["inside", "crop/left", "crop/right"], [f"{own}/in_left"], name=f"{own}/1"),
            make("Slice", ["inside", "crop/right", "crop/next"], [f"{own}/in_right"], name=f"{own}/2"),
            make("Mul", [f"{own}/in_left", f"{own}/steps"], [f"{own}/start"], name=f"{own}/3"),
            make("Mul", [f"{own}/in_right", f"{own}/steps"], [f"{own}/cut"], name=f"{own}/4"),
            make("Shape", [whole], [f"{own}/shape"], name=f"{own}/5"),
            make("Gather", [f"{own}/shape", f"{own}/axis"], [f"{own}/size"], name=f"{own}/6"),
            make("Sub", [f"{own}/size", f"{own}/cut"], [f"{own}/end"], name=f"{own}/7"),
            make("Slice", [whole, f"{own}/start", f"{own}/end", f"{own}/axis"], [cropped], name=f"{own}/8"),
        ]

    def _value(self, name: str) -> NDArray[Any]:
        return numpy_helper.to_array(self.added[name]) if name in self.added else self.graph.value(name)

    def _constant(self, name: str, value: NDArray[Any]) -> None:
        self.added[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)

    def _model(self, extra: Mapping[str, tuple[int, Sequence[int]]]) -> onnx.ModelProto:
        read = {name for node in self.nodes for name in node.input if name}
        known = {tensor.name: tensor for tensor in self.graph.model.graph.input}
        inputs = [_typed(known[name], name) if name in known else None for name in sorted(read)]
        infos = [info for info in inputs if info is not None]
        for old, new in self.inputs.items():
            infos.append(_typed(known[old], new) if old in known else _floats(new))
        infos += [helper.make_tensor_value_info(name, kind, list(shape)) for name, (kind, shape) in extra.items()]
        constants = [self._named(name) for name in sorted(read) if name in self.added or name in self.graph.constants]
        graph = helper.make_graph(
            self.nodes, self.name, infos, [_floats(name) for name in self.outputs.values()], constants
        )
        model = helper.make_model(graph, opset_imports=self.graph.model.opset_import, producer_name="parley")
        model.ir_version = self.graph.model.ir_version
        return model

    def _named(self, name: str) -> onnx.TensorProto:
        if name in self.added:
            return self.added[name]
        tensor = onnx.TensorProto()
        tensor.CopyFrom(self.graph.constants[name])
        tensor.name = name
        return tensor


@dataclass(frozen=True, slots=True)
class _Convolution:
    """The arithmetic of a convolution over time, and its rewriting to [1, time]."""

    transposed: bool
    kernel: int
    stride: int
    dilation: int
    left: int
    right: int

    @classmethod
    def of(cls, node: onnx.NodeProto, weight: NDArray[Any]) -> _Convolution:
        given = {attribute.name: attribute for attribute in node.attribute}

        def ints(key: str, default: list[int]) -> list[int]:
            return list(given[key].ints) if key in given else default

        pads = ints("pads", [0, 0])
        conv = cls(
            node.op_type == "ConvTranspose",
            int(weight.shape[-1]),
            ints("strides", [1])[-1],
            ints("dilations", [1])[-1],
            pads[len(pads) // 2 - 1],
            pads[-1],
        )
        span = (conv.kernel - 1) * conv.dilation
        same = span + 1 - conv.left - conv.right == conv.stride if conv.transposed else span == conv.left + conv.right
        plain = not any(ints("output_padding", [])) and (conv.transposed or conv.stride == 1)
        if "auto_pad" in given or not (same and plain):
            raise _no_voice(f"{node.name or node.op_type} changes the length of its input")
        return conv

    def reach(self, steps: int) -> int:
        """From the steps that are needed of the output beyond a window to those of the input."""
        span = (self.kernel - 1) * self.dilation
        if not self.transposed:
            return steps + max(self.left, self.right)
        return max((steps + span - self.left) // self.stride, 1 + (steps + self.left - 1) // self.stride)


# --- rewriting -----------------------------------------------------------------------------------------------------


def _renamed(node: onnx.NodeProto, names: Mapping[str, str], outputs: bool = True) -> onnx.NodeProto:
    """A copy of the node that reads (and makes) tensors by other names; a convolution whose weight was made
    two-dimensional follows it."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [names.get(name, name) for name in node.input]
    if outputs:
        copy.output[:] = [names.get(name, name) for name in node.output]
    if copy.op_type in ("Conv", "ConvTranspose") and copy.input[1].endswith("/flat"):
        for attribute in copy.attribute:
            _over_time(attribute)
    return copy


def _over_time(attribute: onnx.AttributeProto) -> None:
    values = list(attribute.ints)
    if attribute.name in ("kernel_shape", "strides", "dilations") and len(values) == 1:
        attribute.ints[:] = [1, *values]
    elif attribute.name == "output_padding" and len(values) == 1:
        attribute.ints[:] = [0, *values]
    elif attribute.name == "pads" and len(values) == 2:
        attribute.ints[:] = [0, values[0], 0, values[1]]


def _neutral(graph: Graph, nodes: Sequence[onnx.NodeProto], masks: frozenset[str]) -> list[onnx.NodeProto]:
    """Leaves out what changes nothing: products with ones (the masks of a batch of one) and sums with zeros. An
    Identity keeps the name of what was left out, for where it is an output."""
    ones, zeros = set(masks), set[str]()
    same: dict[str, str] = {}
    kept = []
    for node in nodes:
        node = _renamed(node, same, outputs=False)
        if node.op_type == "ConstantOfShape" and masks:
            value = numpy_helper.to_array(node.attribute[0].t) if node.attribute else np.zeros(1)
            if not value.any():
                zeros.update(node.output)
        elif node.op_type == "Neg" and node.input[0] in zeros:
            zeros.update(node.output)
        elif node.op_type == "Exp" and node.input[0] in zeros:
            ones.update(node.output)
        idle = ones if node.op_type == "Mul" else zeros if node.op_type == "Add" else set[str]()
        moving = [name for name in node.input if name not in idle]
        if idle and len(moving) == 1:
            same[node.output[0]] = moving[0]
            continue
        if masks.intersection(node.input):
            raise _no_voice(f"{node.op_type} of a mask")
        kept.append(node)
    return [*kept, *(helper.make_node("Identity", [real], [name], name=f"{name}/same") for name, real in same.items())]


def _typed(info: onnx.ValueInfoProto, name: str) -> onnx.ValueInfoProto:
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(info)
    copy.name = name
    return copy


def _floats(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)


def _write(model: onnx.ModelProto, path: Path) -> None:
    path.write_bytes(model.SerializeToString(deterministic=True))


def _no_voice(why: str) -> SourceFault:
    return SourceFault(f"this is not a Piper voice that can be cut: {why}", "use an ONNX file of rhasspy/piper-voices")
