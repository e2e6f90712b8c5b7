"""What the measurements share: peers in an environment of their own, figures, and where Parley's models are."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
Ask = Callable[[dict[str, Any]], dict[str, Any]]


def bench_env() -> Path:
    """The peers' environment: PARLEY_BENCH_ENV, or the one that `./just bench-setup` makes in the cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("PARLEY_BENCH_ENV") or cache / "parley/bench-env")


@contextmanager
def peer(script: str, settings: dict[str, Any]) -> Iterator[Ask]:
    """A long-lived child that reads JSON lines and answers each with one, so that A and B can take turns. It is given
    `settings` as its argument and says one line when it is ready."""
    command = [str(bench_env() / "bin/python"), str(HERE / "peers" / script), json.dumps(settings)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        to_child, from_child = child.stdin, child.stdout
        assert to_child is not None
        assert from_child is not None

        def hear() -> dict[str, Any]:
            line = from_child.readline()
            if not line:
                raise SystemExit(f"{script} ended early: is the peers' environment complete? (./just bench-setup)")
            answer: dict[str, Any] = json.loads(line)
            return answer

        def ask(request: dict[str, Any]) -> dict[str, Any]:
            to_child.write(json.dumps(request) + "\n")
            to_child.flush()
            return hear()

        hear()
        yield ask
        to_child.close()


def load() -> float:
    """The load average of the last minute. Above 1.5, the other work on this machine is part of the figure."""
    return os.getloadavg()[0]


def figures(values: Sequence[float]) -> dict[str, float]:
    """Median, P95, P99 and the number of values."""
    p50, p95, p99 = (float(value) for value in np.percentile(values, [50, 95, 99]))
    return {"p50": p50, "p95": p95, "p99": p99, "n": len(values)}


def judged(value: float, limit: float, *, at_least: bool = False) -> str:
    """The figure beside its target, and whether it was met."""
    met = value >= limit if at_least else value <= limit
    return f"{value:.3f} ({'>=' if at_least else '<='} {limit:g}: {'met' if met else 'MISSED'})"


def whisper_folder(sources: dict[str, Path], folder: Path) -> Path:
    """Whisper's weights as the folder that faster-whisper opens; the vocabulary is written out of the tokenizer."""
    folder.mkdir()
    for name, file in (("weights", "model.bin"), ("tokenizer", "tokenizer.json"), ("config", "config.json")):
        (folder / file).symlink_to(sources[name])
    tokenizer = json.loads(sources["tokenizer"].read_text("utf-8"))
    ids = dict(tokenizer["model"]["vocab"]) | {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    (folder / "vocabulary.json").write_text(json.dumps(sorted(ids, key=ids.__getitem__)))
    return folder
