"""How far apart two versions are: the limits, the verdict, and what to say of them.

Proof: docs/proofs/total-variation.md
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..errors import OptionError
from ..events.events import Event
from ..health.findings import Finding
from ..inference.counts import Counts
from ..inference.direction import Direction
from ..inference.total_variation import LARGEST_LEVEL, total_variation_upper
from ..printing import confidence as confidence_words
from ..printing import rounded_down, rounded_up
from ..sampling.pilot_size import with_pilot
from .cell_result import CellCounts

_PLANNED_Z = 1.645  # equal versions are shown within the margin that is called sufficient 19 times in 20


class Equivalence(enum.Enum):
    """What can be said of two versions and a margin."""

    SHOWN = "equivalent within the margin"
    DIFFERENT = "different by more than the margin"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class EquivalenceResult:
    """How far apart the output distributions of two versions are, in total variation.

    The largest difference |P(A) − Q(A)| over the events A that `scope` names is at most `upper`, and the largest one
    over all events is at least `lower`: both at once with probability 1 − `alpha`, half of which goes to each. (Either
    verdict alone could have all of it, as of SHOWN and DIFFERENT only one can be wrong; but the limits are printed and
    read together.)

    Attributes
    ----------
    old, new, dataset : str
        The versions by name, and type and size of the dataset.
    margin : float
        The total variation distance that is to be shown.
    lower : float
        Lower limit, from the event.
    event, likelier_on, counts
        The event that the pilot chose, the version that it is likelier in ("x" is the old one), and its hits.
    cells : CellCounts
        Runs in each cell; x is the old version. Its alpha is spent on the upper limit: what its methods state comes on
        top of `alpha`.
    scope : str
        For which events the upper limit holds.
    counts_unlisted : bool
        Whether the last cell counts in full as a difference, so that the upper limit holds for every event.
    alpha, runs, pilot_runs, seed, findings, notes, versions, environment
        As in `AuditResult`.
    """

    old: str
    new: str
    dataset: str
    margin: float
    lower: float
    event: Event
    likelier_on: Direction
    counts: Counts
    cells: CellCounts
    scope: str
    counts_unlisted: bool = False
    alpha: float
    runs: int
    pilot_runs: int
    seed: int
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    environment: dict[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if not (0.0 < self.margin < 1.0 and 0.0 <= self.lower <= 1.0 and 0.0 < self.alpha < 1.0):  # NaN fails
            raise OptionError(
                f"margin={self.margin!r}, lower={self.lower!r} and alpha={self.alpha!r} are impossible in a result; "
                "compare again.",
                margin=self.margin,
            )

    @property
    def upper(self) -> float:
        """Upper limit for the events in `scope`.

        The event of the lower limit is among them: the proof in `total_variation_upper` is for one unknown set out of
        any family, so a further set is free.
        """
        n, hits_x, hits_y = self.counts.runs_x, self.counts.hits_x, self.counts.hits_y
        level = self.cells.alpha
        return max(
            total_variation_upper(
                self.cells.hits_x, self.cells.hits_y, alpha=level, counts_unlisted=self.counts_unlisted
            ),
            total_variation_upper((hits_x, n - hits_x), (hits_y, n - hits_y), alpha=level),
        )

    @property
    def estimate(self) -> float:
        """The observed difference of the event, which other runs chose: no more biased than that event allows."""
        p, q = self.counts.hits_x / self.counts.runs_x, self.counts.hits_y / self.counts.runs_y
        return max(0.0, p - q if self.likelier_on == "x" else q - p)

    @property
    def verdict(self) -> Equivalence:
        """DIFFERENT where the lower limit exceeds the margin, SHOWN where the upper one does not."""
        if self.findings:
            return Equivalence.INCONCLUSIVE
        if self.lower > self.margin:
            return Equivalence.DIFFERENT
        sees_something = self.counts_unlisted or self.cells.n_known > 1  # a single cell holds whatever comes
        return Equivalence.SHOWN if sees_something and self.upper <= self.margin else Equivalence.INCONCLUSIVE

    @property
    def is_shown(self) -> bool:
        """Whether the distance is within the margin, with the stated confidence."""
        return self.verdict is Equivalence.SHOWN

    @property
    def smallest_margin(self) -> float:
        """About the smallest margin that these runs would have shown, had the versions been equal."""
        return self._unlisted + self._reach

    @property
    def runs_needed(self) -> float:
        """About the runs of each version that would show the margin if they are equal; infinite where none would."""
        room = self.margin - self._unlisted
        if room <= 0.0:
            return math.inf
        return with_pilot(math.ceil(self.cells.runs_x * (self._reach / room) ** 2))

    @property
    def _unlisted(self) -> float:
        """Share of the runs whose outcomes count in full."""
        hits = self.cells.hits_x[-1] + self.cells.hits_y[-1]
        return hits / (2 * self.cells.runs_x) if self.counts_unlisted else 0.0

    @property
    def _reach(self) -> float:
        """What chance alone adds to the upper limit, in normal approximation: it shrinks as the root of the runs."""
        n = self.cells.runs_x
        p = (np.array(self.cells.hits_x) + np.array(self.cells.hits_y)) / (2.0 * n)
        deviation = np.sqrt(2.0 * p * (1.0 - p) / n)  # of the difference of one cell's frequencies
        observed = deviation.sum() / math.sqrt(2.0 * math.pi)
        # The variance of |Z| is 1 − 2/π, and of two cells, the extreme case, the differences are opposite.
        observed += _PLANNED_Z * math.sqrt((1.0 - 2.0 / math.pi) * float((deviation**2).sum()) / 2.0)
        return float(observed - ndtri(min(self.cells.alpha, LARGEST_LEVEL)) / math.sqrt(2.0 * n))

    def __str__(self) -> str:
        confidence = confidence_words(self.alpha)
        distance, margin = "total variation distance", f"margin {self.margin:.4g}"
        lower, upper = f"{rounded_down(self.lower):g}", f"{rounded_up(self.upper):g}"
        if self.verdict is Equivalence.SHOWN:
            text = f"EQUIVALENT: {distance} at most {upper}, {margin} ({confidence}); {self.scope}"
        elif self.verdict is Equivalence.DIFFERENT:
            text = f"DIFFERENT: {distance} at least {lower}, {margin} ({confidence}); {self.event_in_words}"
        elif self.findings:
            text = "INCONCLUSIVE: " + "\n  ".join(str(finding) for finding in self.findings)
        else:
            text = (
                f"INCONCLUSIVE: {distance} from {lower} to {upper}, {margin} ({confidence}); the upper end is "
                f"{self.scope}; {self._way_out}"
            )
        return "\n  note: ".join([f"{text}\n  x is {self.old}, y is {self.new}", *self.notes])

    @property
    def event_in_words(self) -> str:
        """Such as "output ≤ 1: 53,211 of 100,000 runs of the old version f, 50,003 of 100,000 runs of …"."""
        return event_counts_in_words(self.event, self.counts, self.old, self.new)

    @property
    def _way_out(self) -> str:
        if not self.counts_unlisted and self.cells.n_known < 2:
            return "the outputs could not be cut into cells, and one cell shows nothing"
        if self.smallest_margin <= self.margin:
            return (
                f"equal versions would have been shown (within about {self.smallest_margin:.2g}), so these may differ "
                "by a little: use more runs or a wider margin"
            )
        needed = "no number of runs would do" if math.isinf(self.runs_needed) else f"about {self.runs_needed:,} needed"
        return (
            f"too few runs: {self.runs:,} of each version show a margin of about {self.smallest_margin:.2g} if the "
            f"versions are equal, {needed}"
        )

    def __repr__(self) -> str:
        return (
            f"<EquivalenceResult {self.old} and {self.new}: {self.verdict.value}, total variation distance in "
            f"[{rounded_down(self.lower):g}, {rounded_up(self.upper):g}], margin {self.margin:.4g}>"
        )


def event_counts_in_words(event: Event, counts: Counts, old: str, new: str) -> str:
    """How often the event occurred in runs of either version."""
    return (
        f"{event}: {counts.hits_x:,} of {counts.runs_x:,} runs of {old}, {counts.hits_y:,} of {counts.runs_y:,} runs "
        f"of {new}"
    )
