"""Speech synthesis: phonemes to sound, the first of it long before the last.

The text part runs once, over a whole piece. Flow and decoder then work through its frames window by window, each window
given the neighbours that it needs to come out as if the whole had been done at once (the recipe in
models/quantized/recipes/piper.py says how). Windows start small, so that sound starts soon, and grow, so that little is
computed twice.
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from appliance.errors import ManifestFault, ModelDamaged
from appliance.runtime.card import Built
from appliance.runtime.model import Infer, Tensors
from appliance.runtime.ort import OrtModel
from appliance.runtime.phonemes import SpokenWord
from firmware.frame import Pcm, Wave

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]

WINDOWS = (12, 40, 72)
"""Frames in the first windows of a phrase; after these all have LATER. A frame lasts 11.6 ms in most voices and takes
0.7 ms of a quiet core, so the second window is there in a third of the time that the first one plays."""

LATER = 96

AHEAD = 64
"""Frames that the flow, a fifth of the work, makes in advance once the first window is out: the longer its windows, the
fewer neighbours it goes through twice."""

PIECE = 480
"""Symbols that the text part is given at once, some forty words. Its attention takes time and memory with the square
of this, and nothing can interrupt it."""

LEAD = 2
"""Frames of a voice's opening silence that are kept: the onset of the first sound reaches a little ahead of it."""

KNEE = 0.8
"""Where the limiter starts to bend; below it samples are only scaled."""

PAD, BEGIN, END, SPACE = "_", "^", "$", " "


@dataclass(frozen=True, slots=True)
class Chunk:
    """Sound, float32 mono [-1, 1]. `words` are those that end within it, each with the number of samples of this chunk
    after which it has been heard whole. `last` marks the end of what was to be spoken."""

    samples: Wave
    words: tuple[tuple[str, int], ...]
    last: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """What the text part reads at once: `ids` int64 [N]; `ends` names the words in it, each with the number of ids
    after which it is over; `start` is the number of ids ahead of the first symbol."""

    ids: Ids
    ends: tuple[tuple[str, int], ...]
    start: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the voice that works through time: from `source` [1, C, T] to `target` [1, C', steps * T]. It sees
    `context` frames on either side of the one that it makes. `always` goes along with every call."""

    model: OrtModel
    source: str
    target: str
    context: int
    steps: int
    always: Tensors

    def window(self, infer: Infer, given: Floats, begin: int, end: int) -> Floats:
        """What becomes of the frames from `begin` to `end`, as if all of `given` had gone through at once."""
        total = given.shape[2]
        inside = begin >= self.context, end + self.context <= total
        near = given[:, :, max(0, begin - self.context) : min(total, end + self.context)]
        made = infer({**self.always, self.source: near, "inside": np.array(inside, np.int64)})[self.target]
        skip = 0 if inside[0] else begin * self.steps
        return made[:, :, skip : skip + (end - begin) * self.steps]


class Voice:
    """A voice that is built. `rate` is in samples per second, `hop` the samples in a frame, `scales` are those of the
    noise in the sound, of length, and of the noise in durations; `unknown` counts the phonemes that it was asked to
    speak and has not learnt. The card's options: `gain` scales the samples, `speaker` chooses in a voice of many.

    `threads` are for the windows; the text part takes one. Raises ModelDamaged, ManifestFault.
    """

    def __init__(self, built: Built, rung: str | None = None, *, threads: int = 1) -> None:
        path = built.file("config", rung)
        try:
            config = json.loads(path.read_bytes())
            self.rate: int = config["rate"]
            self.hop: int = config["hop"]
            self.scales: tuple[float, float, float] = tuple(config["scales"])
            self._symbols: dict[str, list[int]] = config["symbols"]
            speakers: int = config["speakers"]
            context: dict[str, int] = config["context"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelDamaged(f"{path} cannot be read: {error}", "run `parley models build`") from error
        self.gain = float(built.card.options.get("gain", 1.0))
        self.unknown: Counter[str] = Counter()
        speaker = built.card.options.get("speaker", 0)
        if speaker not in range(speakers):
            raise ManifestFault(
                f"{built.card.path}: `options.speaker` is {speaker!r}", f"it may be 0 to {speakers - 1}"
            )
        self._text = OrtModel(built.file("text", rung), threads=1)
        flow = OrtModel(built.file("flow", rung), threads=threads)
        decoder = OrtModel(built.file("decoder", rung), threads=threads)
        self._always = [{"sid": np.array([speaker])} if "sid" in m.inputs else {} for m in (self._text, flow, decoder)]
        self.flow = Stretch(flow, "latent", "sound", context["flow"], 1, self._always[1])
        self.decoder = Stretch(decoder, "sound", "samples", context["decoder"], self.hop, self._always[2])

    def speak(self, words: Iterable[SpokenWord], *, rate: float = 1.0, seed: int = 0) -> Iterator[Chunk]:
        """Speaks the words, `rate` times as fast as the voice was taught to. The same seed gives the same sound.

        Each `next` computes one window (the first of a piece its text part too); there is always a last chunk, which is
        empty when there was nothing to say.
        """
        pieces = self.encode(words)
        for number, piece in enumerate(pieces):
            sound = self.utter(piece.ids, rate=rate, seed=(seed, number))
            begin = max(0, int(sound.until[piece.start]) - LEAD) if piece.start else 0
            yield from self._chunks(sound, piece, begin, number == len(pieces) - 1)

    def _chunks(self, sound: Utterance, piece: Piece, begin: int, last: bool) -> Iterator[Chunk]:
        total = (len(sound) - begin) * self.hop
        ends = [(text, max(0, int(sound.until[at]) - begin) * self.hop) for text, at in piece.ends]
        ends = [(text, total if number == len(ends) - 1 else end) for number, (text, end) in enumerate(ends)]
        done = 0
        for samples in sound.stream(begin):
            after = done + len(samples)
            words = tuple((text, end - done) for text, end in ends if done < end <= after or (end == done == 0))
            yield Chunk(limit(samples * np.float32(self.gain)), words, last and after == total)
            done = after
        if not total:
            yield Chunk(np.zeros(0, np.float32), tuple(ends), last)

    def encode(self, words: Iterable[SpokenWord]) -> list[Piece]:
        """Phonemes to the ids that the voice was taught with, in as few pieces as PIECE allows, cut at a pause where
        there is one. Phonemes that the voice does not know are left out and counted in `unknown`."""
        pieces: list[Piece] = []
        waiting: list[tuple[str, list[str]]] = []
        for word in words:
            for part in self._known(word):
                waiting.append(part)
                while _length(waiting) > PIECE:
                    cut = _best_cut(waiting)
                    pieces.append(self._piece(waiting[:cut]))
                    waiting = waiting[cut:]
        if waiting or not pieces:
            pieces.append(self._piece(waiting))
        return pieces

    def _known(self, word: SpokenWord) -> Iterator[tuple[str, list[str]]]:
        """The word's symbols; of a word that is longer than any piece, in several parts without a name but the last."""
        symbols = []
        for symbol in unicodedata.normalize("NFD", word.phonemes):
            if symbol in self._symbols and symbol not in (PAD, BEGIN, END):
                symbols.append(symbol)
            else:
                self.unknown[symbol] += 1
        longest = PIECE // 4
        while len(symbols) > longest:
            yield "", symbols[:longest]
            symbols = symbols[longest:]
        yield word.text, symbols

    def _piece(self, words: Sequence[tuple[str, list[str]]]) -> Piece:
        pad = self._symbols[PAD]
        ids = [*self._symbols[BEGIN], *pad]
        start, spoken, ends = len(ids), False, []
        for text, symbols in words:
            for symbol in chain([SPACE] if spoken and symbols and SPACE in self._symbols else [], symbols):
                ids += [*self._symbols[symbol], *pad]
            spoken = spoken or bool(symbols)
            if text:
                ends.append((text, len(ids)))
        if not spoken:
            return Piece(np.zeros(0, np.int64), tuple((text, 0) for text, _ in ends), 0)
        return Piece(np.array([*ids, *self._symbols[END]]), tuple(ends), start)

    def utter(self, ids: Ids, *, rate: float = 1.0, seed: int | Sequence[int] = 0) -> Utterance:
        """Runs the text part. `ids` int64 [N] as `encode` makes them."""
        if not len(ids):
            return Utterance(self.flow, self.decoder, np.zeros(0, np.int64), np.zeros((1, 1, 0), np.float32))
        noise = np.random.default_rng(seed)
        spread, pace, wobble = self.scales
        given = {
            "ids": ids[None],
            "lengths": np.array([len(ids)]),
            "scales": np.array([spread, pace / rate, wobble], np.float32),
            "noise": noise.standard_normal((1, 2, len(ids)), np.float32),
        }
        with self._text.session() as infer:
            text = infer(given | self._always[0])
        lasts = text["frames"].reshape(-1).astype(np.int64)
        which = np.repeat(np.arange(len(ids)), lasts)
        deviation = np.exp(text["deviation"]) * np.float32(spread)
        latent = noise.standard_normal((len(which), deviation.shape[1]), np.float32).T[None]
        return Utterance(self.flow, self.decoder, lasts, text["mean"][:, :, which] + latent * deviation[:, :, which])


class Utterance:
    """A piece whose text has been read. `lasts` int64 [N] is the number of frames that each symbol lasts, `until`
    [N + 1] the frame at which each begins and, at the end, how many there are."""

    def __init__(self, flow: Stretch, decoder: Stretch, lasts: Ids, latent: Floats) -> None:
        self.lasts = lasts
        self.until = np.concatenate(([0], np.cumsum(lasts)))
        self._flow = flow
        self._decoder = decoder
        self._latent = np.ascontiguousarray(latent)

    def __len__(self) -> int:
        """Its frames."""
        return int(self.until[-1])

    @property
    def channels(self) -> int:
        return int(self._latent.shape[1])

    def stream(self, begin: int = 0, windows: Iterable[int] | None = None) -> Iterator[Wave]:
        """Samples from frame `begin` to the end, window by window. `windows` are their sizes in frames, by default
        WINDOWS and then LATER for ever; the last takes along a rest of half its size. Whatever they are, the samples
        are the same to 1e-5."""
        sizes = chain(WINDOWS, repeat(LATER)) if windows is None else iter(windows)
        total, reach = len(self), self._decoder.context
        sound = np.empty_like(self._latent)
        ready, ahead = max(0, begin - reach), 0
        with self._flow.model.session() as flow, self._decoder.model.session() as decoder:
            while begin < total:
                size = next(sizes, total)
                end = total if total - begin <= size * 3 // 2 else begin + size
                if ready < min(total, end + reach):
                    made = min(total, end + reach + ahead)
                    sound[:, :, ready:made] = self._flow.window(flow, self._latent, ready, made)
                    ready, ahead = made, AHEAD
                yield self._decoder.window(decoder, sound, begin, end).reshape(-1)
                begin = end


def limit(samples: Wave) -> Wave:
    """Bends what is louder than KNEE so that nothing reaches beyond 1; the rest passes unchanged."""
    loud = np.abs(samples) > KNEE
    if not loud.any():
        return samples
    room = np.float32(1 - KNEE)
    bent = np.sign(samples) * (KNEE + room * np.tanh((np.abs(samples) - KNEE) / room))
    return np.where(loud, bent, samples).astype(np.float32)


def pcm(samples: Wave) -> Pcm:
    """float32 [-1, 1] to int16; what is beyond is clipped."""
    return np.rint(np.clip(samples, -1, 1) * 32767).astype(np.int16)


def _length(words: Sequence[tuple[str, list[str]]]) -> int:
    """Symbols in a piece of these words; each takes a pad with it and each word a space."""
    return sum(2 * len(symbols) + 2 for _, symbols in words)


def _best_cut(words: Sequence[tuple[str, list[str]]]) -> int:
    """How many words make a piece: up to the last pause in its second half, else all but the one that is too many."""
    for cut in range(len(words) - 1, 0, -1):
        if _length(words[:cut]) < PIECE // 2:
            break
        symbols = words[cut - 1][1]
        if symbols and symbols[-1] in ".!?;:,":
            return cut
    return max(1, len(words) - 1)
