"""The box's own voice: words that are recognised from the echo of an answer are nobody's turn."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from operator import eq

ENOUGH = 0.8
"""Share of the heard words that the box itself has just said, in their order, from which they are its own."""

ENOUGH_IN_DOUBT = 0.7
"""The same where the echo is not known to be cancelled: it is heard as it is, and recognised with mistakes."""

ALIKE = 0.7
"""Share of the letters of two words from which, in doubt, one may be the echo of the other: Paris and Harris."""

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


def words(text: str) -> list[str]:
    """The words of a text as they are compared: folded, without punctuation; hyphens part them."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold().replace("’", "'"))


def alike(heard: str, said: str) -> bool:
    """Whether the one may be what is left of the other: its beginning, or most of its letters in their order."""
    return (heard[:2] == said[:2] and said.startswith(heard)) or SequenceMatcher(None, heard, said).ratio() >= ALIKE


def share(heard: Sequence[str], said: Sequence[str], same: Callable[[str, str], bool] = eq) -> float:
    """How much of `heard` is found in one place of `said`: 1 minus the edits per heard word that turn it into the part
    of `said` that is most like it (Sellers 1980, approximate string matching). 0 where nothing was heard."""
    if not heard:
        return 0.0
    row = [0] * (len(said) + 1)  # a match may begin anywhere
    for word in heard:
        above, row = row, [row[0] + 1]
        for place, own in enumerate(said):
            row.append(min(above[place] + (not same(word, own)), above[place + 1] + 1, row[place] + 1))
    return max(0.0, 1.0 - min(row) / len(heard))


def own_voice(heard: Sequence[str], said: Sequence[str], *, doubt: bool) -> bool:
    """Whether what was heard over an answer is the answer itself. `said` holds the words just played; `doubt` tells
    whether their echo may have been heard. A single word is taken for an echo only in doubt: the user may repeat it."""
    if doubt:
        return share(heard, said, alike) >= ENOUGH_IN_DOUBT
    return len(heard) >= 2 and share(heard, said) >= ENOUGH
