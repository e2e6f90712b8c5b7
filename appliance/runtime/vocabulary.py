"""Whisper's tokens as text. Reading only: what a recogniser writes has to be decoded, never encoded."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from appliance.errors import ModelDamaged


def _byte_table() -> dict[str, int]:
    """Byte-level BPE writes each byte as a printable character: itself where it is one, else one from 256 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + place): byte for place, byte in enumerate(hidden)}


class Vocabulary:
    """Raises ModelDamaged when the file is not a byte-level tokenizer.json."""

    def __init__(self, path: Path) -> None:
        table = _byte_table()
        try:
            found = json.loads(path.read_bytes())
            added = {entry["content"]: int(entry["id"]) for entry in found["added_tokens"]}
            plain = {int(token): text for text, token in found["model"]["vocab"].items() if text not in added}
            self._bytes = {token: bytes(table[letter] for letter in text) for token, text in plain.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelDamaged(f"{path} is not a vocabulary: {error!r}", "run `parley models build`") from error
        self.path = path
        self.special = added
        """Tokens that stand for no text ("<|endoftext|>"), by their names."""

    def bytes(self, token: int) -> bytes:
        """Nothing for special and unknown tokens. A letter may be spread over several tokens."""
        return self._bytes.get(token, b"")

    def text(self, tokens: Iterable[int]) -> str:
        return b"".join(map(self.bytes, tokens)).decode("utf-8", "replace")
