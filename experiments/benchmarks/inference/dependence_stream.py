"""Module with a global generator; every process that imports the module has a copy of it."""

from __future__ import annotations

import numpy as np

rng = np.random.default_rng(42)
