"""The shelf that the settings name: Parley's own manifests first, then the user's."""

from __future__ import annotations

from pathlib import Path

import models.quantized
from appliance.config import Config
from appliance.runtime.card import Shelf


def open_shelf(config: Config) -> Shelf:
    shipped = Path(models.quantized.__file__).parent
    return Shelf(config.models.cache, (shipped, *config.models.folders))
