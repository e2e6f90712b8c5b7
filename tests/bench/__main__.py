"""`./just bench [NAME [ARGUMENTS]]`: one measurement, or all of them one after the other.

Each prints its table, with the load of the machine beside it: above 1.5 other work is part of the figures.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MEASUREMENTS = {
    "asr": "recognition against faster-whisper",
    "lm": "the language model against llama.cpp and OpenVINO",
    "tts": "synthesis against piper-tts",
    "phonemes": "our phonemes against espeak's, by word error",
    "box": "memory, cold start, and the first turn against the next ten",
    "turn": "end of speech to first sound, against the plain chain",
}


def main(arguments: list[str]) -> int:
    if arguments[:1] in (["-h"], ["--help"]) or (arguments and arguments[0] not in MEASUREMENTS):
        print(__doc__)
        for name, what in MEASUREMENTS.items():
            print(f"  {name:10} {what}")
        return 0 if arguments[0] in ("-h", "--help") else 2
    names = arguments[:1] or list(MEASUREMENTS)
    failed = 0
    for name in names:
        print(f"\n=== {name}: {MEASUREMENTS[name]}", flush=True)
        failed |= subprocess.run([sys.executable, HERE / f"{name}.py", *arguments[1:]], check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
