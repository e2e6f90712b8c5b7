"""parley say | transcribe"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from appliance.commands.console import command, print_json_line
from appliance.commands.files import recording, text_of, write_sound
from appliance.config import Config
from appliance.errors import AudioFault, Fault

if TYPE_CHECKING:
    from appliance.runtime.asr import Passage, Recogniser
    from firmware.frame import Wave


def add(commands: Any, everywhere: argparse.ArgumentParser) -> None:
    speak = command(commands, everywhere, "say", say, "speak a text")
    speak.add_argument("text", nargs="+", metavar="TEXT", help="what to say; - is stdin")
    speak.add_argument(
        "-o", "--output", type=Path, metavar="WAV", help="a file instead of the loudspeaker; - is stdout"
    )
    write = command(
        commands, everywhere, "transcribe", transcribe, "write down what is said in recordings", machine=True
    )
    write.add_argument("files", nargs="+", type=Path, metavar="FILE", help="recordings; - is stdin")


def say(args: argparse.Namespace, config: Config) -> int:
    import numpy as np

    from appliance.commands.turn import engines_of

    text = text_of(args.text).strip()
    engines = engines_of(config)
    speaker = engines.speaker
    chunks = (chunk.samples for chunk in speaker.say(engines.for_the_ear(text)))
    if args.output is None:
        _play(chunks, speaker.rate, config)
        return 0
    write_sound(args.output, np.concatenate([np.zeros(0, np.float32), *chunks]), speaker.rate)
    return 0


def _play(chunks: Iterable[Wave], rate: int, config: Config) -> None:
    """Raises DeviceFault when there is no loudspeaker."""
    from firmware.device import Device

    device = Device(capture=None, playback=config.audio.output)
    player = device.mixer.player("speech")
    try:
        for samples in chunks:
            player.play(samples, rate)
        player.drain()
    finally:
        device.close()


def transcribe(args: argparse.Namespace, config: Config) -> int:
    """A file that cannot be read does not keep the others from being transcribed; its fault ends the command."""
    from appliance.commands.turn import engines_of

    recogniser = engines_of(config).recogniser
    unreadable: list[Fault] = []
    for file in args.files:
        try:
            with recording(file) as path:
                found = list(_passages(recogniser, path, config.hear.language))
        except AudioFault as fault:
            unreadable.append(fault)
            continue
        words = " ".join(passage.hypothesis.text.strip() for passage in found).strip()
        if args.json:
            print_json_line({"file": str(file), "text": words, "passages": [_as_dict(passage) for passage in found]})
        else:
            print(f"{file}: {words}" if len(args.files) > 1 else words, flush=True)
    for other in unreadable[1:]:
        print(f"error: {other}", file=sys.stderr)
    if unreadable:
        raise unreadable[0]
    return 0


def _passages(recogniser: Recogniser, path: Path, language: str) -> Iterator[Passage]:
    from firmware import wav
    from firmware.frame import to_wave

    chunks = (to_wave(frame.samples) for frame in wav.frames(path))
    yield from recogniser.passages(chunks, language=language)


def _as_dict(passage: Passage) -> dict[str, Any]:
    hypothesis = passage.hypothesis
    return {
        "start": round(passage.start, 2),
        "end": round(passage.end, 2),
        "text": hypothesis.text,
        "confidence": round(hypothesis.confidence, 4),
        "language": hypothesis.language,
        "reason": hypothesis.reason,
    }
