"""Counts in bins of outputs, with the ratios, privacy profile, trade-off curve and divergences that follow.

Proofs: docs/proofs/multiplicity.md, docs/proofs/bands.md, docs/proofs/ratios.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..claims.claim import Claim
from ..errors import OptionError
from ..events.events import Labels, Partition
from ..inference.confidence_bands import Band, checked_bins, confidence_band, renyi_lower
from ..inference.ratio_intervals import Direction, MaximumInterval, RatioIntervals, maximum_interval, ratio_intervals
from ..options import check_fields
from ..printing import confidence, rounded_down, rounded_up, verdict_text

_BAND, _RATIOS, _MAXIMUM = 1 / 2, 1 / 4, 1 / 4
"""Shares of alpha: the band; the ratios with the lower ends of the maximum; the upper ends of the maximum."""
_RENYI = _BAND / 2
"""The Rényi bound rests on half of the band's limits. With this share it has the same limits and costs nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BinCounts:
    """Runs on x and on y in each bin of a partition that was chosen on other runs.

    With probability at least 1 − alpha all statements of the methods are true together: the band in both directions,
    Rényi bounds of all orders, the ratio of every bin, and the largest ratio in every direction.

    Attributes
    ----------
    names : tuple of str
        Descriptions of the bins, from the most likely on x to the most likely on y in the pilot, and a last bin for
        outputs that the pilot did not see.
    count_x, count_y : tuple of int
    alpha : float
    n_known : int
        Number of bins that the pilot saw: all of them, or all but the last.
    scope : str
        What the upper ends hold for: these bins, and never outputs that did not occur. No number of runs bounds the
        ratio of a continuous output from above (Gilbert & McMillan 2018, Property testing for differential privacy).
        Lower ends hold for the mechanism.
    asked : int, optional
        Requested number of bins. There may be fewer, or more if some outputs are not numbers.
    """

    names: tuple[str, ...]
    count_x: tuple[int, ...]
    count_y: tuple[int, ...]
    alpha: float
    n_known: int
    scope: str
    asked: int | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if not len(self.names) == len(self.count_x) == len(self.count_y) >= 2:
            raise OptionError(
                f"{len(self.names)} names with {len(self.count_x)} count_x and {len(self.count_y)} count_y; give one "
                "count on each side for each of two bins or more.",
                bins=len(self.names),
            )
        checked_bins(self.count_x, self.count_y)

    @classmethod
    def of(cls, bins: Partition, on_x: Labels, on_y: Labels, alpha: float, *, asked: int | None = None) -> BinCounts:
        """Return the counts of main runs on x and on y in each bin of a partition."""
        return cls(
            names=bins.names,
            count_x=tuple(on_x.tolist()),
            count_y=tuple(on_y.tolist()),
            alpha=alpha,
            n_known=bins.n_known,
            scope=bins.scope,
            asked=asked,
        )

    @property
    def runs_x(self) -> int:
        """Runs on x; each run is in one bin."""
        return sum(self.count_x)

    @property
    def runs_y(self) -> int:
        """Runs on y; each run is in one bin."""
        return sum(self.count_y)

    def ratios(self) -> RatioIntervals:
        """Return simultaneous intervals for the log likelihood ratio of x against y of every bin, in nats."""
        return ratio_intervals(self.count_x, self.runs_x, self.count_y, self.runs_y, alpha=_RATIOS * self.alpha)

    def maximum(self, direction: Direction = "both") -> MaximumInterval:
        """Return an interval for the largest log ratio of a bin: of x against y, of y against x, or of both.

        The lower end is the largest lower end of `ratios`; the upper end covers the bins that the pilot saw.
        """
        ratios, n = self.ratios(), self.n_known
        known = maximum_interval(
            self.count_x[:n],
            self.runs_x,
            self.count_y[:n],
            self.runs_y,
            alpha=_MAXIMUM * self.alpha,
            direction=direction,
        )
        ways = [(ratios.lower, ratios.observed)] * (direction != "y")
        ways += [(-ratios.upper, -ratios.observed)] * (direction != "x")
        lower, observed = (np.concatenate(ends) for ends in zip(*ways, strict=True))
        least = 0.0 if direction == "both" else -np.inf  # an absolute value is not negative
        return MaximumInterval(
            lower=max(least, float(lower.max())),
            observed=float(np.max(observed, where=~np.isnan(observed), initial=least)),
            upper=known.upper,
            direction=direction,
            alpha=(_RATIOS + _MAXIMUM) * self.alpha,
        )

    def band(self) -> Band:
        """Return the privacy profile and the trade-off curve of x against y with a simultaneous band.

        The lower ends hold for all events, the upper ends only for unions of these bins in their order; see `scope`.
        """
        return confidence_band(self.count_x, self.count_y, alpha=_BAND * self.alpha)

    def renyi_lower(self, order: float) -> float:
        """Return a lower bound on the Rényi divergence of x from y of this order, in nats."""
        return float(renyi_lower(self.count_x, self.count_y, order, alpha=_RENYI * self.alpha))

    def parameter_lower(self, claim: Claim) -> float:
        """Return a lower bound on the parameter of a claim from all of these intervals together, in both directions.

        The limits of every union of the first bins, of its ratio if the claim limits ratios, and of divergences of the
        closest distributions that the limits allow.
        """
        band, bounds = self.band(), [0.0]
        sides = (claim, band.lower_x, band.upper_y), (claim.reversed(), band.lower_y, band.upper_x)
        for held, p, q in sides:
            bounds += held.parameter_of(p, q).tolist()
        if claim.log_ratio is not None:
            bounds.append(self.maximum().lower / (claim.with_parameter(1.0).log_ratio or math.inf))
        if claim.divergence_slopes:
            orders, slopes = np.array(claim.divergence_slopes).T
            # In the reverse order of bins and datasets the same limits bound the divergence of y from x.
            for first, second in ((self.count_x, self.count_y), (self.count_y[::-1], self.count_x[::-1])):
                bounds += (renyi_lower(first, second, orders, alpha=_RENYI * self.alpha) / slopes).tolist()
        return float(max(bounds))

    @property
    def sentence(self) -> str:
        """The interval of the largest ratio."""
        largest = self.maximum()
        return (
            f"largest log ratio of a bin in [{rounded_down(largest.lower):g}, {rounded_up(largest.upper):g}] "
            f"({confidence(self.alpha)}; {self.scope})"
        )

    def __str__(self) -> str:
        return verdict_text(self.sentence, ())
