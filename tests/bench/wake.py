"""Wake words against bare pymicro-wakeword: recall, false wakes, own replies, where the word ends, CPU.

    python tests/bench/wake.py [--word alexa]... [--minutes 140] [--json]

Only "alexa" was recorded from people here (8 recordings); the other words are said by the box's own voice at several
speeds and pitches, and reported as synthetic. Each recording is tried at several levels, in several rooms and noises:
recordings and trials are counted apart. The windows were chosen on all of them, so that recall is not that of words
nobody has looked at; the thresholds by what woke falsely in 6.3 hours of other minutes, made of the same speech, noise
and music. Over an answer of the box both sides hear the same room: Parley behind its canceller, the peer the bare
microphone, or the same cleaned sound.
"""

from __future__ import annotations

import csv
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from harness import ROOT, Ask, arguments, figures, judged, peer, report, user_shelf
from spoken import REPLIES, said

from appliance import config
from appliance.compose import Engines
from appliance.runtime.wakeword import open_words
from firmware import wav
from firmware.echo import Echo
from firmware.frame import FRAME, RATE, Pcm, Wave, Woke, to_pcm, to_wave
from firmware.resample import resample
from firmware.room import Room, reverberation
from firmware.wake import Wake, WakeWord

WORDS = ("alexa", "okay-nabu", "hey-jarvis", "hey-mycroft")
RECORDED = ("alexa",)
TARGETS = {"clean": 95.0, "noise": 85.0, "own speech": 80.0}
MINUTE = 60 * RATE
LEAD = 2 * RATE
"""Samples of the scene in front of the word."""
SPANS = {"alexa/199": (0.49, 1.15), "alexa/309": (0.55, 1.27), "alexa/61": (0.47, 1.12)}
"""Seconds at which the word begins and ends where energy does not tell: a click lies behind it, or it ends quietly."""
TEMPI, PITCHES = (0.85, 1.0, 1.15, 1.3), (0.85, 0.93, 1.0, 1.1, 1.2)
MENTIONS = (
    "I am listening when you say {0}, so say it again.",
    "My name is {0}, and I live in this box.",
    "{0}. That is the word you are looking for.",
    "Say {0}, wait for the tone, and ask {0} about the weather.",
    "You can always call me {0}.",
)

Rng = np.random.Generator


@dataclass(frozen=True)
class Trial:
    """One scene that holds a word once, from `begin` to `end`. `far` is what the box plays in it."""

    word: str
    recording: str
    kind: str
    sound: Pcm
    begin: int
    end: int
    far: tuple[Pcm, ...] = ()


# --- sounds ----------------------------------------------------------------------------------------------------------


@dataclass
class Sounds:
    """The recordings, what is made of them, and the box's own voice."""

    folder: Path
    engines: Engines
    rows: list[dict[str, str]] = field(default_factory=list)
    voiced: dict[str, Pcm] = field(default_factory=dict)

    def __post_init__(self) -> None:
        with (self.folder / "MANIFEST.tsv").open(newline="", encoding="utf-8") as table:
            self.rows = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))

    def under(self, *prefixes: str) -> list[tuple[str, Wave]]:
        names = [row["file"] for row in self.rows if row["file"].startswith(prefixes)]
        return [(name, to_wave(wav.read(self.folder / name).samples)) for name in names]

    @cached_property
    def noises(self) -> list[Wave]:
        return [sound for _, sound in self.under("noise/")]

    @cached_property
    def rooms(self) -> list[Wave]:
        """Measured impulse responses of unit energy, and a made one."""
        found = []
        for _, response in self.under("rir/"):
            direct = int(np.argmax(np.abs(response)))
            found.append(response[max(0, direct - 8) : direct + 3 * RATE // 4])
        return [each / np.linalg.norm(each) for each in found] + [reverberation(0.5, direct=3.0)]

    @cached_property
    def speech(self) -> list[Wave]:
        """Everything that is said and is not one of the words."""
        folders = {row["file"].split("/")[0] + "/" for row in self.rows} - {"noise/", "rir/", "wake/"}
        own = [to_wave(self.own(text)) for text in REPLIES]
        wakes = [sound for name, sound in self.under("wake/") if "alexa" not in name]
        return [sound for _, sound in self.under(*sorted(folders))] + wakes + own

    def own(self, text: str) -> Pcm:
        """The box's own voice; synthesis is costly."""
        if text not in self.voiced:
            self.voiced[text] = said(self.engines.speaker, text)
        return self.voiced[text]

    def spoken(self, word: str) -> list[tuple[str, Wave]]:
        """Recordings of the word, or the box's voice in many variants."""
        if word in RECORDED:
            return self.under(f"wake/{word}/")
        text = f"{word.replace('-', ' ').title()}."
        variants = [(tempo, pitch) for tempo in TEMPI for pitch in PITCHES]
        return [
            (f"{word} {tempo} {pitch}", pitched(to_wave(said(self.engines.speaker, text, tempo=tempo, seed=n)), pitch))
            for n, (tempo, pitch) in enumerate(variants)
        ]


def pitched(sound: Wave, pitch: float) -> Wave:
    return resample(sound, round(RATE * pitch), RATE) if pitch != 1.0 else sound


def power(sound: Wave) -> float:
    """Root mean square of the frames that are not silent."""
    whole = len(sound) // FRAME * FRAME
    energy = np.square(sound[:whole].reshape(-1, FRAME)).mean(axis=1)
    return float(np.sqrt(energy[energy > energy.max() * 0.01].mean())) or 1e-6


def at_level(sound: Wave, dbfs: float) -> Wave:
    return sound * np.float32(10 ** (dbfs / 20) / max(power(sound), 1e-6))


def in_room(sound: Wave, response: Wave | None) -> Wave:
    if response is None:
        return sound
    size = len(sound) + len(response) - 1
    return np.fft.irfft(np.fft.rfft(sound, size) * np.fft.rfft(response, size), size).astype(np.float32)


def stretch(rng: Rng, sound: Wave, size: int) -> Wave:
    repeated = np.tile(sound, -(-size // len(sound))) if len(sound) < size else sound
    start = int(rng.integers(0, len(repeated) - size + 1))
    return repeated[start : start + size]


def span(sound: Wave, name: str = "") -> tuple[int, int]:
    """Where the word begins and ends: around the loudest frame, up to a pause of 0.16 s 20 dB below it."""
    for key, (begin, end) in SPANS.items():
        if f"wake/{key}." in name:
            return round(begin * RATE), round(end * RATE)
    whole = len(sound) // FRAME * FRAME
    energy = 10 * np.log10(np.square(sound[:whole].reshape(-1, FRAME)).mean(axis=1) + 1e-12)
    loud = np.nonzero(np.convolve(energy, np.full(3, 1 / 3), "same") > energy.max() - 20)[0]
    cuts = np.nonzero(np.diff(loud) > 16)[0] + 1
    part = next(part for part in np.split(loud, cuts) if part[0] <= int(np.argmax(energy)) <= part[-1] + 1)
    return int(part[0]) * FRAME, (int(part[-1]) + 1) * FRAME


def music(rng: Rng, size: int) -> Wave:
    """Chords of decaying partials, a bass drum and a hiss on every beat."""
    beat, root = int(RATE * 60 / rng.uniform(70, 140)), rng.uniform(110, 220)
    out = np.zeros(size + 2 * beat, np.float32)
    time = np.arange(2 * beat) / RATE
    for number, start in enumerate(range(0, size, beat)):
        base = root * 2 ** (rng.choice([0, 2, 4, 5, 7, 9]) / 12)
        part = 2 * np.sin(2 * np.pi * 60 * time) * np.exp(-12 * time) * (number % 2 == 0)
        part += 0.8 * rng.normal(size=len(time)) * np.exp(-40 * time)
        for note in (1.0, 2 ** (rng.choice([3, 4]) / 12), 2 ** (7 / 12), 2 * 2 ** (rng.choice([0, 2, 4, 7]) / 12)):
            for partial in range(1, 7):
                part += np.sin(2 * np.pi * base * note * partial * time) * np.exp(-2.5 * time) / partial
        out[start : start + 2 * beat] += part.astype(np.float32)
    return out[:size] / np.abs(out).max()


def talk(rng: Rng, sounds: Sounds, size: int) -> Wave:
    """One recording behind the other, at many levels and pitches, dry or in a room."""
    out, at = np.zeros(size, np.float32), 0
    while at < size:
        one = pitched(sounds.speech[rng.integers(len(sounds.speech))], rng.choice([0.87, 0.93, 1.0, 1.0, 1.08, 1.16]))
        one = in_room(
            at_level(one, rng.uniform(-40, -18)), sounds.rooms[rng.integers(4)] if rng.random() < 0.5 else None
        )
        end = min(size, at + len(one))
        out[at:end] += one[: end - at]
        at = end + int(rng.uniform(0, 0.8) * RATE)
    return out


def babble(rng: Rng, sounds: Sounds, size: int) -> Wave:
    return np.sum([at_level(talk(rng, sounds, size), -26) for _ in range(rng.integers(3, 7))], axis=0) / 2


def minutes(sounds: Sounds, count: int) -> Iterator[tuple[str, Pcm]]:
    """Speech, noise and music without the words, a minute each."""
    rng = np.random.default_rng(17)
    for number in range(count):
        kind = ("speech", "speech", "speech", "mixed", "mixed", "babble", "noise", "music")[number % 8]
        noise = stretch(rng, sounds.noises[rng.integers(len(sounds.noises))], MINUTE)
        match kind:
            case "speech":
                sound = talk(rng, sounds, MINUTE)
            case "babble":
                sound = babble(rng, sounds, MINUTE)
            case "noise":
                sound = at_level(noise, rng.uniform(-50, -20))
            case "music":
                sound = at_level(music(rng, MINUTE), rng.uniform(-35, -15))
            case _:
                under = noise if rng.random() < 0.5 else music(rng, MINUTE)
                sound = at_level(talk(rng, sounds, MINUTE), -26) + at_level(under, rng.uniform(-41, -26))
        yield kind, to_pcm(np.clip(sound, -1, 1))


# --- scenes ----------------------------------------------------------------------------------------------------------


def trials(sounds: Sounds, word: str) -> Iterator[Trial]:
    rng = np.random.default_rng(3)
    for name, dry in sounds.spoken(word):
        for response in (None, sounds.rooms[1], sounds.rooms[3], sounds.rooms[4]):
            for level in (-46, -30, -16):
                yield scene(word, name, "clean", dry, response, level, rng.normal(size=RATE).astype(np.float32), 35)
        yield scene(word, name, "clean, worst room", dry, sounds.rooms[0], -26, rng.normal(size=RATE).astype("f4"), 35)
        for noise in sounds.noises:
            response = (None, *sounds.rooms[1:])[rng.integers(5)]
            yield scene(
                word, name, "noise", dry, response, rng.choice([-36, -26, -20]), stretch(rng, noise, 4 * RATE), 5
            )
        for kind, background in (("babble", babble(rng, sounds, 4 * RATE)), ("music", music(rng, 4 * RATE))):
            yield scene(word, name, kind, dry, None, -26, background, 5)
        order = sounds.speech[rng.integers(len(sounds.speech))]
        yield at_once(word, name, dry, order)
        for gain, delay, drift in ((-6, 0.03, 0), (0, 0.08, 50), (6, 0.2, 150)):
            yield over_own(sounds, rng, word, name, dry, gain, delay, drift)


def scene(
    word: str, name: str, kind: str, dry: Wave, response: Wave | None, level: float, background: Wave, snr: float
) -> Trial:
    """The word at `level` dBFS, `snr` dB above the background."""
    begin, end = (LEAD + at for at in span(dry, name))
    heard = at_level(in_room(dry, response), level)
    sound = np.zeros(LEAD + len(heard) + RATE, np.float32)
    sound[LEAD : LEAD + len(heard)] = heard
    sound += np.tile(at_level(background, level - snr), -(-len(sound) // len(background)))[: len(sound)]
    return Trial(word, name, kind, to_pcm(np.clip(sound, -1, 1)), begin, end)


def at_once(word: str, name: str, dry: Wave, order: Wave) -> Trial:
    """An order that begins with the sample behind the word."""
    (first, last), start = span(dry, name), span(order)[0]
    sound = np.concatenate([np.zeros(LEAD, np.float32), at_level(dry[:last], -26), at_level(order, -26)[start:]])
    return Trial(word, name, "order at once", to_pcm(np.clip(sound, -1, 1)), LEAD + first, LEAD + last)


def over_own(
    sounds: Sounds, rng: Rng, word: str, name: str, dry: Wave, gain: float, delay: float, drift: float
) -> Trial:
    """Over an answer of the box, as loud as its echo."""
    answer = own_speech(sounds, [REPLIES[rng.integers(len(REPLIES))] for _ in range(2)])
    end = int(rng.uniform(4, 7) * RATE)
    voice = at_level(dry, 20 * np.log10(power(to_wave(answer))) + gain)
    first, last = span(dry, name)
    user = np.zeros(10 * RATE, np.float32)
    start = end - last
    user[start : start + len(voice)] = voice[: len(user) - start]
    near, far = echoed(answer, user, gain, delay, drift)
    return Trial(word, name, "own speech", near, start + first, end, far)


def own_speech(sounds: Sounds, texts: Sequence[str]) -> Pcm:
    pieces = [sounds.own(text) for text in texts]
    return (0.4 * np.concatenate([np.concatenate([piece, np.zeros(RATE // 3, np.int16)]) for piece in pieces])).astype(
        np.int16
    )


def echoed(answer: Pcm, user: Wave, gain: float, delay: float, drift: float) -> tuple[Pcm, tuple[Pcm, ...]]:
    """The microphone, and what the loudspeaker took in each of its frames."""
    room = Room(delay=delay, gain=gain, response=reverberation(0.3, seed=1), drift=drift)
    rng, at, near, far = np.random.default_rng(0), 0, [], []
    for start in range(0, len(user) - FRAME + 1, FRAME):
        due = room.due
        piece = answer[at : at + due]
        at += due
        far.append(np.concatenate([piece, np.zeros(due - len(piece), np.int16)]))
        heard = to_wave(room.push(far[-1])) + user[start : start + FRAME] + rng.normal(0, 3e-4, FRAME)
        near.append(to_pcm(np.clip(heard, -1, 1).astype(np.float32)))
    return np.concatenate(near), tuple(far)


# --- both sides ------------------------------------------------------------------------------------------------------


def ours(wake: Wake, sound: Pcm, far: Sequence[Pcm] = ()) -> tuple[list[Woke], Pcm]:
    """What wakes Parley, and the sound it was given: behind the canceller where the box plays."""
    wake.reset()
    echo = Echo("webrtc") if far else None
    heard, cleaned = [], []
    for number, start in enumerate(range(0, len(sound) - FRAME + 1, FRAME)):
        frame = sound[start : start + FRAME]
        if echo:
            frame = echo.push(frame, far[number]).gentle
        cleaned.append(frame)
        heard += wake.push(frame, start, **({"far": far[number]} if far else {}))
    if echo:
        echo.close()
    return heard, np.concatenate(cleaned)


def theirs(ask: Ask, scratch: Path, sound: Pcm) -> dict[str, Any]:
    wav.write(scratch / "sound.wav", to_wave(sound))
    return ask({"wav": str(scratch / "sound.wav")})


def recall(wake: Wake, ask: Ask, scratch: Path, found: Iterator[Trial]) -> list[dict[str, Any]]:
    rows = []
    for trial in found:
        woke, cleaned = ours(wake, trial.sound, trial.far)
        near = [w for w in woke if w.word == trial.word and w.end >= trial.begin]
        bare = theirs(ask, scratch, trial.sound)["heard"][trial.word]
        row = {
            "word": trial.word,
            "recording": trial.recording,
            "kind": trial.kind,
            "ours": bool(near),
            "peer": any(at >= trial.begin / RATE for at in bare),
            "end": (near[0].end - trial.end) * 1000 / RATE if near else None,
            "wrong": [w.word for w in woke if w not in near],
        }
        if trial.far:
            same = theirs(ask, scratch, cleaned)["heard"][trial.word]
            row["peer, cleaned"] = any(at >= trial.begin / RATE for at in same)
        rows.append(row)
    return rows


def false_wakes(wake: Wake, ask: Ask, scratch: Path, found: Iterator[tuple[str, Pcm]]) -> list[dict[str, Any]]:
    rows = []
    for number, (kind, sound) in enumerate(found):
        used = time.process_time()
        woke, _ = ours(wake, sound)
        used = time.process_time() - used
        answer = theirs(ask, scratch, sound)
        bare = [name for name, times in answer["heard"].items() for _ in times]
        row = {"minute": number, "kind": kind, "ours": [w.word for w in woke], "peer": bare}
        rows.append({**row, "cpu": used / 60, "peer cpu": answer["cpu"] / 60})
    return rows


def mentions(sounds: Sounds, wake: Wake, ask: Ask, scratch: Path, word: str) -> list[dict[str, Any]]:
    """Answers that hold the word, through rooms, and the same without any canceller."""
    name, rows = word.replace("-", " "), []
    for gain, delay, drift in ((-6, 0.0, 0), (0, 0.03, 50), (6, 0.08, 150), (0, 0.2, 50)):
        answer = own_speech(sounds, [text.format(name) for text in MENTIONS])
        near, far = echoed(answer, np.zeros(len(answer) + RATE, np.float32), gain, delay, drift)
        woke, cleaned = ours(wake, near, far)
        row = {"word": word, "gain": gain, "mentions": 6, "ours": len(woke)}
        row["peer"] = len(theirs(ask, scratch, near)["heard"][word])
        row["peer, cleaned"] = len(theirs(ask, scratch, cleaned)["heard"][word])
        wake.reset()
        pieces = zip(range(0, len(near), FRAME), far, strict=False)
        row["ours, no canceller"] = sum(len(wake.push(near[at : at + FRAME], at, far=piece)) for at, piece in pieces)
        rows.append(row)
    return rows


def run(words: Sequence[WakeWord], sounds: Sounds, count: int, *, scenes: bool) -> dict[str, Any]:
    names = [word.name for word in words]
    with tempfile.TemporaryDirectory() as folder, peer("wake_peer.py", {"words": names}) as ask:
        scratch = Path(folder)
        result: dict[str, Any] = {"recall": [], "own replies": []}
        for word in words if scenes else ():
            alone = Wake([word])
            result["recall"] += recall(alone, ask, scratch, trials(sounds, word.name))
            result["own replies"] += mentions(sounds, alone, ask, scratch, word.name)
        result["false"] = false_wakes(Wake(words), ask, scratch, minutes(sounds, count))
    result["words"] = len(words)
    return result


def percent(rows: Sequence[dict[str, Any]], key: str) -> float:
    return 100 * float(np.mean([row[key] for row in rows])) if rows else float("nan")


def show(result: dict[str, Any]) -> None:
    rows = result["recall"]
    for word in dict.fromkeys(row["word"] for row in rows):
        of_word = [row for row in rows if row["word"] == word]
        recordings = len({row["recording"] for row in of_word})
        print(f"{word}: {recordings} {'recordings' if word in RECORDED else 'synthetic words'}")
        for kind in dict.fromkeys(row["kind"] for row in of_word):
            some = [row for row in of_word if row["kind"] == kind]
            target = judged(percent(some, "ours"), TARGETS[kind], at_least=True, timed=False) if kind in TARGETS else ""
            cleaned = f", cleaned {percent(some, 'peer, cleaned'):.1f}" if "peer, cleaned" in some[0] else ""
            print(
                f"  {kind:18} {len(some):4} trials  heard {percent(some, 'ours'):5.1f} %  "
                f"peer {percent(some, 'peer'):5.1f}{cleaned} %  {target}"
            )
        ends = [row["end"] for row in of_word if row["end"] is not None and row["kind"] != "own speech"]
        low, middle, high = np.percentile(ends, [5, 50, 95])
        print(f"  the end as told, ms behind the true one: median {middle:.0f}, 90 of 100 from {low:.0f} to {high:.0f}")
    quiet = result["false"]
    hours = len(quiet) / 60
    for side in ("ours", "peer"):
        of_kind = {kind: sum(len(row[side]) for row in quiet if row["kind"] == kind) for kind in ("speech", "babble")}
        total = [word for row in quiet for word in row[side]]
        each = {word: total.count(word) for word in sorted(set(total))}
        worst = max(each.values(), default=0) / max(hours, 1e-9)
        print(
            f"false wakes, {side}: {each} in {hours:.2f} h ({of_kind}); each word {judged(worst, 0.5, timed=False)} /h"
        )
    for word in dict.fromkeys(row["word"] for row in result["own replies"]):
        some = [row for row in result["own replies"] if row["word"] == word]
        said, *sums = (sum(row[key] for row in some) for key in ("mentions", "ours", "ours, no canceller", "peer"))
        print(
            f"own replies that say {word} {said} times: {judged(sums[0], 0, timed=False)}, "
            f"without a canceller {sums[1]}, peer {sums[2]}, "
            f"behind our canceller {sum(row['peer, cleaned'] for row in some)}"
        )
    if quiet:
        cpu, bare = (figures([row[key] for row in quiet])["p50"] for key in ("cpu", "peer cpu"))
        print(f"CPU of {result['words']} words, of a core: {100 * cpu:.2f} %, peer {100 * bare:.2f} %")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--word", action="append", choices=WORDS, help="default: all")
    parser.add_argument("--minutes", type=int, default=140, help="of sound that holds none of the words")
    parser.add_argument("--minutes-only", action="store_true", help="no scenes that hold a word")
    parser.add_argument("--audio", type=Path, default=ROOT.parent / "shared/audio")
    given = parser.parse_args()
    shelf = user_shelf()
    sounds = Sounds(given.audio, Engines(config.load(), shelf))
    with ExitStack() as stack:
        words, faults = stack.enter_context(open_words(shelf, [f"wake-{name}" for name in given.word or WORDS]))
        for fault in faults:
            raise fault
        report(run(words, sounds, given.minutes, scenes=not given.minutes_only), show, as_json=given.json)


if __name__ == "__main__":
    main()
