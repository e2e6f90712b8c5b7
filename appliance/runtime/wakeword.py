"""Wake words from the shelf: micro wake word models, and what their manifests say of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from appliance.errors import ManifestFault, ModelDamaged, ModelFault
from appliance.runtime.card import Built, Card, Shelf
from appliance.runtime.model import Infer, Tensors
from appliance.runtime.tfl import TflModel
from firmware.frame import RATE, Role
from firmware.wake import BANDS, WakeWord


@contextmanager
def open_words(shelf: Shelf, ids: Iterable[str]) -> Iterator[tuple[tuple[WakeWord, ...], tuple[ModelFault, ...]]]:
    """The words of the models named, and what is wrong with those that cannot be used: one leaves the others alone."""
    with ExitStack() as stack:
        words, faults = [], []
        for id in ids:
            try:
                words.append(stack.enter_context(open_word(shelf.built(id))))
            except ModelFault as fault:
                faults.append(fault)
        yield tuple(words), tuple(faults)


@contextmanager
def open_word(built: Built) -> Iterator[WakeWord]:
    """The word is named as the model without "wake-". Raises ModelFault, which names the file."""
    card, path = built.card, built.file("graph")
    model = TflModel(path)
    if card.artefacts[path.name] not in ("", model.sha256):
        raise ModelDamaged(f"{path} is not what was built", f"run `parley models build --force {card.id}`")
    stride = checked(model, str(path))
    with model.session() as near, model.session() as far:
        yield WakeWord(
            name=card.id.removeprefix("wake-"),
            phrase=_option(card, "phrase", str),
            infer=_named(near, model),
            infer_far=_named(far, model),
            threshold=_between(card, "threshold", _option(card, "threshold", float), 0.01, 0.99),
            window=_between(card, "window", _option(card, "window", int), 1, 100),
            stride=stride,
            late=round(_option(card, "late_ms", float, 0.0) * RATE / 1000),
            length=round(_option(card, "length_ms", float, 700.0) * RATE / 1000),
            role=role(card),
        )


def role(card: Card) -> Role:
    """What the word does: "wake" opens a turn, "stop" ends what the box says."""
    match _option(card, "role", str, "wake"):
        case "wake":
            return "wake"
        case "stop":
            return "stop"
        case other:
            raise ManifestFault(f"{card.path}: options.role is {other!r}", 'it may be "wake" or "stop"')


def checked(model: TflModel, name: str) -> int:
    """How many rows of features the model takes at once. Raises ModelFault where it is no micro wake word."""
    inputs, outputs = list(model.inputs.values()), list(model.outputs.values())
    fits = len(inputs) == 1 and len(inputs[0]) == 3 and inputs[0][::2] == (1, BANDS) and outputs == [(1, 1)]
    if not fits:
        raise ModelFault(
            f"{name} takes {inputs} and gives {outputs}: that is no micro wake word model",
            f"use one that takes [1, n, {BANDS}] and gives [1, 1]",
        )
    return int(inputs[0][1])


def _named(infer: Infer, model: TflModel) -> Infer:
    (taken,), (given,) = model.inputs, model.outputs

    def named(tensors: Tensors) -> dict[str, Any]:
        return {"score": infer({taken: tensors["features"]})[given]}

    return named


def _option(card: Card, key: str, kind: type[Any], default: Any = None) -> Any:
    value = card.options.get(key, default)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        what = "is missing" if value is None else f"is {value!r:.60}"
        raise ManifestFault(f"{card.path}: options.{key} {what}", f"it must be a {kind.__name__}")
    return value


def _between(card: Card, key: str, value: Any, low: float, high: float) -> Any:
    if not low <= value <= high:
        raise ManifestFault(f"{card.path}: options.{key} is {value}", f"it must lie between {low} and {high}")
    return value
