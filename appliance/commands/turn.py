from __future__ import annotations

import argparse
from typing import Any


def add(commands: Any, everywhere: argparse.ArgumentParser) -> None:
    pass
