"""What the settings choose, without a model being loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance import config
from appliance.compose import Engines
from appliance.errors import ConfigFault
from appliance.runtime.card import Shelf
from appliance.runtime.phonemes import SpokenWord


def engines(text: str) -> Engines:
    return Engines(config.parse(text), Shelf(Path("nowhere"), ()))


def test_the_locale_says_how_numbers_are_read() -> None:
    assert engines("").for_the_ear("3.5 km") == "three point five kilometers"
    assert engines('[say]\nlocale = "de-DE"').for_the_ear("3,5 km") == "drei Komma fünf Kilometer"


def test_espeak_that_is_chosen_but_not_installed_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigFault, match="espeak-ng is not installed"):
        _ = engines('[say]\nphonemes = "espeak"').speaker


def test_espeak_is_asked_in_the_locale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for the program, which answers with the voice that it was called with."""
    program = tmp_path / "espeak-ng"
    program.write_text('#!/bin/sh\nread line\necho "$4"\n', "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    chosen = engines('[say]\nphonemes = "espeak"\nlocale = "en-GB"')
    assert chosen.phonemise("Hello.") == [SpokenWord("Hello.", "en-GB.")]
