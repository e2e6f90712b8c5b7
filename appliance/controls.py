"""What a person changes while the box runs, and what stays over a restart: mute, and the thresholds of wake words.

One small JSON file, replaced whole and read by everybody; a running daemon sees a change at its next `poll`. In doubt
the box is muted: a file that cannot be read, or does not say whether it is, mutes.
"""

from __future__ import annotations

import difflib
import fcntl
import json
import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from appliance.errors import ConfigFault, StorageFault
from appliance.telemetry import log

FILE = "controls.json"
BUTTON = "button"
"""A file whose time of change is the last press of the button; it holds nothing."""
LARGEST = 1 << 16
"""Bytes; a file that is larger was not written here."""
PATIENCE = 2.0
"""Seconds to wait for another process that is just writing."""
HEAL = "`parley mute off` opens the microphone and writes the file anew"


@dataclass(frozen=True, slots=True)
class State:
    """`thresholds` holds only words that were given one: the others keep that of their model."""

    muted: bool = False
    thresholds: Mapping[str, float] = field(default_factory=dict)


Change = Callable[[State], State]


class Controls:
    """The controls of one box. Any thread may call any method; none raises for what a file holds.

    A change counts at once and is written then, which may take as long as the disk does. Raises StorageFault where it
    cannot be kept; it counts all the same. `words` are those that may be given a threshold.
    """

    def __init__(self, folder: Path, words: Collection[str] = ()) -> None:
        self._folder = folder
        self._words = tuple(words)
        self._state = self._saved = State()
        self._seen: _Mark | None = None
        self._pressed = False
        self._pushed = _mark(folder / BUTTON)
        self._listeners: tuple[Callable[[], None], ...] = ()
        self._changing, self._writing = threading.RLock(), threading.Lock()
        self.doubt = ""
        self._read()

    @property
    def state(self) -> State:
        return self._state

    @property
    def muted(self) -> bool:
        return self._state.muted

    @property
    def thresholds(self) -> Mapping[str, float]:
        return self._state.thresholds

    @property
    def path(self) -> Path:
        return self._folder / FILE

    def subscribe(self, listener: Callable[[], None]) -> None:
        """`listener` is called after each change and each press, in the thread that made it: it must not wait."""
        self._listeners = (*self._listeners, listener)

    def mute(self, on: bool) -> None:
        """Closes the microphone, or opens it again. Raises StorageFault."""
        self._change(lambda state: replace(state, muted=on))

    def threshold(self, word: str, value: float | None) -> None:
        """Sets the score from which `word` counts; None goes back to that of its model. Raises ConfigFault,
        StorageFault."""
        self.known(word)
        if value is not None and not 0 < value < 1:
            raise ConfigFault(f"the threshold of {word!r} is {value}", "it must lie between 0 and 1, the ends left out")
        self._change(lambda state: replace(state, thresholds=_with(state.thresholds, word, value)))

    def known(self, word: str) -> None:
        """Raises ConfigFault where the box does not listen for `word`."""
        if word not in self._words:
            close = difflib.get_close_matches(word, self._words, n=1)
            fix = f"did you mean {close[0]!r}?" if close else f"known are: {', '.join(self._words) or 'none'}"
            raise ConfigFault(f"the box does not listen for {word!r:.80}", f"{fix} ([wake] words)")

    def press(self) -> None:
        """The button: the box is to attend."""
        self._pressed = True
        self._tell()

    def pressed(self) -> bool:
        """Whether the button was pressed since the last call, and since the microphone was last closed or opened."""
        pressed, self._pressed = self._pressed, False
        return pressed

    def poll(self) -> None:
        """Takes over what another process has changed; to be called a few times in a second. Costs two looks at a
        folder, and never waits for a write in progress: the next call sees its outcome."""
        if _mark(self.path) != self._seen and self._writing.acquire(blocking=False):
            try:
                self._read()
            finally:
                self._writing.release()
        pushed = _mark(self._folder / BUTTON)
        if pushed != self._pushed:
            self._pushed = pushed
            if pushed is not None:
                self.press()

    def _change(self, change: Change) -> None:
        self._set(change)
        with self._writing, _locked(self._folder):
            self._read(ours=True)
            state = self._state
            _write(self.path, state)
            self._seen, self._saved, self.doubt = _mark(self.path), state, ""

    def _set(self, change: Change) -> None:
        with self._changing:
            before, self._state = self._state, change(self._state)
            self._pressed &= self.muted == before.muted
            if self._state != before:
                self._tell()

    def _tell(self) -> None:
        with self._changing:
            for listener in self._listeners:
                listener()

    def _read(self, *, ours: bool = False) -> None:
        """Takes over what the file says differently than before: a live change that could not be kept stays. Where both
        changed a threshold, the file's wins, or `ours`. A file that is gone says nothing."""
        seen = _mark(self.path)
        if seen == self._seen:
            return
        self._seen = seen
        if seen is None:
            return
        before, (self._saved, self.doubt) = self._saved, _load(self.path)
        if self.doubt:
            log("controls damaged", level=logging.WARNING, file=str(self.path), found=self.doubt, fix=HEAL)
        self._set(lambda state: _merged(state, before, self._saved, ours=ours))


def push_button(folder: Path) -> None:
    """Presses the button of the daemon whose state lies in `folder`, from another process. Raises StorageFault."""
    now = time.time_ns()
    with _storage(folder / BUTTON):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / BUTTON).touch()
        os.utime(folder / BUTTON, ns=(now, now))


# --- the file ----------------------------------------------------------------------------------------------------

_Mark = tuple[int, int, int]


def _mark(path: Path) -> _Mark | None:
    """Changes whenever the file is replaced or written; None without one. What cannot be looked at has a mark too: it
    may say that the box is muted."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        return 0, 0, error.errno or 0
    return found.st_mtime_ns, found.st_ino, found.st_size


def _load(path: Path) -> tuple[State, str]:
    """What the file says, and what is wrong with it. Never raises, never waits."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return State(muted=True), "it is no file"
        with path.open("rb") as file:
            return parse(file.read(LARGEST + 1))
    except OSError as error:
        return State(muted=True), f"it cannot be read: {error.strerror}"


def parse(data: bytes) -> tuple[State, str]:
    """The state that `data` describes, and what is wrong with it ("" where nothing is): what cannot be understood is
    left at its default, and the box is muted. Never raises."""
    try:
        found = json.loads(data) if len(data) <= LARGEST else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return State(muted=True), "it is not what was written"
    muted, thresholds = found.get("muted"), found.get("thresholds", {})
    wrong = [] if isinstance(muted, bool) else ["muted is neither true nor false"]
    if not isinstance(thresholds, dict):
        thresholds, wrong = {}, [*wrong, "thresholds is no table"]
    good = {word: float(value) for word, value in thresholds.items() if _is_threshold(value)}
    wrong += [
        f"the threshold of {word!r:.40} is {value!r:.40}" for word, value in thresholds.items() if word not in good
    ]
    return State(muted is not False, good), "; ".join(wrong[:4])


def _is_threshold(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1


def _with(thresholds: Mapping[str, float], word: str, value: float | None) -> Mapping[str, float]:
    others = {known: threshold for known, threshold in thresholds.items() if known != word}
    return others if value is None else {**others, word: value}


def _merged(live: State, before: State, now: State, *, ours: bool) -> State:
    """`live` with what became different between two readings of the file. Mute knows no conflict: two that changed it
    changed it alike."""
    thresholds = live.thresholds
    for word in {*before.thresholds, *now.thresholds}:
        old, new = before.thresholds.get(word), now.thresholds.get(word)
        if new != old and not (ours and live.thresholds.get(word) != old):
            thresholds = _with(thresholds, word, new)
    return State(now.muted if now.muted != before.muted else live.muted, thresholds)


def _write(path: Path, state: State) -> None:
    """Whole or not at all, also when the power goes. The caller holds the folder. Raises StorageFault."""
    temporary = path.with_name(f".{path.name}")
    text = json.dumps({"muted": state.muted, "thresholds": dict(sorted(state.thresholds.items()))}, indent=2)
    with _storage(path):
        try:
            with temporary.open("w", encoding="utf-8") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process writes at a time; the system lets go when it dies. Raises StorageFault."""
    with _storage(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    try:
        deadline = time.monotonic() + PATIENCE
        while not _try_lock(handle):
            if time.monotonic() > deadline:
                raise StorageFault(f"another process holds {folder}", "end it, then try again")
            time.sleep(0.01)
        yield
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _storage(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageFault(
            f"{path} cannot be written, so what was changed is not kept: {error.strerror}",
            "make room there, or make it writable for this user",
        ) from error
