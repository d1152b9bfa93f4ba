"""Approximate bounds of rows, from a noisy histogram with logarithmic bins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...audit.claims.claim import check_number
from ..laws.laws import FiniteLaw, LaplaceLaw
from ..laws.reference_mechanism import PureMechanism
from ..noise_samplers import Floats, fill_laplace
from ..parameter_checks import check_count
from .noisy_answers import check_noise_share, share_in_words

_FIRST, _MOST, _FACTOR = 1e-9, 1e-6, 2.0
_FAILED: Final = (math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class ApproximateBounds(PureMechanism):
    """Powers of a base between which nearly all rows lie: epsilon-DP, an output is (lower, upper).

    Rows are counted in bins (0, scale], (scale, scale·base], (scale·base, scale·base²], … and in their mirror images
    for negative rows; larger rows belong to the last bin. Each count has Laplace noise. The output is the outer edges
    of the first and of the last bin whose noisy count reaches a threshold. An empty dataset reaches the threshold with
    probability 10⁻⁹. If no bin reaches it, the probability is doubled, up to 10⁻⁶; after that the output is NaN twice.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    contributions : int
        Most rows of a user.
    bins : int
        Number of bins of each sign.
    base, scale : float
        Base above 1, and upper edge of the first bin.
    noise_share : float
        Share of the noise that is used; thresholds stay. Below 1 the claim is broken.

    References
    ----------
    Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo & Gipson (2020), Differentially private SQL with bounded user
    contribution (approximate bounds); the class ApproximateBounds of google/differential-privacy (thresholds).

    Examples
    --------
    >>> ApproximateBounds(1.0).sample([3.0] * 60, 1, np.random.default_rng(0)).tolist()
    [[2.0, 4.0]]
    """

    contributions: int = 1
    bins: int = 5
    base: float = 2.0
    scale: float = 1.0
    noise_share: float = 1.0

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "in nats", closed=False)
        check_count("contributions", self.contributions, "rows of a user")
        check_count("bins", self.bins, "bins of each sign")
        check_number("base", self.base, 1, math.inf, "edges are its powers", closed=False)
        check_number("scale", self.scale, 0, math.inf, "the first edge", closed=False)
        check_noise_share(self.noise_share)

    def __str__(self) -> str:
        return f"ApproximateBounds(epsilon={self.epsilon:g}, contributions={self.contributions}){share_in_words(self)}"

    @property
    def edges(self) -> Floats:
        """Edges of all bins in ascending order, shape (2·bins + 1,)."""
        positive = self.scale * self.base ** np.arange(self.bins)
        return np.concatenate([-positive[::-1], [0.0], positive])

    @property
    def thresholds(self) -> Floats:
        """Noisy counts that a bin has to reach, for the first attempt and for the later ones, descending."""
        failures = _FIRST * _FACTOR ** np.arange(math.floor(math.log(_MOST / _FIRST, _FACTOR)) + 1)
        per_bin = -np.expm1(np.log1p(-failures) / (2 * self.bins))
        return np.asarray(self.contributions / self.epsilon * -np.log(2 * per_bin))

    @property
    def outcomes(self) -> tuple[tuple[float, float], ...]:
        """Possible outputs, in the order of `law`; the last one is the failure."""
        edges = self.edges.tolist()
        pairs = [(edges[first], edges[last + 1]) for first, last in self._pairs()]
        return (*pairs, _FAILED)

    def law(self, dataset: Any) -> FiniteLaw:
        """Return the law of the index of the output in `outcomes`."""
        counts, law = self._counts(dataset), LaplaceLaw(0.0, self._noise_scale)
        above, found = math.inf, np.zeros(len(self._pairs()))
        for threshold in self.thresholds:
            below = law.cdf(threshold - counts)
            under_last = law.cdf(above - counts) if above < math.inf else np.ones_like(below)
            inside = under_last - below
            for place, (first, last) in enumerate(self._pairs()):
                ends = inside[first] if first == last else inside[first] * inside[last]
                middle = under_last[first + 1 : last].prod()
                found[place] += ends * middle * below[:first].prod() * below[last + 1 :].prod()
            above = threshold
        failure = law.cdf(above - counts).prod()
        with np.errstate(divide="ignore"):
            return FiniteLaw(tuple(np.log(np.append(found, failure)).tolist()))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """Draw `size` independent outputs, shape (size, 2)."""
        counts, thresholds, edges = self._counts(dataset), self.thresholds, self.edges
        noisy = np.empty((len(counts), size))
        for row, count in zip(noisy, counts, strict=True):
            fill_laplace(row, rng)
            row *= self._noise_scale
            row += count
        largest = noisy.max(axis=0)
        # The first threshold that the largest count reaches; thresholds descend.
        attempt = (thresholds[:, None] > largest).sum(axis=0)
        is_found = attempt < len(thresholds)
        reached = noisy >= thresholds[np.minimum(attempt, len(thresholds) - 1)]
        outputs = np.full((size, 2), math.nan)
        outputs[is_found, 0] = edges[reached.argmax(axis=0)][is_found]
        outputs[is_found, 1] = edges[len(counts) - reached[::-1].argmax(axis=0)][is_found]
        return outputs

    @property
    def _noise_scale(self) -> float:
        return self.noise_share * self.contributions / self.epsilon

    def _pairs(self) -> list[tuple[int, int]]:
        return [(first, last) for first in range(2 * self.bins) for last in range(first, 2 * self.bins)]

    def _counts(self, dataset: Any) -> Floats:
        """Return the number of rows in each bin, in ascending order of the bins."""
        rows = np.asarray(dataset, dtype=np.float64)
        edges = self.scale * self.base ** np.arange(self.bins)
        place = np.minimum(np.searchsorted(edges, np.abs(rows)), self.bins - 1)
        counts = np.bincount(np.where(rows < 0, self.bins - 1 - place, self.bins + place), minlength=2 * self.bins)
        return counts.astype(np.float64)
