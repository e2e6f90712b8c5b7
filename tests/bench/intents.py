"""Understanding a sentence, at a thousand templates: the time it takes, against hassil's own recogniser on the same.

    python tests/bench/intents.py [--templates 1000] [--json]

The templates are those of Home Assistant (English), of the shipped skills, and made ones up to the number. What is said
is drawn from the templates ("exact"), has a word misheard ("misheard"), or is talk that no template is for ("talk").
"""

from __future__ import annotations

import contextlib
import json
import random
import statistics
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import home_assistant_intents
from harness import HERE, arguments, figures, judged, report

from appliance.skills.intents.recognise import Intents
from appliance.skills.intents.templates import Choices, Grammar, Node, Part, Template, Typed, Value, Word, load, parse
from appliance.skills.library import SHIPPED

NOW = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
ROOMS = ("kitchen", "bathroom", "cellar", "garage", "attic", "hall", "office", "bedroom", "garden", "porch")
SAID = {"number": "seven", "duration": "five minutes", "text": "something", "time": "half past six", "date": "tomorrow"}


def grammars(count: int) -> dict[str, Grammar]:
    folder = Path(home_assistant_intents.__file__).parent
    home, _ = parse(json.loads((folder / "data/en.json").read_text("utf-8")), "en.json")
    lists = {
        name: known if isinstance(known, Typed) or known.values else _rooms() for name, known in home.lists.items()
    }
    home = replace(home, lists=lists)
    found = {"home": home}
    for path in sorted(SHIPPED.glob("*/intents/en.yaml")):
        skill = path.parents[1]
        found[skill.name], _ = load(path, lambda name, skill=skill: (skill / "data" / name).read_text())
    made = count - sum(len(grammar.templates) for grammar in found.values())
    verbs, things = ("open", "close", "check", "clean", "paint"), ("cupboard", "shelf", "drawer", "lamp", "fan", "vent")
    templates = tuple(
        Template(
            f"Made{number}", _sentence(f"{verbs[number % 5]} the {things[number % 6]} number {number} in the"), "made"
        )
        for number in range(max(0, made))
    )
    return {**found, "made": Grammar(templates, {"room": _rooms()})}


def _rooms() -> Choices:
    return Choices(tuple(((room,), room) for room in ROOMS))


def _sentence(text: str) -> Node:
    return Node("seq", (*(Word(word) for word in text.split()), Value("room", "room")))


def say(part: Part, grammar: Grammar, chance: random.Random) -> str:
    match part:
        case Word():
            return part.text
        case Value():
            known = grammar.lists.get(part.name)
            if isinstance(known, Typed):
                return SAID.get(known.kind, "seven")
            return " ".join(chance.choice(known.values)[0]) if known and known.values else "x"
        case Node(kind="alt"):
            return say(chance.choice(part.parts), grammar, chance)
        case _:
            return " ".join(filter(None, (say(one, grammar, chance) for one in part.parts)))


def misheard(text: str, chance: random.Random) -> str:
    words = text.split()
    place = max(range(len(words)), key=lambda at: len(words[at]))
    word = words[place]
    words[place] = word[:-1] if chance.random() < 0.5 or len(word) < 4 else word.replace(word[1], "a", 1)
    return " ".join(words)


def run(count: int) -> dict[str, Any]:
    chance = random.Random(0)
    found = grammars(count)
    started = time.perf_counter()
    intents, _ = Intents.compile(found)
    compiled = time.perf_counter() - started
    pool = [(grammar, template) for grammar in found.values() for template in grammar.templates]
    picked = [chance.choice(pool) for _ in range(600)]
    exact = [text for grammar, template in picked if len((text := say(template.part, grammar, chance)).split()) > 1][
        :400
    ]
    said = {
        "exact": exact,
        "misheard": [misheard(text, chance) for text in exact[:200]],
        "talk": (HERE / "data/ood.txt").read_text("utf-8").splitlines(),
    }
    times = {name: [] for name in said}
    for texts in said.values():
        for text in texts[:20]:
            intents.readings(text, now=NOW)
    understood = 0
    for name, texts in said.items():
        for text in texts:
            started = time.perf_counter()
            readings = intents.readings(text, now=NOW)
            times[name].append(time.perf_counter() - started)
            understood += name == "exact" and bool(readings) and readings[0].score >= 0.8
    return {
        "templates": len(pool),
        "compile_s": compiled,
        "ours": times,
        "understood": understood / len(exact),
        "hassil": _hassil(exact),
    }


def _hassil(texts: list[str]) -> list[float]:
    """Home Assistant's part of the templates alone: the others are not all in its syntax."""
    with contextlib.redirect_stdout(sys.stderr):
        from hassil.intents import Intents as Theirs
        from hassil.intents import TextSlotList
        from hassil.recognize import recognize
    folder = Path(home_assistant_intents.__file__).parent
    theirs = Theirs.from_dict(json.loads((folder / "data/en.json").read_text("utf-8")))
    lists = {name: TextSlotList.from_strings(ROOMS) for name in ("name", "area", "floor")}
    times = []
    for text in texts[:60]:
        started = time.perf_counter()
        with contextlib.suppress(Exception):  # a peer's failure is its own affair
            recognize(text, theirs, slot_lists=lists)
        times.append(time.perf_counter() - started)
    return times


def show(result: dict[str, Any]) -> None:
    print(f"{result['templates']} templates, compiled in {result['compile_s']:.2f} s")
    for name, values in result["ours"].items():
        f = figures(values)
        verdict = judged(1e3 * f["p50"], 1.0) if name == "exact" else f"{1e3 * f['p50']:.2f}"
        print(f"  {name:9} median {verdict} ms   P95 {1e3 * f['p95']:.2f}   P99 {1e3 * f['p99']:.2f}   n {f['n']}")
    print(f"  exact sentences understood: {result['understood']:.3f}")
    median = statistics.median(result["hassil"])
    ratio = statistics.median(result["ours"]["exact"]) / median
    print(f"  hassil, on Home Assistant's part: median {1e3 * median:.2f} ms; ours / hassil {ratio:.3f}")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--templates", type=int, default=1000)
    args = parser.parse_args()
    report(run(args.templates), show, as_json=args.json)


if __name__ == "__main__":
    main()
