"""Files that are whole or not there: locks, atomic publishing, digests, and what a full disk looks like."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from appliance.errors import DeadlineFault, StorageFault

CHUNK = 1 << 20
_STORAGE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM}


@contextmanager
def locked(path: Path, deadline: float, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Holds the lock file `path`; the system releases it when the process dies, however it dies.

    `waiting` is called while another process holds it. Raises DeadlineFault after `deadline` seconds.
    """
    with storage(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = path.open("a")
    with handle:
        end = time.monotonic() + deadline
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise DeadlineFault(f"another process that holds {path}", deadline) from None
                waiting()
                time.sleep(0.05)
        yield


@contextmanager
def storage(folder: Path) -> Iterator[None]:
    """Turns the system's errors of a disk that is full, read-only or failing into a StorageFault."""
    try:
        yield
    except OSError as error:
        if error.errno not in _STORAGE:
            raise
        where = error.filename or folder
        raise StorageFault(
            f"{where} cannot be written: {error.strerror}; {megabytes(free(folder))} are free there",
            "make room or move the model cache to another disk, then build again: what was fetched is kept",
        ) from error


def require_space(folder: Path, size: int, what: str) -> None:
    """Raises StorageFault when fewer than `size` bytes are free for `what`."""
    if free(folder) < size:
        raise StorageFault(
            f"{what} needs {megabytes(size)} in {folder}, free are {megabytes(free(folder))}",
            "make room or move the model cache to another disk",
        )


def free(folder: Path) -> int:
    """Bytes that are free on the disk of `folder`, which need not exist yet."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def digest(path: Path) -> str:
    """The sha256 of a file, in hex."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def publish(temporary: Path, final: Path) -> None:
    """Moves a finished file or folder to its place, so that after a power cut it is there whole or not at all.

    A folder that is in the way is moved aside first and removed afterwards: whoever has its files open keeps them.
    """
    for path in (*sorted(temporary.rglob("*")), temporary):
        _sync(path)
    old = final.with_name(f".{final.name}.old")
    remove(old)
    if final.is_dir():
        final.rename(old)
    temporary.rename(final)
    _sync(final.parent)
    remove(old)


def remove(path: Path) -> None:
    """Removes a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
