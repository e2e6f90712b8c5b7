"""Words to phonemes, in the symbols that the voice was trained on.

A word is looked up in the lexicon, then tried as an inflected or compound form of known words, spelled out if it is an
acronym, and left to the letter-to-sound model otherwise. Function words are reduced as in running speech; words of one
spelling and two sounds are told apart by their neighbours.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from appliance.runtime import english
from appliance.runtime.card import Built
from appliance.runtime.letters import Letters
from appliance.runtime.lexicon import Lexicon


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """One word as it is said: `text` as written with the punctuation that touches it, `phonemes` in espeak-style IPA;
    the voice's pause symbols (, . ? ! ; :) that follow the word end its phonemes. Words are joined by a space."""

    text: str
    phonemes: str


Phonemise = Callable[[str], list[SpokenWord]]

PAUSES = ",:;.!?"
"""The voice's pause symbols, weakest first."""

_PAUSE_OF = {
    ",": ",",
    ";": ";",
    ":": ":",
    ".": ".",
    "…": ".",
    "?": "?",
    "!": "!",
    "—": ",",
    "–": ",",
    "(": ",",
    ")": ",",
}
_CHUNK = re.compile(r"\S+")
_CORE = re.compile(r"[^\W_]+(?:['’.&-]?[^\W_]+)*['’]?")
_PIECE = re.compile(r"\d|[^\W\d_]+(?:['’][^\W\d_]+)*")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(slots=True)
class Word:
    """A word of the text: `text` as written, `core` without what touches it, `pause` the pause symbol behind it."""

    text: str
    core: str
    pause: str = ""

    @property
    def key(self) -> str:
        return self.core.lower().replace("’", "'")


def words(text: str) -> list[Word]:
    """Cuts normalised text into words and the pauses behind them; text without words gives none."""
    found: list[Word] = []
    for chunk in _CHUNK.findall(unicodedata.normalize("NFC", text)):
        at = 0
        for match in _CORE.finditer(chunk):
            if at == 0 and found and match.start():
                _pause(found[-1], chunk[: match.start()])
            elif at:
                found[-1].text += chunk[at : match.start()]
                _pause(found[-1], chunk[at : match.start()])
            lead = chunk[: match.start()] if at == 0 else ""
            found.append(Word(lead + match.group(), match.group().rstrip("'’")))
            at = match.end()
        rest = chunk[at:]
        if found:
            _pause(found[-1], rest)
            found[-1].text += rest if at else f" {rest}"
    return found


def _pause(word: Word, marks: str) -> None:
    """The strongest of the marks becomes the pause behind the word."""
    if "--" in marks or marks == "-":
        marks += ","
    pauses = [_PAUSE_OF[mark] for mark in marks if mark in _PAUSE_OF]
    word.pause = max([word.pause, *pauses], key=lambda pause: PAUSES.find(pause) if pause else -1)


class Phonemiser:
    """English words to phonemes. One instance may be used from several threads."""

    def __init__(self, lexicon: Lexicon, letters: Letters) -> None:
        self._lexicon = lexicon
        self._letters = letters
        self._say = lru_cache(4096)(self._pronounce)

    @classmethod
    def open(cls, built: Built) -> Phonemiser:
        """Raises ModelMissing or ModelDamaged."""
        letters = Letters(built.file("graphones"), built.file("keys"), built.file("scores"))
        return cls(Lexicon(built.file("lexicon")), letters)

    def phrase(self, text: str) -> list[SpokenWord]:
        """`text` for the ear (numbers written out) as words; text without words gives []."""
        found = words(text)
        shouted = sum(word.core.isupper() and len(word.core) > 3 for word in found) > 1
        spoken: list[SpokenWord] = []
        following = ""
        for n in range(len(found) - 1, -1, -1):
            word = found[n]
            core = word.core.lower() if shouted else word.core
            said = self._in_context(core, word, found[:n], found[n + 1 :], following)
            if said.endswith(("ɚ", "ɜː")) and not word.pause and following.lstrip("ˈˌ")[:1] in english.VOWELS:
                said += "ɹ"
            if said:
                spoken.append(SpokenWord(word.text, said + word.pause))
            following = said or following
        return spoken[::-1]

    def _in_context(self, core: str, word: Word, before: Sequence[Word], after: Sequence[Word], following: str) -> str:
        key = word.key
        last = bool(word.pause) or not after
        if key in english.REDUCED and not (core.isupper() and len(core) > 1):
            if last and key in english.AT_END and before:
                return english.AT_END[key]
            if not last and key in english.BEFORE_VOWEL and following.lstrip("ˈˌ")[:1] in english.VOWELS:
                return english.BEFORE_VOWEL[key]
            if key == "a" and word.core == "A" and before:
                return english.LETTERS["a"]
            return english.REDUCED[key]
        if key in english.CORRECTED and not (key == "am" and not core.isupper()):
            return english.CORRECTED[key]
        entry = self._lexicon.get(key)
        if len(entry) > 1:
            return entry[_reading(key, entry, before, after, last=last)]
        return self._say(core)

    # --- one word ----------------------------------------------------------------------------------------------

    def _known(self, word: str) -> str:
        for form in (word, word.lower(), word.capitalize()):
            if said := self._lexicon.get(form).get(""):
                return said
        return ""

    def _pronounce(self, written: str) -> str:
        """A word by itself; "" if there is nothing to say."""
        word = written.replace("’", "'")
        if len(word) == 1:
            return english.LETTERS.get(word.lower()) or self._fallback(word)
        if word.isupper() and not self._lexicon.get(word) and not self._readable(word):
            return spelled(word)
        if said := self._known(word) or self._inflected(word):
            return said
        parts = [part for piece in _PIECE.findall(word) for part in _CAMEL.split(piece)]
        if len(parts) > 1:
            return "".join(self._say(part) for part in parts)
        return self._compound(word.lower()) or self._fallback(word)

    def _readable(self, word: str) -> bool:
        """Capitals that are a word written large, not an acronym."""
        return len(word) > 3 and bool(self._known(word.lower()))

    def _inflected(self, word: str) -> str:
        lower = word.lower()
        if lower.endswith("'s") and (stem := self._say(word[:-2])):
            return plural(stem)
        if word[-1] == "s" and word[:-1].isupper() and len(word) > 2:
            return plural(spelled(word[:-1]))
        if lower.endswith(("ies", "ied")) and (stem := self._known(word[:-3] + "y")):
            return stem + ("z" if lower.endswith("s") else "d")
        if lower.endswith("s") and not lower.endswith("ss") and (stem := self._known(word[:-1])):
            return plural(stem)
        if lower.endswith("es") and (stem := self._known(word[:-2])):
            return plural(stem)
        if lower.endswith("ed") and (stem := self._known(word[:-2]) or self._known(word[:-1])):
            return past(stem)
        for ending, said in (("ing", "ɪŋ"), ("ly", "li"), ("ness", "nəs"), ("less", "ləs"), ("er", "ɚ")):
            if lower.endswith(ending) and len(word) > len(ending) + 2:
                root = word[: -len(ending)]
                if stem := self._known(root) or (self._known(root + "e") if ending in {"ing", "er"} else ""):
                    return stem + said
        return ""

    def _compound(self, word: str) -> str:
        """Two known words written as one: the first keeps the stress."""
        for cut in range(len(word) - 3, 2, -1):
            first, second = self._known(word[:cut]), self._known(word[cut:])
            if "ˈ" in first and "ˈ" in second:
                return first + second.replace("ˈ", "ˌ")
        return ""

    def _fallback(self, word: str) -> str:
        plain = "".join(
            c for c in unicodedata.normalize("NFKD", word.lower()) if c.isascii() and (c.isalpha() or c == "'")
        )
        if not plain:
            return ""
        if plain != word.lower() and (said := self._known(plain)):
            return said
        if len(plain) > 1 and not re.search("[aeiouy]", plain):
            return spelled(plain)
        return self._letters.say(plain)


def spelled(word: str) -> str:
    """Letter by letter; the last letter carries the stress."""
    names = [english.LETTERS[c] for c in word.lower() if c in english.LETTERS]
    return "".join([*(name.replace("ˈ", "ˌ") for name in names[:-1]), *names[-1:]])


def plural(stem: str) -> str:
    """The stem with the ending -s."""
    if stem.endswith(english.HISSING):
        return stem + "ᵻz"
    return stem + ("s" if stem.endswith(english.VOICELESS) else "z")


def past(stem: str) -> str:
    """The stem with the ending -ed."""
    if stem.endswith(("t", "d")):
        return stem + "ᵻd"
    return stem + ("t" if stem.endswith((*english.VOICELESS, "s", "ʃ")) else "d")


def _reading(key: str, entry: dict[str, str], before: Sequence[Word], after: Sequence[Word], *, last: bool) -> str:
    """Which of a word's readings its neighbours ask for; "" is the usual one."""
    left = before[-1].key if before and not before[-1].pause else ""
    right = after[0].key if after and not last else ""
    if "None" in entry:
        return "None" if last else ""
    if "VBN" in entry and (left in english.PERFECT_CUES or left in english.PAST_CUES):
        return "VBN"
    cues = english.FINITE_CUES if key.endswith("s") else english.VERB_CUES
    verb = left in cues or (not left and right in english.OBJECT_CUES)
    if "VERB" in entry and verb:
        return "VERB"
    if left in english.NOUN_CUES:
        if "ADJ" in entry and right and right not in english.REDUCED:
            return "ADJ"
        if "NOUN" in entry:
            return "NOUN"
    return ""
