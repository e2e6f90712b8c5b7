"""The tokenizer and the chat template of a GGUF file, in the form that the runtime reads."""

from __future__ import annotations

from typing import Any

from appliance.errors import SourceFault
from models.quantized.recipes.gguf_file import Gguf

_NORMAL, _UNKNOWN, _CONTROL, _USER, _BYTE = 1, 2, 3, 4, 6
_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_PATTERNS = {
    "gpt-2": [_GPT2],
    "smollm": [r"\p{N}", _GPT2],
    "llama-bpe": [
        rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"
    ],
    "qwen2": [rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"],
}
"""How text is cut before the merges, by the name that the file gives: each pattern cuts what the one before left."""
_SAME = {"default": "gpt-2", "llama3": "llama-bpe", "llama-v3": "llama-bpe", "deepseek-r1-qwen": "qwen2"}
_NORMALISED = {"qwen2"}
_ENDS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "</s>", "<|end|>")
"""Tokens that end a turn in the families' templates, whatever the file names as its end."""


def convert(gguf: Gguf) -> tuple[dict[str, Any], dict[str, Any]]:
    """tokenizer.json in the format of the `tokenizers` library, and chat.json: `template`, `bos` and `eos` (strings),
    `ends` (ids), `begin` (whether every prompt starts with bos). Raises SourceFault."""
    pieces = _strings(gguf, "tokenizer.ggml.tokens")
    kinds = gguf.get("tokenizer.ggml.token_type", list, [_NORMAL] * len(pieces))
    if len(kinds) != len(pieces) or not pieces:
        raise SourceFault(f"{gguf.path}: {len(pieces)} tokens have {len(kinds)} types", "use another file")
    model = gguf.get("tokenizer.ggml.model", str)
    if model == "gpt2":
        tokenizer = _byte_level(gguf, pieces)
    elif model == "llama":
        tokenizer = _sentence_piece(gguf, pieces, kinds)
    else:
        raise SourceFault(f"{gguf.path}: the tokenizer {model!r} is not known", "use a model with BPE or SentencePiece")
    tokenizer["added_tokens"] = [
        _added(id, piece, special=kind == _CONTROL)
        for id, (piece, kind) in enumerate(zip(pieces, kinds, strict=True))
        if kind in (_CONTROL, _USER)
    ]
    controls = [piece if kind == _CONTROL else "" for piece, kind in zip(pieces, kinds, strict=True)]
    return tokenizer, _chat(gguf, pieces, controls)


def _chat(gguf: Gguf, pieces: list[str], controls: list[str]) -> dict[str, Any]:
    def token(name: str) -> int | None:
        id = gguf.metadata.get(f"tokenizer.ggml.{name}_token_id")
        if id is not None and not (isinstance(id, int) and 0 <= id < len(pieces)):
            raise SourceFault(f"{gguf.path}: the {name} token {id!r} does not exist", "use another file")
        return id

    bos, eos = token("bos"), token("eos")
    ends = {id for id in (eos, token("eot"), token("eom")) if id is not None}
    ends |= {id for id, piece in enumerate(controls) if piece in _ENDS}
    return {
        "template": gguf.get("tokenizer.chat_template", str, ""),
        "bos": "" if bos is None else pieces[bos],
        "eos": "" if eos is None else pieces[eos],
        "ends": sorted(ends),
        "begin": bos is not None and gguf.get("tokenizer.ggml.add_bos_token", bool, _begins(gguf)),
    }


def _begins(gguf: Gguf) -> bool:
    return gguf.get("tokenizer.ggml.model", str) == "llama"


def _byte_level(gguf: Gguf, pieces: list[str]) -> dict[str, Any]:
    pre = gguf.get("tokenizer.ggml.pre", str, "default")
    pre = _SAME.get(pre, pre)
    if pre not in _PATTERNS:
        raise SourceFault(f"{gguf.path}: the pre-tokenizer {pre!r} is not known", f"known are {', '.join(_PATTERNS)}")
    steps: list[dict[str, Any]] = [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        for pattern in _PATTERNS[pre]
    ]
    steps.append({"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False})
    merges = [merge.split(" ") for merge in _strings(gguf, "tokenizer.ggml.merges")]
    vocabulary = {piece: id for id, piece in enumerate(pieces)}
    for merge in merges:
        if len(merge) != 2 or not {*merge, "".join(merge)} <= vocabulary.keys():
            raise SourceFault(f"{gguf.path}: merge {' '.join(merge)!r:.60} is not of known tokens", "use another file")
    return _tokenizer(
        {"vocab": vocabulary, "merges": merges, "ignore_merges": pre == "llama-bpe"},
        {"type": "NFC"} if pre in _NORMALISED else None,
        {"type": "Sequence", "pretokenizers": steps},
    )


def _sentence_piece(gguf: Gguf, pieces: list[str], kinds: list[int]) -> dict[str, Any]:
    """SentencePiece joins the neighbours whose union scores best; as merges, that is every cut of every piece into two
    pieces, best score first."""
    scores = gguf.get("tokenizer.ggml.scores", list)
    if len(scores) != len(pieces) or not all(isinstance(score, float) for score in scores):
        raise SourceFault(f"{gguf.path}: {len(pieces)} tokens have {len(scores)} scores", "use another file")
    vocabulary = {piece: id for id, piece in enumerate(pieces)}
    ordinary = {piece for piece, kind in zip(pieces, kinds, strict=True) if kind in (_NORMAL, _USER)}
    ranked = sorted((piece for piece in ordinary if len(piece) > 1), key=lambda piece: -scores[vocabulary[piece]])
    merges = [
        [piece[:at], piece[at:]]
        for piece in ranked
        for at in range(1, len(piece))
        if piece[:at] in ordinary and piece[at:] in ordinary
    ]
    unknown = next((piece for piece, kind in zip(pieces, kinds, strict=True) if kind == _UNKNOWN), None)
    spaces: list[dict[str, Any]] = [{"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]
    if gguf.get("tokenizer.ggml.add_space_prefix", bool, True):
        spaces.insert(0, {"type": "Prepend", "prepend": "▁"})
    model = {"vocab": vocabulary, "merges": merges, "unk_token": unknown, "fuse_unk": True}
    return _tokenizer(model | {"byte_fallback": _BYTE in kinds}, {"type": "Sequence", "normalizers": spaces}, None)


def _tokenizer(model: dict[str, Any], normalizer: dict[str, Any] | None, cut: dict[str, Any] | None) -> dict[str, Any]:
    plain: dict[str, Any] = {"type": "BPE", "dropout": None, "unk_token": None, "ignore_merges": False}
    plain |= {"continuing_subword_prefix": None, "end_of_word_suffix": None, "byte_fallback": False, "fuse_unk": False}
    decoder = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "normalizer": normalizer,
        "pre_tokenizer": cut,
        "post_processor": None,
        "decoder": decoder if cut else {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": plain | model,
    }


def _added(id: int, piece: str, *, special: bool) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": id, "content": piece, "special": special, **flags}


def _strings(gguf: Gguf, key: str) -> list[str]:
    values = gguf.get(key, list)
    if not all(isinstance(value, str) for value in values):
        raise SourceFault(f"{gguf.path}: metadata {key!r} is not a list of strings", "use another file")
    return values
