"""Exact loss between two mixtures of normal laws of one scale, composed over independent steps."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

import numpy as np

from ..adapters.library_calls import imported
from .observers import log_mixture

Mixture: TypeAlias = tuple[tuple[float, float], ...]
"""Probability and mean of each component of a mixture of normal laws of one scale."""


@lru_cache(maxsize=1 << 6)
def mixture_epsilon(on_x: Mixture, on_y: Mixture, scale: float, steps: int, delta: float) -> float:
    """ε of `steps` independent pairs of mixtures of normal laws, from below: within about 1e-3, and rounding of 1e-6.

    Outputs are counted in cells of 1/400 of the scale, which can only lose information, and losses are rounded down to
    multiples of 1e-4.
    """
    pld = imported("dp_accounting.pld.privacy_loss_distribution", "accounting")
    means = [mean for _, mean in (*on_x, *on_y)]
    z = np.arange(min(means) - 9 * scale, max(means) + 9 * scale, scale / 400)
    log_x, log_y = (log_mixture(z, part, scale) for part in (on_x, on_y))
    log_x, log_y = (part - np.logaddexp.reduce(part) for part in (log_x, log_y))
    cells = range(len(z))
    tables = [dict(zip(cells, part.tolist(), strict=True)) for part in (log_x, log_y)]
    found = []
    for lower, upper in (tables, tables[::-1]):
        losses = pld.from_two_probability_mass_functions(upper, lower, pessimistic_estimate=False)
        found.append(float(losses.self_compose(steps).get_epsilon_for_delta(delta)))
    return max(found)
