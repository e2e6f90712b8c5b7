"""Speech recognition with Whisper: encoder, greedy decoder, and the guards around them.

Whisper was trained on 30 s at a time, and goes astray when it is shown less: it repeats itself rather than stop. All of
the 30 s is needed, but not all of it at the same resolution. The encoder here sees the speech and a margin of silence
place by place, and of the silence behind that a few places in blocks, each weighted by how many it stands for
(`Context`). Should a transcript loop even so, the sound is heard again with every place.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appliance.errors import ModelDamaged, ModelFault
from appliance.runtime.bias import Bias
from appliance.runtime.card import Built
from appliance.runtime.features import HOP, log_mel
from appliance.runtime.model import Array, Infer, Model, Steps, finish, softmax
from appliance.runtime.ort import OrtModel
from appliance.runtime.tokenizer import Tokenizer
from appliance.runtime.vocabulary import Vocabulary
from firmware.frame import RATE, Wave

PLACE = 2 * HOP
"""Samples per place in the encoder (20 ms)."""
PLACES = 1500
SPAN = PLACES * PLACE
"""Samples that one run can hear (30 s)."""
LONGEST = 28 * RATE
"""Samples that one run is given; longer sounds are cut where they are quietest."""
EARLIEST = 20 * RATE
"""Samples before which no such cut is made."""

TOKENS = 448
"""Tokens that the decoder has places for."""
_MULTILINGUAL_END = 50257

Logits = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Options:
    """From the manifest's [options].

    `margin` seconds of silence behind the speech are encoded place by place; of the rest, `block` of every `period`
    places. A transcript faster than `rate` tokens per second is a loop. What was heard counts as no speech when the
    model says so with probability `no_speech` and is unsure of its words (mean log-probability below `unsure`).
    """

    margin: float = 1.0
    block: int = 4
    period: int = 20
    rate: float = 8.0
    no_speech: float = 0.6
    unsure: float = -0.8
    lost: float = -1.75
    silence: float = 2e-4
    """Root mean square (of full scale 1) of the loudest 20 ms below which nothing is recognised at all."""


@dataclass(frozen=True, slots=True)
class Word:
    """`confidence` is that of the least certain of the word's tokens, [0, 1]."""

    text: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Hinted:
    """The same sound, heard by one who expects certain words. `likeness` (0 or less, mostly) is how much less likely
    these words are than the others to one who expects nothing, in nats per token: far below 0 they were wished, not
    heard."""

    text: str
    tokens: tuple[int, ...]
    likeness: float


Hints = Callable[[str], Sequence[str]]
"""From the words that were heard without expecting any, to those that may have been meant; none: they stand as they
are."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What was recognised. An empty `text` comes with the `reason`: the guard that emptied it."""

    text: str = ""
    tokens: tuple[int, ...] = ()
    words: tuple[Word, ...] = ()
    confidence: float = 0.0
    """Mean probability of the tokens, the end included."""
    log_probability: float = 0.0
    """Mean over the tokens, the end included."""
    no_speech: float = 0.0
    """The model's probability that there was no speech."""
    compression: float = 1.0
    """Length of the text over its length when compressed: high for text that repeats itself."""
    language: str = ""
    context: float = 0.0
    """Seconds of audio context that the encoder was given, by the number of places."""
    fallback: str = ""
    """Why the sound was heard a second time with all places."""
    reason: str = ""
    hinted: Hinted | None = None
    """What was made of it with the hints, if there were any."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a long recording, in seconds from its start."""

    start: float
    end: float
    hypothesis: Hypothesis


@dataclass(frozen=True, slots=True)
class Context:
    """Which places the encoder sees: `positions` int64 [S]; `weight` float32 [S], the logarithm of how many each stands
    for. The first `dense` are consecutive from 0."""

    dense: int
    positions: NDArray[np.int64]
    weight: NDArray[np.float32]


def folded(samples: int, options: Options) -> Context:
    """A context for `samples` of sound in which far silence is represented by blocks of places."""
    dense = min(PLACES, -(-samples // PLACE) + round(options.margin * RATE / PLACE))
    positions, weight = [np.arange(dense)], [np.zeros(dense)]
    for start in range(dense, PLACES, options.period):
        length = min(options.period, PLACES - start)
        shown = min(options.block, length)
        positions.append(start + (length - shown) // 2 + np.arange(shown))
        weight.append(np.full(shown, np.log(length / shown)))
    return Context(dense, np.concatenate(positions).astype(np.int64), np.concatenate(weight).astype(np.float32))


def whole() -> Context:
    """All 30 s, place by place."""
    return Context(PLACES, np.arange(PLACES), np.zeros(PLACES, np.float32))


def features(wave: Wave, context: Context, bands: int) -> NDArray[np.float32]:
    """Log-mel [1, bands, 2 * S] of the sound followed by silence, at the places of the context."""
    edge = 8 * HOP  # the window of the last dense frame reaches into the silence behind it
    length = min(context.dense * PLACE + edge, SPAN)
    padded = np.zeros(length, np.float32)
    padded[: len(wave)] = wave
    mel = log_mel(padded, bands)
    far = np.repeat(mel[:, -1:], 2 * (len(context.positions) - context.dense), axis=1)
    return np.concatenate([mel[:, : 2 * context.dense], far], axis=1)[None]


def loudest(wave: Wave) -> float:
    """Root mean square of the loudest 20 ms."""
    if not len(wave):
        return 0.0
    edges = np.arange(0, len(wave), PLACE)
    power = np.add.reduceat(wave.astype(np.float64) ** 2, edges)
    return float(np.sqrt((power / np.minimum(PLACE, len(wave) - edges)).max()))


def repeated(tokens: tuple[int, ...]) -> int:
    """Length of the tokens without the loop that they end in; all of them when they end in none.

    A loop is an n-gram said four times in a row, or a longer one three times, over at least eight tokens.
    """
    for size in range(1, len(tokens) // 3 + 1):
        times = 1
        while tokens[-size * (times + 1) : len(tokens) - size * times] == tokens[-size:]:
            times += 1
        if size * times >= 8 and times >= (4 if size < 4 else 3):
            return len(tokens) - size * (times - 1)
    return len(tokens)


class Agreement:
    """Which words of a growing utterance can be relied on: those that two hypotheses in a row agree on.

    What is committed stays, whatever later hypotheses say.
    """

    def __init__(self) -> None:
        self._committed: list[str] = []
        self._before: list[str] = []

    def update(self, hypothesis: Hypothesis) -> tuple[str, str]:
        """The committed words, and those that may still change."""
        words = [word.text for word in hypothesis.words]
        start = len(self._committed)
        if _same(words[:start], self._committed):
            agreed = start
            while agreed < min(len(words), len(self._before)) and _same([words[agreed]], [self._before[agreed]]):
                agreed += 1
            self._committed += words[start:agreed]
        self._before = words
        return " ".join(self._committed), " ".join(words[len(self._committed) :])


def _same(left: list[str], right: list[str]) -> bool:
    """Whether the words are equal but for case and punctuation."""
    return [_bare(word) for word in left] == [_bare(word) for word in right]


def _bare(word: str) -> str:
    return "".join(filter(str.isalnum, word)).casefold() or word


PHRASES = frozenset(
    _bare(phrase)
    for phrase in (
        "you",
        "bye",
        "thank you",
        "thanks for watching",
        "thank you for watching",
        "thank you very much",
        "please subscribe",
        "subtitles by the amara.org community",
    )
)
"""What Whisper writes when it hears nothing, bare. People say these too: never a reason on its own."""


@dataclass(slots=True)
class _Decoded:
    no_speech: float = 0.0
    language: str = ""
    tokens: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    """Log-probability of each token, and of the end if it was reached."""
    astray: str = ""
    hinted: Hinted | None = None


class _Decoder:
    """One utterance's decoder: feeds tokens, keeps the state of those fed, and can go back."""

    def __init__(self, infer: Infer, memory: Mapping[str, Array], weight: Array, shape: tuple[int, int]) -> None:
        self._infer, self._memory, self._weight = infer, memory, weight
        self._past = np.empty((TOKENS, *shape), np.float32)
        self.fed = 0

    def __call__(self, tokens: list[int], keep: int = 1) -> Logits:
        """Scores [keep, vocabulary] of what follows each of the last `keep` tokens."""
        result = self._infer(
            {
                "tokens": np.array([tokens], np.int64),
                "past": self._past[: self.fed],
                "weight": self._weight,
                "keep": np.array([keep], np.int64),
                **self._memory,
            }
        )
        self._past[self.fed : self.fed + len(tokens)] = result["present"]
        self.fed += len(tokens)
        logits: Logits = result["logits"]
        return logits


class Recogniser:
    """One Whisper. `settings` are the recipe's settings.json; sizes are read from the graphs."""

    def __init__(
        self,
        encoder: Model,
        decoder: Model,
        vocabulary: Vocabulary,
        settings: Mapping[str, Any],
        options: Options | None = None,
    ) -> None:
        self._encoder, self._decoder, self.vocabulary = encoder, decoder, vocabulary
        self._options = options or Options()
        special = vocabulary.special
        try:
            self.bands = _size(encoder.inputs["mel"][1])
            self._shape = _size(decoder.inputs["past"][1]), _size(decoder.inputs["past"][2])
            self._end, self._start = special["<|endoftext|>"], special["<|startoftranscript|>"]
            self._plain, self._task = special["<|notimestamps|>"], special["<|transcribe|>"]
            self._silent = special.get("<|nospeech|>", self._plain - 1)
            self._never = np.array(settings["suppress_ids"], np.int64)
            self._not_first = np.array(settings["suppress_ids_begin"], np.int64)
            self._previous = special.get("<|startofprev|>", 0)
            languages = range(self._start + 1, special["<|translate|>"])
        except (KeyError, TypeError) as error:
            raise ModelDamaged(f"not a Whisper model: {error!r} is missing", "run `parley models build`") from error
        # The English models have the language tokens too and never learnt them; their end token is one lower.
        multilingual = self._end == _MULTILINGUAL_END
        names = {token: name[2:-2] for name, token in special.items()}
        self.languages = {names[token]: token for token in languages} if multilingual else {}
        """The languages that can be told apart, and their tokens. Empty for a model that knows English only."""

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return Tokenizer(self.vocabulary.path)

    def transcribe(
        self, wave: Wave, *, draft: tuple[int, ...] = (), language: str = "", hints: Hints | None = None
    ) -> Steps[Hypothesis]:
        """Of float32 mono [samples] at 16 kHz, in [-1, 1].

        `draft` is a guess at the tokens, such as those of the same sound a little earlier: the part that is right costs
        one step in all. `language` is detected when it is not given; a model that knows only English ignores it. Where
        `hints` makes something of the words, the sound is decoded once more with that in mind.
        """
        if loudest(wave) < self._options.silence:
            return Hypothesis(reason="silence")
        if len(wave) > LONGEST:
            return (yield from self._joined(wave, language))
        context = folded(len(wave), self._options)
        decoded = yield from self._hear(wave, context, draft, language, hints)
        fallback = decoded.astray
        if fallback and len(context.positions) < PLACES:
            context = whole()
            decoded = yield from self._hear(wave, context, (), language, hints)
        return self._judged(decoded, context, fallback)

    def passages(self, chunks: Iterable[Wave], *, language: str = "") -> Iterator[Passage]:
        """Transcribes sound of any length as it comes, in bounded memory. Chunks may have any size."""
        for start, wave in windows(chunks):
            hypothesis = finish(self.transcribe(wave, language=language))
            language = language or hypothesis.language
            yield Passage(start / RATE, (start + len(wave)) / RATE, hypothesis)

    def first_scores(self, wave: Wave) -> Logits:
        """Scores [vocabulary] of the first token of an English transcript, with all places."""
        context = whole()
        with self._encoder.session() as infer:
            memory = infer(self._inputs(wave, context))
        with self._decoder.session() as infer:
            scores: Logits = _Decoder(infer, memory, context.weight, self._shape)(self.prompt("en"))[0]
            return scores

    def _inputs(self, wave: Wave, context: Context) -> dict[str, Array]:
        mel = features(wave, context, self.bands)
        return {"mel": mel, "positions": context.positions, "weight": context.weight}

    def prompt(self, language: str) -> list[int]:
        """What the decoder is given first. Raises ModelFault for an unknown language."""
        if not self.languages:
            return [self._start, self._plain]
        if language not in self.languages:
            raise ModelFault(
                f"the model does not know the language {language!r}", f"it knows {', '.join(self.languages)}"
            )
        return [self._start, self.languages[language], self._task, self._plain]

    def _hear(
        self, wave: Wave, context: Context, draft: tuple[int, ...], language: str, hints: Hints | None
    ) -> Steps[_Decoded]:
        with self._encoder.session() as encode, self._decoder.session() as decode:
            memory = encode(self._inputs(wave, context))
            yield
            decoder = _Decoder(decode, memory, context.weight, self._shape)
            limit = min(TOKENS // 2, round(self._options.rate * len(wave) / RATE) + 8)
            decoded = yield from self._decode(decoder, draft[:limit], language, limit)
            if hints and not self._judged(decoded, context, "").reason and not decoded.astray:
                words = hints(self.vocabulary.text(decoded.tokens).strip())
                decoded.hinted = yield from self._with(words, decoder, decoded, limit)
            return decoded

    def _with(self, words: Sequence[str], decoder: _Decoder, plain: _Decoded, limit: int) -> Steps[Hinted | None]:
        """What is heard when `words` are expected, and how it compares with the `plain` hearing."""
        if not words or not self._previous:
            return None
        bias = Bias(self._tokenizer, self._previous, words)
        if not bias.prefix:
            return None
        decoder.fed = 0
        biased = yield from self._decode(decoder, (), plain.language, limit, bias)
        if biased.astray or not biased.tokens:
            return None
        text = self.vocabulary.text(biased.tokens).strip()
        if biased.tokens == plain.tokens:
            return Hinted(text, tuple(biased.tokens), 0.0)
        decoder.fed = 0
        prompt = self.prompt(plain.language)
        rows = decoder([*prompt, *biased.tokens], 1 + len(biased.tokens))
        yield
        scores = [
            self._score(row, token, first=not place)
            for place, (row, token) in enumerate(zip(rows, [*biased.tokens, self._end], strict=True))
        ]
        return Hinted(text, tuple(biased.tokens), float(np.mean(scores) - np.mean(plain.scores)))

    def _decode(
        self, decoder: _Decoder, draft: tuple[int, ...], language: str, limit: int, bias: Bias | None = None
    ) -> Steps[_Decoded]:
        rows, decoded = self._begin(decoder, draft, language, bias)
        while True:
            yield
            base = decoder.fed - len(rows) + 1
            for number, row in enumerate(rows):
                if bias:
                    bias.lift(row, decoded.tokens)
                token, score = self._best(row, first=not decoded.tokens)
                decoded.scores.append(score)
                if token == self._end:
                    return decoded
                decoded.tokens.append(token)
                if number == len(draft) or token != draft[number]:
                    break
            decoded.astray = self._astray(decoded.tokens, limit)
            if decoded.astray:
                return decoded
            decoder.fed, draft = base + number, ()
            rows = decoder([token])

    def _begin(
        self, decoder: _Decoder, draft: tuple[int, ...], language: str, bias: Bias | None
    ) -> tuple[Logits, _Decoded]:
        """The scores [1 + draft] of the first tokens."""
        decoded = _Decoded(language=language if self.languages else "en")
        if self.languages and not language:
            first = decoder([self._start])[0]
            tokens = list(self.languages.values())
            decoded.language = list(self.languages)[int(first[tokens].argmax())]
            decoded.no_speech = float(softmax(first)[self._silent])
            prompt = self.prompt(decoded.language)[1:]
            return decoder([*prompt, *draft], 1 + len(draft)), decoded
        prompt = self.prompt(decoded.language)
        rows = decoder([*(bias.prefix if bias else ()), *prompt, *draft], len(prompt) + len(draft))
        decoded.no_speech = float(softmax(rows[0])[self._silent])
        return rows[len(prompt) - 1 :], decoded

    def _best(self, row: Logits, *, first: bool) -> tuple[int, float]:
        """The most probable token that may be written here, and its log-probability among those."""
        self._forbid(row, first=first)
        token = int(row.argmax())
        return token, -float(np.log(np.exp(row - row[token]).sum()))

    def _score(self, row: Logits, token: int, *, first: bool) -> float:
        """The log-probability of a token among those that may be written here."""
        self._forbid(row, first=first)
        top = row.max()
        return float(row[token] - top - np.log(np.exp(row - top).sum()))

    def _forbid(self, row: Logits, *, first: bool) -> None:
        row[self._never] = -np.inf
        row[self._end + 1 :] = -np.inf
        if first:
            row[self._not_first] = -np.inf

    def _astray(self, tokens: list[int], limit: int) -> str:
        if repeated(tuple(tokens)) < len(tokens):
            return "loop"
        return "too many words" if len(tokens) >= limit else ""

    def _judged(self, decoded: _Decoded, context: Context, fallback: str) -> Hypothesis:
        tokens = tuple(decoded.tokens)
        tokens = tokens[: repeated(tokens)]
        scores = decoded.scores[: len(tokens)] + decoded.scores[len(decoded.tokens) :]
        text = self.vocabulary.text(tokens).strip()
        hypothesis = Hypothesis(
            text=text,
            tokens=tokens,
            words=self._words(tokens, scores),
            confidence=float(np.exp(scores).mean()),
            log_probability=float(np.mean(scores)),
            no_speech=decoded.no_speech,
            compression=_compression(text),
            language=decoded.language,
            context=len(context.positions) * PLACE / RATE,
            fallback=fallback,
            hinted=decoded.hinted,
        )
        reason = self._doubt(hypothesis)
        return replace(hypothesis, text="", tokens=(), words=(), hinted=None, reason=reason) if reason else hypothesis

    def _doubt(self, found: Hypothesis) -> str:
        """Why this was no speech; empty when it was."""
        options = self._options
        if not any(map(str.isalnum, found.text)):
            return "no words"
        if found.no_speech > options.no_speech and found.log_probability < options.unsure:
            return "no speech"
        if found.log_probability < options.lost:
            return "guesswork"
        bare = _bare(found.text)
        if bare in PHRASES and (found.no_speech > 0.3 or found.log_probability < -0.5):
            return "phrase"
        if set(bare) <= set("hm") and found.no_speech > 0.5:
            return "humming"
        if found.compression > 2.4 and found.fallback:
            return "repetition"
        return ""

    def _words(self, tokens: tuple[int, ...], scores: list[float]) -> tuple[Word, ...]:
        spelt: list[tuple[bytes, float]] = []
        for token, score in zip(tokens, scores, strict=False):
            letters = self.vocabulary.bytes(token)
            if spelt and not letters.startswith(b" "):
                before, least = spelt.pop()
                spelt.append((before + letters, min(least, score)))
            else:
                spelt.append((letters, score))
        return tuple(Word(text.decode("utf-8", "replace").strip(), float(np.exp(score))) for text, score in spelt)

    def _joined(self, wave: Wave, language: str) -> Steps[Hypothesis]:
        found: list[Hypothesis] = []
        for _, piece in windows([wave]):
            hypothesis = yield from self.transcribe(piece, language=language)
            language = language or hypothesis.language
            found.append(hypothesis)
        spoken = [hypothesis for hypothesis in found if hypothesis.text]
        if not spoken:
            return found[0]
        text = " ".join(hypothesis.text for hypothesis in spoken)
        weights = [len(hypothesis.tokens) for hypothesis in spoken]
        return Hypothesis(
            text=text,
            tokens=tuple(token for hypothesis in spoken for token in hypothesis.tokens),
            words=tuple(word for hypothesis in spoken for word in hypothesis.words),
            confidence=float(np.average([hypothesis.confidence for hypothesis in spoken], weights=weights)),
            log_probability=float(np.average([hypothesis.log_probability for hypothesis in spoken], weights=weights)),
            no_speech=min(hypothesis.no_speech for hypothesis in spoken),
            compression=_compression(text),
            language=language,
            context=max(hypothesis.context for hypothesis in spoken),
            fallback=next((hypothesis.fallback for hypothesis in spoken if hypothesis.fallback), ""),
        )


def windows(chunks: Iterable[Wave]) -> Iterator[tuple[int, Wave]]:
    """Cuts a stream where it is quietest, into pieces of LONGEST samples or less, each with the index of its first."""
    start, held = 0, np.zeros(0, np.float32)
    for chunk in chunks:
        for part in range(0, len(chunk), LONGEST):
            held = np.concatenate([held, chunk[part : part + LONGEST]])
            while len(held) > LONGEST:
                cut = EARLIEST + quietest(held[EARLIEST:LONGEST])
                yield start, held[:cut]
                start, held = start + cut, held[cut:]
    if len(held):
        yield start, held


def quietest(wave: Wave) -> int:
    """The sample in the middle of the quietest 200 ms."""
    size, count = RATE // 50, 10
    blocks = len(wave) // size
    if blocks <= count:
        return len(wave) // 2
    power = (wave[: blocks * size].astype(np.float64) ** 2).reshape(blocks, size).sum(axis=1)
    summed = np.convolve(power, np.ones(count), "valid")
    return (int(summed.argmin()) + count // 2) * size


def load(built: Built, rung: str = "", *, threads: int = 2, **options: Any) -> Recogniser:
    """The encoder runs on `threads` threads; the decoder's steps are too short to share. `options` replace the
    manifest's; a margin of 30 s gives the encoder all places. Raises ModelFault."""
    name = rung or built.card.default_rung
    settings_file = built.folder / "settings.json"
    try:
        settings = json.loads(settings_file.read_bytes())
    except (OSError, ValueError) as error:
        raise ModelDamaged(f"{settings_file} cannot be read: {error}", "run `parley models build`") from error
    known = {field.name for field in fields(Options)}
    return Recogniser(
        OrtModel(built.file("encoder", name), threads=threads),
        OrtModel(built.file("decoder", name)),
        Vocabulary(built.folder / "tokenizer.json"),
        settings,
        Options(**{key: value for key, value in built.card.options.items() if key in known} | options),
    )


def _size(dimension: int | str) -> int:
    if isinstance(dimension, str):
        raise TypeError(dimension)
    return dimension


def _compression(text: str) -> float:
    raw = text.encode()
    return len(raw) / len(zlib.compress(raw)) if raw else 1.0
