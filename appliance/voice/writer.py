"""The language model as a writer: messages in, text out, on one cache that remembers what it has read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from appliance.errors import StorageFault
from appliance.runtime.llm import LanguageModel, Sampling
from appliance.runtime.model import finish
from appliance.telemetry import log
from appliance.voice.conversation import Message

_SENTENCE_END = re.compile(r"[.!?…][\"'”’)]*\s*$")
_NEXT_SENTENCE = re.compile(
    r"(?<!\b[A-Z])(?<!\b(?:Dr|Mr|Ms|St|vs))(?<!\bMrs)(?<!\d)[.!?…]+[\"'”’)]*\s+[\"'“(]?[^\W\d_a-z]"
)


class Writer:
    """Not to be used from two threads at once.

    What a prompt has in common with the one before it is not read again. `snapshots` is the folder where the stable
    beginning of every prompt is kept over a restart.
    """

    def __init__(self, model: LanguageModel, snapshots: Path, *, temperature: float = 0.0) -> None:
        self._model = model
        self._snapshots = snapshots
        self._sampling = Sampling(temperature=temperature)
        self._open = ExitStack()
        self._decoder = self._open.enter_context(model.session())

    def close(self) -> None:
        self._open.close()

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens that the messages take in a prompt."""
        return self._model.chat.count(messages)

    def prepare(self, messages: Sequence[Message]) -> None:
        """Reads the beginning that every prompt has in common, from the snapshot if there is one. A disk that cannot
        hold the snapshot costs time at the next start, and nothing else."""
        tokens = self._model.chat.prefix(messages)
        name = hashlib.sha256(np.array(tokens, np.int64).tobytes() + self._model.key.encode()).hexdigest()[:16]
        path = self._snapshots / f"{name}.kv"
        if not (self._decoder.restore(path) and self._decoder.tokens == tokens):
            finish(self._decoder.prefill(tokens))
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._decoder.save(path)
            except (StorageFault, OSError) as error:
                log("prefix not kept", reason=str(error))

    def write(self, messages: Sequence[Message], budget: int, sentences: int) -> Iterator[str]:
        """Pieces of the reply; "" stands for a step that made no text. The reply ends where a sentence too many would
        begin; behind `budget` tokens with the sentence it is in, behind half as many again wherever it is."""
        for _ in self._decoder.prefill(self._model.chat.prompt(messages)):
            yield ""
        text = ""
        for number, token in enumerate(self._decoder.generate(self._sampling, budget=budget + budget // 2), start=1):
            text += token.text
            if len(_NEXT_SENTENCE.findall(text)) >= sentences:
                return
            yield token.text
            if number >= budget and _SENTENCE_END.search(text):
                return
