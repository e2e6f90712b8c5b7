"""What the measurements share: peers in an environment of their own, the same weights for both, figures and verdicts.

Importing this puts the checkout on the path.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[1:1] = [str(ROOT), str(ROOT / "tests")]

from appliance import config
from appliance.commands.shelf import open_shelf
from appliance.runtime.card import Shelf
from models.quantized.build import default_store

Ask = Callable[[dict[str, Any]], dict[str, Any]]


def bench_env() -> Path:
    """The peers' environment: PARLEY_BENCH_ENV, or the one that `./just bench-setup` makes in the cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("PARLEY_BENCH_ENV") or cache / "parley/bench-env")


@contextmanager
def peer(script: str, settings: Mapping[str, Any]) -> Iterator[Ask]:
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


# --- the same weights for both --------------------------------------------------------------------------------------


def user_shelf() -> Shelf:
    """The shelf of the user's own settings."""
    return open_shelf(config.load())


def sources(shelf: Shelf, id: str) -> dict[str, Path]:
    """The files that the model was built from, by the names in its manifest; fetched where they are not kept."""
    return default_store(shelf).fetch(shelf.card(id), lambda what, done: None)


@contextmanager
def peer_models(shelf: Shelf, *, asr: str = "", lm: str = "", voice: str = "") -> Iterator[dict[str, str]]:
    """The sources of the models named, each under the name that the peers open it by: for `asr` a folder, for `lm` a
    .gguf, for `voice` an .onnx with its .json beside it. They lie in a folder that is removed at the end."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, found = Path(scratch), {}
        if asr:
            found["asr"] = str(_whisper(sources(shelf, asr), folder / "asr"))
        if lm:
            found["lm"] = str(_link(sources(shelf, lm)["model.gguf"], folder / "model.gguf"))
        if voice:
            files = sources(shelf, voice)
            found["voice"] = str(_link(files["voice"], folder / "voice.onnx"))
            _link(files["config"], folder / "voice.onnx.json")
        yield found


def _whisper(files: Mapping[str, Path], folder: Path) -> Path:
    """The folder that faster-whisper opens; the vocabulary is the tokenizer's and the time stamps, 0.02 s apart."""
    folder.mkdir()
    for name, file in (("weights", "model.bin"), ("tokenizer", "tokenizer.json"), ("config", "config.json")):
        _link(files[name], folder / file)
    tokenizer = json.loads(files["tokenizer"].read_text("utf-8"))
    ids = dict(tokenizer["model"]["vocab"]) | {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    stamps = [f"<|{0.02 * number:.2f}|>" for number in range(1501)]
    (folder / "vocabulary.json").write_text(json.dumps([*sorted(ids, key=ids.__getitem__), *stamps]))
    return folder


def _link(source: Path, link: Path) -> Path:
    link.symlink_to(source.resolve())
    return link


# --- figures and verdicts -------------------------------------------------------------------------------------------

QUIET = 1.5
"""Load average from which on the other work of this machine is so much of the times that they are not judged."""


def load() -> float:
    """The load average of the last minute."""
    return os.getloadavg()[0]


BEFORE = load()
"""What else the machine was doing: later on, a measurement is a load of its own."""


def figures(values: Sequence[float]) -> dict[str, float]:
    """Median, P95, P99 and the number of values."""
    p50, p95, p99 = (float(value) for value in np.percentile(values, [50, 95, 99]))
    return {"p50": p50, "p95": p95, "p99": p99, "n": len(values)}


def in_ms(values: Mapping[str, float]) -> str:
    """Figures in seconds as "median/P95/P99" in milliseconds."""
    return "/".join(f"{1e3 * values[key]:.0f}" for key in ("p50", "p95", "p99"))


def judged(value: float, limit: float, *, at_least: bool = False, timed: bool = True) -> str:
    """The figure beside its target, and whether it was met. What is not `timed` is judged whatever the load."""
    met = value >= limit if at_least else value <= limit
    verdict = "not judged" if timed and BEFORE > QUIET else "met" if met else "MISSED"
    return f"{value:.4g} ({'>=' if at_least else '<='} {limit:g}: {verdict})"


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """A parser with what every measurement takes."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="every figure, instead of the table")
    return parser


def report(results: dict[str, Any], show: Callable[[dict[str, Any]], None], *, as_json: bool) -> None:
    """Prints the results, the load of the machine before and after beside them."""
    after = load()
    if as_json:
        print(json.dumps({"load before": BEFORE, "load after": after, **results}, ensure_ascii=False))
    else:
        show(results)
        print(f"load average: {BEFORE:.1f} before, {after:.1f} after")
    if BEFORE > QUIET:
        why = f"the load was above {QUIET} before the start: other work is part of the figures"
        print(f"times are not judged: {why}", file=sys.stderr)
