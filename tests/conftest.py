"""What every test shares: the shelf of models, the recordings, and when a marked test is skipped."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("PARLEY_SHARED") or ROOT.parent / "shared")


@dataclass(frozen=True, slots=True)
class Recording:
    """One line of the recordings' manifest. `label` is a transcript, or starts with LABEL where it is not verbatim."""

    path: Path
    kind: str
    seconds: float
    rate: int
    label: str
    licence: str

    @property
    def transcript(self) -> str:
        """The words that are spoken; empty when the label is something else."""
        return "" if self.label.startswith("LABEL") else self.label


@cache
def _recordings() -> tuple[Recording, ...]:
    with (SHARED / "audio/MANIFEST.tsv").open(newline="", encoding="utf-8") as table:
        rows = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
    return tuple(
        Recording(
            path=SHARED / "audio" / row["file"],
            kind=row["kind"],
            seconds=float(row["seconds"] or 0),
            rate=int(row["sample_rate"] or 0),
            label=row["transcript_or_label"],
            licence=row["licence"],
        )
        for row in rows
    )


@cache
def _shelf():  # type: ignore[no-untyped-def]
    from appliance import config
    from appliance.runtime.card import Shelf
    from models.quantized import MANIFESTS

    settings = config.load().models
    return Shelf(settings.cache, (MANIFESTS, *settings.folders))


@cache
def _missing(ids: tuple[str, ...]) -> str:
    """Why the named models (none: every model of the default pack) cannot be used; empty when they can."""
    from appliance.errors import ModelFault

    shelf = _shelf()
    for id in ids or [card.id for card in shelf.cards().values() if not card.optional]:
        try:
            shelf.built(id)
        except ModelFault as fault:
            return str(fault)
    return ""


@cache
def _sound() -> bool:
    if os.environ.get("PULSE_SERVER"):
        return True
    cards = Path("/proc/asound/cards")
    return cards.exists() and "no soundcards" not in cards.read_text()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """`models` takes the names of the models that a test needs; alone it means the default pack."""
    if item.get_closest_marker("shared") and not (SHARED / "audio/MANIFEST.tsv").exists():
        pytest.skip(f"no recordings in {SHARED} (PARLEY_SHARED names another place)")
    if item.get_closest_marker("hardware") and not _sound():
        pytest.skip("no sound card and no PULSE_SERVER")
    marker = item.get_closest_marker("models")
    if marker and (why := _missing(tuple(marker.args))):
        pytest.skip(f"{why}; `./just models build`")


@pytest.fixture(scope="session")
def shelf():  # type: ignore[no-untyped-def]
    """The shelf that the settings of this box name."""
    return _shelf()


@pytest.fixture(scope="session")
def shared_audio() -> tuple[Recording, ...]:
    """The recordings beside a development checkout; the test carries the `shared` marker."""
    return _recordings()
