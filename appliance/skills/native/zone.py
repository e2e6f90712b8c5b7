"""The zone that the box stands in."""

from __future__ import annotations

import os
from datetime import UTC, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

LOCALTIME = Path("/etc/localtime")


def here(folder: Path = LOCALTIME) -> tzinfo:
    """The zone that the machine is set to, with its rules for summer time; UTC where none can be found."""
    name = os.environ.get("TZ", "").lstrip(":")
    if not name and folder.is_symlink():
        name = str(folder.readlink()).partition("zoneinfo/")[2]
    try:
        if name:
            return ZoneInfo(name)
        with folder.open("rb") as file:
            return ZoneInfo.from_file(file, key="local")
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return UTC
