"""Answers from documents: the three packs in data/packs, all loaded at once, and questions a third of which they do not
answer.

    python tests/bench/knowledge.py [--set test|dev|all] [--wrong] [--json]

Rules and thresholds were chosen with `questions-dev.tsv`; the others are what is reported. An answer is right when it
holds every part that is expected (between semicolons); "-" is a question that must be refused. A number that is spoken
and does not stand in the cited passage is invented.
"""

from __future__ import annotations

import csv
import re
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from harness import HERE, arguments, figures, judged, report, user_shelf

from appliance import config
from appliance.compose import Engines
from appliance.store.knowledge import Answer, Knowledge

PACKS = HERE / "data/packs"
SETS = {"dev": [f"questions-dev{n}.tsv" for n in ("", "-2", "-3", "-4", "-5")], "test": ["questions.tsv"]}
NOW = datetime(2026, 12, 1, 12, 0, tzinfo=ZoneInfo("Europe/Berlin"))
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


def run(names: list[str]) -> dict[str, Any]:
    settings = config.load()
    embed = Engines(settings, user_shelf()).embedder.embed
    with tempfile.TemporaryDirectory() as scratch:
        knowledge = Knowledge((PACKS,), Path(scratch) / "index.db", embed)
        started = time.process_time()
        knowledge.refresh()
        indexed = time.process_time() - started
        rows = [dict(row, set=name) for name in names for file in SETS[name] for row in _rows(PACKS / file)]
        for row in rows:
            started = time.perf_counter()
            found = knowledge.ask(row["question"], NOW)
            row["seconds"] = time.perf_counter() - started
            row |= _verdict(row, found)
        faults = [fault.message for fault in knowledge.faults]
        knowledge.close()
    return {"rows": rows, "index_s": indexed, "faults": faults}


def _rows(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="", encoding="utf-8") as table:
        return list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))


def _verdict(row: dict[str, Any], found: object) -> dict[str, Any]:
    wanted = row["expect"]
    if not isinstance(found, Answer):
        return {"said": "", "right": wanted == "-", "invented": [], "why": getattr(found, "why", "no question")}
    invented = [number for number in _NUMBER.findall(found.text) if number not in _NUMBER.findall(found.passage)]
    said = found.text.lower()
    right = wanted != "-" and all(part.strip().lower() in said for part in wanted.split(";"))
    return {"said": found.text, "right": right, "invented": invented, "why": f"{found.source}:{found.line}"}


def show(result: dict[str, Any]) -> None:
    rows = result["rows"]
    for name in dict.fromkeys(row["set"] for row in rows):
        for pack in ("every", *dict.fromkeys(row["pack"] for row in rows)):
            part = [row for row in rows if row["set"] == name and pack in ("every", row["pack"])]
            known = [row for row in part if row["expect"] != "-"]
            other = [row for row in part if row["expect"] == "-"]
            right = sum(row["right"] for row in known) / max(1, len(known))
            refused = sum(row["right"] for row in other) / max(1, len(other))
            invented = sum(len(row["invented"]) for row in part)
            print(
                f"{name:5} {pack:7} right {judged(right, 0.92, at_least=True, timed=False)} of {len(known)},  "
                f"refused {judged(refused, 0.95, at_least=True, timed=False)} of {len(other)},  "
                f"invented numbers {judged(invented, 0, timed=False)}"
            )
    times = figures([row["seconds"] for row in rows])
    print(
        f"one question: {1e3 * times['p50']:.1f} ms median, {1e3 * times['p95']:.1f} P95; "
        f"index {result['index_s']:.1f} s CPU"
    )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--set", choices=("test", "dev", "all"), default="test", help="which questions")
    parser.add_argument("--wrong", action="store_true", help="show what was wrong")
    args = parser.parse_args()
    result = run(["dev", "test"] if args.set == "all" else [args.set])
    if args.wrong:
        for row in result["rows"]:
            if not row["right"] or row["invented"]:
                print(f"{row['question']!r} expected {row['expect']!r}: {row['said']!r} ({row['why']})")
    report(result, show, as_json=args.json)


if __name__ == "__main__":
    main()
