"""Writes LICENCES.md: the licence of every model in the manifests and of every library."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from packaging.requirements import Requirement  # noqa: E402

from appliance.runtime.card import Shelf  # noqa: E402
from models.quantized import MANIFESTS  # noqa: E402

PEERS = (
    ("faster-whisper", "MIT"),
    ("llama-cpp-python", "MIT"),
    ("openvino-genai", "Apache-2.0"),
    ("piper-tts", "GPL-3.0-or-later"),
    ("pymicro-wakeword", "Apache-2.0"),
)
"""Installed by `bench-setup` into an environment of their own, to measure against; no part of Parley."""
CARRIED = (
    (
        "livekit",
        "liblivekit_ffi.so: WebRTC (BSD-3-Clause) and what it is built from, among it decoders of FFmpeg "
        "(LGPL-2.1-or-later), linked in; all texts: livekit/rtc/resources/LICENSE.md",
    ),
    ("speexdsp", "links with the system's libspeexdsp (BSD-3-Clause)"),
    ("pyaudio", "links with the system's PortAudio (MIT)"),
)
"""Native code inside a package, or beside it, that its metadata does not speak of and that matters."""
SHORT = {
    "Apache": "Apache-2.0",
    "BSD License": "BSD",
    "MIT License": "MIT",
    "Apache Software License": "Apache-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "ISC License (ISCL)": "ISC",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
}


def project(extra: str = "") -> list[str]:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed: list[str] = table["optional-dependencies"][extra] if extra else table["dependencies"]
    return listed


def closure(requirements: Iterable[str]) -> list[str]:
    """The distributions that the requirements bring in on this machine, themselves included, in the order of names.

    What is not installed (live audio on a box without PortAudio) is listed by name alone.
    """
    found: dict[str, str] = {}
    waiting = [(Requirement(text), "") for text in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if name in found:
            continue
        found[name] = requirement.name
        try:
            needs = metadata.distribution(name).requires or []
        except metadata.PackageNotFoundError:
            continue
        waiting += [(Requirement(text), extra) for text in needs for extra in (*requirement.extras, "")]
    return sorted(found)


def licence(name: str) -> str:
    """From the distribution's own metadata: the SPDX expression, else the classifier, else the first line."""
    try:
        meta = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return {"pyaudio": "MIT", "speexdsp": "BSD"}.get(name, "not installed here")
    if expression := meta.get_all("License-Expression"):
        return str(expression[0])
    classifiers = [c.rpartition(" :: ")[2] for c in meta.get_all("Classifier") or [] if c.startswith("License ::")]
    classifiers = [c for c in classifiers if c != "OSI Approved"]
    if classifiers:
        return " OR ".join(SHORT.get(c, c) for c in classifiers)
    words = (meta.get_all("License") or ["see the package"])[0]
    first = str(words).strip().splitlines()[0]
    return SHORT.get(first, first)


def shipped() -> Iterator[tuple[str, str]]:
    """Every library that an installed Parley uses, live audio included."""
    for name in closure([*project(), *project("audio"), *project("speex")]):
        yield name, licence(name)


def tools() -> Iterator[tuple[str, str]]:
    known = {name for name, _ in shipped()}
    for name in closure(project("dev")):
        if name not in known:
            yield name, licence(name)


def direct() -> set[str]:
    """The names that have to be listed on every machine: what a library brings in differs between platforms."""
    wanted = [Requirement(text).name.lower() for extra in ("", "audio", "speex", "dev") for text in project(extra)]
    return {*wanted, *(id for id, *_ in models())}


def models() -> Iterator[tuple[str, str, str, str]]:
    cards = Shelf(ROOT, (MANIFESTS,)).cards()
    for card in sorted(cards.values(), key=lambda card: card.id):
        packages = sorted({part.package for source in card.sources for part in source.parts if part.package})
        yield card.id, card.licence, card.attribution, ", ".join(packages) or "a file or an address in the manifest"


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(headings)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines
    )


def names(text: str) -> set[str]:
    """The first cell of every row: what a LICENCES.md names, whatever the versions and the words around them."""
    return set(re.findall(r"^\| ([^|]+?) \|", text, re.MULTILINE))


def render() -> str:
    parts = [
        "# Licences",
        "Generated by `./just licences`; a test keeps it up to date. Parley itself: Apache-2.0 (LICENSE).",
        "## Models\n\nBuilt on the user's machine from the packages named here; no weights are in the repository.",
        table(("model", "licence", "attribution", "source"), models()),
        "## Libraries",
        table(("library", "licence"), shipped()),
        "### Native code that they carry or link with",
        table(("library", "what and under which licence"), CARRIED),
        "## Tools of development, not shipped",
        table(("tool", "licence"), tools()),
        "## Peers that the bench measures against, in an environment of their own, not shipped",
        table(("peer", "licence"), PEERS),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    (ROOT / "LICENCES.md").write_text(render())
