"""Seeds for libraries that draw from the global generators of Python, numpy and numba."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

_LOCK = threading.RLock()
_MOST = 2**32


@contextmanager
def seeded_globals(rng: np.random.Generator) -> Iterator[None]:
    """Seed the global generators from `rng` for the body, which has them to itself among bodies of this kind.

    Those of Python and numpy continue afterwards where they were. The generator of numba, which each thread has of its
    own and which cannot be read, does not.
    """
    python, legacy, compiled = (int(seed) for seed in rng.integers(_MOST, size=3))
    with _LOCK:
        kept = random.getstate(), np.random.get_state()  # noqa: NPY002
        random.seed(python)
        np.random.seed(legacy)  # noqa: NPY002
        if "numba" in sys.modules:
            _numba_seed()(compiled)
        try:
            yield
        finally:
            random.setstate(kept[0])
            np.random.set_state(kept[1])  # noqa: NPY002


@lru_cache(maxsize=1)
def _numba_seed() -> Callable[[int], None]:
    """Return a compiled function that seeds the generator of compiled functions, which no other call reaches."""
    numba: Any = sys.modules["numba"]

    def seed(value: int) -> None:
        np.random.seed(value)  # noqa: NPY002

    compiled: Callable[[int], None] = numba.njit(seed)
    return compiled
