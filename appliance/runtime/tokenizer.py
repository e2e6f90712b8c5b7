"""The door to the tokenizers library: text to token ids, and ids to bytes as they come."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from tokenizers import Tokenizer as Library

from appliance.errors import ModelDamaged


class Tokenizer:
    """Text never turns into special tokens, whatever it looks like; those are asked for by name."""

    def __init__(self, path: Path) -> None:
        try:
            self._library = Library.from_file(str(path))
        except Exception as error:  # the library raises bare Exception
            raise ModelDamaged(f"{path} cannot be read: {error}", "run `parley models build`") from error
        self._library.encode_special_tokens = True
        self.path = path
        self.size = self._library.get_vocab_size()
        self.specials = {t.content: id for id, t in self._library.get_added_tokens_decoder().items() if t.special}
        """The special tokens: their names and ids."""

    def encode(self, text: str) -> list[int]:
        """No special token is added, none is recognised. Lone surrogates become question marks."""
        clean = text.encode("utf-8", "replace").decode()
        ids: list[int] = self._library.encode(clean, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Special tokens are left out, bytes that are no UTF-8 become U+FFFD."""
        return b"".join(map(self.bytes, ids)).decode("utf-8", "replace")

    def bytes(self, id: int) -> bytes:
        """What a token stands for; nothing for special tokens and ids beyond the vocabulary."""
        piece = self._library.id_to_token(id)
        if piece is None or piece in self.specials:
            return b""
        if self._byte_level:
            return b"".join(_BYTES.get(char) or char.encode() for char in piece)
        if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
            return bytes.fromhex(piece[3:5])
        return piece.replace("▁", " ").encode()

    @cached_property
    def _byte_level(self) -> bool:
        return "ByteLevel" in type(self._library.decoder).__name__


class Detokenizer:
    """Text from tokens, as far as it is certain: a character whose bytes have not all come is held back."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, id: int) -> str:
        return self._decoder.decode(self._tokenizer.bytes(id))

    def end(self) -> str:
        """What is left; incomplete characters become U+FFFD."""
        return self._decoder.decode(b"", final=True)


def _byte_alphabet() -> dict[str, bytes]:
    """GPT-2's letters for the 256 bytes: printable ones stand for themselves, the others follow from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {chr(byte): bytes([byte]) for byte in printable}
    return letters | {chr(0x100 + index): bytes([byte]) for index, byte in enumerate(others)}


_BYTES = _byte_alphabet()
