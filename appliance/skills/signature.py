"""The door to cryptography: who vouches for a skill, and that nothing in its folder has changed since.

`skill.sig` is an Ed25519 signature in hex, and below it what was signed: SHA-256 and name of each file, as sha256sum
writes them. A *.pub file is an Ed25519 public key in hex.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from appliance.errors import SkillFault, StorageFault

FILE = "skill.sig"
FILES = 500
LARGEST = 32 * 1024 * 1024
"""Files of a skill, and bytes of all of them, at most."""
LONGEST = 256 * 1024
"""Bytes of a signature, which lists every file."""


def listing(folder: Path) -> dict[str, str]:
    """SHA-256 of each of a skill's files but its signature, by relative path, sorted. Raises SkillFault."""
    found, size = {}, 0
    for path in _files(folder):
        try:
            content = path.read_bytes()
        except OSError as error:
            raise SkillFault(f"{path} cannot be read: {error}", "make it readable") from error
        size += len(content)
        if size > LARGEST:
            raise SkillFault(f"{folder} is larger than {LARGEST >> 20} MB", "take out what the skill does not need")
        found[path.relative_to(folder).as_posix()] = hashlib.sha256(content).hexdigest()
    return found


def _written(found: Mapping[str, str]) -> str:
    return "".join(f"{digest}  {name}\n" for name, digest in found.items())


def _files(folder: Path) -> Iterator[Path]:
    found = sorted(path for path in folder.rglob("*") if path.name != FILE or path.parent != folder)
    if len(found) > FILES:
        raise SkillFault(f"{folder} holds more than {FILES} files", "take out what the skill does not need")
    for path in found:
        if path.is_symlink():
            raise SkillFault(f"{path} is a link", "put the file itself there")
        if not path.name.isprintable():
            raise SkillFault(f"{path!r} has a name that cannot be listed", "rename it")
        if path.is_file():
            yield path
        elif not path.is_dir():
            raise SkillFault(f"{path} is no file", "take it out")


class Keys:
    """The keys that are believed: those in the `trusted` folders (*.pub), and the box's own, made in `own`."""

    def __init__(self, own: Path, trusted: Sequence[Path] = ()) -> None:
        self._own, self._trusted = own, trusted

    def sign(self, folder: Path) -> None:
        """The box vouches for a skill as it is now. Raises SkillFault, StorageFault."""
        text = _written(listing(folder))
        signature = self._private().sign(text.encode())
        try:
            (folder / FILE).write_text(f"{signature.hex()}\n{text}", encoding="utf-8")
        except OSError as error:
            raise StorageFault(f"{folder / FILE} cannot be written: {error}", "make the folder writable") from error

    def check(self, folder: Path) -> None:
        """Raises SkillFault when nobody who is believed vouches for the skill as it is."""
        path = folder / FILE
        try:
            if path.is_symlink() or path.stat().st_size > LONGEST:
                raise ValueError("it is no signature")
            first, _, text = path.read_text(encoding="utf-8").partition("\n")
            signature = bytes.fromhex(first)
        except FileNotFoundError:
            raise SkillFault(f"{folder} is not signed", "install it with `parley skill install`") from None
        except (OSError, ValueError) as error:
            raise SkillFault(f"{path} cannot be read: {error}", "sign the skill again") from error
        if not any(_verifies(key, signature, text) for key in self._public()):
            raise SkillFault(
                f"{folder} was signed by nobody who is trusted",
                "install it with `parley skill install`, or put the maker's key among the trusted ones",
            )
        found = listing(folder)
        if _written(found) != text:
            signed = {name: digest for digest, _, name in (line.partition("  ") for line in text.splitlines())}
            changed = [name for name in sorted(found.keys() | signed.keys()) if found.get(name) != signed.get(name)]
            raise SkillFault(
                f"{folder / (changed or [FILE])[0]} has changed since it was signed", "install the skill again"
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
        """Whole or not at all, and the first one where two processes make it."""
        part = path.with_suffix(f".{os.getpid()}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            part.unlink(missing_ok=True)
            file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(file, "wb") as out:
                out.write(Ed25519PrivateKey.generate().private_bytes_raw())
                out.flush()
                os.fsync(out.fileno())
            with suppress(FileExistsError):
                os.link(part, path)
            part.unlink()
            return Ed25519PrivateKey.from_private_bytes(path.read_bytes())
        except (OSError, ValueError) as error:
            raise StorageFault(f"{path} cannot be written: {error}", "make the folder writable") from error

    def _public(self) -> Iterator[Ed25519PublicKey]:
        with suppress(OSError, ValueError):
            yield Ed25519PrivateKey.from_private_bytes((self._own / "box.key").read_bytes()).public_key()
        for folder in self._trusted:
            for path in sorted(folder.glob("*.pub")):
                with suppress(OSError, ValueError):
                    yield Ed25519PublicKey.from_public_bytes(bytes.fromhex(path.read_text().strip()))


def _verifies(key: Ed25519PublicKey, signature: bytes, text: str) -> bool:
    try:
        key.verify(signature, text.encode())
    except InvalidSignature:
        return False
    return True
