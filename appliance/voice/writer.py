"""The language model as a writer: messages in, text out, on one cache that remembers what it has read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from functools import lru_cache
from itertools import takewhile
from pathlib import Path

import numpy as np

from appliance.errors import StorageFault
from appliance.runtime.llm import LanguageModel, Sampling
from appliance.runtime.model import Steps, finish
from appliance.runtime.snapshot import erase
from appliance.telemetry import log
from appliance.voice.conversation import Message

_SENTENCE_END = re.compile(r"[.!?…][\"'”’)]*\s*$")
_NEXT_SENTENCE = re.compile(
    r"(?<!\b[A-Z])(?<!\b(?:Dr|Mr|Ms|St|vs))(?<!\bMrs)(?<!\d)[.!?…]+[\"'”’)]*\s+[\"'“(]?[^\W\d_a-z]"
)

_EMPTY = Message("system", "")


class Writer:
    """Not to be used from two threads at once.

    What a prompt has in common with the one before it is not read again. `snapshots` is the folder where the beginnings
    of prompts are kept over a restart.
    """

    def __init__(self, model: LanguageModel, snapshots: Path, *, temperature: float = 0.0) -> None:
        self._model = model
        self._snapshots = snapshots
        self._sampling = Sampling(temperature=temperature)
        self._open = ExitStack()
        self._decoder = self._open.enter_context(model.session())
        self._stale = False
        self._cost = lru_cache(maxsize=4_096)(self._message_cost)

    def close(self) -> None:
        self._open.close()

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens that the messages take in a prompt."""
        return sum(map(self._cost, messages))

    def read(self, messages: Sequence[Message]) -> Steps[None]:
        """Makes the cache hold these messages, in bounded steps; what it has in common with them is kept."""
        return self._prefill(self._model.chat.prefix(messages))

    def _prefill(self, tokens: Sequence[int]) -> Steps[None]:
        if self._stale:
            self._stale = False
            yield from self._decoder.prefill([])
        yield from self._decoder.prefill(tokens)

    # --- what is kept over a restart ---------------------------------------------------------------------------------

    def prepare(
        self, opening: Sequence[Message], standing: Sequence[Message] = (), messages: Sequence[Message] = ()
    ) -> None:
        """Reads what the next prompt begins with: from the snapshot of the conversation, of what every prompt stands
        on, or of its opening, whichever is there; the rest with the model. A disk that cannot hold a snapshot costs
        time at the next start, and nothing else."""
        standing = standing or opening
        whole = list(messages or standing)
        same = self._model.chat.prefix(whole)
        if not self._resume(same) and not self._restore(self._of(standing)):
            if not self._restore(self._of(opening)):
                finish(self.read(opening))
                self._save(self._of(opening))
            if list(standing) != list(opening):
                finish(self.read(standing))
                self._save(self._of(standing))
        self._remove(but={self._of(opening), self._of(standing), self._conversation})
        finish(self.read(whole))

    def suspend(self, messages: Sequence[Message]) -> None:
        """Keeps what has been read of a conversation for the next start."""
        finish(self.read(messages))
        self._save(self._conversation)

    def forget(self, opening: Sequence[Message]) -> None:
        """Nothing but the opening is left: on the disk when this returns, in the cache when it is used next. From any
        thread."""
        self._stale = True
        self._remove(but={self._of(opening)})

    @property
    def _conversation(self) -> Path:
        return self._snapshots / "conversation.kv"

    def _of(self, messages: Sequence[Message]) -> Path:
        tokens = np.array(self._model.chat.prefix(messages), np.int64)
        return self._snapshots / f"{hashlib.sha256(tokens.tobytes() + self._model.key.encode()).hexdigest()[:16]}.kv"

    def _resume(self, wanted: Sequence[int]) -> bool:
        """From the conversation's snapshot, where it has more in common with what is wanted than its half."""
        if not self._restore(self._conversation):
            return False
        same = sum(
            1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self._decoder.tokens, wanted, strict=False))
        )
        return 2 * same > len(wanted)

    def _restore(self, path: Path) -> bool:
        if not self._decoder.restore(path):
            return False
        self._stale = False  # nothing of before is left
        return True

    def _save(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._decoder.save(path)
        except (StorageFault, OSError) as error:
            log("prefix not kept", reason=str(error))

    def _remove(self, but: Collection[Path]) -> None:
        for path in self._snapshots.glob("*.kv"):
            if path not in but:
                erase(path)

    def _message_cost(self, message: Message) -> int:
        if message.role == "system":
            return self._model.chat.count([message])
        return self._model.chat.count([_EMPTY, message]) - self._model.chat.count([_EMPTY])

    def write(self, messages: Sequence[Message], budget: int, sentences: int) -> Iterator[str]:
        """Pieces of the reply; "" stands for a step that made no text. The reply ends where a sentence too many would
        begin; behind `budget` tokens with the sentence it is in, behind half as many again wherever it is."""
        for _ in self._prefill(self._model.chat.prompt(messages)):
            yield ""
        text = ""
        for number, token in enumerate(self._decoder.generate(self._sampling, budget=budget + budget // 2), start=1):
            text += token.text
            if len(_NEXT_SENTENCE.findall(text)) >= sentences:
                return
            yield token.text
            if number >= budget and _SENTENCE_END.search(text):
                return


def forget_prefixes(folder: Path) -> None:
    """Removes every snapshot; for a process that has no model loaded."""
    for path in folder.glob("*.kv"):
        erase(path)
