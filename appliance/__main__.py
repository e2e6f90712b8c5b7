"""The `parley` command: reads the arguments and the settings, runs one command, turns a fault into one message.

Parley's own modules are imported inside the functions: Ctrl-C is handled from the first of them on.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

EXIT_CODES = {
    0: "it worked",
    1: "something failed that no other code names; `doctor`, `models verify`: a check failed",
    2: "the command line or a setting is wrong",
    3: "the sound could not be read; `doctor`: this user is not allowed to use the sound card",
    4: "a model is missing, damaged or cannot be built",
    5: "the sound card is missing or failed",
    6: "the disk is full, read-only or failing",
    7: "a stage did not finish in time",
    8: "a skill cannot be loaded, built or installed",
    9: "a document cannot be read",
    10: "the network did not answer",
    130: "stopped with Ctrl-C",
}


def parser() -> argparse.ArgumentParser:
    from appliance.commands import bench, controls, demo, doctor, knowledge, memory, models, skill, speech, turn

    everywhere = argparse.ArgumentParser(add_help=False)
    everywhere.add_argument(
        "--config", type=Path, metavar="FILE", default=argparse.SUPPRESS, help="read these settings (TOML) last"
    )
    everywhere.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help="show the traceback of a failure"
    )
    top = argparse.ArgumentParser(
        prog="parley",
        description="A voice appliance on one box, without the cloud.",
        epilog="exit codes:\n" + "\n".join(f"  {code:3} {meaning}" for code, meaning in EXIT_CODES.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[everywhere],
    )
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for group in (turn, controls, speech, skill, knowledge, memory, models, doctor, bench, demo):
        group.add(commands, everywhere)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader has left (`parley models list | head -1`); what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(arguments: Sequence[str] | None) -> int:
    from appliance import config
    from appliance.errors import Fault

    args = parser().parse_args(arguments)
    try:
        code: int = args.run(args, config.load(getattr(args, "config", None)))
        sys.stdout.flush()
    except Fault as fault:
        if getattr(args, "debug", False):
            raise
        print(f"error: {fault.message}", file=sys.stderr)
        if fault.fix:
            print(f"  fix: {fault.fix}", file=sys.stderr)
        return fault.code
    return code


if __name__ == "__main__":
    sys.exit(main())
