"""Round-trip word error of our phonemes against espeak's: synthesise, recognise, compare with the text.

Runs in the peers' environment (piper-tts for espeak and the voice, faster-whisper as the judge):

    python tests/bench/phonemes.py LEXICON_FOLDER VOICE.onnx WHISPER_FOLDER [--noise] [--show N]

Both arms get the same normalised text, the same voice and the same judge, interleaved; with --noise off (default) the
voice's random scales are 0, so that a run can be repeated. Text and transcript are normalised before they are compared.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2]))

from appliance.runtime.letters import Letters  # noqa: E402
from appliance.runtime.lexicon import Lexicon  # noqa: E402
from appliance.runtime.normalise import normalise  # noqa: E402
from appliance.runtime.phonemes import Phonemiser  # noqa: E402


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


def resampled(sound: np.ndarray) -> np.ndarray:
    """From the voice's 22.05 kHz to 16 kHz, in the frequency domain: padded to a length both rates divide."""
    padded = np.pad(sound, (0, -len(sound) % 441))
    length = len(padded) * 320 // 441
    spectrum = np.fft.rfft(padded)[: length // 2 + 1]
    return (np.fft.irfft(spectrum, length) * length / len(padded)).astype(np.float32)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("lexicon", type=Path)
    arguments.add_argument("voice", type=Path)
    arguments.add_argument("whisper", type=Path)
    arguments.add_argument("--sentences", type=Path, default=HERE.parent / "data" / "sentences.txt")
    arguments.add_argument("--noise", action="store_true")
    arguments.add_argument(
        "--cache", type=Path, help="remembers what was heard of which phonemes; only without --noise"
    )
    arguments.add_argument("--show", type=int, default=0)
    options = arguments.parse_args()

    import onnxruntime as ort
    from faster_whisper import WhisperModel
    from piper.phonemize_espeak import EspeakPhonemizer

    espeak = EspeakPhonemizer()
    model = [options.lexicon / name for name in ("graphones.txt", "ngram-keys.npy", "ngram-scores.npy")]
    ours = Phonemiser(Lexicon(options.lexicon / "lexicon.txt"), Letters(*model))
    table = json.loads(Path(f"{options.voice}.json").read_text("utf-8"))["phoneme_id_map"]
    session_options = ort.SessionOptions()
    session_options.intra_op_num_threads = 1
    voice = ort.InferenceSession(str(options.voice), session_options, providers=["CPUExecutionProvider"])
    judge = WhisperModel(str(options.whisper), device="cpu", compute_type="int8", cpu_threads=1)
    scales = np.array([0.667, 1.0, 0.8] if options.noise else [0.0, 1.0, 0.0], np.float32)

    known = json.loads(options.cache.read_text("utf-8")) if options.cache and options.cache.exists() else {}

    def heard(phonemes: str) -> str:
        if phonemes not in known or options.noise:
            known[phonemes] = listen(phonemes)
            if options.cache:
                options.cache.write_text(json.dumps(known, ensure_ascii=False), "utf-8")
        return str(known[phonemes])

    def listen(phonemes: str) -> str:
        ids = [1, 0, *(i for symbol in phonemes for i in (*table.get(symbol, []), 0) if symbol in table), 2]
        tensors = {
            "input": np.array([ids], np.int64),
            "input_lengths": np.array([len(ids)], np.int64),
            "scales": scales,
        }
        sound = voice.run(None, tensors)[0].reshape(-1)
        sound = np.pad(resampled(sound), 4000)
        segments, _ = judge.transcribe(
            sound, language="en", beam_size=1, temperature=0, condition_on_previous_text=False
        )
        return "".join(segment.text for segment in segments).strip()

    def by_espeak(text: str) -> str:
        return " ".join("".join(sentence) for sentence in espeak.phonemize("en-us", text))

    def by_us(text: str) -> str:
        return " ".join(word.phonemes for word in ours.phrase(text))

    arms = {"espeak": by_espeak, "ours": by_us}
    wrong = dict.fromkeys(arms, 0)
    total, missing, spent = 0, set(), 0.0
    shown = []
    for sentence in options.sentences.read_text("utf-8").splitlines():
        text = normalise(sentence)
        reference = plain(sentence)
        total += len(reference)
        results = {}
        for name, arm in arms.items():
            start = time.perf_counter()
            phonemes = arm(text)
            if name == "ours":
                spent += time.perf_counter() - start
                missing |= {symbol for symbol in phonemes if symbol not in table}
            transcript = heard(phonemes)
            results[name] = (errors(reference, plain(transcript)), phonemes, transcript)
            wrong[name] += results[name][0]
        if results["ours"][0] > results["espeak"][0]:
            shown.append((sentence, results))
    print(f"{total} words; word error " + ", ".join(f"{n} {100 * w / total:.2f} %" for n, w in wrong.items()))
    print(f"symbols the voice lacks: {sorted(missing)}; phonemising took {1e3 * spent:.0f} ms in all")
    for sentence, results in shown[: options.show]:
        print(sentence)
        for name, (count, phonemes, transcript) in results.items():
            print(f"  {name:7} {count} {phonemes}\n          {transcript}")


if __name__ == "__main__":
    main()
