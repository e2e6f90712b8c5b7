"""The language model's engine: it knows only tokens.

One graph reads tokens, one or a few at a time, into a cache of keys and values (models/quantized/recipes/gguf_lm.py
describes it); a second one, where the rung has it, is quicker for many. Both share the cache. It belongs to a session;
forgetting is counting fewer of its rows.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from appliance.errors import ModelDamaged, ModelFault
from appliance.runtime import snapshot
from appliance.runtime.card import Built
from appliance.runtime.chat import Chat
from appliance.runtime.grammar import Grammar, Grammars
from appliance.runtime.model import Array, Infer, Steps
from appliance.runtime.ort import OrtModel
from appliance.runtime.sampling import Logits, Sampler, Sampling, StopStrings, looping
from appliance.runtime.tokenizer import Detokenizer, Tokenizer

__all__ = ["Decoder", "End", "LanguageModel", "Sampling", "Token"]

CHUNK = 32
"""Tokens of one prefill step, where the rung does not say."""
FEW = 24
"""Tokens up to which the decode graph is the quicker one (75 against 90 ms of processor time), where both are there."""

SPIN = 20
"""Microseconds that the second thread waits busily. On busy cores a decode step then takes 23 ms (22 without, 33 when
it spins for ever); the gaps between the products are shorter than that."""

End = Literal["eos", "stop", "budget", "loop", "context"]


@dataclass(frozen=True, slots=True)
class Token:
    """A step of a generation. `text` is what has become certain by it; `logprob` the natural logarithm of the
    probability that the model gave to `id`; `end` why the text is over, on the last token only."""

    id: int
    text: str
    logprob: float
    end: End | None = None


class LanguageModel:
    """`decode` and perhaps `prefill` are the graphs; `key` names weights and rung, for snapshots; `ends` are the ids
    that end an answer; `context` the tokens that a session can hold; `chunk` those that are read in one step."""

    def __init__(
        self,
        decode: OrtModel,
        prefill: OrtModel | None,
        tokenizer: Tokenizer,
        chat: Chat,
        *,
        key: str,
        ends: Collection[int],
        context: int,
        chunk: int = CHUNK,
        few: int = FEW,
    ) -> None:
        self.decode, self.prefill = decode, prefill
        self.tokenizer, self.chat = tokenizer, chat
        self.key, self.ends, self.context = key, frozenset(ends), context
        self.chunk, self.few = chunk, few

    @classmethod
    def open(cls, built: Built, *, threads: int = 2, rung: str | None = None) -> LanguageModel:
        """Raises ModelDamaged, ModelMissing."""
        tokenizer = Tokenizer(built.file("tokenizer", rung))
        about = _read_json(built.file("chat", rung))
        chosen = built.card.rungs[rung or built.card.default_rung]
        try:
            chat = Chat(tokenizer, about["template"], bos=about["bos"], eos=about["eos"], begin=about["begin"])
            ends, context = about["ends"], about["context"]
        except KeyError as error:
            raise ModelDamaged(f"chat.json of {built.card.id} has no {error}", "run `parley models build`") from error

        def graph(role: str) -> OrtModel:
            return OrtModel(built.file(role, rung), threads=threads, spin=SPIN)

        return cls(
            graph("decode"),
            graph("prefill") if "prefill" in chosen.files else None,
            tokenizer,
            chat,
            key=f"{built.card.id}-{built.card.key}-{chosen.name}",
            ends=ends,
            context=context,
            chunk=chosen.options.get("chunk", CHUNK),
            few=chosen.options.get("few", FEW),
        )

    @cached_property
    def grammars(self) -> Grammars:
        """For constrained generation; made at the first use (about a second)."""
        return Grammars(self.tokenizer, self.ends)

    @contextmanager
    def session(self) -> Iterator[Decoder]:
        """A decoder with an empty cache of its own. Its memory is taken page by page, as the cache fills."""
        entries = [name for name in self.decode.inputs if name.startswith(("k.", "v."))]
        _, heads, _, width = self.decode.inputs[entries[0]]
        cache = {name: np.zeros((1, int(heads), self.context, int(width)), np.float32) for name in entries}
        state: dict[str, Array] = cache | {f"{name}.out": array for name, array in cache.items()}
        with ExitStack() as stack:
            decode = stack.enter_context(self.decode.session(state))
            prefill = stack.enter_context(self.prefill.session(state)) if self.prefill else None
            yield Decoder(self, decode, prefill, [cache[name] for name in entries])


class Decoder:
    """A text in the making. `tokens` is what the cache holds. Not to be used from two threads at once."""

    def __init__(
        self, model: LanguageModel, decode: Infer, prefill: Infer | None, cache: list[NDArray[np.float32]]
    ) -> None:
        self._model = model
        self._decode, self._prefill = decode, prefill
        self._cache = cache
        self._logits: Logits | None = None
        self.tokens: list[int] = []

    @property
    def logits(self) -> Logits:
        """float32 [vocabulary], of the token that follows `tokens`. Raises ModelFault when nothing was read."""
        if self._logits is None:
            raise ModelFault("nothing has been read yet", "prefill first")
        return self._logits

    def prefill(self, tokens: Sequence[int]) -> Steps[None]:
        """Makes the cache hold exactly `tokens`, in bounded steps; what it has in common with them is kept. Given up
        half-way, the cache holds what was read so far. Raises ModelFault when they exceed the context."""
        model = self._model
        wanted = list(tokens)
        if len(wanted) > model.context:
            raise ModelFault(f"{len(wanted)} tokens do not fit a context of {model.context}", "shorten the prompt")
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self.tokens, wanted, strict=False)))
        if same == len(wanted) == len(self.tokens) and (self._logits is not None or not wanted):
            return
        self._forget(min(same, max(len(wanted) - 1, 0)))
        while rest := wanted[len(self.tokens) :]:
            if self._prefill and len(rest) > model.few:
                self._run(self._prefill, rest[: min(model.chunk, len(rest) - 1)])
            else:
                self._logits = self._run(self._decode, rest[: model.chunk])["logits"][0]
            yield

    def generate(
        self,
        sampling: Sampling | None = None,
        *,
        stop: Sequence[str] = (),
        budget: int = 256,
        grammar: Grammar | None = None,
    ) -> Iterator[Token]:
        """Goes on behind `tokens`. The first token costs nothing but the choice, each further one a decode step. The
        text ends at a token that ends answers, before a stop string, behind `budget` tokens, where the text goes
        round in circles, or where the context is full; with a grammar, where the grammar is satisfied. Raises
        ModelFault when nothing was read."""
        sampler = Sampler(sampling or Sampling())
        writing = _Writing(self._model, stop)
        matcher = grammar.matcher() if grammar else None
        start = len(self.tokens)
        made: list[int] = []
        while len(made) < budget:
            if made:
                self._logits = self._run(self._decode, made[-1:])["logits"][0]
            logits = self.logits
            if matcher:
                logits = logits.copy()
                matcher.mask(logits)
            id, logprob = sampler.choose(logits, self.tokens)
            if matcher:
                matcher.accept(id)
            made.append(id)
            complete = id in self._model.ends or (matcher is not None and matcher.done)
            full = start + len(made) > self._model.context
            token = writing.step(id, logprob, made, complete=complete, spent=len(made) == budget, full=full)
            yield token
            if token.end:
                return

    def save(self, path: Path) -> None:
        """Writes what the cache holds, at once or not at all. Raises StorageFault."""
        size = len(self.tokens)
        snapshot.write(path, self._model.key, self.tokens, np.stack([entry[0, :, :size] for entry in self._cache]))

    def restore(self, path: Path) -> bool:
        """Makes the cache hold what was saved. False, and nothing has changed, when there is no snapshot of this model
        and rung, or it is damaged."""
        found = snapshot.read(path, self._model.key)
        if found is None:
            return False
        tokens, values = found
        if values.shape != (len(self._cache), self._cache[0].shape[1], len(tokens), self._cache[0].shape[3]):
            return False
        if len(tokens) > self._model.context:
            return False
        for entry, saved in zip(self._cache, values, strict=True):
            entry[0, :, : len(tokens)] = saved
        self.tokens, self._logits = tokens, None
        return True

    def _forget(self, keep: int) -> None:
        del self.tokens[keep:]
        self._logits = None

    def _run(self, infer: Infer, ids: Sequence[int]) -> dict[str, Array]:
        total = len(self.tokens) + len(ids)
        self._logits = None
        last = np.array([total - 1], np.int32)
        given: dict[str, Array] = {"ids": np.array(ids, np.int64), "last": last, "total": np.array(total, np.int32)}
        results = infer(given)
        self.tokens += ids
        return results


class _Writing:
    """From ids to text that is certain, and to the reason why it is over."""

    def __init__(self, model: LanguageModel, stop: Sequence[str]) -> None:
        self._ends = model.ends
        self._characters = Detokenizer(model.tokenizer)
        self._stops = StopStrings(stop)

    def step(self, id: int, logprob: float, made: Sequence[int], *, complete: bool, spent: bool, full: bool) -> Token:
        text = "" if id in self._ends else self._stops.push(self._characters.push(id))
        end: End | None = None
        if self._stops.stopped:
            end = "stop"
        elif complete:
            end = "eos"
        elif spent:
            end = "budget"
        elif looping(made):
            end = "loop"
        elif full:
            end = "context"
        if end and end != "stop":
            text += self._stops.push(self._characters.end()) + self._stops.end()
        return Token(id, text, logprob, end)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ModelDamaged(f"{path} cannot be read: {error}", "run `parley models build`") from error
    if not isinstance(values, dict):
        raise ModelDamaged(f"{path} does not hold what it should", "run `parley models build`")
    return values
