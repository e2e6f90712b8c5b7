"""How the box is addressed: the wake phrase is no part of what the user wants, and is taken off the words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from appliance.events import Draft, Event, Failed, NoSpeech, Partial, SpeechStarted, Transcript, Woken
from appliance.stream import Events, Stage

ALONE = "wake word"
"""Why a turn that held nothing but the wake word is NoSpeech."""

_WORD = re.compile(r"[^\W_]+(?:['’.][^\W_]+)*")
_BREAK = re.compile(r"\s*(?:[^\w\s\"'“‘(]|$)")
_RUN = re.compile(r"(.)\1+")
_BETWEEN = re.compile(r"[^\w\"'“‘(]*")

_SOUNDS = tuple(
    (re.compile(pattern), sound)
    for pattern, sound in (
        (r"^o\W*k$", "okay"),
        (r"ph", "f"),
        (r"c(?=[eiy])|z", "s"),
        (r"ck|[cq]", "k"),
        (r"x", "ks"),
        (r"uy", "ai"),
        (r"oo|ou|ew|ue", "u"),
        (r"(?<=[aeiou])[wyh]+", ""),
        (r"[aeioy]+", "a"),
    )
)
"""From spelling to what can be told apart in a name that no recogniser knows: consonants, "u", and all other vowels."""


def strip(text: str, phrases: Sequence[str]) -> str:
    """The text without the wake phrases that it begins with, as a recogniser may spell them: "Okay, Naboo.", "Ok now,
    boo,", "A Jarvis". What follows is left as it is; "" if nothing follows.

    Of a phrase cut in the middle ("...bu, what") only what a break sets apart is taken: a word that may be the order's
    stays.
    """
    while cut := max((_whole(text, phrase) or _half(text, phrase) for phrase in phrases), default=0):
        text = text[cut:]
    return text


def says(text: str, phrases: Sequence[str]) -> bool:
    """Whether one of the phrases is in the text, wherever."""
    return any(_whole(text[word.start() :], phrase) for word in _WORD.finditer(text) for phrase in phrases)


def _whole(text: str, phrase: str) -> int:
    """How many characters a phrase takes at the beginning of the text, with what separates it from the rest; 0 if it is
    not there. It must sound the same; but for one sound if it has as many words, or a break behind it."""
    wanted, count = _sound(phrase), len(_WORD.findall(phrase))
    like = 0
    for number, word in zip(range(1, count + 2), _WORD.finditer(text), strict=False):
        said = _sound(text[: word.end()])
        if said == wanted:
            return _behind(text, word.end())
        alike = count > 1 and (number == count or (number > count and _BREAK.match(text, word.end())))
        if alike and _one_apart(said, wanted):
            like = _behind(text, word.end())
    return like


def _half(text: str, phrase: str) -> int:
    """The same for the end of a phrase, from a consonant on, as a word of its own in front of a break."""
    first = _WORD.search(text)
    if not first or not _BREAK.match(text, first.end()):
        return 0
    said, last = (word.lower().replace("oo", "u") for word in (first.group(), phrase.split()[-1]))
    ends = len(said) > 1 and last.endswith(said) and said[0] not in "aeiou"
    return _behind(text, first.end()) if ends else 0


def _behind(text: str, end: int) -> int:
    found = _BETWEEN.match(text, end)
    return found.end() if found else end


def _sound(text: str) -> str:
    return _RUN.sub(r"\1", "".join(_word_sound(word) for word in _WORD.findall(text.lower())))


def _word_sound(word: str) -> str:
    for pattern, sound in _SOUNDS:
        word = pattern.sub(sound, word)
    return word


def _one_apart(one: str, other: str) -> bool:
    """Whether a single letter is changed, added or missing."""
    short, long = sorted((one, other), key=len)
    same = next((at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    return len(long) - len(short) <= 1 and short[same + (len(short) == len(long)) :] == long[same + 1 :]


def address(phrases: Sequence[str]) -> Stage:
    """Takes the wake phrase off the words of a turn in which, or in front of which, it was heard. A turn that holds
    nothing else is NoSpeech; its Partial and Draft are dropped."""

    async def stage(events: Events) -> Events:
        turn = _Turn(phrases)
        async for event in events:
            for found in turn.step(event):
                yield found

    return stage


class _Turn:
    """What is taken off the words of the turn that is being spoken."""

    def __init__(self, phrases: Sequence[str]) -> None:
        self._phrases = phrases
        self._called = self._shown = False
        self._cut = 0

    def step(self, event: Event) -> Iterator[Event]:
        match event:
            case Woken():
                self._called = event.word not in ("button", "api")
            case SpeechStarted():
                self._shown = False
            case Partial():
                event = self._partial(event)
                if not (event.committed or event.tail):
                    return
            case Draft():
                event = replace(event, text=self._strip(event.text), alternatives=self._strip_all(event.alternatives))
                if not event.text:
                    return
            case Transcript():
                text, others = self._strip(event.text), self._strip_all(event.alternatives)
                stripped = replace(event, text=text, alternatives=others)
                event = stripped if text else NoSpeech(event.at, event.turn, ALONE)
        if isinstance(event, Transcript | NoSpeech | Failed):
            self._called = False
        yield event

    def _strip(self, text: str) -> str:
        return strip(text, self._phrases) if self._called else text

    def _strip_all(self, texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(filter(None, map(self._strip, texts)))

    def _partial(self, event: Partial) -> Partial:
        """What is committed only ever grows: once some of it has been shown, no more is taken off."""
        words = f"{event.committed} {event.tail}".strip()
        if not self._shown:
            self._cut = len(words) - len(self._strip(words))
        committed = event.committed[self._cut :]
        self._shown = bool(committed)
        return replace(event, committed=committed, tail=words[self._cut :][len(committed) :].strip())
