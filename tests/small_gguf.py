"""Small language models as GGUF files, made of random numbers, with a tokenizer of single bytes and a few merges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Kind

from appliance.runtime.card import Built, read_card
from appliance.runtime.tokenizer import _BYTES
from models.quantized.recipes import gguf_lm

LETTERS = list(_BYTES)
MERGES = ["Ġ t", "h e", "Ġt he", "i n", "a n"]
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
PIECES = SPECIALS + LETTERS + [merge.replace(" ", "") for merge in MERGES]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LAYERS, WIDTH, HIDDEN, HEADS, KV_HEADS = 2, 64, 96, 4, 2


def write(
    path: Path,
    family: str = "llama",
    kind: Kind = Kind.Q4_1,
    *,
    tied: bool = True,
    seed: int = 0,
    template: str = TEMPLATE,
    **metadata: Any,
) -> Path:
    """A decoder of two layers. Heads are 16 wide."""
    rng = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, family)
    head_width = WIDTH // HEADS
    writer.add_block_count(LAYERS)
    writer.add_context_length(256)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_rope_dimension_count(head_width)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(PIECES)
    writer.add_token_types([3] * len(SPECIALS) + [1] * (len(PIECES) - len(SPECIALS)))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_chat_template(template)
    for key, value in metadata.items():
        writer.add_key_value(key.replace("__", "."), value, gguf.GGUFValueType.get_type(value))

    def matrix(name: str, rows: int, inputs: int, of: Kind = kind) -> None:
        weights = rng.normal(0, inputs**-0.5, (rows, inputs)).astype(np.float32)
        writer.add_tensor(name, gguf.quants.quantize(weights, of), raw_dtype=of)

    def vector(name: str, size: int, around: float = 0.0) -> None:
        writer.add_tensor(name, rng.normal(around, 0.3, size).astype(np.float32))

    matrix("token_embd.weight", len(PIECES), WIDTH, Kind.Q8_0)
    if not tied:
        matrix("output.weight", len(PIECES), WIDTH, Kind.Q8_0)
    vector("output_norm.weight", WIDTH, 1.0)
    for index in range(LAYERS):
        block = f"blk.{index}."
        vector(f"{block}attn_norm.weight", WIDTH, 1.0)
        vector(f"{block}ffn_norm.weight", WIDTH, 1.0)
        matrix(f"{block}attn_q.weight", WIDTH, WIDTH)
        matrix(f"{block}attn_k.weight", KV_HEADS * head_width, WIDTH)
        matrix(f"{block}attn_v.weight", KV_HEADS * head_width, WIDTH, Kind.Q8_0 if kind == Kind.Q5_0 else kind)
        matrix(f"{block}attn_output.weight", WIDTH, WIDTH)
        matrix(f"{block}ffn_gate.weight", HIDDEN, WIDTH)
        matrix(f"{block}ffn_up.weight", HIDDEN, WIDTH)
        matrix(f"{block}ffn_down.weight", WIDTH, HIDDEN)
        if family == "qwen2":
            for part, size in (("q", WIDTH), ("k", KV_HEADS * head_width), ("v", KV_HEADS * head_width)):
                vector(f"{block}attn_{part}.bias", size)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


MANIFEST = """
id = "small"
kind = "lm"
summary = "a small decoder of random numbers"
licence = "none"
recipe = "gguf_lm"
default_rung = "exact"
source = [{ name = "model.gguf", sha256 = "%s", size = 0, file = "small.gguf" }]
artefact = [
    { name = "decode.onnx" }, { name = "prefill.onnx" }, { name = "weights.bin" },
    { name = "tokenizer.json" }, { name = "chat.json" },
]
[rung.exact]
precision = "int4"
chunk = 16
few = 4
files = { decode = "decode.onnx", prefill = "prefill.onnx", tokenizer = "tokenizer.json", chat = "chat.json" }
[rung.single]
precision = "int4"
chunk = 16
files = { decode = "decode.onnx", tokenizer = "tokenizer.json", chat = "chat.json" }
[options]
context = 128
"""


def built(folder: Path, **options: Any) -> Built:
    """The model of `write(**options)`, built by its manifest."""
    manifest = folder / "small.toml"
    manifest.write_text(MANIFEST % ("0" * 64))
    card = read_card(manifest)
    gguf_lm.build(card, {"model.gguf": write(folder / "small.gguf", **options)}, folder, lambda note, fraction: None)
    return Built(card, folder)
