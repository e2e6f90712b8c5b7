"""Memory that was needed to load models and is not needed to run them."""

from __future__ import annotations

import ctypes
import ctypes.util
import gc


def give_back() -> None:
    """Returns freed memory to the system: loading leaves tens of megabytes with the allocator. Does nothing where the
    C library has no `malloc_trim` (it is glibc's)."""
    gc.collect()
    trim = getattr(ctypes.CDLL(ctypes.util.find_library("c")), "malloc_trim", None)
    if trim is not None:
        trim(0)
