"""The shelf that the settings name: Parley's own manifests first, then the user's."""

from __future__ import annotations

from appliance.config import Config
from appliance.runtime.card import Shelf
from models.quantized import MANIFESTS


def open_shelf(config: Config) -> Shelf:
    return Shelf(config.models.cache, (MANIFESTS, *config.models.folders))
