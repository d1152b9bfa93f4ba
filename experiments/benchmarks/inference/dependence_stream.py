"""Global generator, apart, as every process that imports this module has a copy of it."""

from __future__ import annotations

import numpy as np

rng = np.random.default_rng(42)
