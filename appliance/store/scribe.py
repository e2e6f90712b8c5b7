"""One thread that writes: short jobs in their order, and those that must not be lost again and again until the disk
takes them."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from appliance.errors import Fault, StorageFault
from appliance.telemetry import Seldom

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Job:
    work: Callable[[], Any]
    result: Future[Any]
    surely: bool


class Scribe:
    """`failing` is told the fault when the disk begins to fail, and None when it works again; both in the thread.
    `retry` seconds lie between two attempts; at most `most` jobs wait, the oldest go first."""

    def __init__(
        self, name: str, failing: Callable[[StorageFault | None], None], *, retry: float = 2.0, most: int = 10_000
    ) -> None:
        self._failing, self._retry, self._most = failing, retry, most
        self._jobs: deque[_Job] = deque()
        self._pending: deque[_Job] = deque()
        """Jobs that the disk refused."""
        self._changed = threading.Condition()
        self._closed = False
        self._busy: _Job | None = None
        self._fails = False
        self._seldom = Seldom(60.0)
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def soon(self, work: Callable[[], T]) -> Future[T]:
        """Runs it in the thread; a fault goes to the future."""
        return self._take(work, surely=False)

    def surely(self, work: Callable[[], T]) -> Future[T]:
        """The same, but a StorageFault is not the end: it is tried again, in order, until it works."""
        return self._take(work, surely=True)

    @property
    def pending(self) -> int:
        """Jobs that are not on the disk."""
        with self._changed:
            doing = self._busy is not None and self._busy.surely
            return sum(job.surely for job in self._jobs) + len(self._pending) + doing

    def flush(self, seconds: float) -> bool:
        """Waits until nothing is left to do; False: something is."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._jobs or self._pending or self._busy), seconds)

    def hurry(self) -> None:
        """Tries again now."""
        with self._changed:
            self._fails = False
            self._changed.notify_all()

    def close(self, seconds: float = 5.0) -> None:
        """Does what is left, one last attempt at each, and joins the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(seconds)

    def _take(self, work: Callable[[], T], *, surely: bool) -> Future[T]:
        result: Future[T] = Future()
        with self._changed:
            if self._closed:
                result.set_exception(StorageFault("memory is closed", ""))
                return result
            self._jobs.append(_Job(work, result, surely))
            while len(self._pending) + len(self._jobs) > self._most:
                lost = (self._pending or self._jobs).popleft()
                lost.result.cancel()
                self.dropped += 1
                self._seldom("memory full", level=logging.ERROR, message="more waits for the disk than memory holds")
            self._changed.notify_all()
        return result

    def _run(self) -> None:
        while (job := self._next()) is not None:
            self._do(job)
            with self._changed:
                self._busy = None
                self._changed.notify_all()

    def _next(self) -> _Job | None:
        """What the disk refused comes first, once it is time to try again."""
        with self._changed:
            while True:
                if self._pending and (not self._fails or self._closed):
                    job = self._pending.popleft()
                elif self._jobs:
                    job = self._jobs.popleft()
                    if job.surely and self._pending:
                        self._pending.append(job)
                        continue
                elif self._closed:
                    return None
                else:
                    self._changed.wait(self._retry if self._pending else None)
                    self._fails = False
                    continue
                self._busy = job
                return job

    def _do(self, job: _Job) -> None:
        try:
            result = job.work()
        except StorageFault as fault:
            self._failing(fault)
            if job.surely and not self._closed:
                with self._changed:
                    self._fails, self._busy = True, None
                    self._pending.appendleft(job)
            else:
                job.result.set_exception(fault)
        except Fault as fault:
            job.result.set_exception(fault)
        except Exception as error:  # noqa: BLE001 - one bad job does not end all writing
            self._seldom("memory", level=logging.ERROR, message=repr(error))
            job.result.set_exception(error)
        else:
            self._failing(None)
            job.result.set_result(result)


__all__ = ["Scribe"]
