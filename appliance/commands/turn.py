"""parley run | ask | chat"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from appliance.commands.console import command, print_json, progress_bars
from appliance.commands.files import recording, text_of, write_sound
from appliance.config import Config
from appliance.errors import ConfigFault

if TYPE_CHECKING:
    from appliance.compose import Abilities, Engines
    from appliance.events import Event
    from appliance.stream import Stage
    from appliance.telemetry import Telemetry
    from appliance.voice.attend import Attention
    from appliance.voice.conversation import Conversation
    from firmware.frame import Pcm
    from firmware.sound import Sound

RATE = 24_000
"""Samples per second of an answer that is written to a file: above the rate of every voice of the default pack."""
LATEST = 8
"""Turns that a daemon keeps for its screen."""


def add(commands: Any, everywhere: argparse.ArgumentParser) -> None:
    command(commands, everywhere, "run", run, "start the daemon on the sound card")
    question = command(commands, everywhere, "ask", ask, "play a recorded question into the appliance", machine=True)
    question.add_argument(
        "file", type=Path, metavar="FILE", help="a recording (WAV, FLAC, MP3, Ogg Vorbis); - is stdin"
    )
    question.add_argument("-o", "--output", type=Path, metavar="WAV", help="write the spoken answer here; - is stdout")
    question.add_argument("--real-time", action="store_true", help="play it at the speed of speech, not faster")
    typed = command(commands, everywhere, "chat", chat, "answer a typed question in text", machine=True)
    typed.add_argument("text", nargs="*", metavar="TEXT", help="the question; - is stdin; nothing: a conversation")


# --- run ---------------------------------------------------------------------------------------------------------


def run(args: argparse.Namespace, config: Config) -> int:
    """Returns when it is told to (SIGTERM). It stays up without a sound card, says so, and works once there is one."""
    from appliance.telemetry import log, start_log

    start_log(config.log.level)
    engines = load(config, quiet=not sys.stderr.isatty())
    try:
        asyncio.run(_serve(engines))
    except asyncio.CancelledError:
        log("stopped")
    return 0


async def _serve(engines: Engines) -> None:
    """One conversation for as long as the process lives; the sound card may go and come back."""
    from appliance.commands.keys import keys
    from appliance.commands.show import Turns, hint, screen
    from appliance.compose import abilities, attend_rules, card, resume, suspend
    from appliance.config import state_home
    from appliance.controls import Controls
    from appliance.store.db import sole
    from appliance.telemetry import Telemetry
    from appliance.voice.attend import Attention
    from appliance.voice.conversation import Conversation
    from appliance.voice.duck import duck
    from appliance.voice.earcon import acknowledge

    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    wake, telemetry, conversation = engines.config.wake, Telemetry(), Conversation()
    controls, attention = Controls(state_home(), wake.words), Attention(attend_rules(engines.config))
    with (
        sole(state_home() / "daemon.lock"),
        keys(controls) as keyboard,
        screen(Turns(limit=LATEST), hint(wake, keyboard=keyboard)) as show,
        card(engines, controls, attention, telemetry) as front,
        abilities(engines, conversation, mixer=front.mixer, controls=controls, rings=True) as able,
    ):
        stages = (duck(front.mixer), acknowledge(front.mixer.player("earcon")), telemetry.watch)
        resume(engines, conversation, able)
        looking = asyncio.create_task(_look(able, telemetry))
        try:
            await converse(engines, front, conversation, show, *stages, attention=attention, able=able)
        finally:
            looking.cancel()
            suspend(engines, conversation, able)


async def _look(able: Abilities, telemetry: Telemetry) -> None:
    """Skills and documents may come, go and change while the box runs; memory is tidied."""
    import logging

    from appliance.errors import StorageFault
    from appliance.telemetry import log

    while True:
        await asyncio.sleep(2.0)
        health = able.memory.health
        telemetry.gauge("memory without a disk", not health.ok)
        telemetry.gauge("memory turns not on the disk", health.pending)
        telemetry.gauge("memory turns lost", health.dropped)
        try:
            await asyncio.to_thread(able.poll)
        except StorageFault as fault:
            log("skills, documents and memory", level=logging.ERROR, message=fault.message, fix=fault.fix)


async def converse(
    engines: Engines,
    sound: Sound,
    conversation: Conversation,
    show: Callable[[Event], object],
    *watchers: Stage,
    attention: Attention | None = None,
    able: Abilities | None = None,
) -> None:
    """Runs the voice loop until the sound ends."""
    from appliance.compose import talk

    async with talk(engines, sound, conversation, *watchers, attention=attention, able=able) as events:
        async for event in events:
            show(event)


# --- ask ---------------------------------------------------------------------------------------------------------


def ask(args: argparse.Namespace, config: Config) -> int:
    from appliance.commands.show import Turns, print_waterfall, screen

    piped = args.output == Path("-")
    with recording(args.file) as path:
        engines = load(config, quiet=args.json or piped)
        turns = Turns()
        if args.json or piped:
            sound = play(engines, path, turns.on, real_time=args.real_time)
        else:
            with screen(turns) as show:
                sound = play(engines, path, show, real_time=args.real_time)
    answered = turns.answered
    if args.output and len(sound):
        write_sound(args.output, sound, RATE)
    if args.json:
        print_json({"turns": [turn.as_dict() for turn in answered], "seconds": round(len(sound) / RATE, 2)})
    elif not piped:
        for turn in answered[-1:]:
            print_waterfall(turn)
        if not answered:
            print("no words were recognised", file=sys.stderr)
    failures = [failure for turn in turns.seen.values() for failure in turn.failures]
    return 1 if failures else 0


def play(engines: Engines, source: Pcm | Path, show: Callable[[Event], object], *, real_time: bool = False) -> Pcm:
    """Plays `source` into the appliance; returns what its loudspeaker put out, int16 [n] at RATE, without the silence
    around it."""
    import numpy as np

    from appliance.compose import abilities
    from appliance.voice.conversation import Conversation
    from firmware.fake import Fake

    tail = engines.config.endpoint.hold_ms / 1000 + 0.5
    sound, conversation = Fake(source, tail=tail, rate=RATE, pace=1.0 if real_time else None), Conversation()
    with abilities(engines, conversation, mixer=sound.mixer) as able:
        asyncio.run(converse(engines, sound, conversation, show, able=able))
    output = sound.output()
    (loud,) = np.nonzero(output)
    return output[loud[0] : loud[-1] + 1] if len(loud) else output[:0]


# --- chat --------------------------------------------------------------------------------------------------------


def chat(args: argparse.Namespace, config: Config) -> int:
    from appliance.compose import abilities, resume
    from appliance.voice.conversation import Conversation

    engines, conversation = engines_of(config), Conversation()
    with abilities(engines, conversation) as able:
        if args.text:
            asked = text_of(args.text).strip()
            if not asked:
                raise ConfigFault(
                    "the question is empty", "write it behind `parley chat`, or nothing for a conversation"
                )
            asyncio.run(_answer(engines, conversation, able, asked, args.json))
            return 0
        resume(engines, conversation, able)
        prompt = "> " if sys.stdin.isatty() else ""
        while True:
            try:
                asked = input(prompt).strip()
            except EOFError:
                return 0
            if asked:
                asyncio.run(_answer(engines, conversation, able, asked, args.json))


async def _answer(engines: Engines, conversation: Conversation, able: Abilities, asked: str, as_json: bool) -> None:
    from appliance.commands.show import Turn
    from appliance.compose import reply
    from appliance.events import Phrase

    turn, begun = Turn(1), False
    async for event in reply(engines, conversation, asked, able):
        turn.on(event)
        if isinstance(event, Phrase) and not as_json:
            print(event.text if begun else event.text.lstrip(), end="", flush=True)
            begun = True
    if as_json:
        print_json({"question": asked, "answer": turn.answer, **turn.grounds})
    else:
        print()


# --- engines -----------------------------------------------------------------------------------------------------


def engines_of(config: Config) -> Engines:
    """Nothing is loaded yet."""
    from appliance.commands.shelf import open_shelf
    from appliance.compose import Engines

    return Engines(config, open_shelf(config))


def load(config: Config, *, quiet: bool) -> Engines:
    """Every model loaded and run once. Raises ModelFault."""
    engines = engines_of(config)
    with progress_bars(quiet) as report:
        engines.warm(lambda what, fraction: report("loading", what, fraction))
    return engines
