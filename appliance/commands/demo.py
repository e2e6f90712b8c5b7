"""parley demo: from nothing to a spoken answer, and where its milliseconds went."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from appliance.commands.console import command, console, escape, progress_bars
from appliance.commands.files import write_sound
from appliance.config import Config
from appliance.errors import Fault, ModelFault

if TYPE_CHECKING:
    from appliance.compose import Engines
    from firmware.frame import Pcm, Wave

QUESTION = "What is the capital of France?"
NOISE_DB = -32.0
"""Level of the room's noise below the speech."""
ANSWER = Path("out/answer.wav")


def add(commands: Any, everywhere: argparse.ArgumentParser) -> None:
    parser = command(commands, everywhere, "demo", run, "build the models, ask a spoken question, show the answer")
    parser.add_argument("--question", default=QUESTION, help=f"what to ask (default: {QUESTION})")
    parser.add_argument("-o", "--output", type=Path, default=ANSWER, metavar="WAV", help=f"default: {ANSWER}")


def run(args: argparse.Namespace, config: Config) -> int:
    from appliance.commands.show import Turns, print_waterfall, screen
    from appliance.commands.turn import RATE, load, play

    out = console()
    build_missing(config)
    engines = load(config, quiet=False)
    question = ask_aloud(engines, args.question)
    out.print(f"[dim]a spoken question ({len(question) / 16_000:.1f} s, with the noise of a room) is played in[/]\n")
    turns = Turns()
    with screen(turns) as show:
        sound = play(engines, question, show, real_time=True)
    if not turns.answered:
        out.print("[red]no words were recognised[/]: run `parley doctor` and `parley models verify`")
        return 1
    print_waterfall(turns.answered[-1])
    if args.output == ANSWER:
        ANSWER.parent.mkdir(exist_ok=True)
    write_sound(args.output, sound, RATE)
    out.print(f"\nThe spoken answer ({len(sound) / RATE:.1f} s): [bold]{escape(str(args.output))}[/]")
    offer_live(config)
    return 0


def build_missing(config: Config) -> None:
    """Builds what the default pack lacks; what is there is not read again, so that a second run starts at once."""
    from appliance.commands.shelf import open_shelf
    from models.quantized.build import build_many

    shelf = open_shelf(config)
    missing = []
    for card in shelf.cards().values():
        try:
            shelf.built(card.id)
        except ModelFault:
            if not card.optional:
                missing.append(card.id)
    if missing:
        with progress_bars() as report:
            build_many(shelf, missing, report)


def ask_aloud(engines: Engines, question: str) -> Pcm:
    """The question as a microphone across the room would hear it, int16 [n] at 16 kHz."""
    import numpy as np

    from firmware.frame import RATE, to_pcm
    from firmware.resample import Resampler

    resampler = Resampler(engines.speaker.rate, RATE)
    chunks = engines.speaker.say(engines.for_the_ear(question))
    spoken = [resampler.push(chunk.samples) for chunk in chunks]
    return to_pcm(in_a_room(np.concatenate([*spoken, resampler.flush()]), RATE))


def in_a_room(speech: Wave, rate: int, *, before: float = 0.4, seed: int = 1) -> Wave:
    """Adds a decaying echo (0.3 s to -60 dB) and pink noise, which goes on `before` seconds ahead of the speech."""
    import numpy as np

    random = np.random.default_rng(seed)
    tail = np.arange(int(0.3 * rate))
    echo = random.normal(0, 0.02, len(tail)) * 10.0 ** (-3.0 * tail / len(tail))
    echo[0] = 1.0
    size = 1 << (len(speech) + len(echo) - 1).bit_length()
    wet = np.fft.irfft(np.fft.rfft(speech, size) * np.fft.rfft(echo, size))[: len(speech) + len(echo) - 1]
    wet = np.concatenate([np.zeros(int(before * rate)), wet])
    spectrum = np.fft.rfft(random.normal(0, 1, len(wet)))
    spectrum /= np.sqrt(np.maximum(1, np.arange(len(spectrum))))
    noise = np.fft.irfft(spectrum, len(wet))
    loudness = np.sqrt(np.mean(np.square(speech))) if len(speech) else 0.0
    noise *= loudness * 10 ** (NOISE_DB / 20) / np.sqrt(np.mean(np.square(noise)))
    return (wet + noise).astype(np.float32)


def offer_live(config: Config) -> None:
    """Says how to talk to Parley, and starts it where a person at a terminal with a sound card says yes."""
    from appliance.commands import turn
    from firmware.device import ports

    out = console()
    try:
        found = ports()
    except Fault as fault:
        out.print(f"[dim]Live audio is left out: {escape(fault.message)}. {escape(fault.fix)}[/]")
        return
    if not any(port.capture for port in found) or not any(port.playback for port in found):
        out.print("[dim]This box has no microphone or no loudspeaker: live audio is left out. See `parley doctor`.[/]")
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        out.print("There is a sound card: `parley run` listens to you.")
        return
    if input("There is a sound card. Talk to Parley now? [y/N] ").strip().lower().startswith("y"):
        out.print("Ctrl-C ends it.")
        turn.run(argparse.Namespace(), config)
