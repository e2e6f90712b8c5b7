"""The root of every error that Parley raises on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the command line is quicker without numpy
    from firmware.frame import TroubleKind


class Fault(Exception):
    """Something was wrong that a person can put right.

    `message` says what was wrong and where, `fix` what to do about it, `code` is the process exit code when the
    fault ends a command.
    """

    code = 1

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.message} ({self.fix})" if self.fix else self.message


class AudioFault(Fault):
    """A recording that cannot be read, or a stream in a form nobody can use."""

    code = 3


class StorageFault(Fault):
    """The disk is full, read-only or failing."""

    code = 6


class DeviceFault(Fault):
    """The sound card is missing, refused, frozen or gone; `kind` says which, where it is known."""

    code = 5

    def __init__(self, message: str, fix: str = "", kind: TroubleKind | None = None) -> None:
        super().__init__(message, fix)
        self.kind = kind
