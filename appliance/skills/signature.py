"""The door to cryptography: who vouches for a skill, and that nothing in its folder has changed since."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from appliance.errors import SkillFault, StorageFault

FILE = "skill.sig"
FILES = 500
LARGEST = 32 * 1024 * 1024
"""Files of a skill, and bytes of all of them, at most."""


def digest(folder: Path) -> bytes:
    """SHA-256 over the names and contents of a skill's files, without its signature. Raises SkillFault."""
    total, size = hashlib.sha256(), 0
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        try:
            content = path.read_bytes()
        except OSError as error:
            raise SkillFault(f"{path} cannot be read: {error}", "make it readable") from error
        size += len(content)
        if size > LARGEST:
            raise SkillFault(f"{folder} is larger than {LARGEST >> 20} MB", "take out what the skill does not need")
        total.update(f"{len(name.encode())} {name} {len(content)} ".encode())
        total.update(hashlib.sha256(content).digest())
    return total.digest()


def _files(folder: Path) -> Iterator[Path]:
    found = sorted(path for path in folder.rglob("*") if path.name != FILE or path.parent != folder)
    if len(found) > FILES:
        raise SkillFault(f"{folder} holds more than {FILES} files", "take out what the skill does not need")
    for path in found:
        if path.is_symlink():
            raise SkillFault(f"{path} is a link", "put the file itself there")
        if path.is_file():
            yield path


class Keys:
    """The keys that are believed: those in the `trusted` folders (*.pub), and the box's own, made in `own`."""

    def __init__(self, own: Path, trusted: Sequence[Path] = ()) -> None:
        self._own, self._trusted = own, trusted

    def sign(self, folder: Path) -> None:
        """The box vouches for a skill as it is now. Raises SkillFault, StorageFault."""
        signature = self._private().sign(digest(folder))
        try:
            (folder / FILE).write_text(signature.hex() + "\n")
        except OSError as error:
            raise StorageFault(f"{folder / FILE} cannot be written: {error}", "make the folder writable") from error

    def check(self, folder: Path) -> None:
        """Raises SkillFault when nobody who is believed vouches for the skill as it is."""
        try:
            signature = bytes.fromhex((folder / FILE).read_text().strip())
        except FileNotFoundError:
            raise SkillFault(f"{folder} is not signed", "install it with `parley skill install`") from None
        except (OSError, ValueError) as error:
            raise SkillFault(f"{folder / FILE} cannot be read: {error}", "sign the skill again") from error
        found = digest(folder)
        for key in self._public():
            with suppress(InvalidSignature):
                key.verify(signature, found)
                return
        raise SkillFault(
            f"{folder} has changed since it was signed, or was signed by nobody who is trusted",
            "install it again, or put the maker's key among the trusted ones",
        )

    def _private(self) -> Ed25519PrivateKey:
        path = self._own / "box.key"
        try:
            return Ed25519PrivateKey.from_private_bytes(path.read_bytes())
        except FileNotFoundError:
            return self._make(path)
        except (OSError, ValueError) as error:
            raise StorageFault(
                f"{path} cannot be used: {error}", "move it away; skills must be installed anew"
            ) from error

    def _make(self, path: Path) -> Ed25519PrivateKey:
        key = Ed25519PrivateKey.generate()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(file, "wb") as out:
                out.write(key.private_bytes_raw())
        except OSError as error:
            raise StorageFault(f"{path} cannot be written: {error}", "make the folder writable") from error
        return key

    def _public(self) -> Iterator[Ed25519PublicKey]:
        with suppress(OSError, ValueError):
            yield Ed25519PrivateKey.from_private_bytes((self._own / "box.key").read_bytes()).public_key()
        for folder in self._trusted:
            for path in sorted(folder.glob("*.pub")):
                with suppress(OSError, ValueError):
                    yield Ed25519PublicKey.from_public_bytes(bytes.fromhex(path.read_text().strip()))
