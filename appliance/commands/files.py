"""Sound files of the user's, with `-` for the pipe."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from appliance.errors import AudioFault
from firmware import wav
from firmware.frame import Pcm, Wave

PIPE = Path("-")


@contextmanager
def recording(path: Path) -> Iterator[Path]:
    """A path that can be read more than once: stdin is copied first."""
    if path != PIPE:
        yield path
        return
    with tempfile.NamedTemporaryFile(prefix="parley-stdin-", suffix=".wav") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
        try:
            yield Path(copy.name)
        except AudioFault as fault:
            raise AudioFault(fault.message.replace(copy.name, "stdin"), fault.fix.replace(copy.name, "FILE")) from fault


def write_sound(path: Path, samples: Pcm | Wave, rate: int) -> None:
    """A WAV that is written whole or not at all."""
    if path != PIPE:
        wav.write(path, samples, rate)
        return
    with tempfile.TemporaryDirectory(prefix="parley-") as folder:
        wav.write(Path(folder) / "sound.wav", samples, rate)
        sys.stdout.buffer.write((Path(folder) / "sound.wav").read_bytes())
        sys.stdout.buffer.flush()


def text_of(words: Sequence[str]) -> str:
    """The words of a command line joined; a single `-` reads stdin."""
    return sys.stdin.read() if list(words) == ["-"] else " ".join(words)
