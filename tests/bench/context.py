"""Taking up a conversation of 200 turns: from memory and a snapshot, against reading its whole history again.

    python tests/bench/context.py [--turns 200] [--rounds 3] [--json]

Three ways to the first token of the next answer, each in a process of its own, taking turns, on the same weights:
  whole     every turn in the prompt (the graph is built anew with a context of 8,192 for it)
  budgeted  the prompt that the box assembles, without a snapshot
  resumed   the same, from the snapshot that was kept at the end
Loading the model is not counted; opening memory and reading its turns is. Peak memory is the process's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import arguments, figures, judged, report, sources, user_shelf

from appliance.compose import Engines
from appliance.config import load
from appliance.runtime.chat import Chat
from appliance.runtime.llm import LanguageModel
from appliance.runtime.ort import OrtModel
from appliance.runtime.tokenizer import Tokenizer
from appliance.store.memory import Memory
from appliance.store.units import Turn
from appliance.voice.conversation import Conversation, Message
from appliance.voice.prompt import Prompt
from appliance.voice.writer import Writer
from models.quantized.recipes import gguf_file
from models.quantized.recipes.gguf_lm import convert

FASTER, SMALLER = 0.27, 0.59
WAYS = ("whole", "budgeted", "resumed")
CONTEXT = 8_192
QUESTION = "And what was it that I wanted to ask you?"
ASKED = (
    "How long does the bread stay in the oven?",
    "Does the train to the coast go on Sundays?",
    "What is a good present for a gardener?",
    "The neighbours have painted their fence green.",
)
SAID = (
    "About forty minutes, until it sounds hollow.",
    "Every hour until the evening.",
    "A good pair of gloves, or a plant.",
)


def history(turns: int) -> list[tuple[str, str]]:
    return [(f"{ASKED[n % 4]} Number {n}.", SAID[n % 3]) for n in range(turns)]


def child(way: str, folder: Path) -> None:
    """Opens the model, waits for a line, and answers with the seconds to the first token."""
    engines = Engines(load(), user_shelf())
    rules = engines.prompt_rules
    model = _wide(engines, folder) if way == "whole" else engines.language_model
    other = Writer(model, folder / "other")
    "".join(other.write([Message("user", "Hello.")], 1, 1))  # the first run of a graph is no part of it
    other.close()
    writer = Writer(model, folder / ("prefixes" if way == "resumed" else "none"))
    print("ready", flush=True)
    sys.stdin.readline()
    begin = time.perf_counter()
    memory = Memory(folder, None)
    conversation = Conversation()
    turns = memory.turns(limit=10_000) if way == "whole" else memory.resume()
    for turn in turns:
        conversation.add(turn.asked, turn.said)
    if way == "whole":
        messages = [*rules.opening, *conversation.messages, Message("user", QUESTION)]
    else:
        prompt = Prompt(rules, conversation, writer.count, lambda: [unit.text for unit in memory.resident()])
        writer.prepare(prompt.opening, prompt.standing(), prompt.so_far())
        messages = prompt.messages(QUESTION)
    pieces = writer.write(messages, 8, 1)
    while not next(pieces):
        pass
    seconds = time.perf_counter() - begin
    if way == "budgeted":
        writer.suspend(prompt.so_far())
        for path in (folder / "none").glob("conversation.kv"):
            (folder / "prefixes").mkdir(exist_ok=True)
            path.replace(folder / "prefixes" / path.name)
    memory.close()
    tokens = len(model.chat.prompt(messages))
    print(json.dumps({"seconds": seconds, "peak_mb": _peak_mb(), "tokens": tokens}), flush=True)


def _wide(engines: Engines, folder: Path) -> LanguageModel:
    built = engines.shelf.built(engines.config.models.lm)
    about = json.loads(built.file("chat").read_text())
    tokenizer = Tokenizer(built.file("tokenizer"))
    chat = Chat(tokenizer, about["template"], bos=about["bos"], eos=about["eos"], begin=about["begin"])
    decode = OrtModel(folder / "wide/decode.onnx", threads=engines.config.think.threads)
    return LanguageModel(decode, None, tokenizer, chat, key="wide", ends=about["ends"], context=CONTEXT)


def _peak_mb() -> float:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def measure(turns: int, rounds: int) -> dict[str, Any]:
    results: dict[str, Any] = {way: {"seconds": [], "peak_mb": [], "tokens": 0} for way in WAYS}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "wide").mkdir()
        shelf = user_shelf()
        (source,) = sources(shelf, load().models.lm).values()
        convert(gguf_file.read(source), folder / "wide", CONTEXT, lambda what, fraction: None)
        for _ in range(rounds):
            for way in WAYS:
                _remember(folder, turns)  # it is as if the last turn had just been
                got = _ask(way, folder)
                results[way]["seconds"].append(got["seconds"])
                results[way]["peak_mb"].append(got["peak_mb"])
                results[way]["tokens"] = got["tokens"]
    return results


def _remember(folder: Path, turns: int) -> None:
    for path in folder.glob("memory.db*"):
        path.unlink()
    memory = Memory(folder, None)
    told = [("My name is Anna.", "Noted."), ("I live in Lyon.", "Noted."), ("I'm allergic to nuts.", "Noted.")]
    for asked, said in [*told, *history(turns - len(told))]:
        memory.keep(Turn(asked, said))
    memory.flush(60)
    memory.close()


def _ask(way: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", way, "--folder", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        process.stdin.write("go\n")
        process.stdin.flush()
        answer: dict[str, Any] = json.loads(process.stdout.readline())
        return answer


def show(results: dict[str, Any]) -> None:
    def median(way: str, name: str) -> float:
        return figures(results[way][name])["p50"]

    print("resume to the first token: tokens of prompt, seconds (median), peak memory")
    for way in WAYS:
        seconds, peak = median(way, "seconds"), median(way, "peak_mb")
        print(f"  {way:9} {results[way]['tokens']:5}   {seconds:7.3f} s   {peak:6.0f} MB")

    def ratio(way: str, name: str) -> float:
        return median(way, name) / median("whole", name)

    for way in WAYS[1:]:
        print(
            f"  {way} of whole: time {judged(ratio(way, 'seconds'), FASTER)}, "
            f"peak memory {judged(ratio(way, 'peak_mb'), SMALLER, timed=False)}"
        )


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", choices=WAYS)
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args(given)
    if args.child:
        child(args.child, args.folder)
    else:
        report(measure(args.turns, args.rounds), show, as_json=args.json)


if __name__ == "__main__":
    main()
