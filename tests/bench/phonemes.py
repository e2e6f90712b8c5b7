"""Our phonemes against espeak's, by round trip: synthesise, recognise, compare with the text.

    python tests/bench/phonemes.py [--sentences FILE]... [--noise] [--cache FILE] [--show N] [--json]

Both arms get the same normalised text, the same voice and the same judge, turn by turn; with --noise off (default) the
voice's random scales are 0, so that a run can be repeated. Text and transcript are normalised before they are compared.
Nothing was tuned on the second of the two default sets.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from harness import HERE, Ask, arguments, judged, peer, peer_models, report, user_shelf

from appliance import config
from appliance.runtime.normalise import normalise
from appliance.runtime.phonemes import Phonemiser

SENTENCES = [HERE / "data" / name for name in ("sentences.txt", "sentences-held-out.txt")]
JUDGE = "whisper-base"
TARGET = 1.5
"""Points of word error above espeak's."""


def plain(text: str) -> list[str]:
    text = re.sub(r"(\d)\.(\d\d) (?=AM|PM|a\.m|p\.m)", r"\1:\2 ", text)
    said = normalise(text.replace("-", " ")).lower().replace("-", " ")
    said = re.sub(r"\band (?=\w+ (?:cents|degrees))|\boh\b|o'clock", " ", said)
    return re.sub(r"[^a-z' ]", " ", said).split()


def errors(said: list[str], heard: list[str]) -> int:
    row = list(range(len(heard) + 1))
    for i, word in enumerate(said, start=1):
        last, row[0] = row[0], i
        for j, other in enumerate(heard, start=1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (word != other))
    return row[-1]


class Judge:
    """What is heard when the voice says phonemes; without noise it is remembered, in `cache` if that is given."""

    def __init__(self, ask: Ask, noise: bool, cache: Path | None) -> None:
        self._ask = ask
        self._noise = noise
        self._cache = cache
        self._known: dict[str, str] = json.loads(cache.read_text("utf-8")) if cache and cache.exists() else {}

    def heard(self, phonemes: str) -> str:
        if phonemes not in self._known or self._noise:
            self._known[phonemes] = self._ask({"phonemes": phonemes, "noise": self._noise})["text"]
            if self._cache:
                self._cache.write_text(json.dumps(self._known, ensure_ascii=False), "utf-8")
        return self._known[phonemes]


def measure(arms: dict[str, Callable[[str], str]], judge: Judge, sentences: Iterable[str]) -> dict[str, Any]:
    """Word error in per cent for each arm, and every sentence with its errors."""
    rows = []
    for sentence in sentences:
        reference = plain(sentence)
        row: dict[str, Any] = {"sentence": sentence, "words": len(reference)}
        for name, arm in arms.items():
            started = time.perf_counter()
            phonemes = arm(normalise(sentence))
            taken = time.perf_counter() - started
            transcript = judge.heard(phonemes)
            wrong = errors(reference, plain(transcript))
            row[name] = {"errors": wrong, "phonemes": phonemes, "transcript": transcript, "seconds": taken}
        rows.append(row)
    total = sum(row["words"] for row in rows)
    error = {name: 100 * sum(row[name]["errors"] for row in rows) / total for name in arms}
    return {"words": total, "word error": error, "sentences": rows}


def run(files: list[Path], noise: bool, cache: Path | None) -> dict[str, Any]:
    settings, shelf = config.load().models, user_shelf()
    ours = Phonemiser.open(shelf.built(settings.lexicon))
    with peer_models(shelf, asr=JUDGE, voice=settings.voice) as models:
        table = json.loads(Path(f"{models['voice']}.json").read_text("utf-8"))["phoneme_id_map"]
        with peer("phonemes_peer.py", {**models, "threads": 1}) as ask:
            arms: dict[str, Callable[[str], str]] = {
                "espeak": lambda text: ask({"text": text})["phonemes"],
                "ours": lambda text: " ".join(word.phonemes for word in ours.phrase(text)),
            }
            judge = Judge(ask, noise, cache)
            results = {file.stem: measure(arms, judge, file.read_text("utf-8").splitlines()) for file in files}
    for result in results.values():
        result["unknown"] = sorted({s for row in result["sentences"] for s in row["ours"]["phonemes"]} - set(table))
    return results


def show(results: dict[str, Any], examples: int) -> None:
    for name, result in results.items():
        espeak, ours = (result["word error"][arm] for arm in ("espeak", "ours"))
        spent = 1e3 * sum(row["ours"]["seconds"] for row in result["sentences"])
        print(f"{name}: {len(result['sentences'])} sentences, {result['words']} words")
        above = judged(ours - espeak, TARGET, timed=False)
        print(f"  word error: espeak {espeak:.2f} %, ours {ours:.2f} %; points above {above}")
        print(f"  symbols the voice lacks: {result['unknown']}; our phonemes took {spent:.0f} ms in all")
        worse = [row for row in result["sentences"] if row["ours"]["errors"] > row["espeak"]["errors"]]
        for row in worse[:examples]:
            print(f"  {row['sentence']}")
            for arm in ("espeak", "ours"):
                print("    {:7} {errors} {phonemes}\n              {transcript}".format(arm, **row[arm]))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--sentences", type=Path, action="append", help="one per line; default: both sets in data/")
    parser.add_argument("--noise", action="store_true")
    parser.add_argument("--cache", type=Path, help="remembers what was heard of which phonemes; only without --noise")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="sentences in which espeak does better")
    given = parser.parse_args()
    results = run(given.sentences or SENTENCES, given.noise, given.cache)
    report(results, lambda found: show(found, given.show), as_json=given.json)


if __name__ == "__main__":
    main()
