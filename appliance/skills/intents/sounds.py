"""How alike two stretches of words sound, in English, from their spelling.

What a recogniser mishears it spells as other words that sound alike, often across the borders of words: "light rose to"
for "light roast". So the words of a stretch are joined, written as sounds, and compared by an edit distance in which a
vowel costs less than a consonant, and a voiced consonant is near its voiceless twin.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rapidfuzz.distance import Levenshtein

_RULES = tuple(
    (re.compile(pattern), sound)
    for pattern, sound in (
        (r"^(?:wr)", "r"),
        (r"^(?:kn|gn|pn)", "n"),
        (r"^wh", "w"),
        (r"^ps", "s"),
        (r"^x", "z"),
        (r"ced\b", "sd"),
        (r"ged\b", "Jd"),
        (r"(?<=[^aeioutd])ed\b", "d"),
        (r"tch", "C"),
        (r"sch", "sk"),
        (r"ch", "C"),
        (r"sh|(?<=[aeiou])(?:ti|si|ci)(?=on|al|ous|en)", "S"),
        (r"ture\b", "Cer"),
        (r"th", "T"),
        (r"ph", "f"),
        (r"gh(?=t|\b|s)", ""),
        (r"gh", "g"),
        (r"ck", "k"),
        (r"c(?=[eiy])", "s"),
        (r"qu", "kw"),
        (r"[cq]", "k"),
        (r"dge|dg|g(?=[ei](?!t\b|r))|j", "J"),
        (r"mb\b", "m"),
        (r"x", "ks"),
        (r"zz", "ts"),
        (r"(?<=[a-z])h", ""),
        (r"(?<=[aeiou])y", ""),
        (r"(?<=[aeo])w(?![aeiou])", ""),
        (r"(?<=[^aeiou])e\b|(?<=[^aeiou])e(?=s\b)", ""),
        (r"(?<=[aeiou])r(?![aeiou])", "R"),
        (r"ee|ea|ie|i|y|ei", "i"),
        (r"oo|ou|ew|ue|u", "u"),
        (r"oa|ow|o|au|aw", "o"),
        (r"ai|ay|a|e", "a"),
    )
)
_RUN = re.compile(r"(.)\1+")
_LETTERS = re.compile(r"[^a-z]")
_VOWELS = frozenset("aiou")
_NEAR = {
    frozenset(pair): cost
    for pairs, cost in (
        (("bp", "dt", "gk", "vf", "zs", "JC", "Td", "Tt", "Tf", "Ts", "CS", "sS", "zJ"), 0.35),
        (("mn", "rl", "wv", "Rr", "td", "kC", "tC", "dJ", "wr", "lw", "ny", "yJ", "pf", "bv"), 0.5),
    )
    for pair in pairs
}
_CLASSES = str.maketrans(
    {"i": "a", "o": "a", "u": "a", "b": "p", "d": "t", "g": "k", "v": "f", "z": "s", "J": "C", "S": "C", "R": ""}
)
_DROP = {"R": 0.15, "h": 0.45, "w": 0.5, "y": 0.5, "t": 0.45, "d": 0.45}


@lru_cache(65_536)
def sounds(words: str) -> str:
    """A letter for each sound of the words, joined."""
    return _RUN.sub(r"\1", "".join(_word(word) for word in words.split()))


@lru_cache(65_536)
def _word(word: str) -> str:
    written = _LETTERS.sub("", word)
    for pattern, sound in _RULES:
        written = pattern.sub(sound, written)
    return _RUN.sub(r"\1", written)


@lru_cache(65_536)
def classes(written: str) -> str:
    """Sounds by their class only: what is hardly ever confused with another."""
    return _RUN.sub(r"\1", written.translate(_CLASSES))


@lru_cache(262_144)
def distance(one: str, other: str) -> float:
    """Between two stretches of words: 0 where they sound the same, 1 and more where nothing is alike."""
    if one == other:
        return 0.0
    left, right = sounds(one), sounds(other)
    longest = max(len(left), len(right))
    if not longest:
        return 1.0
    rough = Levenshtein.normalized_distance(classes(left), classes(right))
    if rough > 0.6:
        return 1.0
    apart = _edits(left, right)
    if left[0] == "n" and right[0] in _VOWELS:
        apart = min(apart, 0.2 + _edits(left[1:], right))  # "a nice" for "an ice"
    return apart / (0.5 * (len(left) + len(right)))


def _edits(left: str, right: str) -> float:
    row = [0.0]
    for sound in right:
        row.append(row[-1] + _drop(sound))
    for heard in left:
        above, row = row, [row[0] + _drop(heard)]
        for place, wanted in enumerate(right):
            row.append(
                min(above[place] + _change(heard, wanted), above[place + 1] + _drop(heard), row[-1] + _drop(wanted))
            )
    return row[-1]


def _drop(sound: str) -> float:
    return 0.4 if sound in _VOWELS else _DROP.get(sound, 0.9)


def _change(one: str, other: str) -> float:
    if one == other:
        return 0.0
    if one in _VOWELS and other in _VOWELS:
        return 0.25
    if one in _VOWELS or other in _VOWELS:
        return 0.9 if "R" not in (one, other) else 0.35
    return _NEAR.get(frozenset((one, other)), 1.0)
