"""parley bench: hands over to the measurements of a checkout, which need the peers' environment."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

from appliance.commands.console import command
from appliance.config import Config
from appliance.errors import ConfigFault

ROOT = Path(__file__).resolve().parent.parent.parent


def add(commands: Any, everywhere: argparse.ArgumentParser) -> None:
    parser = command(commands, everywhere, "bench", run, "measure this box against the peers, on the same weights")
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, help="for the measurements (try: parley bench -- --help)"
    )


def run(args: argparse.Namespace, config: Config) -> int:
    if not (ROOT / "tests/bench/__main__.py").exists():
        raise ConfigFault("the measurements are not part of an installed Parley", "run ./just bench in a checkout")
    given = args.arguments[1:] if args.arguments[:1] == ["--"] else args.arguments
    return subprocess.run([sys.executable, "tests/bench", *given], cwd=ROOT, check=False).returncode
