"""Builds models: fetch, convert, check against the manifest, verify on golden inputs, publish.

A model is built in a folder of its own and moved to its place when everything about it is right, under a lock per
model. Whatever is in the way of that (Ctrl-C, a power cut, a full disk, a wrong digest) leaves the sources that were
fetched and nothing else that is ever used.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, cast

from appliance.errors import DeadlineFault, ManifestFault, ModelDamaged, ModelFault, ModelMissing
from appliance.runtime.card import RECORD, Built, Card, Shelf, record
from models.quantized import recipes
from models.quantized.files import digest, locked, publish, remove, require_space, storage
from models.quantized.recipes import Check, Progress
from models.quantized.sources import Store

Report = Callable[[str, str, float], None]
"""Called with the model's id, the phase ("fetch NAME", the recipe's, "verify", "ready") and the fraction done."""

PATIENCE = 3600.0
"""Seconds to wait for another process that builds the same model."""


class Recipe(Protocol):
    """What a module in models/quantized/recipes offers. `VERSION` and `EXACT` may be left out: see there."""

    def build(self, card: Card, sources: Mapping[str, Path], out: Path, progress: Progress) -> None: ...

    def verify(self, built: Built) -> list[Check]: ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the list: `state` is "built", "missing" or what is wrong; `size` (bytes) is 0 unless built."""

    card: Card
    state: str
    size: int


def silent(model: str, phase: str, fraction: float) -> None:
    """A report that nobody reads."""


def build(
    shelf: Shelf, card: Card, progress: Report = silent, *, store: Store | None = None, force: bool = False
) -> Built:
    """Builds one model unless it is there and whole. Raises ModelFault, StorageFault, DeadlineFault.

    `force` builds it again. A damaged file is reported as the phase "damaged: FILE" and only its model is rebuilt.
    """
    store = store or default_store(shelf)
    recipe = find_recipe(card)
    folder = shelf.folder(card)
    waiting = partial(progress, card.id, "waiting for another build", 0.0)
    if not force and _is_current(card, folder, recipe, silent):  # also where the cache is somebody else's and read-only
        progress(card.id, "ready", 1.0)
        return Built(card, folder)
    with locked(_lock(shelf, card.id), PATIENCE, waiting), storage(shelf.cache):
        if not force and _is_current(card, folder, recipe, progress):
            progress(card.id, "ready", 1.0)
            return Built(card, folder)
        _sweep(shelf, card)
        temporary = shelf.cache / "tmp" / card.id
        try:
            temporary.mkdir(parents=True)
            sources = store.fetch(card, partial(progress, card.id))
            require_space(shelf.cache, sum(source.size for source in card.sources), f"building {card.id}")
            with _blaming(card):
                recipe.build(card, sources, temporary, partial(progress, card.id))
            _check_and_record(card, recipe, temporary, progress)
            folder.parent.mkdir(parents=True, exist_ok=True)
            publish(temporary, folder)
        finally:
            remove(temporary)
        _remove_others(shelf, card)
    progress(card.id, "ready", 1.0)
    return Built(card, folder)


def build_many(
    shelf: Shelf, ids: Iterable[str] = (), progress: Report = silent, *, store: Store | None = None, force: bool = False
) -> list[Built]:
    """Builds the models named, or the default pack: all that are not optional. Unknown ids are found before the first
    build starts; a model that fails does not keep the others from being built, and its fault is raised at the end."""
    cards = [shelf.card(id) for id in ids] or [card for card in shelf.cards().values() if not card.optional]
    store = store or default_store(shelf)
    built: list[Built] = []
    faults: list[ModelFault] = []
    for card in cards:
        try:
            built.append(build(shelf, card, progress, store=store, force=force))
        except ModelFault as fault:
            progress(card.id, "failed", 1.0)
            faults.append(fault)
    if len(faults) == 1:
        raise faults[0]
    if faults:
        told = "; ".join(fault.message for fault in faults)
        raise ModelFault(f"{len(faults)} models could not be built: {told}", faults[0].fix)
    return built


def listing(shelf: Shelf) -> list[Entry]:
    """All models, by id. Broken manifests are in `shelf.faults()`."""
    return [_entry(shelf, card) for _, card in sorted(shelf.cards().items())]


def remove_model(shelf: Shelf, id: str, *, sources: bool = False) -> int:
    """Removes what was built of a model, and with `sources` also what it was built from unless another model's card
    names it. Returns the bytes set free. Raises ModelMissing when nothing was there."""
    card = shelf.card(id)
    with locked(_lock(shelf, id), PATIENCE), storage(shelf.cache):
        doomed = [*_folders(shelf, id), shelf.cache / "tmp" / id]
        if sources:
            kept = {source.sha256 for other in shelf.cards().values() if other.id != id for source in other.sources}
            own = {source.sha256 for source in card.sources} - kept
            doomed += [path for digest_ in own for path in (shelf.cache / "sources").glob(f"{digest_}*")]
        doomed = [path for path in doomed if path.exists()]
        if not doomed:
            raise ModelMissing(f"{id} is not built", "there is nothing to remove")
        size = sum(map(_size, doomed))
        for path in doomed:
            remove(path)
    return size


def default_store(shelf: Shelf) -> Store:
    """Wheels dropped by hand are looked for in $PARLEY_WHEELHOUSE, else in the cache's `wheelhouse`."""
    return Store(shelf.cache, Path(os.environ.get("PARLEY_WHEELHOUSE") or shelf.cache / "wheelhouse"))


def find_recipe(card: Card) -> Recipe:
    """Raises ManifestFault when there is no such recipe."""
    name = f"{recipes.__name__}.{card.recipe}"
    try:
        return cast(Recipe, importlib.import_module(name))
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ManifestFault(f"{card.path}: `recipe` is {card.recipe!r}, which there is not") from None


# --- steps of a build ------------------------------------------------------------------------------------------------


def _is_current(card: Card, folder: Path, recipe: Recipe, progress: Report) -> bool:
    try:
        found = record(folder, card)
    except ModelMissing:
        return False
    except ModelDamaged as fault:
        progress(card.id, f"damaged: {fault.message}", 0.0)
        return False
    for name in damaged(folder, found, thorough=False):
        progress(card.id, f"damaged: {folder / name}", 0.0)
        return False
    return bool(found.get("recipe") == _recipe_version(recipe))


def damaged(folder: Path, found: Mapping[str, Any], *, thorough: bool) -> list[str]:
    """The names of the artefacts that are gone or do not have the recorded content. Unless `thorough`, a file that has
    not been written since it was recorded is only measured: to digest a gigabyte takes seconds at every start."""
    since = 0 if thorough else (folder / RECORD).stat().st_mtime_ns
    return [name for name, entry in found["artefacts"].items() if not _is_whole(folder / name, entry, since)]


def _is_whole(path: Path, entry: Mapping[str, Any], since: int) -> bool:
    if not path.is_file():
        return False
    stat = path.stat()
    return stat.st_size == entry["size"] and (stat.st_mtime_ns <= since or digest(path) == entry["sha256"])


@contextmanager
def _blaming(card: Card) -> Iterator[None]:
    """What a recipe stumbles over without saying so: an option that is missing, a tensor of another shape."""
    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise ManifestFault(
            f"{card.path}: recipe {card.recipe} cannot make {card.id} of this: {type(error).__name__} {error}",
            "compare [options] and [golden] with those of a model of the same recipe that ships with Parley",
        ) from error


def _check_and_record(card: Card, recipe: Recipe, folder: Path, progress: Report) -> None:
    made = {path.name for path in folder.iterdir()}
    if made != set(card.artefacts):
        raise ModelFault(
            f"recipe {card.recipe} made {sorted(made)} for {card.id}, the manifest lists {sorted(card.artefacts)}",
            f"correct the [[artefact]] entries of {card.path}",
        )
    progress(card.id, "verify", 0.0)
    artefacts = {
        name: {"size": (folder / name).stat().st_size, "sha256": digest(folder / name)} for name in sorted(made)
    }
    with _blaming(card):
        checks = recipe.verify(Built(card, folder))
    failed = [check for check in checks if not check.passed]
    if failed:
        raise ModelFault(
            f"{card.id} was built but is not right: " + "; ".join(map(str, failed)),
            "the manifest's options or golden values do not fit its source",
        )
    differs = [name for name, wanted in card.artefacts.items() if wanted and artefacts[name]["sha256"] != wanted]
    if differs and getattr(recipe, "EXACT", True):
        name = differs[0]
        raise ModelFault(
            f"{name} of {card.id} passes its golden checks and is not the file that the manifest names: "
            f"sha256 {artefacts[name]['sha256']}, expected {card.artefacts[name]}",
            f"recipe or library versions have changed: correct sha256 in {card.path} if that is meant",
        )
    found = {
        "id": card.id,
        "recipe": _recipe_version(recipe),
        "artefacts": artefacts,
        "differs": differs,
        "sources": {source.name: source.sha256 for source in card.sources},
        "made_with": {name: version(name) for name in ("numpy", "onnx", "onnxruntime")},
        "made_on": platform.machine(),
        "checks": [{"name": check.name, "value": float(check.value), "limit": float(check.limit)} for check in checks],
    }
    (folder / RECORD).write_text(json.dumps(found, indent=1) + "\n")


def _recipe_version(recipe: Recipe) -> str:
    return f"{recipe.__name__.rpartition('.')[2]} {getattr(recipe, 'VERSION', 1)}"  # type: ignore[attr-defined]


# --- the cache -------------------------------------------------------------------------------------------------------


def _lock(shelf: Shelf, id: str) -> Path:
    return shelf.cache / "locks" / f"{id}.lock"


def _folders(shelf: Shelf, id: str) -> list[Path]:
    """Every build of a model: those of earlier manifests too."""
    form = re.compile(rf"\.?{re.escape(id)}-[0-9a-f]{{16}}(\.old)?")
    return [path for path in (shelf.cache / "built").glob("*") if form.fullmatch(path.name)]


def _sweep(shelf: Shelf, card: Card) -> None:
    """Only the holder of a model's lock builds in its folder, so whatever is there was left by one that died. Other
    models' leftovers go as soon as their lock can be had."""
    for path in (shelf.cache / "tmp").glob("*"):
        if path.name == card.id:
            remove(path)
            continue
        try:
            with locked(_lock(shelf, path.name), 0.0):
                remove(path)
        except DeadlineFault:
            continue


def _remove_others(shelf: Shelf, card: Card) -> None:
    for path in _folders(shelf, card.id):
        if path != shelf.folder(card):
            remove(path)


def _entry(shelf: Shelf, card: Card) -> Entry:
    try:
        shelf.built(card.id)
    except ModelMissing:
        return Entry(card, "missing", 0)
    except ModelDamaged as fault:
        return Entry(card, f"damaged: {fault.message}", 0)
    return Entry(card, "built", _size(shelf.folder(card)))


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file())
