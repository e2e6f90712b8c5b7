"""What a grant allows. Pure checks, each refusing what was not named."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

TOPIC = 256
KEY = 128
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")


def topic(name: str, filters: Sequence[str]) -> bool:
    """Whether a topic to publish or read lies under one of the MQTT filters: "+" is one level, "#" the rest. A topic is
    no filter, and none of the broker's own ("$...")."""
    if not name or len(name) > TOPIC or name.startswith("$") or not name.isprintable() or set(name) & set("+#"):
        return False
    return any(_under(name.split("/"), one.split("/")) for one in filters)


def topics(filter: str) -> bool:
    """Whether a text is an MQTT filter: "+" and "#" stand alone in a level, "#" in the last."""
    levels = filter.split("/")
    alone = all(level in ("+", "#") or not set(level) & set("+#") for level in levels)
    plain = 0 < len(filter) <= TOPIC and filter.isprintable() and not filter.startswith("$")
    return plain and alone and "#" not in levels[:-1]


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
    # urlsplit drops tabs and line ends, which whoever opens the address may not
    if (
        parts.scheme not in ("http", "https")
        or "@" in parts.netloc
        or "\\" in url
        or not url.isprintable()
        or " " in url
    ):
        return False
    name = _name(parts.hostname or "")
    usual = 443 if parts.scheme == "https" else 80
    asked = usual if port is None else port
    return name is not None and any((name, asked) == (at[0], at[1] or usual) for one in hosts if (at := place(one)))


def place(host: str) -> tuple[str, int] | None:
    """Name or address, and port (0: the usual one), of what a grant names: "example.com", "10.0.0.7:8080", "[::1]:80".
    None when it is no host."""
    try:
        parts = urlsplit(f"//{host}")
        port = parts.port
    except ValueError:
        return None
    if parts.netloc != host or not host.isprintable() or "@" in host or host.endswith(":") or port == 0:
        return None
    name = _name(parts.hostname or "")
    return None if name is None else (name, port or 0)


def _name(host: str) -> str | None:
    """One way to write a host."""
    host = host.lower().removesuffix(".")
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    labels = host.split(".")
    # the last label of a name is no number: 127.1 and 0x7f000001 are other ways to write an address
    known = len(host) <= 253 and all(map(_LABEL.fullmatch, labels)) and not labels[-1][0].isdigit()
    return host if known else None


def key(name: str) -> bool:
    """Whether a text can be the key of something remembered."""
    return 0 < len(name) <= KEY and name.isprintable()


def file(name: str) -> bool:
    """Whether a text is a plain file name."""
    return 0 < len(name) <= KEY and name.isprintable() and not name.startswith(".") and not set(name) & set("/\\:\0")
