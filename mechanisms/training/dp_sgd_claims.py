"""The guarantee of DP-SGD for each way of drawing batches.

All claims are for noise of standard deviation `noise_multiplier` × clipping norm on the sum, and for an observer of all
noisy sums; the last iterate is computed from them. What is known depends on the sampling:

`PoissonBatches`
    The composed Poisson-subsampled Gaussian mechanism, by the privacy loss distribution of `dp_accounting`: exact up to
    its grid, which errs on the safe side. Add-remove (a record of zeros counts the same) or replace-one.
`FullBatch`
    μ-Gaussian DP with μ = √steps/σ, exactly; twice that for replaced records.
`ShuffledBatches`, `BatchesInOrder`, `BallsInBins`
    Each record is in at most one batch of an epoch, so an epoch costs one Gaussian mechanism: μ = √epochs/σ for
    zeroed-out records, twice that for replaced ones. For fixed batches this is exact. For random ones it is an upper
    bound: with the random partition in common the two output laws are mixtures of such pairs, and the hockey-stick
    divergence is jointly convex. How much less the loss is has no closed form, and the bound for Poisson batches at the
    same rate does not hold for shuffling (Chua et al. 2024). Added records are covered for balls in bins alone, as an
    added record moves no other one; in shuffled batches of a fixed size it moves a record of every later batch.
`FixedSizeBatches`
    The Rényi bound of Wang, Balle & Kasiviswanathan (2019), Theorem 27, for replaced records, and so for zeroed-out
    ones: valid, not exact. A replaced gradient moves the sum by twice the clipping norm, so their noise multiplier is
    half of ours (`dp_accounting` states it relative to the sensitivity for this event only). The guarantee for Poisson
    batches does not hold for them (Lebeda et al. 2024).

References
----------
Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar & Zhang (2016), Deep learning with differential privacy.
Dong, Roth & Su (2022), Gaussian differential privacy, Corollary 3.3 (composition).
Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha & Zhang (2024), How private are DP-SGD implementations?
Chua, Ghazi, Harrison, Kamath, Kumar, Leeman, Manurangsi, Sinha & Zhang (2025), Balls-and-bins sampling for DP-SGD.
Lebeda, Regehr, Kamath & Steinke (2024), Avoiding pitfalls for privacy accounting of subsampled mechanisms under
composition.
Wang, Balle & Kasiviswanathan (2019), Subsampled Rényi differential privacy and analytical moments accountant.
"""

from __future__ import annotations

import math
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias

from ...audit.claims.claim import ApproxDP, Claim, GaussianDP, check_number
from ...audit.claims.privacy_profile import PrivacyProfile
from ...audit.errors import ClaimError
from ..adapters.accounting import claim_from_event
from ..adapters.library_calls import imported
from ..laws.laws import GaussianLaw
from ..parameter_checks import check_count
from .batches import (
    BallsInBins,
    BatchesInOrder,
    FixedSizeBatches,
    FullBatch,
    PoissonBatches,
    Sampling,
    ShuffledBatches,
)

Neighbours: TypeAlias = Literal["add_or_remove_one", "replace_one", "replace_special"]
"""Relations by their names in `dp_accounting`; in "replace_special" a record is replaced by one of zeros."""


def dp_sgd_claim(
    sampling: Sampling,
    noise_multiplier: float,
    steps: int,
    *,
    neighbours: Neighbours = "add_or_remove_one",
    delta: float | None = 1e-5,
) -> Claim:
    """Return the guarantee of DP-SGD: (ε, delta)-DP, or for `delta` None the whole curve.

    Parameters
    ----------
    sampling : Sampling
    noise_multiplier : float
        σ, the noise's standard deviation on the sum over the clipping norm; positive.
    steps : int
    neighbours : {"add_or_remove_one", "replace_one", "replace_special"}
    delta : float or None
        In (0, 1). With None the claim is a `GaussianDP` where that is exact, else a `PrivacyProfile`.

    Raises
    ------
    ClaimError
        If no bound for this sampling and these neighbours is known here.
    MissingExtraError
        If dp-accounting is needed and not installed (Poisson and fixed-size batches).

    Examples
    --------
    >>> print(dp_sgd_claim(FullBatch(), 4.0, 16, delta=None))
    1-GDP
    """
    sigma = check_number("noise_multiplier", noise_multiplier, 0, math.inf, "noise over clipping norm", closed=False)
    check_count("steps", steps, "steps")
    if neighbours not in ("add_or_remove_one", "replace_one", "replace_special"):
        raise ClaimError(
            f"neighbours={neighbours!r} is unknown; use add_or_remove_one, replace_one or replace_special.",
            neighbours=neighbours,
        )
    if delta is not None:
        check_number("delta", delta, 0, 1, "None claims the whole curve", closed=False)
    return _claim(sampling, sigma, steps, neighbours, delta)  # type: ignore[arg-type]  # samplings are frozen


@lru_cache(maxsize=1 << 8)
def _claim(sampling: Sampling, sigma: float, steps: int, neighbours: Neighbours, delta: float | None) -> Claim:
    """The claim for checked parameters, kept, as an accountant takes a second."""
    moved = 2.0 if neighbours == "replace_one" else 1.0  # change of a sum of clipped gradients, in clipping norms
    match sampling:
        case PoissonBatches(rate):
            return _poisson(rate, sigma, steps, neighbours, delta)
        case FullBatch():
            return _gaussian(moved * math.sqrt(steps) / sigma, delta)
        case FixedSizeBatches(batch, n_rows) if neighbours != "add_or_remove_one":
            return _fixed_size(batch, n_rows, sigma, steps, delta)
        case BallsInBins():
            return _gaussian(moved * math.sqrt(-(-steps // sampling.per_epoch)) / sigma, delta)
        case ShuffledBatches() | BatchesInOrder() if neighbours != "add_or_remove_one":
            return _gaussian(moved * math.sqrt(-(-steps // sampling.per_epoch)) / sigma, delta)
    raise ClaimError(
        f"no bound is known here for {sampling} and neighbours={neighbours!r}; use replace_special or replace_one for "
        "batches of a fixed size, where an added record moves others.",
        sampling=sampling,
        neighbours=neighbours,
    )


def poisson_event(rate: float, noise_multiplier: float, steps: int) -> Any:
    """Return DP-SGD with Poisson batches as an event of `dp_accounting`."""
    events = imported("dp_accounting", "accounting")
    gaussian = events.GaussianDpEvent(noise_multiplier=noise_multiplier)
    return events.SelfComposedDpEvent(events.PoissonSampledDpEvent(rate, gaussian), steps)


def _poisson(rate: float, sigma: float, steps: int, neighbours: Neighbours, delta: float | None) -> Claim:
    event = poisson_event(rate, sigma, steps)
    losses = 1 / sigma**2 + 20 / sigma  # of one step, about their range
    width = max(1e-4, losses / 2**19)  # with little noise the usual grid would take gigabytes
    if delta is None:
        return claim_from_event(event, neighbours=neighbours, discretization=width)
    events, pld = imported("dp_accounting", "accounting"), imported("dp_accounting.pld", "accounting")
    relation = events.NeighboringRelation[neighbours.upper()]
    accountant = pld.PLDAccountant(relation, value_discretization_interval=width)
    accountant.compose(event)
    return ApproxDP(float(accountant.get_epsilon(delta)), delta)


def _fixed_size(batch: int, n_rows: int, sigma: float, steps: int, delta: float | None) -> Claim:
    events, rdp = imported("dp_accounting", "accounting"), imported("dp_accounting.rdp", "accounting")
    sampled = events.SampledWithoutReplacementDpEvent(n_rows, batch, events.GaussianDpEvent(sigma / 2))
    accountant = rdp.RdpAccountant(neighboring_relation=events.NeighboringRelation.REPLACE_ONE)
    accountant.compose(events.SelfComposedDpEvent(sampled, steps))
    if delta is None:
        return PrivacyProfile.from_pld(SimpleNamespace(get_delta_for_epsilon=accountant.get_delta))
    return ApproxDP(float(accountant.get_epsilon(delta)), delta)


def _gaussian(mu: float, delta: float | None) -> Claim:
    if delta is None:
        return GaussianDP(mu)
    return ApproxDP(GaussianLaw(0.0, 1.0).epsilon_from(GaussianLaw(mu, 1.0), delta), delta)
