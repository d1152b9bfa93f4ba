"""Power of bets on a known event, by simulation, and the smallest excess that they find."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ..claims.claim import Claim
from ..errors import OptionError
from ..inference.betting_test import BETS, WEIGHTS, best_line, log_mean
from ..inference.event_test import check_alpha, largest_parameter
from .alternatives import Alternative, AlternativeEvent, event_of

SizesFor: TypeAlias = Callable[[AlternativeEvent], Sequence[int]]
_REPETITIONS = 400  # simulated audits: an error of 3% of the excess where measured


def found_share(
    claim: Claim,
    excess: float,
    sizes: Sequence[int] | SizesFor,
    q: Alternative,
    *,
    alpha: float,
    until: float = 1.0,
) -> float:
    """Return the share of simulated audits that refute the claim; it is within .025 of the true power.

    The event has probability `q` on y and, on x, the largest probability that the claim strengthened by `excess`
    allows; or it is the event of another `Alternative`. The wealth of the other accounts is taken as lost. `sizes` are
    the runs in each batch. The simulation ends as soon as the share `until` is reached.
    """
    rng, event = np.random.default_rng(0), event_of(claim, excess, q)
    p, rate = event.p, event.q
    batches = sizes(event) if callable(sizes) else sizes
    if not batches:
        return 0.0
    line = best_line(claim, p, rate, float(sum(batches)))
    bets = BETS / (line.slope + line.intercept)
    gains = np.array([np.log1p(bets * (value - line.intercept)) for value in (1.0 - line.slope, 1.0, -line.slope, 0.0)])
    log_wealth = np.zeros((_REPETITIONS, len(bets)))
    found = np.zeros(_REPETITIONS, dtype=np.bool_)
    enough = -math.log(alpha)
    for size in batches:
        count_q = rng.binomial(size, rate, _REPETITIONS)
        both = rng.binomial(count_q, p)
        only_p = rng.binomial(size - count_q, p)
        joint = np.stack([both, only_p, count_q - both, size - count_q - only_p], axis=1)
        log_wealth += joint @ gains
        # The largest term bounds the average, so few averages are computed.
        near = np.flatnonzero(~found & (log_wealth >= enough).any(axis=1))
        if len(near):
            found[near] = log_mean(log_wealth[near]) + math.log(WEIGHTS[4][0]) >= enough
            if found.mean() >= until:  # audits that have refuted stay so
                break
    return float(found.mean())


def sequential_excess(
    claim: Claim, sizes: Sequence[int] | SizesFor, q: Alternative, *, alpha: float, power: float
) -> float:
    """Return the smallest excess that a sequential audit finds with probability `power`, to a relative 1%.

    The value is infinite if no excess is found with that power. The parameters are those of `found_share`.
    """
    check_alpha(alpha)
    rate = q if isinstance(q, float) else 0.1
    if not (0.0 < rate < 1.0 and 0.0 < power < 1.0):
        raise OptionError(
            f"q={q!r} or power={power!r} is not inside (0, 1); use values between 0 and 1.", q=q, power=power
        )
    runs = 10_000 if callable(sizes) else sum(sizes)
    limit = claim.max_parameter - claim.parameter
    excess = largest_parameter(
        lambda excess: found_share(claim, excess, sizes, q, alpha=alpha, until=power) < power,
        limit,
        tolerance=1e-2,
        start=4.0 / math.sqrt(runs * rate * (1.0 - rate)),  # about the size of the answer
    )
    return math.inf if excess >= 0.99 * limit else excess
