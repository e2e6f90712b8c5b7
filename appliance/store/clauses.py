"""From what a recogniser writes to clauses that say one thing each: contractions written out, openings taken off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from appliance.store.knowenglish import DAYS

LONGEST = 4_000
"""Characters of an utterance that are looked at; all of it is kept as it was said."""
MOST = 40
"""Clauses of one utterance."""

_SHORT = (
    (r"\bi'm\b", "I am"),
    (r"\bi've\b", "I have"),
    (r"\bi'd\b", "I would"),
    (r"\bi'll\b", "I will"),
    (r"\b(can)'t\b", r"\1not"),
    (r"\bwon't\b", "will not"),
    (r"\b(\w+)n't\b", r"\1 not"),
    (r"\b(you|we|they)'re\b", r"\1 are"),
    (r"\b(you|we|they)'ve\b", r"\1 have"),
    (r"\b(you|we|they|he|she|it)'ll\b", r"\1 will"),
    (r"\b(it|that|there|he|she|what|who|where|when|how|here)'s\b", r"\1 is"),
    (r"\blet's\b", "let us"),
    (r"\b(dont|doesnt|didnt|isnt|arent|wasnt|hasnt|havent)\b", lambda m: m[1][:-2] + " not"),
    (r"\bcant\b", "cannot"),
    (r"\bim\b", "I am"),
    (r"\bive\b", "I have"),
    (r"\bgotta\b", "have to"),
    (r"\bgonna\b", "going to"),
    (r"\bwanna\b", "want to"),
    (r"\bi\b", "I"),
    (r"\banymore\b", "any more"),
    (r"\bfavorite\b", "favourite"),
    (r"\bcolor\b", "colour"),
    (r"\b(I|we|they) no longer (?=[a-z])", r"\1 do not "),
    (r"\b(can) not\b", r"\1not"),
)
_NAME_IS = re.compile(
    r"\b((?i:my|our|his|her|their|the) (?:\w+ )?(?:name|number|birthday|address|favourite \w+|code|job|\w+))'s "
    r"(?=(?:[A-Z0-9]|on\b|at\b|in\b|called\b|named\b|a\b|an\b|the\b|not\b|allergic\b))"
)
""" "My name's Anna" is a verb; "my daughter's name" is not."""
_HARD = re.compile(r"[.!?;:\n]+(?=\s|$)|\s[\u2013\u2014-]+\s")
_SOFT = re.compile(
    r",?\s+(?:and|but|so|because|then)\s+(?=(?:I|we|he|she|they|it|my|our|his|her|their|there|you)\b(?! name\b))"
    r"|,\s*(?=(?:now |and )?(?:I|we|my|our|he|she|they|it is|his|her|the [\w ]+ is)\b)",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"^(?:(?:oh|well|okay|ok|so|and|but|also|hey|hi|hello|listen|look|um|uh|er|right|yes|yeah|yep"
    r"|you know what|you know|before i forget"
    r"|by the way|please"
    r"|sorry|anyway|just|for your information|well then|fyi|as i said|like i said|hm+|thanks|thank you|great"
    r"|alright|all right"
    r"|one more thing|another thing|in fact|to be honest|honestly|parley|the thing is|oh no|ah|now|too bad"
    r"|guess what)\b[\s,:]*)+",
    re.IGNORECASE,
)
_REMEMBER = re.compile(
    r"^(?:can you |could you |will you |i want you to |i would like you to |i need you to )?(?:please )?"
    r"(?:remember|note(?: down)?|make a note|take a note|keep in mind|bear in mind|do not forget|never forget|know|"
    r"write down|save|store|memori[sz]e|you should know|you need to know|i wanted to tell you|i want to tell you|"
    r"i should tell you|i have to tell you|i must tell you|let me tell you|just so you know|so you know|for the record)"
    r"(?: for me)?(?: please)?(?: that|:|,)?\s+(?!to\b|when\b|what\b|who\b|where\b|how\b|me\b|if\b)",
    re.IGNORECASE,
)
_VERB = re.compile(
    r",? and (?=(?:works?|lives?|has|have|likes?|loves?|hates?|drives?|plays?|speaks?|comes?|owns?|wears?|is|am|are"
    r"|needs?)"
    r" (?!(?:to |called|named))\w)(?!lives? there\b|stays? there\b)",
    re.IGNORECASE,
)
_FOR = re.compile(r"^(for (?:the |my |our |a )?[^,]+?),? (?=(?:we|I|it is) )(.+)$", re.IGNORECASE)
""" "For the party we decided on..." says the same as "We decided on ... for the party"."""
_CORRECTS = re.compile(
    r"^(?:(?:no|nope|wrong|that is (?:wrong|not right|not correct|not true|incorrect)|that was wrong|you are wrong"
    r"|that is a mistake|correction|actually|i meant|i mean|i said|i told you|not (?:any more|quite)|scratch that"
    r"|sorry)\b[\s,.:]*)+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Clause:
    """`asked`: the sentence that it stands in ends with a question mark. `explicit`: the user asked to remember it;
    `corrects`: it takes the place of something said."""

    text: str
    asked: bool = False
    explicit: bool = False
    corrects: bool = False
    continues: bool = False
    """It has the subject of the one before: "...and works at a bank"."""


def written_out(text: str) -> str:
    """Without contractions, in one kind of apostrophe, blanks single."""
    text = " ".join(text[:LONGEST].replace("\u2019", "'").replace("\u2018", "'").replace("\u201c", '"').split())
    text = _NAME_IS.sub(r"\1 is ", text)
    for short, long in _SHORT:
        text = re.sub(short, long, text, flags=re.IGNORECASE)
    return text


def clauses(text: str) -> list[Clause]:
    return list(_clauses(written_out(text)))[:MOST]


def _clauses(text: str) -> Iterator[Clause]:
    explicit = corrects = False
    at = 0
    for end in [*_HARD.finditer(text), None]:
        sentence = text[at : end.start() if end else len(text)].strip(" ,")
        asked = bool(end and "?" in end.group())
        at = end.end() if end else len(text)
        if not sentence:
            continue
        sentence, opened = _opened(sentence)
        corrects |= opened
        if told := _REMEMBER.match(sentence):
            sentence, explicit, asked = sentence[told.end() :], True, False
            sentence, opened = _opened(sentence)
        for part in _SOFT.split(sentence):
            if part := _FOR.sub(r"\2 \1", _opened(part)[0].strip(" ,")):
                first, *more = _VERB.split(part)
                yield Clause(first, asked, explicit, corrects)
                yield from (Clause(one, asked, explicit, corrects, continues=True) for one in more)
        explicit = False


def _opened(sentence: str) -> tuple[str, bool]:
    """Without what opens it, and whether that took something back."""
    corrects = False
    while True:
        before = sentence
        sentence = _OPENING.sub("", sentence, count=1).strip(" ,")
        if found := _CORRECTS.match(sentence):
            sentence, corrects = sentence[found.end() :].strip(" ,"), True
        if sentence == before:
            return sentence, corrects


# --- days --------------------------------------------------------------------------------------------------------

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)
_ON = re.compile(r"\b(?:to|until|till|by|from|for|since|before|after|on) $", re.IGNORECASE)
_WEEKDAYS = "|".join(DAYS)
_RELATIVE = re.compile(
    r"(?<!every )(?<!each )(?<!second )(?<!other )\b(?:(today|tonight|tomorrow|yesterday)"
    rf"|(?:(next|this|last|on) )?({_WEEKDAYS}))\b(?!s)",
    re.IGNORECASE,
)


def dated(text: str, said: datetime) -> str:
    """ "Tomorrow" means something else tomorrow: days are written with their date."""

    def date(match: re.Match[str]) -> str:
        word = match.group().lower()
        if match[1]:
            days = {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1}[match[1].lower()]
        else:
            ahead = (DAYS.index(match[3].lower()) - said.weekday()) % 7
            days = ahead - 7 if word.startswith("last") else ahead + (7 if word.startswith("next") and not ahead else 0)
        try:
            day = said + timedelta(days=days)
        except OverflowError:
            return match.group()
        evening = "the evening of " if word == "tonight" else ""
        on = "" if _ON.search(text[: match.start()]) else "on "
        return f"{on}{evening}{DAYS[day.weekday()].capitalize()}, {day.day} {_MONTHS[day.month - 1]}"

    return _RELATIVE.sub(date, text)
