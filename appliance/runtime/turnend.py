"""Has the speaker finished? The smart-turn model on the last seconds of sound."""

from __future__ import annotations

import numpy as np

from appliance.runtime.features import log_mel
from appliance.runtime.model import Model
from firmware.frame import RATE, Wave

SPAN = 8 * RATE
"""Samples that the model hears: the end of the turn, with silence before it when the turn is shorter."""

_QUIET = 1e-7  # added to the variance, so that digital silence stays silence


class EndOfTurn:
    """Keeps nothing between calls. `model` takes `input_features` float32 [1, 80, 800] and answers `logits` [1, 1],
    which is a probability in spite of its name."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def probability(self, wave: Wave) -> float:
        """That the turn is complete, [0, 1]. `wave` is float32 mono at 16 kHz of any length, up to now."""
        with self._model.session() as infer:
            return float(infer({"input_features": features(wave)[None]})["logits"][0, 0])


def features(wave: Wave) -> Wave:
    """Of the last 8 s of `wave`, levelled to mean 0 and variance 1: float32 [80, 800]."""
    heard = np.zeros(SPAN, np.float32)
    last = wave[-SPAN:]
    heard[SPAN - len(last) :] = last
    return log_mel((heard - heard.mean()) / np.sqrt(heard.var() + _QUIET))
