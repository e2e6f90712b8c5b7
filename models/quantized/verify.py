"""Is what is on the shelf what was built, does it still give the golden answers, and is its source the original?"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal
from urllib.error import HTTPError

from appliance.errors import ModelDamaged, ModelMissing, SourceFault
from appliance.runtime.card import Built, Card, Shelf, Source, record
from models.quantized.build import Report, damaged, find_recipe, silent
from models.quantized.recipes import Check
from models.quantized.sources import chunks, open_url

_POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\noid sha256:([0-9a-f]{64})\nsize (\d+)\n")


@dataclass(frozen=True, slots=True)
class Comparison:
    """One source against its original. `note` says why it was not compared or what the original is."""

    source: str
    url: str
    outcome: Literal["same", "different", "not compared"]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found out about one model: the names of damaged files, the golden checks (none when a file is damaged),
    the comparisons with the originals (none unless asked for)."""

    id: str
    state: Literal["built", "missing", "damaged"]
    damaged: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    upstream: tuple[Comparison, ...] = ()

    @property
    def passed(self) -> bool:
        same = all(comparison.outcome != "different" for comparison in self.upstream)
        return self.state == "built" and all(check.passed for check in self.checks) and same


def verify(
    shelf: Shelf, ids: Iterable[str] = (), progress: Report = silent, *, upstream: bool = False
) -> list[Verdict]:
    """Verifies the models named, or all that are built. With `upstream` the sources' digests are compared with those
    that the originals are published under. Raises ModelMissing for an id that is not known."""
    cards = [shelf.card(id) for id in ids] or [card for card in shelf.cards().values() if shelf.folder(card).exists()]
    return [_verdict(shelf, card, progress, upstream) for card in cards]


def compare(source: Source) -> Comparison:
    """Downloads no more than the Git LFS pointer where the address is that of one."""
    if not source.upstream_url:
        return Comparison(source.name, "", "not compared", "the manifest names no original")
    try:
        sha256 = _published(source)
    except SourceFault as fault:
        why = "" if isinstance(fault.__cause__, HTTPError) else "no network: "
        return Comparison(source.name, source.upstream_url, "not compared", why + fault.message)
    same = sha256 == source.sha256
    return Comparison(source.name, source.upstream_url, "same" if same else "different", f"sha256 {sha256}")


def _verdict(shelf: Shelf, card: Card, progress: Report, upstream: bool) -> Verdict:
    progress(card.id, "digests", 0.0)
    originals = tuple(compare(source) for source in card.sources) if upstream else ()
    folder = shelf.folder(card)
    try:
        bad = tuple(damaged(folder, record(folder, card), thorough=True))
    except ModelMissing:
        return Verdict(card.id, "missing", upstream=originals)
    except ModelDamaged as fault:
        return Verdict(card.id, "damaged", (fault.message,), upstream=originals)
    for name in bad:
        with suppress(OSError):
            (folder / name).touch()  # so that the next build sees that it has to look again
    if bad:
        return Verdict(card.id, "damaged", tuple(str(folder / name) for name in bad), upstream=originals)
    progress(card.id, "verify", 0.5)
    checks = tuple(find_recipe(card).verify(Built(card, folder)))
    progress(card.id, "verified", 1.0)
    return Verdict(card.id, "built", checks=checks, upstream=originals)


def _published(source: Source) -> str:
    """The digest of the original: that in the pointer, or that of the bytes themselves."""
    whole = hashlib.sha256()
    first = b""
    with open_url(source.upstream_url) as response:
        for chunk in chunks(response, source.upstream_url):
            first = first or chunk
            whole.update(chunk)
    pointer = _POINTER.fullmatch(first)
    return pointer.group(1).decode() if pointer else whole.hexdigest()
