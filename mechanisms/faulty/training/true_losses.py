"""True losses of mistaken trainings on a pair, for an observer of every noisy sum.

All results are the smallest ε at a δ, in nats, over both directions. Those by `dp_accounting` are exact up to its grid,
which rounds them up.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr
from scipy.stats import chi2

from ...laws.laws import GaussianLaw
from ...training.dp_sgd import Neighbours, dp_sgd_claim
from ...training.models import Batch
from ...training.train import Recipe, Sampling


def epsilon_of(
    sampling: Sampling, noise_multiplier: float, steps: int, *, neighbours: Neighbours, delta: float
) -> float:
    """ε of DP-SGD at δ: that of `dp_sgd_claim`."""
    claim: Any = dp_sgd_claim(sampling, noise_multiplier, steps, neighbours=neighbours, delta=delta)
    return float(claim.epsilon)


def shuffled_epsilon_at_least(noise_multiplier: float, batches: int, delta: float) -> float:
    """Lower bound on the ε of one epoch of shuffled batches, for zeroed-out records.

    All gradients but the record's are −1 along a direction, and its own is 1 or 0. So one batch of `batches` has a
    noisy sum that is 2, or 1, above the others. The bound is log((P − δ)/Q) for the event that some sum is c above the
    others' mean, at the best c.

    References
    ----------
    Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha & Zhang (2024), How private are DP-SGD implementations? (the pair and
    the events of their lower bound).
    """
    c = np.linspace(-2.0, 2.0 + 10.0 * noise_multiplier, 20_001)
    below = (batches - 1) * log_ndtr(c / noise_multiplier)
    p, q = (-np.expm1(below + log_ndtr((c - shift) / noise_multiplier)) for shift in (2.0, 1.0))
    useful = p > delta
    return max(0.0, float(np.log((p[useful] - delta) / q[useful]).max()))


def fixed_totals_epsilon(recipe: Recipe, x: Any, y: Any, scale: float, delta: float) -> float:
    """ε of a training on full batches whose gradients do not depend on the weights, with noise of this scale; exact."""
    totals = []
    for rows in (x, y):
        features, labels = recipe.model.split(recipe.prepare(rows))
        is_in = np.ones((1, len(features)), dtype=np.bool_)
        blocks = recipe.model.blocks(recipe.first_weights(1), Batch(features, labels, is_in))
        totals.append(recipe.gradient(blocks, is_in)[0])
    mu = math.sqrt(recipe.steps) * float(np.linalg.norm(totals[0] - totals[1])) / scale
    return GaussianLaw(0.0, 1.0).epsilon_from(GaussianLaw(mu, 1.0), delta)


def scales_epsilon(ratio: float, n_numbers: int, delta: float) -> float:
    """ε of normal noise on `n_numbers` zeros, with a deviation that is `ratio` > 1 times as large on x as on y; exact.

    The sum of squares is sufficient. The loss grows with it without bound, so the best events against y are tails.
    """

    def delta_at(epsilon: float, sign: float) -> float:
        # e^loss = ratio^−n e^{s (1 − ratio^−2)/2} for the sum of squares s in units of the variance on y
        edge = max(0.0, 2 * (sign * epsilon + n_numbers * math.log(ratio)) / (1 - ratio**-2))
        on_x, on_y = edge / ratio**2, edge
        if sign > 0:
            return float(chi2.sf(on_x, n_numbers) - math.exp(epsilon) * chi2.sf(on_y, n_numbers))
        return float(chi2.cdf(on_y, n_numbers) - math.exp(epsilon) * chi2.cdf(on_x, n_numbers))

    found = 0.0
    for sign in (1.0, -1.0):
        high = 1.0
        while delta_at(high, sign) > delta:
            high *= 2
        if delta_at(0.0, sign) > delta:
            found = max(found, float(brentq(lambda e, s=sign: delta_at(e, s) - delta, 0.0, high)))
    return found
