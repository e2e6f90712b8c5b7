"""One TOML manifest per model, and the machinery that fetches, converts, quantises and verifies."""

from pathlib import Path

MANIFESTS = Path(__file__).parent
"""The manifests that ship with Parley: the first folder of every shelf."""
