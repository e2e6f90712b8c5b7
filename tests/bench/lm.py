"""The language model against llama.cpp: the same GGUF, the same tokens, turn by turn, OpenVINO's figures beside.

    python tests/bench/lm.py [--model smollm2-135m-instruct] [--rung NAME] [--threads 2] [--rounds 7] [--json]

llama.cpp is built with GGML_NATIVE off and AVX512, VNNI and BF16 on one by one, without AMX. Quality is measured on
answers that Parley writes to prompts made for this: every token of them is predicted again, from the same tokens, by
both, and compared with float32 arithmetic in numpy (tests/lm_reference.py). Parley reads the prompt in chunks and the
answer token by token, as it does in use.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness import ROOT, Ask, arguments, figures, judged, peer, peer_models, report, user_shelf
from lm_reference import Reference

from appliance.runtime.card import Built
from appliance.runtime.chat import Said
from appliance.runtime.llm import Decoder, LanguageModel
from appliance.runtime.model import finish
from models.quantized.recipes import gguf_file

PROMPT, SHORT, PREFIX, QUESTION, STEPS = 512, 100, 300, 16, 48
"""Tokens of each measurement."""
TARGETS = {"decode": 1.0, "prefill": 2.2, "restored": 0.10, "kl": 0.003}
ASKED = (
    "Describe a walk through a forest in autumn.",
    "How does a bicycle stay upright?",
    "Write a short letter to a neighbour about a noisy dog.",
    "What should I pack for a week at the sea?",
    "Explain what a thermostat does.",
    "The parcel was sent on Monday and takes three days. When does it arrive?",
    "List five things that are made of glass.",
    "Why do leaves fall?",
    "Tell a very short story about a lighthouse keeper.",
    "What is the difference between a lake and a river?",
    "Give me three ideas for a quiet evening.",
    "How is bread made?",
)
MEMORY = """
import sys; from pathlib import Path
from appliance.runtime.card import Built, read_card
from appliance.runtime.llm import LanguageModel; from appliance.runtime.model import finish
def resident(): return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6
before = resident()
model = LanguageModel.open(Built(read_card(Path(sys.argv[1])), Path(sys.argv[2])), rung=sys.argv[3])
with model.session() as decoder:
    finish(decoder.prefill(list(range(100, 500)))); list(decoder.generate(budget=20))
    print(before, resident())
"""


def timed(decoder: Decoder, ids: list[int]) -> float:
    started = time.perf_counter()
    finish(decoder.prefill(ids))
    return time.perf_counter() - started


def speed(model: LanguageModel, decoder: Decoder, llama: Ask, vino: Ask, rounds: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    rows: dict[str, list[tuple[float, ...]]] = {name: [] for name in ("prefill", "first", "decode", "restored")}
    with tempfile.TemporaryDirectory() as folder:
        snapshot = Path(folder) / "prefix.kv"
        for turn in range(-1, rounds):
            long, short, prefix, question, walk = (
                rng.integers(1000, len(decoder_vocabulary(model)), size).tolist()
                for size in (PROMPT, SHORT, PREFIX, QUESTION, STEPS)
            )
            row: dict[str, tuple[float, ...]] = {}
            row["prefill"] = fresh(decoder, long), llama({"prefill": long})["answer"], vino_first(vino, long)
            row["first"] = fresh(decoder, short), llama({"prefill": short})["answer"], vino_first(vino, short)
            mine = [timed(decoder, [*short, *walk[: n + 1]]) for n in range(STEPS)]
            theirs = llama({"decode": walk})["answer"]
            each = vino({"ids": short, "count": STEPS})["each"]
            row["decode"] = float(np.median(mine)), float(np.median(theirs)), each
            fresh(decoder, prefix)
            decoder.save(snapshot)
            finish(decoder.prefill([]))
            started = time.perf_counter()
            assert decoder.restore(snapshot)
            finish(decoder.prefill([*prefix, *question]))
            restored = time.perf_counter() - started
            row["restored"] = restored, llama({"prefill": [*prefix, *question]})["answer"], float("nan")
            if turn >= 0:
                for name, values in row.items():
                    rows[name].append(values)
    return {name: compared(name, np.array(values)) for name, values in rows.items()}


def decoder_vocabulary(model: LanguageModel) -> range:
    return range(min(model.tokenizer.size, 40_000))


def fresh(decoder: Decoder, ids: list[int]) -> float:
    finish(decoder.prefill([]))
    return timed(decoder, ids)


def vino_first(vino: Ask, ids: list[int]) -> float:
    seconds: float = vino({"ids": ids, "count": 1})["first"]
    return seconds


def compared(name: str, rows: np.ndarray) -> dict[str, Any]:
    """Seconds of Parley, llama.cpp and OpenVINO, and the ratio that the target is about."""
    mine, theirs, vino = rows.T
    ratio = mine / theirs if name == "restored" else theirs / mine
    return {
        "parley": figures(mine),
        "llama.cpp": figures(theirs),
        "openvino": None if np.isnan(vino).any() else figures(vino),
        "ratio": float(np.median(ratio)),
        "ratios": [round(float(value), 3) for value in sorted(ratio)],
    }


def quality(model: LanguageModel, decoder: Decoder, llama: Ask, gguf: Path, answer: int) -> dict[str, Any]:
    reference = Reference(gguf_file.read(gguf))
    rows: dict[str, list[np.ndarray]] = {"parley": [], "llama.cpp": []}
    with tempfile.TemporaryDirectory() as folder:
        for asked in ASKED:
            prompt = model.chat.prompt([Said("user", asked)])
            finish(decoder.prefill([]))
            finish(decoder.prefill(prompt))
            ids, mine = list(prompt), []
            for token in decoder.generate(budget=answer):
                mine.append(decoder.logits)
                ids.append(token.id)
            start = len(prompt) - 1
            wanted = reference.logits(ids[:-1])[start:]
            file = Path(folder) / "logits"
            llama({"logits": ids[:-1], "from": start, "to": str(file)})
            theirs = np.fromfile(file, np.float32).reshape(len(wanted), -1)[:, : wanted.shape[1]]
            for name, found in (("parley", np.array(mine)), ("llama.cpp", theirs)):
                rows[name].append(np.stack([divergence(wanted, found), wanted.argmax(1) == found.argmax(1)]))
    return {
        name: {
            "kl": float(np.concatenate(parts, 1)[0].mean()),
            "argmax": float(np.concatenate(parts, 1)[1].mean()),
            "tokens": sum(part.shape[1] for part in parts),
        }
        for name, parts in rows.items()
    }


def divergence(wanted: np.ndarray, found: np.ndarray) -> np.ndarray:
    """KL(wanted || found) of each row, in nats."""
    p, q = (log_softmax(values.astype(np.float64)) for values in (wanted, found))
    result: np.ndarray = (np.exp(p) * (p - q)).sum(1)
    return result


def log_softmax(values: np.ndarray) -> np.ndarray:
    shifted = values - values.max(1, keepdims=True)
    result: np.ndarray = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return result


def memory(built: Built, rung: str) -> dict[str, float]:
    """Megabytes of a process before and after it has loaded and used the model."""
    command = [sys.executable, "-c", MEMORY, str(built.card.path), str(built.folder), rung]
    before, after = map(float, subprocess.check_output(command, text=True, cwd=ROOT).split())
    return {"before": before, "after": after, "model": after - before}


def measure(id: str, rung: str, threads: int, rounds: int, answer: int) -> dict[str, Any]:
    shelf = user_shelf()
    built = shelf.built(id)
    rung = rung or built.card.default_rung
    results: dict[str, Any] = {"model": id, "rung": rung, "threads": threads, "rounds": rounds}
    results["memory"] = memory(built, rung)
    model = LanguageModel.open(built, threads=threads, rung=rung)
    with peer_models(shelf, lm=id) as files, model.session() as decoder:
        peers = {**files, "threads": threads, "context": 1024}
        with peer("lm_peer.py", peers) as llama, peer("lm_openvino_peer.py", peers) as vino:
            results |= speed(model, decoder, llama, vino, rounds)
        if answer:
            with peer("lm_peer.py", peers | {"logits": True}) as llama:
                results["quality"] = quality(model, decoder, llama, Path(files["lm"]), answer)
    return results


def show(results: dict[str, Any]) -> None:
    print(f"{results['model']} ({results['rung']}), {results['threads']} threads")
    print("llama.cpp: GGML_NATIVE off, AVX512/VNNI/BF16 on, no AMX. Seconds, median (P95).")
    for name, what in (
        ("prefill", f"prefill of {PROMPT}"),
        ("first", f"first token behind {SHORT}"),
        ("decode", "one decode step"),
        ("restored", f"first token, {PREFIX} restored + {QUESTION} new"),
    ):
        row = results[name]
        cells = (
            "-" if row[peer_name] is None else f"{row[peer_name]['p50']:.4f} ({row[peer_name]['p95']:.4f})"
            for peer_name in ("parley", "llama.cpp", "openvino")
        )
        verdict = f"{row['ratio']:.3f}"
        if name in TARGETS:
            verdict = judged(row["ratio"], TARGETS[name], at_least=name != "restored")
        print("{:38s} parley {:18s} llama.cpp {:18s} OpenVINO {:18s} {}".format(what, *cells, verdict))
    for name, row in results.get("quality", {}).items():
        verdict = judged(row["kl"], TARGETS["kl"], timed=False) if name == "parley" else f"{row['kl']:.4g}"
        print(f"{name:10s} KL to float32 {verdict}, argmax {row['argmax']:.4f}, {row['tokens']} tokens")
    print("resident: {before:.0f} MB before, {after:.0f} MB with the model in use".format(**results["memory"]))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--rung", default="", help="default: the manifest's")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--answer", type=int, default=60, help="tokens of each answer that quality is measured on")
    parser.add_argument("--no-quality", action="store_true")
    given = parser.parse_args()
    results = measure(given.model, given.rung, given.threads, given.rounds, 0 if given.no_quality else given.answer)
    report(results, show, as_json=given.json)


if __name__ == "__main__":
    main()
