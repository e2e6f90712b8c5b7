"""`./just bench [NAME [ARGUMENTS]]`: one measurement, or all of them one after the other.

Each prints its table, or with --json every figure, and the load average of the machine beside it. Above 1.5 before the
start, other work is part of the times, and they are not judged.
"""

from __future__ import annotations

import subprocess
import sys
import time

from harness import HERE, QUIET, load

PATIENCE = 120
"""Seconds that the load of one measurement is given to fade before the next one starts."""
MEASUREMENTS = {
    "asr": "recognition against faster-whisper",
    "lm": "the language model against llama.cpp and OpenVINO",
    "tts": "synthesis against piper-tts",
    "phonemes": "our phonemes against espeak's, by word error",
    "box": "memory, cold start, and the first turn against the next ten",
    "turn": "end of speech to first sound, against the plain chain",
    "echo": "echo cancellation against the bare libraries",
    "wake": "wake words against the bare package",
    "own": "an hour of the box's own speech in simulated rooms",
    "bargein": "from the user's first syllable over an answer to silence",
    "idle": "what listening costs while nobody speaks",
    "understanding": "spoken orders, other people's talk, the time to an intent's answer, and the four below",
    "knowledge": "answers out of documents, and what is refused",
    "intents": "understanding a sentence at a thousand templates",
    "sandbox": "a good skill beside one that misbehaves",
    "claims": "claims without a result, over scripted model outputs",
    "durability": "power cuts, kill -9, and what is written",
    "context": "taking up a conversation of 200 turns, against reading it again",
    "memory": "what is found again, what fades, and how quickly",
    "soak": "a day of listening with a fault every few minutes",
}


def main(arguments: list[str]) -> int:
    if arguments[:1] in (["-h"], ["--help"]) or (arguments and arguments[0] not in MEASUREMENTS):
        print(__doc__)
        for name, what in MEASUREMENTS.items():
            print(f"  {name:10} {what}")
        return 0 if arguments[0] in ("-h", "--help") else 2
    names = arguments[:1] or list(MEASUREMENTS)
    failed = 0
    for number, name in enumerate(names):
        if number:
            calm_down()
        print(f"\n=== {name}: {MEASUREMENTS[name]}", file=sys.stderr, flush=True)
        failed |= subprocess.run([sys.executable, HERE / f"{name}.py", *arguments[1:]], check=False).returncode
    return failed


def calm_down() -> None:
    waited = 0
    while load() > QUIET and waited < PATIENCE:
        time.sleep(5)
        waited += 5


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
