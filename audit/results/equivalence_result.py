"""The result of comparing two versions of a mechanism: limits for their distance, and the verdict.

Proof: docs/proofs/total-variation.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from ..events.events import Event
from ..inference.event_test import Counts, Direction
from ..inference.total_variation import LARGEST_LEVEL, total_variation_upper
from ..sampling.pilot_and_batch_sizes import with_pilot
from .audit_result import SampledResult
from .bin_result import BinCounts
from .result import Result
from .verdict import Equivalence

_PLANNED_Z = 1.645  # equal versions are shown to be within the sufficient margin 19 times in 20


@dataclass(frozen=True, kw_only=True, repr=False)
class EquivalenceResult(SampledResult):
    """Total variation distance between the output distributions of two versions.

    The largest difference |P(A) − Q(A)| over the events A in `scope` is at most `upper`, and over all events it is at
    least `lower`. Both hold together with probability 1 − `alpha`; each limit has half of alpha. (Only one of SHOWN and
    DIFFERENT can be wrong, so either verdict alone could have all of alpha, but the limits are read together.)

    Attributes
    ----------
    old, new, dataset : str
        Names of the versions, and type and size of the dataset.
    margin : float
        Total variation distance to be shown.
    lower : float
        Lower limit, from the event.
    event, more_likely_on, counts
        The event chosen on the pilot, the version in which it is more likely ("x" is the old one), and its counts.
    bins : BinCounts
        Runs in each bin; x is the old version. The alpha of the bins is spent on the upper limit, so statements of
        the bins' methods come on top of `alpha`.
    scope : str
        Events for which the upper limit holds.
    counts_unlisted : bool
        Whether the last bin counts in full as a difference, so that the upper limit holds for every event.
    pilot_runs : int
        Number of the runs that chose event and bins.
    """

    kind: ClassVar = "equivalence"
    _limit_fields: ClassVar = ("lower", "upper")
    _question: ClassVar = "is_shown"
    _dict_fields: ClassVar = (
        "old", "new", "dataset", "margin", "lower", "upper", "estimate", "scope", "alpha", "runs", "seed",
    )  # fmt: skip

    old: str
    new: str
    dataset: str
    margin: float
    lower: float
    event: Event
    more_likely_on: Direction
    counts: Counts
    bins: BinCounts
    scope: str
    counts_unlisted: bool = False
    pilot_runs: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self._refuse_impossible(margin=0.0 < self.margin < 1.0, lower=0.0 <= self.lower <= 1.0)  # NaN fails

    @property
    def upper(self) -> float:
        """Upper limit for the events in `scope`.

        These include the event of the lower limit: the proof in `total_variation_upper` is for one unknown set of any
        family, so a further set costs nothing.
        """
        n, count_x, count_y = self.counts.runs_x, self.counts.count_x, self.counts.count_y
        level = self.bins.alpha
        return max(
            total_variation_upper(
                self.bins.count_x, self.bins.count_y, alpha=level, counts_unlisted=self.counts_unlisted
            ),
            total_variation_upper((count_x, n - count_x), (count_y, n - count_y), alpha=level),
        )

    @property
    def estimate(self) -> float:
        """Observed difference in the frequency of the event, which other runs chose; 0 if it is negative."""
        p, q = self.counts.count_x / self.counts.runs_x, self.counts.count_y / self.counts.runs_y
        return max(0.0, p - q if self.more_likely_on == "x" else q - p)

    @property
    def verdict(self) -> Equivalence:
        """DIFFERENT if the lower limit exceeds the margin, SHOWN if the upper limit does not."""
        if self.findings:
            return Equivalence.INCONCLUSIVE
        if self.lower > self.margin:
            return Equivalence.DIFFERENT
        sees_something = self.counts_unlisted or self.bins.n_known > 1  # a single bin contains every output
        return Equivalence.SHOWN if sees_something and self.upper <= self.margin else Equivalence.INCONCLUSIVE

    @property
    def is_shown(self) -> bool:
        """Whether the distance is within the margin, with the stated confidence."""
        return self.verdict is Equivalence.SHOWN

    @property
    def smallest_margin(self) -> float:
        """Approximate smallest margin that these runs would have shown for equal versions."""
        return self._unlisted + self._reach

    @property
    def runs_needed(self) -> float:
        """Approximate runs of each version that would show the margin for equal versions; may be infinite."""
        room = self.margin - self._unlisted
        if room <= 0.0:
            return math.inf
        return with_pilot(math.ceil(self.bins.runs_x * (self._reach / room) ** 2))

    @property
    def _unlisted(self) -> float:
        """Share of the runs whose outcomes count in full as a difference."""
        counts = self.bins.count_x[-1] + self.bins.count_y[-1]
        return counts / (2 * self.bins.runs_x) if self.counts_unlisted else 0.0

    @property
    def _reach(self) -> float:
        """Normal approximation of what chance adds to the upper limit; shrinks with the square root of the runs."""
        n = self.bins.runs_x
        p = (np.array(self.bins.count_x) + np.array(self.bins.count_y)) / (2.0 * n)
        deviation = np.sqrt(2.0 * p * (1.0 - p) / n)  # of the difference of one bin's frequencies
        observed = deviation.sum() / math.sqrt(2.0 * math.pi)
        # The variance of |Z| is 1 − 2/π; with two bins, the extreme case, the differences are opposite.
        observed += _PLANNED_Z * math.sqrt((1.0 - 2.0 / math.pi) * float((deviation**2).sum()) / 2.0)
        return float(observed - ndtri(min(self.bins.alpha, LARGEST_LEVEL)) / math.sqrt(2.0 * n))

    @property
    def event_in_words(self) -> str:
        """For example "output ≤ 1: 53,211 of 100,000 runs of the old version f, 50,003 of 100,000 runs of …"."""
        return self._words.events[0]

    @property
    def subject(self) -> str:
        """The versions."""
        return f"{self.old} and {self.new}"

    def to_dict(self) -> dict[str, Any]:
        return Result.to_dict(self) | {"event": self.event_in_words}
