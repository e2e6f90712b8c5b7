"""Skills that are about the box itself, in Python; everything else runs in the sandbox."""
