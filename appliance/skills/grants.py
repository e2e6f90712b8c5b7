"""What a grant allows. Pure checks, each refusing what was not named."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

TOPIC = 256
KEY = 128


def topic(name: str, filters: Sequence[str]) -> bool:
    """Whether a topic to publish or read lies under one of the MQTT filters: "+" is one level, "#" the rest. A topic is
    no filter, and none of the broker's own ("$...")."""
    if not name or len(name) > TOPIC or name.startswith("$") or any(char in "+#\0" for char in name):
        return False
    return any(_under(name.split("/"), one.split("/")) for one in filters)


def _under(levels: list[str], wanted: list[str]) -> bool:
    for number, want in enumerate(wanted):
        if want == "#":
            return number == len(wanted) - 1
        if number >= len(levels) or want not in ("+", levels[number]):
            return False
    return len(levels) == len(wanted)


def host(url: str, hosts: Sequence[str]) -> bool:
    """Whether the address is at exactly one of the named hosts; a name with a port is for that port alone, one without
    for the usual port of its scheme."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or "\\" in url:
        return False
    name = parts.hostname.rstrip(".").lower()
    usual = port in (None, 443 if parts.scheme == "https" else 80)
    for one in hosts:
        wanted, _, at = one.lower().partition(":")
        if name == wanted and (str(port) == at if at else usual):
            return True
    return False


def key(name: str) -> bool:
    """Whether a text can be the key of something remembered."""
    return 0 < len(name) <= KEY and name.isprintable()


def file(name: str) -> bool:
    """Whether a text is a plain file name."""
    return 0 < len(name) <= KEY and name.isprintable() and not name.startswith(".") and not set(name) & set("/\\:\0")
