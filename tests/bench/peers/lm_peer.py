"""llama.cpp. The answer to each of these is under "answer":

{"prefill": IDS} -> seconds until the logits behind them;
{"decode": IDS} -> the seconds of each, one after another behind what was read;
{"logits": IDS, "from": K, "to": FILE} -> writes float32 [len(ids) - K, vocabulary], of the tokens behind each: rows.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from llama_cpp import Llama
from service import Answer, serve


class Peer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.model = Llama(
            settings["lm"],
            n_ctx=settings["context"],
            n_threads=settings["threads"],
            n_threads_batch=settings["threads"],
            logits_all=settings.get("logits", False),
            verbose=False,
        )

    def prefill(self, request: dict[str, Any]) -> float:
        self.model.reset()
        return self._timed(request["prefill"])

    def decode(self, request: dict[str, Any]) -> list[float]:
        return [self._timed([id]) for id in request["decode"]]

    def logits(self, request: dict[str, Any]) -> int:
        self.model.reset()
        self.model.eval(request["logits"])
        rows = np.array(self.model.scores[request["from"] : self.model.n_tokens], np.float32)
        rows.tofile(request["to"])
        return len(rows)

    def _timed(self, ids: list[int]) -> float:
        started = time.perf_counter()
        self.model.eval(ids)
        return time.perf_counter() - started


def start(settings: dict[str, Any]) -> Answer:
    peer = Peer(settings)
    return lambda request: {"answer": getattr(peer, next(iter(request)))(request)}


serve(start)
