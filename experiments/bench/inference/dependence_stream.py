"""A generator in a module of its own, as a program may have one: every process that imports it has a copy."""

from __future__ import annotations

import numpy as np

rng = np.random.default_rng(42)
