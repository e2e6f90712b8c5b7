"""Numbers to words: the door to unicode-rbnf (CLDR's spell-out rules)."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from unicode_rbnf import RbnfEngine

Form = Literal["spellout-cardinal", "spellout-ordinal", "spellout-numbering-year"] | str

LARGEST = 10**15
"""Above this a number is no quantity that anyone says; it is read digit by digit."""


@lru_cache(8)
def _engine(language: str) -> RbnfEngine:
    return RbnfEngine.for_language(language)


@lru_cache(2048)
def spell(language: str, number: int, form: Form) -> str:
    """`number` in words. `form` is a CLDR rule set of the language, such as "spellout-cardinal-masculine"."""
    text = _engine(language).format_number(number, ruleset_names=[form]).text_by_ruleset[form]
    return str(text).replace("\u00ad", "")
