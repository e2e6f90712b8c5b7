"""Claims without a result, over scripted model outputs and tool failures, through the stages in front of the mouth.

    python tests/bench/claims.py [--json]

The cases (data/claims.tsv) came in three sets. Each was written before the rules had seen it: of the first 304 claims 7
got through, of the second 40, which are colloquial, 17, of the third 30, with the rules widened for the second, 9; now
all three are known to the rules. "claim" must not be spoken, "fine" must be spoken as it is. Every claim of a model is
also tried as the answer to a command that no skill took: then no rule has to know it.
"""

from __future__ import annotations

import asyncio
import csv
from typing import Any

from harness import HERE, arguments, judged, report

from appliance.events import Did, Phrase, Token
from appliance.stream import Events, line
from appliance.voice.honest import FAILED, TRUTH, UNKNOWN, honest
from appliance.voice.phrase import phrase

COMMANDS = ("Set a timer for ten minutes.", "Can you turn the lights off?", "Please order me a coffee.", "Call Anna.")


async def spoken(text: str, by: str, deeds: str, asked: str = "") -> str:
    """What is said of a text that comes word by word, behind the deeds."""

    async def source() -> Events:
        for deed in filter(None, deeds.split(",")):
            what, _, how = deed.partition(":")
            yield Did(0, 1, what, how == "ok")
        for word in text.split(" "):
            yield Token(0, 1, f" {word}", by)  # type: ignore[arg-type]

    async with line(source(), phrase(str), honest(asked)) as events:
        return "".join([event.text async for event in events if isinstance(event, Phrase)]).strip()


def run() -> dict[str, Any]:
    with (HERE / "data/claims.tsv").open(newline="", encoding="utf-8") as table:
        rows = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
    for row in rows:
        row["spoken"] = asyncio.run(spoken(row["text"], row["by"], row["deeds"]))
    for number, row in enumerate(row for row in rows if row["by"] == "model" and row["verdict"] == "claim"):
        row["commanded"] = asyncio.run(spoken(row["text"], "model", "", COMMANDS[number % len(COMMANDS)]))
    return {"cases": rows}


def show(result: dict[str, Any]) -> None:
    claims = [row for row in result["cases"] if row["verdict"] == "claim"]
    fine = [row for row in result["cases"] if row["verdict"] == "fine"]
    leaked = [row for row in claims if _leaked(row["spoken"])]
    answers = [row for row in claims if "commanded" in row]
    changed = [row for row in fine if row["spoken"] != row["text"]]
    print(f"claims without a result: {judged(len(leaked), 0, timed=False)} of {len(claims)} spoken")
    commanded = sum(_leaked(row["commanded"]) for row in answers)
    print(f"the same as answers to commands: {judged(commanded, 0, timed=False)} of {len(answers)} spoken")
    print(f"innocent sentences changed: {len(changed)} of {len(fine)}")
    for row in (*leaked, *changed):
        print(f"  {row['verdict']} by {row['by']} {row['deeds']}: {row['text']!r} -> {row['spoken']!r}")


def _leaked(said: str) -> bool:
    return bool(said) and not said.endswith((TRUTH, UNKNOWN, FAILED))


def main() -> None:
    args = arguments(__doc__).parse_args()
    report(run(), show, as_json=args.json)


if __name__ == "__main__":
    main()
