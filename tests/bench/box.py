"""The box: resident memory with every model loaded, a second start to ready, and the first turn against the next ten.

    python tests/bench/box.py [--starts 5] [--json]

Each start is a process of its own. The turns are typed questions turned to speech beforehand and heard in real time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from harness import arguments, figures, judged, report

MEMORY_MB = {"whisper-tiny.en": 700, "whisper-base": 850}
START_S = 6.0
FIRST_TURN = 1.2


def child(asr: str, folder: Path) -> None:
    """Starts, says when it is ready and how much memory it holds, and hears the questions in the folder."""
    import psutil
    from turn import one_turn

    engines = _engines(asr)
    engines.warm()
    process = psutil.Process()
    result: dict[str, Any] = {
        "start": time.time() - process.create_time(),
        "rss_ready": process.memory_info().rss / 1e6,
    }
    questions = json.loads((folder / "questions.json").read_text())
    heard = [asyncio.run(one_turn(engines, Path(path), end)) for path, end in questions]
    result["rss_after"] = process.memory_info().rss / 1e6
    result["turns"] = [turn.get("mouth first sound") for turn in heard]
    print(json.dumps(result))


def _engines(asr: str) -> Any:
    from appliance import config
    from appliance.commands.shelf import open_shelf
    from appliance.compose import Engines

    settings = config.parse(f'[models]\nasr = "{asr}"')
    return Engines(settings, open_shelf(settings))


def ask_aloud(folder: Path, count: int = 11) -> None:
    """Writes the questions that every child hears."""
    from questions import spoken_questions

    spoken = zip(range(count), spoken_questions(_engines("whisper-base").speaker, folder), strict=False)
    questions = [(str(path), end) for _, (_, path, end) in spoken]
    (folder / "questions.json").write_text(json.dumps(questions))


def run(starts: int) -> dict[str, Any]:
    results: dict[str, Any] = {asr: [] for asr in MEMORY_MB}
    with tempfile.TemporaryDirectory() as folder:
        ask_aloud(Path(folder))
        for _ in range(starts):
            for asr, runs in results.items():
                command = [sys.executable, __file__, "--child", asr, folder]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                runs.append(json.loads(done.stdout.splitlines()[-1]))
    return results


def show(results: dict[str, Any]) -> None:
    for asr, runs in results.items():
        ready, after = (max(run[key] for run in runs) for key in ("rss_ready", "rss_after"))
        start = figures([run["start"] for run in runs])["p50"]
        ratios = [run["turns"][0] / figures([turn for turn in run["turns"][1:] if turn])["p50"] for run in runs]
        print(f"{asr}, {len(runs)} starts")
        print(f"  resident: ready {ready:.0f} MB, after 11 turns {judged(after, MEMORY_MB[asr], timed=False)} MB")
        print(f"  process start to ready: median {judged(start, START_S)} s")
        print(f"  first turn against the next ten: median {judged(figures(ratios)['p50'], FIRST_TURN)}")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--child", nargs=2, metavar=("ASR", "FOLDER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child[0], Path(args.child[1]))
        return
    report(run(args.starts), show, as_json=args.json)


if __name__ == "__main__":
    main()
