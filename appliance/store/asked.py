"""What a question asks of memory: whose, and which attribute; and the user's words said back to the user."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from appliance.store.clauses import written_out
from appliance.store.tellparts import ME, key, owned
from appliance.store.tellwords import ATTRIBUTES, PEOPLE, TRAITS


@dataclass(frozen=True, slots=True)
class Asked:
    """`owner` has one of the `attributes`; `many`: all of them are wanted. `item`: whether this one holds ("am I
    allergic to nuts?"). `about`: everything about this ("" with an owner). `sure`: nobody but the user can know it."""

    owner: str = ""
    attributes: tuple[str, ...] = ()
    item: str = ""
    many: bool = False
    about: str = ""
    sure: bool = False
    loose: bool = False
    """It was not understood which attribute of whom: whatever has to do with it."""


_TIMES = ("time", "leaves", "arrives", "opens", "closes", "ends", "departs", "birthday")
_LEAD = re.compile(
    r"^(?:(?:hey|so|and|okay|ok|well|please|parley|sorry|um|uh|then|but|again|now)\b[\s,]*)*(?:(?:can|could|would"
    r"|will|do) you (?:please )?"
    r"(?:tell me|remind me|remember|know|recall|still know|still remember)(?: again)?|tell me|remind me|i forgot"
    r"|i have forgotten"
    r"|i cannot remember|i do not remember)?[\s,]*(?:again[\s,]*)?",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"[\s,]+(?:again|please|now|today|currently|exactly|at the moment|for me|called again|parley|right now|then)$", re.I
)

_X = r"((?:my|our|the|his|her|their) [\w' -]+?|[A-Z][\w']+(?:'s [\w -]+?)?)"
"""A subject that is not the user."""

Make = Callable[[re.Match[str]], Asked]


def _me(*attributes: str, many: bool = False) -> Make:
    return lambda m: Asked(ME, attributes, many=many, sure=True)


def _of(*attributes: str) -> Make:
    return lambda m: Asked(m[1], attributes, sure=_mine(m[1]))


def _thing(match: re.Match[str]) -> Asked:
    """ "What is my NP?": an attribute of somebody, or everything of a thing."""
    owner, attribute = owned(match[1])
    if attribute:
        return Asked(owner, (attribute,), sure=owner == ME and match[1].lower().startswith(("my", "our")))
    if key(owner) in PEOPLE:
        return Asked(owner, ("name",), sure=True)
    return Asked(owner, (), sure=_mine(owner))


def _mine(subject: str) -> bool:
    return subject.lower().startswith(("my ", "our "))


_RULES: tuple[tuple[str, Make], ...] = (
    (r"(?:what is my name|who am i|what am i called|my name|who i am|what my name is)", _me("name")),
    (
        r"(?:where do i live|where is my home|what is my home ?town|where i live|which (?:city|town) do i live in)",
        _me("home", "address"),
    ),
    (r"(?:where do i work|who do i work for|where i work|which company do i work for)", _me("work", "job")),
    (
        r"(?:what do i do(?: for (?:a living|work))?|what is my (?:job|profession|occupation)|what do i work as)",
        _me("job", "work"),
    ),
    (r"(?:how old am i|what is my age|how old i am)", _me("age")),
    (r"(?:where am i from|where do i come from)", _me("origin", "birthplace")),
    (r"when (?:was i born|is my birthday)", _me("birthday")),
    (r"where was i born", _me("birthplace", "origin")),
    (
        r"(?:what|which) (?:kind of |sort of |type of )?(?:car|vehicle) do i (?:drive|have|own)|what do i drive",
        _me("car", "has"),
    ),
    (r"(?:what|which) languages? do i speak", _me("language", many=True)),
    (
        r"(?:what am i allergic to|what are my allergies|do i have any allergies|which allergies do i have"
        r"|what i am allergic to)",
        _me("allergy", many=True),
    ),
    (r"am i allergic to (.+)", lambda m: Asked(ME, ("allergy",), item=m[1], sure=True)),
    (r"(?:do i (?:like|love|enjoy|eat|drink)) (.+)", lambda m: Asked(ME, ("likes", "dislikes"), item=m[1], sure=True)),
    (r"(?:do i (?:hate|dislike)) (.+)", lambda m: Asked(ME, ("dislikes", "likes"), item=m[1], sure=True)),
    (
        r"what (?:food |things |music |drinks? )?do i (?:like|love|enjoy|prefer)(?: to (?:eat|drink"
        r"|do))?(?: the most| most)?",
        _me("likes", many=True),
    ),
    (
        r"what (?:food |things )?(?:do i (?:not like|hate|dislike)|cannot i stand|can i not stand)",
        _me("dislikes", many=True),
    ),
    (rf"am i (?:an? )?({'|'.join(map(re.escape, TRAITS))})", lambda m: Asked(ME, ("trait",), item=m[1], sure=True)),
    (
        r"(?:what (?:do i (?:still |yet )?(?:have|need|want)(?: still| yet)? to do|are my (?:tasks|to ?dos|plans)"
        r"|must i do"
        r"|should i do|else do i have to do"
        r"|do i need(?: to buy| to get)?|is (?:still )?(?:open|left to do)"
        r"|is on my (?:to ?do )?list(?: of things to do)?)"
        r"|do i have anything to do)(?: (?:today|tomorrow|tonight|this \w+|next \w+|on \w+|at \w+|from the \w+))?",
        _me("task", many=True),
    ),
    (
        r"(?:which|what) (room|seat|row|cabin) am i in",
        lambda m: Asked(ME, (f"{m[1].lower()} number",), sure=True),
    ),
    (
        r"what (?:did (?:i|we) (?:decide|choose|agree|pick|settle)|was (?:my|our) decision)(?: (?:about|on|for"
        r"|regarding) (.+))?",
        lambda m: Asked(ME, ("decision",), item=m[1] or "", many=True, sure=True),
    ),
    (r"what (?:appointments|meetings|plans) do i have(?: .+)?", lambda m: Asked("", ("time",), many=True, sure=True)),
    (r"what (?:is|was) (?:wrong|the (?:problem|matter)) with (.+)", lambda m: Asked(m[1], ("complaint", "state"))),
    (r"(?:do i have|have i got) (?:an? |any )?(.+)", lambda m: Asked(ME, ("has",), item=m[1], sure=True)),
    (rf"what (?:is|are) {_X} (?:called|named)", _of("name")),
    (rf"(?:what is|what are) the names? of {_X}", _of("name")),
    (rf"who (?:is|are) {_X}", _of("name", "job")),
    (rf"where (?:does|do) {_X} live", _of("home")),
    (
        rf"where (?:does|do) {_X} work|who does {_X} work for",
        lambda m: Asked(m[1] or m[2], ("work", "job"), sure=_mine(m[1] or m[2])),
    ),
    (rf"what does {_X} do(?: for (?:a living|work))?", _of("job", "work")),
    (rf"how old (?:is|are) {_X}", _of("age")),
    (rf"what is {_X} allergic to", lambda m: Asked(m[1], ("allergy",), many=True, sure=_mine(m[1]))),
    (
        rf"(?:is|are) {_X} (?:an? )?({'|'.join(map(re.escape, TRAITS))})",
        lambda m: Asked(m[1], ("trait",), item=m[2], sure=_mine(m[1])),
    ),
    (rf"is {_X} allergic to (.+)", lambda m: Asked(m[1], ("allergy",), item=m[2], sure=_mine(m[1]))),
    (
        rf"does {_X} (?:like|love|enjoy|eat) (.+)",
        lambda m: Asked(m[1], ("likes", "dislikes"), item=m[2], sure=_mine(m[1])),
    ),
    (rf"what does {_X} (?:like|love|enjoy|prefer)", lambda m: Asked(m[1], ("likes",), many=True, sure=_mine(m[1]))),
    (
        rf"(?:where (?:is|are)|where did i (?:put|leave|park)|where have i (?:put|left|parked)|where do i keep) {_X}",
        _of("place", "home"),
    ),
    (rf"what colou?r (?:is|are) {_X}", _of("colour", "is")),
    (rf"how much (?:does|do|is|are|did) {_X}(?: (?:cost|weigh))?", _of("price", "weighs", "number")),
    (r"when (?:is|are|was) (.+)'s (birthday|anniversary)", lambda m: Asked(m[1], (m[2].lower(),), sure=_mine(m[1]))),
    (
        rf"(?:when|what time|on what day|what day) (?:is|are|was|does|do|will) {_X}(?: (?:start|begin|leave|open"
        rf"|close|arrive|end|be|take place))?",
        _of(*_TIMES),
    ),
    (
        r"what (?:did i (?:say|tell you|mention)|do you know|have i (?:said|told you)|did we say) (?:about|of) (.+)",
        lambda m: Asked(about=m[1]),
    ),
    (rf"(?:what (?:is|are|was)|which is|what) {_X}", _thing),
    (rf"{_X}", _thing),
)
_COMPILED = [(re.compile(f"{pattern}", re.IGNORECASE), make) for pattern, make in _RULES]


def asked(text: str) -> Asked | None:
    """None where it is no question that memory may answer by whose and what."""
    words = _TAIL.sub("", written_out(text).strip(" .?!,"))
    rest = _LEAD.sub("", words, count=1).strip(" ,")
    rest = re.sub(
        r"^(?:what|where|who|when) ((?:my|our|the) .+) (is|are|was)$", r"what \2 \1", rest, flags=re.IGNORECASE
    )
    bare = rest == words  # a statement begins with its subject, a question that was taken apart may too
    for pattern, make in _COMPILED[: -1 if bare else None]:
        if found := pattern.fullmatch(rest):
            wanted = make(found)
            if wanted.owner.lower() in ("the time", "the weather", "the date", "the news", "the volume"):
                return None
            return wanted
    if re.match(
        r"(?:what|which|who|whom|whose|when|where|why|how|is|are|was|were|do|does|did|has|have|am|will)\b", rest, re.I
    ):
        sure = bool(_PERSONAL.match(rest) and not _GENERAL.match(rest))
        if sure or is_personal(rest):
            return Asked(about=rest, sure=sure, loose=True)
    return None


_PERSONAL = re.compile(
    r"(?:what|which|who|whom|whose|when|where|why|how)\b.*\b(?:(?:did|have|had|was|were|am) (?:i|we)"
    r"|do (?:i|we) (?:have|own)|(?:my|our) \w+)\b"
    r"|(?:is|are|was|were|does|do|did|has|have|will) (?:my|our) \w+|(?:did|have|had|was|were|am) (?:i|we)\b"
    r"|do (?:i|we) (?:have|own|live|work|know)\b",
    re.IGNORECASE,
)
"""A question about what only the user can have told."""
_GENERAL = re.compile(
    r"how (?:do|can|could|should|would|to)\b|(?:what|where|when|why|which) (?:can|could|should|would|shall|do"
    r"|must) (?:i|we|you)\b|.*\byou\b",
    re.IGNORECASE,
)
"""What anybody may know, or what is about the box."""


def is_personal(text: str) -> bool:
    """Whether it speaks of the user."""
    return bool(re.search(r"\b(?:I|me|my|mine|we|our|us|myself)\b", written_out(text)))


# --- said back ---------------------------------------------------------------------------------------------------

_TURNED = {
    **dict.fromkeys(("i am", "we are", "i'm"), "you are"),
    **dict.fromkeys(("am i",), "are you"),
    **dict.fromkeys(("i was",), "you were"),
    **dict.fromkeys(("i", "we", "me", "us"), "you"),
    **dict.fromkeys(("my", "our"), "your"),
    **dict.fromkeys(("mine", "ours"), "yours"),
    **dict.fromkeys(("myself", "ourselves"), "yourself"),
    "you are": "I am",
    "your": "my",
    "yours": "mine",
    "you": "me",
}
_TURN = re.compile(rf"\b(?:{'|'.join(sorted(_TURNED, key=len, reverse=True))})\b", re.IGNORECASE)


LONGEST = 240
"""Characters of one clause that are said back."""


def said_back(text: str) -> str:
    """ "My cat is in the garden" as the box says it: "Your cat is in the garden." """
    if len(text) > LONGEST:
        text = f"{text[:LONGEST].rsplit(' ', 1)[0]} and so on"
    text = _TURN.sub(lambda match: _TURNED.get(match.group().lower(), match.group()), text).strip(" .,;")
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


UNKNOWN = {
    "name": "I don't know your name yet.",
    "home": "I don't know where you live.",
    "work": "I don't know where you work.",
    "job": "I don't know what you do.",
    "age": "I don't know how old you are.",
    "birthday": "I don't know your birthday.",
    "car": "I don't know what you drive.",
    "allergy": "You haven't told me of any.",
    "task": "You haven't told me of anything to do.",
    "decision": "You haven't told me what you decided.",
}
NOT_TOLD = "You haven't told me that."


def unknown(wanted: Asked) -> str:
    """What is said where nothing is known."""
    return UNKNOWN.get(wanted.attributes[0], NOT_TOLD) if wanted.owner == ME and wanted.attributes else NOT_TOLD


__all__ = ["ATTRIBUTES", "Asked", "asked", "is_personal", "listed", "said_back", "unknown"]
