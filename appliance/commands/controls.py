"""parley mute | wake | press: the controls of a daemon, from another process."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from appliance.commands.console import command, print_json, print_table
from appliance.config import Config, state_home
from appliance.errors import ConfigFault

if TYPE_CHECKING:
    from appliance.controls import Controls

OWN = "default"
"""What is written for a threshold to go back to the model's own."""


def add(commands: Any, everywhere: argparse.ArgumentParser) -> None:
    closed = command(commands, everywhere, "mute", mute, "close the microphone, or open it again", machine=True)
    closed.add_argument("to", nargs="?", choices=("on", "off"), default="on", metavar="on|off", help="default: on")
    words = command(commands, everywhere, "wake", wake, "show the wake words, or set a threshold", machine=True)
    words.add_argument("word", nargs="?", metavar="WORD", help="one of those in [wake] words; default: show all")
    words.add_argument(
        "threshold", nargs="?", metavar="THRESHOLD", help=f"between 0 and 1: lower wakes sooner; {OWN}: the model's own"
    )
    command(commands, everywhere, "press", press, "do what the button does: the box attends without a wake word")


def open_controls(config: Config) -> Controls:
    """Says on stderr what is wrong with what was kept."""
    from appliance.controls import HEAL, Controls

    controls = Controls(state_home(), config.wake.words)
    if controls.doubt:
        print(f"warning: {controls.path}: {controls.doubt}; {HEAL}", file=sys.stderr)
    return controls


def mute(args: argparse.Namespace, config: Config) -> int:
    """A daemon whose state lies in the same folder follows within half a second."""
    from appliance.controls import Controls

    controls = Controls(state_home())
    controls.mute(args.to == "on")
    if args.json:
        print_json({"muted": controls.muted})
    elif controls.muted:
        print(f"muted: the microphone is closed, and stays so over a restart ({controls.path})")
    else:
        print(f"not muted: the microphone is open ({controls.path})")
    return 0


def wake(args: argparse.Namespace, config: Config) -> int:
    controls = open_controls(config)
    if args.threshold is not None:
        controls.threshold(args.word, _threshold(args.threshold))
    elif args.word is not None:
        controls.known(args.word)
    own = _own_thresholds(config)
    rows = [(word, controls.thresholds.get(word), own.get(word)) for word in config.wake.words]
    rows = [row for row in rows if args.word in (None, row[0])]
    if args.json:
        words = [{"word": word, "threshold": given or model, "own": model} for word, given, model in rows]
        print_json({"mode": config.wake.mode, "muted": controls.muted, "words": words})
        return 0
    shown = [(word, _shown(given, model), "" if model is None else f"{model:g}") for word, given, model in rows]
    print_table(("wake word", "threshold", "the model's own"), shown)
    if config.wake.mode != "word":
        print(f'[wake] mode is "{config.wake.mode}": no wake word is listened for')
    if controls.muted:
        print("muted: `parley mute off` opens the microphone")
    return 0


def press(args: argparse.Namespace, config: Config) -> int:
    from appliance.controls import push_button

    push_button(state_home())
    return 0


def _threshold(text: str) -> float | None:
    if text == OWN:
        return None
    try:
        return float(text)
    except ValueError as error:
        raise ConfigFault(f"{text!r:.80} is no threshold", f"write a number between 0 and 1, or {OWN}") from error


def _shown(given: float | None, own: float | None) -> str:
    if given is None:
        return "there is no such model" if own is None else f"{own:g}"
    return f"[bold]{given:g}[/]"


def _own_thresholds(config: Config) -> dict[str, float]:
    """By word, for those whose model has a manifest."""
    from appliance.commands.shelf import open_shelf

    cards = open_shelf(config).cards()
    found = {
        word: cards[f"wake-{word}"].options.get("threshold") for word in config.wake.words if f"wake-{word}" in cards
    }
    return {word: float(own) for word, own in found.items() if isinstance(own, int | float)}
