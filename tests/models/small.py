"""A model small enough to be built in a test: the real Silero recipe on random weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from appliance.runtime.card import Shelf
from appliance.runtime.ort import OrtModel
from models.quantized.files import digest
from models.quantized.graph import Graph
from models.quantized.recipes import silero

ID = "tiny"
PREFIX = "net."
SHAPES = {
    "stft.forward_basis_buffer": (258, 1, 256),
    "encoder.0.reparam_conv.weight": (128, 129, 3),
    "encoder.0.reparam_conv.bias": (128,),
    "encoder.1.reparam_conv.weight": (64, 128, 3),
    "encoder.1.reparam_conv.bias": (64,),
    "encoder.2.reparam_conv.weight": (64, 64, 3),
    "encoder.2.reparam_conv.bias": (64,),
    "encoder.3.reparam_conv.weight": (128, 64, 3),
    "encoder.3.reparam_conv.bias": (128,),
    "decoder.rnn.weight_ih": (512, 128),
    "decoder.rnn.weight_hh": (512, 128),
    "decoder.rnn.bias_ih": (512,),
    "decoder.rnn.bias_hh": (512,),
    "decoder.decoder.2.weight": (1, 128, 1),
    "decoder.decoder.2.bias": (1,),
}


def write_source(path: Path, seed: int = 0) -> None:
    """A graph that holds the weights of a network nobody has trained."""
    noise = np.random.default_rng(seed)
    graph = Graph("weights")
    for name, shape in SHAPES.items():
        graph.constant((noise.standard_normal(shape) * 0.1).astype(np.float32), PREFIX + name)
    graph.output("y", (1,), graph.input("x", (1,)))
    graph.save(path)


def write_manifest(folder: Path, source: Path, origin: str, *, id: str = ID, sha256: str = "", built: str = "") -> Path:
    """`origin` are the TOML lines that say where the source comes from, `sha256` replaces its digest, `built` is that
    of the artefact."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{id}.toml"
    path.write_text(f"""
id = "{id}"
kind = "vad"
summary = "random weights"
licence = "none"
recipe = "silero"
default_rung = "fp32"
[[source]]
name = "graph"
sha256 = "{sha256 or digest(source)}"
size = {source.stat().st_size}
{origin}
[[artefact]]
name = "vad.onnx"
{f'sha256 = "{built}"' if built else ""}
[rung.fp32]
precision = "fp32"
files.graph = "vad.onnx"
[options]
prefix = "{PREFIX}"
[golden]
probabilities = {golden(source)}
""")
    return path


def golden(source: Path) -> list[float]:
    weights = {name.removeprefix(PREFIX): value for name, value in silero.read_constants(source).items()}
    path = source.with_name("golden.onnx")
    silero.network(weights).save(path)
    return silero.probabilities(OrtModel(path), 4)


def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "cache", (tmp_path / "manifests",))
