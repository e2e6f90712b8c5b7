"""Tokenizers of GGUF files: SentencePiece as merges, and what is refused."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.errors import SourceFault
from appliance.runtime.tokenizer import Tokenizer
from models.quantized.recipes.gguf_file import Gguf
from models.quantized.recipes.gguf_tokenizer import convert

LETTERS = ["▁", "a", "b", "c"]
UNIONS = ["ab", "bc", "▁a", "abc", "▁ab", "ca", "aa", "▁abc", "bb"]
SPECIALS = ["<unk>", "<s>", "</s>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
PIECES = SPECIALS + BYTES + UNIONS + LETTERS


def sentence_piece(union_scores: list[float], **more: Any) -> Gguf:
    kinds = [2, 3, 3] + [6] * 256 + [1] * (len(UNIONS) + len(LETTERS))
    names = {"model": "llama", "tokens": PIECES, "token_type": kinds, "bos_token_id": 1, "eos_token_id": 2}
    names["scores"] = [0.0] * (3 + 256) + union_scores + [-100.0] * len(LETTERS)
    return Gguf(Path("small.gguf"), {f"tokenizer.ggml.{key}": value for key, value in (names | more).items()}, {})


def joined(text: str, scores: dict[str, float]) -> list[str]:
    """SentencePiece by the book: the neighbours whose union scores best are joined, leftmost first."""
    pieces = list("▁" + text.replace(" ", "▁"))
    while True:
        unions = [(-scores[a + b], at) for at, (a, b) in enumerate(itertools.pairwise(pieces)) if a + b in scores]
        if not unions:
            return pieces
        at = min(unions)[1]
        pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]


@settings(max_examples=150, deadline=None)
@given(order=st.permutations(range(len(UNIONS))), text=st.text("abc ", min_size=1, max_size=14))
def test_sentence_piece_joins_the_best(tmp_path_factory: pytest.TempPathFactory, order: list[int], text: str) -> None:
    scores = [-float(place) for place in order]
    made, chat = convert(sentence_piece(scores))
    path = tmp_path_factory.getbasetemp() / "tokenizer.json"
    path.write_text(json.dumps(made), "utf-8")
    tokenizer = Tokenizer(path)
    ids = tokenizer.encode(text)
    assert [PIECES[id] for id in ids] == joined(text, dict(zip(UNIONS, scores, strict=True)))
    assert tokenizer.decode(ids) == " " + text
    assert chat["begin"]
    assert chat["ends"] == [2]


def test_unknown_characters_become_bytes(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(convert(sentence_piece([-1.0] * len(UNIONS)))[0]), "utf-8")
    tokenizer = Tokenizer(path)
    assert tokenizer.decode(tokenizer.encode("aé🎉")) == " aé🎉"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"model": "bert"}, "bert"),
        ({"scores": [0.0]}, "scores"),
        ({"token_type": [1]}, "types"),
        ({"eos_token_id": 10_000}, "eos"),
        ({"model": "gpt2", "pre": "nonsense", "merges": []}, "nonsense"),
        ({"model": "gpt2", "pre": "smollm", "merges": ["x y"]}, "merge"),
        ({"tokens": []}, "0 tokens"),
    ],
)
def test_what_cannot_be_used_is_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(SourceFault, match=said):
        convert(sentence_piece([-1.0] * len(UNIONS), **more))
