"""llama.cpp in an environment of its own.

Reads JSON lines on standard input, writes one for each:
{"tokenize": TEXT, "special": BOOL} -> ids; {"prefill": IDS} -> seconds until the logits behind them;
{"decode": IDS} -> the seconds of each, one after another behind what was read; {"greedy": IDS, "count": N} -> ids;
{"logits": IDS, "from": K, "to": FILE} -> writes float32 [len(ids) - K, vocabulary], of the tokens behind each;
{"save": true} keeps the state, {"load": true} takes it back: seconds; {"memory": true} -> resident bytes.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from llama_cpp import Llama


class Peer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.model = Llama(
            settings["model"],
            n_ctx=settings["context"],
            n_threads=settings["threads"],
            n_threads_batch=settings["threads"],
            logits_all=settings.get("logits", False),
            verbose=False,
        )
        self.state: Any = None

    def tokenize(self, request: dict[str, Any]) -> list[int]:
        text = request["tokenize"].encode()
        ids: list[int] = self.model.tokenize(text, add_bos=False, special=request["special"])
        return ids

    def prefill(self, request: dict[str, Any]) -> float:
        self.model.reset()
        return self._timed(request["prefill"])

    def decode(self, request: dict[str, Any]) -> list[float]:
        return [self._timed([id]) for id in request["decode"]]

    def greedy(self, request: dict[str, Any]) -> list[int]:
        self.model.reset()
        ids: list[int] = []
        for id in self.model.generate(request["greedy"], temp=0.0, repeat_penalty=1.0):
            ids.append(id)
            if len(ids) == request["count"] or id == self.model.token_eos():
                return ids
        return ids

    def logits(self, request: dict[str, Any]) -> int:
        self.model.reset()
        self.model.eval(request["logits"])
        rows = np.array(self.model.scores[request["from"] : self.model.n_tokens], np.float32)
        rows.tofile(request["to"])
        return len(rows)

    def save(self, request: dict[str, Any]) -> float:
        started = time.perf_counter()
        self.state = self.model.save_state()
        return time.perf_counter() - started

    def load(self, request: dict[str, Any]) -> float:
        started = time.perf_counter()
        self.model.load_state(self.state)
        return time.perf_counter() - started

    def memory(self, request: dict[str, Any]) -> int:
        pages = Path("/proc/self/statm").read_text().split()[1]
        return int(pages) * 4096

    def _timed(self, ids: list[int]) -> float:
        started = time.perf_counter()
        self.model.eval(ids)
        return time.perf_counter() - started


def main() -> None:
    peer = Peer(json.loads(sys.argv[1]))
    print(json.dumps({"ready": True}), flush=True)
    for request in map(json.loads, sys.stdin):
        answer = getattr(peer, next(iter(request)))(request)
        print(json.dumps({"answer": answer}), flush=True)


main()
