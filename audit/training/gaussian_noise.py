"""The noise of a step, measured in runs on one batch, and what its ratio to a contribution costs under a claim.

Proof: docs/proofs/training.md
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import gammainc, gammainccinv, gammaincinv, ndtri

from ..claims.claim import Claim
from ..distribution_checks.noise_distributions import (
    GaussianNoise,
    ad_distance,
    ad_radius,
    ks_distance,
    ks_radius,
    least,
)
from ..options import LEAST_RUNS
from ..replay.distributions import Distribution, parameter_needed

Doubles: TypeAlias = npt.NDArray[np.float64]


def norm(values: Doubles) -> float:
    """Return the Euclidean norm, also of numbers whose squares overflow."""
    largest = float(np.abs(values).max(initial=0.0))
    return largest * float(np.linalg.norm(values / largest)) if 0.0 < largest < math.inf else largest


class Measured:
    """Standard deviations of the noise of tensors, and the interval of μ, from runs that chose nothing.

    `places` are the numbers of each tensor that have noise of their own, and `first` are rough standard deviations by
    tensor, which no interval uses. Half of `alpha` is for the interval of μ, and half for the shape of the noise.
    """

    def __init__(self, places: list[npt.NDArray[np.intp]], first: Doubles, alpha: float) -> None:
        self.places, self.alpha, self.runs = places, alpha, 0
        self.sizes = np.array([len(each) for each in places])
        self._first, self._squares, self._kept = first, np.zeros(len(places)), [list[Doubles]() for _ in places]
        self._mean: Doubles | float = 0.0
        self._by_number: Doubles | float = 0.0

    def _of_a_run(self, moves: Doubles) -> float:
        """The degrees of freedom of μ that a run adds, for a contribution with these norms."""
        ratios = moves / (self.sigmas if self.runs > 1 else self._first)
        squares = (ratios / ratios.max(initial=1e-300)) ** 2
        portions = squares / squares.sum() if squares.sum() > 0.0 else self.sizes / self.sizes.sum()
        return 1.0 / float((portions**2 / self.sizes).sum())

    def runs_for(self, moves: Doubles, tolerance: float) -> float:
        """Return the runs after which half of the interval of μ is this part of μ."""
        return float((ndtri(self.alpha / 4.0) / tolerance) ** 2 / (2.0 * self._of_a_run(moves)))

    def add(self, outputs: Iterable[Doubles]) -> None:
        """Add runs, by the deviations from the mean of those before (Welford 1962)."""
        for output in outputs:
            self.runs += 1
            change = output - self._mean
            self._mean = self._mean + change / self.runs
            product = change * (output - self._mean)
            last = change * math.sqrt((self.runs - 1) / self.runs)  # independent, with the variance of the noise
            for number, places in enumerate(self.places):
                self._squares[number] += float(product[places].sum())
                # A shape that 20,000 numbers do not show changes no limit here.
                if self.runs > 1 and len(self._kept[number]) * len(places) < 20_000:
                    self._kept[number].append(last[places])
            self._by_number = self._by_number + product

    @property
    def sigmas(self) -> Doubles:
        """The standard deviations by tensor."""
        return np.asarray(np.sqrt(self._squares / (self.sizes * (self.runs - 1))))

    def mu(self, moves: Doubles, errors: Doubles) -> tuple[float, float, float]:
        """Return μ with its interval, for norms of the contribution and of its rounding by tensor.

        The interval is exact for one tensor, for several that of Satterthwaite (1946).
        """
        half = (self.runs - 1) * self._of_a_run(moves) / 2.0
        middle, low, high = (norm(np.maximum(moves + side * errors, 0.0) / self.sigmas) for side in (0.0, -1.0, 1.0))
        shares = [math.sqrt(float(end(half, self.alpha / 4.0)) / half) for end in (gammaincinv, gammainccinv)]
        return middle, low * shares[0], high * shares[1]

    def not_normal(self, names: list[str], rounding: Doubles) -> str:
        """Return where the noise is not normal with one scale in a tensor; empty if nothing shows."""
        share = self.alpha / (2.0 * len(names))
        freedom = self.sizes * (self.runs - 1) / 2.0
        ends = [np.sqrt(self._squares / (2.0 * end(freedom, share / 4.0))) for end in (gammainccinv, gammaincinv)]
        for name, places, kept, sigma, *allowed in zip(names, self.places, self._kept, self.sigmas, *ends, strict=True):
            if found := shape_found(np.concatenate(kept), allowed, share / 4.0, float(rounding[places].max())):
                return f"the noise is not normal with one scale: {found}{f' [{name}]' if name else ''}"
            squares = np.asarray(self._by_number)[places] / sigma**2
            at = int(np.argmin(squares))
            if len(places) * gammainc((self.runs - 1) / 2.0, squares[at] / 2.0) < share / 2.0:
                ratio = math.sqrt(squares[at] / (self.runs - 1))
                return f"number {at} has {ratio:.2g} of the noise of its tensor{f' [{name}]' if name else ''}"
        return ""


def shape_found(values: Doubles, allowed: Sequence[float], alpha: float, rounding: float) -> str:
    """Return how far values are from any normal distribution of an allowed scale; empty if that may be chance."""
    if len(values) < LEAST_RUNS:
        return ""
    values, (low, high) = np.sort(values), allowed

    def ks(sigma: float) -> float:
        noise = GaussianNoise(sigma)
        return ks_distance(values, noise.cdf, noise.cdf)

    def ad(sigma: float) -> float:
        noise = GaussianNoise(sigma)
        return ad_distance(noise.log_cdf(values), noise.log_sf(values))

    for name, distance, of in (("Kolmogorov-Smirnov", ks, ks_radius), ("Anderson-Darling", ad, ad_radius)):
        found, radius = least(distance, (low, high)), of(len(values), alpha=alpha / 2.0)
        if found > radius + rounding / low:
            return f"{name} distance {found:.3g}, at most {radius:.3g}"
    return ""


# What a claim must allow.


def needed_for_mu(claim: Claim, mu: float) -> float:
    """Return the parameter of the claim's family that a contribution of μ needs."""
    if not math.isfinite(mu):
        return math.inf
    found = parameter_needed(claim, *(Distribution("normal", {"location": at, "scale": 1.0}) for at in (0.0, mu)))
    return 0.0 if found is None else found


def excess_of_mu(claim: Claim, mu: float) -> float:
    """Return by what factor μ exceeds the largest that the claim allows."""
    low, high = 0.0, mu
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (middle, high) if needed_for_mu(claim, middle) <= claim.parameter else (low, middle)
    return mu / high
