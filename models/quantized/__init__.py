"""One TOML manifest per model, and the machinery that fetches, converts, quantises and verifies."""
