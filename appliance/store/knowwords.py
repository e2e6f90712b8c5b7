"""Words as keys that can be compared: stems, groups of equal words, numbers, days."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock

from appliance.store.knowenglish import DAYS, GROUPS, LIGHT, NUMBERS, OPPOSED, ORDINALS, STOP

_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*(?:[^\W\d_]+)?|[^\W_]+(?:[.,:]\d+)*")
CLITIC = re.compile(r"(?<=\w)['\u2019](?:s|re|ll|ve|d|m)\b")
_RANGE = re.compile(rf"\b({'|'.join(DAYS)})s?\s*(?:to|through|until|-|\u2013|\u2014)\s*({'|'.join(DAYS)})s?\b")


class Stemmer:
    """Porter's stems by the tokenizer of SQLite's full text search, so that both find the same. Any thread."""

    LARGEST = 50_000

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._lock = Lock()
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.executescript(
            "create virtual table word using fts5(text, tokenize = 'porter unicode61');"
            "create virtual table stem using fts5vocab(word, 'instance');"
        )

    def learn(self, words: Iterable[str]) -> None:
        """Stems many at once, which is quicker than one after the other."""
        with self._lock:
            new = sorted(set(words) - self._known.keys())
            if not new:
                return
            if len(self._known) + len(new) > self.LARGEST:
                self._known.clear()
            self._database.executemany("insert into word (rowid, text) values (?, ?)", list(enumerate(new)))
            for number, term in self._database.execute("select doc, term from stem"):
                self._known[new[number]] = term
            self._database.execute("delete from word")
            for word in new:
                self._known.setdefault(word, word)

    def __call__(self, word: str) -> str:
        if (known := self._known.get(word)) is None:
            self.learn([word])
            known = self._known.get(word, word)
        return known


@dataclass(frozen=True, slots=True)
class Term:
    """A word, or several that are one; `keys` are what it may be found by: its stem, its number, its groups."""

    word: str
    keys: frozenset[str]
    light: bool = False
    parts: frozenset[str] = frozenset()
    """The stems of several words, which are found together or not at all."""

    def among(self, keys: frozenset[str]) -> bool:
        return bool(self.keys & keys) or (bool(self.parts) and self.parts <= keys)

    @property
    def number(self) -> bool:
        return self.word[0].isdigit()

    @property
    def opposed(self) -> bool:
        return self.word in OPPOSED


def plain(text: str) -> str:
    """Lower case, without accents."""
    folded = unicodedata.normalize("NFKD", text.lower())
    return "".join(c for c in folded if not unicodedata.combining(c))


def tokens(text: str) -> list[str]:
    return _TOKEN.findall(CLITIC.sub("", plain(text)))


class Lexicon:
    """Turns text into terms: general English groups of equal words, and those of the packs."""

    def __init__(self, stem: Stemmer, groups: Iterable[Sequence[str]] = ()) -> None:
        self.stem = stem
        self._light = {stem(word) for word in LIGHT}
        self._phrases: dict[tuple[str, ...], set[str]] = {}
        every = [*(line.split(",") for line in GROUPS.splitlines()), *groups]
        for number, group in enumerate(every):
            for phrase in group:
                words = tuple(stem(word) for word in tokens(phrase))
                if words:
                    self._phrases.setdefault(words, set()).add(f"={number}")
        self._longest = max(map(len, self._phrases))

    def members(self, group: str) -> set[str]:
        """The stems of the words in a group."""
        return {word for phrase, groups in self._phrases.items() if group in groups for word in phrase}

    def terms(self, text: str, *, stops: bool = True) -> list[Term]:
        """The terms of a text in order; `stops`: without the words that say nothing."""
        return list(self._terms(tokens(text), stops))

    def _terms(self, words: list[str], stops: bool) -> Iterator[Term]:
        self.stem.learn(words)
        stems = [self.stem(word) for word in words]
        index = 0
        while index < len(words):
            for length in range(min(self._longest, len(words) - index), 1, -1):
                found = self._phrases.get(tuple(stems[index : index + length]))
                if found:
                    break
            else:
                length, found = 1, self._phrases.get((stems[index],), set())
            word = " ".join(words[index : index + length])
            if length > 1:
                several = zip(words[index : index + length], stems[index : index + length], strict=True)
                little = all(part in STOP or stem in self._light for part, stem in several)
                yield Term(word, frozenset(found), little, frozenset(stems[index : index + length]))
            elif not stops or word not in STOP:
                keys = {stems[index], *found, *numeral(word)}
                yield Term(word, frozenset(keys), stems[index] in self._light)
            index += length

    def keys(self, text: str) -> frozenset[str]:
        """Everything that a text may be found by, days inside a range too."""
        found: set[str] = set()
        for term in self.terms(text, stops=False):
            found |= term.keys | term.parts
            for word in term.word.split() if term.parts else ():
                found |= self._phrases.get((self.stem(word),), set()) | numeral(word)
        for match in _RANGE.finditer(plain(text)):
            first, last = DAYS.index(match[1]), DAYS.index(match[2])
            days = [DAYS[(first + step) % 7] for step in range((last - first) % 7 + 1)]
            found |= {self.stem(day) for day in days}
        if {"weekend"} & found:
            found |= {self.stem(day) for day in DAYS[5:]}
        if {"daili"} & found or "every day" in plain(text):
            found |= {self.stem(day) for day in DAYS}
        return frozenset(found)


def numeral(word: str) -> set[str]:
    """The key of a number, in figures or in words, counted or in a row ("3", "three", "3rd", "third")."""
    if word in NUMBERS or word in ORDINALS:
        return {f"#{NUMBERS.get(word, ORDINALS.get(word))}"}
    match = re.fullmatch(r"(\d{1,9})(?:st|nd|rd|th)?", word)
    return {f"#{int(match[1])}"} if match else set()
