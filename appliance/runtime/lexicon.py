"""A pronouncing lexicon: a sorted text file, mapped into memory and bisected, so that opening it costs nothing."""

from __future__ import annotations

import mmap
from functools import lru_cache
from pathlib import Path

from appliance.errors import ModelDamaged, ModelMissing


class Lexicon:
    """Lines of word TAB pronunciation (TAB tag=pronunciation)..., sorted by the word's UTF-8 bytes."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except FileNotFoundError as error:
            raise ModelMissing(f"{path} is not there", "run `parley models build`") from error
        except ValueError as error:  # an empty file cannot be mapped
            raise ModelDamaged(f"{path} is empty", "run `parley models build`") from error
        if self._map[-1:] != b"\n":
            raise ModelDamaged(f"{path} ends in the middle of a line", "run `parley models build`")
        self.get = lru_cache(4096)(self._get)

    def _get(self, word: str) -> dict[str, str]:
        """Pronunciations by tag, the usual one under ""; empty if the word is not known."""
        key = word.encode("utf-8", "surrogatepass")
        low, high = 0, len(self._map)
        while low < high:  # both are always at the start of a line
            start = self._map.rfind(b"\n", low, (low + high) // 2) + 1 or low
            end = self._map.find(b"\n", start)
            line = self._map[start:end]
            found = line.partition(b"\t")[0]
            if found == key:
                return self._fields(line)
            if found < key:
                low = end + 1
            else:
                high = start
        return {}

    def _fields(self, line: bytes) -> dict[str, str]:
        _, usual, *tagged = line.decode("utf-8").split("\t")
        fields = {"": usual}
        for field in tagged:
            tag, _, said = field.partition("=")
            fields[tag] = said
        return fields
