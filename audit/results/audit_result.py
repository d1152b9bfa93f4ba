"""The result of an audit: counts and what was decided from them, in numbers and in words."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field
from typing import Any, Literal

from ..claims.claim import Claim, GroupClaim
from ..distinguishers.low_bits_warning import FALSE_WARNING, LowBits
from ..errors import OptionError
from ..events.events import Event
from ..events.pilot_histogram import Sketch
from ..health.findings import ANY_FALSE_ALARM, Finding
from ..inference.counts import Counts
from ..inference.direction import Direction, directed
from ..inference.joint_test import strength_estimate
from ..inference.multiplicity import Ledger
from ..options import Bits
from ..printing import confidence as confidence_words
from ..printing import rounded_down
from ..sampling.provenance import Provenance
from .cell_result import CellCounts
from .interim_look import Look, Stop

CELL_SHARE = 0.1
"""Part of an audit's alpha that goes to its cells, where they are counted; the verdict has the rest."""

Basis = Literal["event", "gaussian"]
"""What a smallest detectable excess is for: an event as frequent as the one tested, or Gaussian noise."""


class Verdict(enum.Enum):
    """What an audit can say; never that a claim is verified."""

    REFUTED = "refuted"
    NOT_REFUTED = "not refuted"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The two datasets, summarised.

    Attributes
    ----------
    x, y : str
        Type and size of each.
    difference : str
        What differs, in words.
    adjacency : str
        The neighbour relation, or that the caller declared the pair neighbours.
    unit : str
        What a claim at distance 1 protects under that relation, such as "one row"; empty where no relation was given.
    distance : float
        The distance for which the claim was tested.
    contents : tuple of str, optional
        The datasets themselves as text, only where the caller asked to keep them.
    """

    x: str
    y: str
    difference: str
    adjacency: str
    unit: str = ""
    distance: float
    contents: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """One audited claim on one pair of datasets.

    Attributes
    ----------
    mechanism : str
        Its name.
    provenance : Provenance, optional
        Its code; None where it was not recorded.
    claim : Claim
        The claim at the pair's distance.
    claim_source : str
        Where the claim is from, in the caller's words; empty where they gave none.
    pair : Pair
    event : Event
        The event tested, chosen on the pilot runs.
    likelier_on : {"x", "y"}
        The dataset whose probability of the event is tested against the boundary.
    counts : Counts
        Hits and runs of the main phase, which alone enter the bound. Of a sequential audit, whose events change: hits
        of the last event in all its runs, for the reader.
    alpha : float
        Probability that a correct mechanism is refuted: one event and one direction were chosen on other runs, so all
        of it goes to a single test.
    p_value, bound : float
        Exact p-value of the claim, never below 1e-10, and lower bound on the strength of the claim's family at
        confidence 1 − alpha. Of a sequential audit both are valid at every look, and the bound is one of a fixed grid
        of strengths, densest just above the claim.
    resolution : float
        Smallest excess over the claim that this audit detects with probability `power`; may be infinite.
    resolution_basis : {"event", "gaussian"}
        What that is said of: an event as frequent as this one was seen to be, or Gaussian noise.
    power : float
    requested_resolution : float, optional
        The resolution that the caller asked for.
    runs, pilot_runs : int
        Runs on each dataset, and how many of them were spent on choosing the event.
    seed : int
        Repeats every number; of outputs made elsewhere, the choice of those that serve as the pilot.
    is_replayable : bool
        False where the mechanism has randomness of its own, which the seed does not fix.
    findings : tuple of Finding
        Failed health checks.
    ignored : tuple of str
        Health checks that were silenced.
    notes : tuple of str
        What else a reader should know: exceptions, outputs that never vary.
    sketch : Sketch, optional
    versions : tuple of (str, str)
    looks : tuple of Look
        Of a sequential audit: where it stood after each batch.
    stopped : {"refuted", "runs", "time", "request"}, optional
        Of a sequential audit: why it ended.
    is_closed : bool
        Of a sequential audit: whether it came to the last quarter of the runs asked for, on which what the bets had won
        was staked. One with a time limit is open, and never does.
    cells : CellCounts, optional
        Runs in cells of outputs, with what they say beyond the event.
    bits : {"warn", True, False}
        Whether events by the low bits of floating-point outputs belong to the verdict (True), or were looked at.
    low_bits : LowBits, optional
        The warning that they break the claim.
    environment : dict
        Timings and machine: all that may differ between two runs with the same seed. Not compared.
    """

    mechanism: str
    provenance: Provenance | None = None
    claim: Claim
    claim_source: str = ""
    pair: Pair
    event: Event
    likelier_on: Direction
    counts: Counts
    alpha: float
    p_value: float
    bound: float
    resolution: float
    resolution_basis: Basis = "event"
    power: float
    requested_resolution: float | None = None
    runs: int
    pilot_runs: int
    seed: int
    is_replayable: bool = True
    findings: tuple[Finding, ...] = ()
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    sketch: Sketch | None = None
    versions: tuple[tuple[str, str], ...] = ()
    looks: tuple[Look, ...] = ()
    is_closed: bool = False
    stopped: Stop | None = None
    cells: CellCounts | None = None
    bits: Bits = "warn"
    low_bits: LowBits | None = None
    environment: dict[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        possible = {
            "alpha": 0.0 < self.alpha < 1.0,
            "p_value": 0.0 <= self.p_value <= 1.0,
            "bound": self.bound >= 0.0,
            "resolution": self.resolution > 0.0,
            "power": 0.0 < self.power < 1.0,
            "runs": 1 <= self.runs < 2**63,
            "pilot_runs": 0 <= self.pilot_runs <= self.runs,
        }
        for name, holds in possible.items():
            if not holds:
                value = getattr(self, name)
                raise OptionError(f"{name}={value!r} is impossible in a result; audit again.", name=name, value=value)

    @property
    def verdict(self) -> Verdict:
        """REFUTED if and only if the bound exceeds the claim and no health check failed.

        The bound is found from below to .4% of its gap, so a p-value within rounding of alpha may go with a bound that
        does not exceed the claim.
        """
        if self.findings:
            return Verdict.INCONCLUSIVE
        if self.bound > self.directed_claim.strength:
            return Verdict.REFUTED
        wanted = math.inf if self.requested_resolution is None else self.requested_resolution
        if math.isinf(self.resolution) or self.resolution > wanted:
            return Verdict.INCONCLUSIVE
        return Verdict.NOT_REFUTED

    @property
    def is_refuted(self) -> bool:
        """Whether the bound exceeds the claim; false where a health check failed."""
        return self.verdict is Verdict.REFUTED

    @property
    def ledger(self) -> Ledger:
        """How alpha is spent: on the verdict, and on the cells if they were counted.

        Beside alpha stand the errors that refute nothing: a false warning about low bits, and a false alarm of a health
        check.
        """
        if self.stopped is not None:
            test = "betting test" + " with a final test of the last batch" * self.is_closed
        else:
            test = "event test"
        shares = [(test, self.alpha)]
        if self.cells is not None:
            shares = [(test, self.alpha - self.cells.alpha), ("cell intervals", self.cells.alpha)]
        warning = [("false low-bits warning", FALSE_WARNING)] if self.bits == "warn" else []
        return Ledger(self.alpha, tuple(shares), beside=(*warning, ("false alarm of a health check", ANY_FALSE_ALARM)))

    @property
    def directed_counts(self) -> Counts:
        """The counts with the likelier dataset first, as they are tested."""
        return directed(self.claim, self.counts, self.likelier_on).counts

    @property
    def directed_claim(self) -> Claim:
        """The claim in the direction that is tested."""
        return directed(self.claim, self.counts, self.likelier_on).claim

    @property
    def estimate(self) -> float:
        """Point estimate of the strength: the least that allows the observed frequencies; infinite where none does."""
        return strength_estimate(self.directed_counts, self.directed_claim)

    @property
    def ratio(self) -> float:
        """Observed likelihood ratio of the event, the likelier dataset's frequency over the other's."""
        counts = self.directed_counts
        if counts.hits_y == 0:
            return math.inf if counts.hits_x else math.nan
        return (counts.hits_x / counts.runs_x) / (counts.hits_y / counts.runs_y)

    @property
    def event_in_words(self) -> str:
        """Such as "output ≤ -0.31 is 2.70 times likelier on x"; of the side that was seen more, tested or not."""
        counts, (tested, other) = self.directed_counts, self._sides
        if counts.hits_x == counts.hits_y == 0:
            return f"{self.event} never occurred"
        if self.ratio < 1.0:
            counts, tested, other = counts.swapped(), other, tested
        if counts.hits_y == 0:
            times = "once" if counts.hits_x == 1 else f"{counts.hits_x:,} times"
            return f"{self.event} occurred {times} on {tested} and never on {other}"
        ratio = f"{max(self.ratio, 1.0 / self.ratio):.3g}"
        if ratio == "1":
            return f"{self.event} is about as likely on x as on y"
        return f"{self.event} is {ratio} times likelier on {tested}"

    @property
    def _sides(self) -> tuple[Direction, Direction]:
        """The dataset whose probability of the event is tested, and the other one."""
        return ("x", "y") if self.likelier_on == "x" else ("y", "x")

    @property
    def _no_estimate(self) -> str:
        """Why no finite strength allows the observed frequencies."""
        counts, (tested, other) = self.directed_counts, self._sides
        if counts.hits_y == 0:
            return f"the event never occurred on {other}, so the point estimate is infinite"
        if counts.hits_x == counts.runs_x:
            return f"outputs outside the event never occurred on {tested}, so the point estimate is infinite"
        return f"no {self.claim.strength_name} allows the observed frequencies, so the point estimate is infinite"

    @property
    def detectable_in_words(self) -> str:
        """Such as "smallest detectable excess: 0.018 (95% power, for this event)"."""
        if math.isinf(self.resolution):
            return f"no excess, however large, is detected with {100 * self.power:.6g}% power"
        of = "Gaussian noise" if self.resolution_basis == "gaussian" else "this event"
        return f"smallest detectable excess: {self.resolution:.2g} ({100 * self.power:.6g}% power, {of})"

    def __str__(self) -> str:
        claim, confidence = self.directed_claim, confidence_words(self.alpha)
        claimed = f"claimed {claim.strength:.4g}{' per step' if isinstance(claim, GroupClaim) else ''}"
        if self.verdict is Verdict.REFUTED:
            found = claim.describe_strength(self.bound)
            if (least := rounded_down(self.bound)) <= claim.strength:  # above it, if only in a later digit
                found = found.replace(f" >= {least:g}", f" > {claim.strength:.4g}", 1)
            text = f"REFUTED: {found}, {claimed} ({confidence})"
            if self.stopped == "refuted":
                text += f" {'by the last quarter of' if self.is_closed else 'after'} {self.runs:,} runs per dataset"
                if self.bound < self.estimate < math.inf:
                    text += f"; point estimate {self.estimate:.3g}, biased upward"
            if math.isinf(self.estimate):
                text += f"; {self._no_estimate}"
        elif self.verdict is Verdict.NOT_REFUTED:
            text = (
                f"NOT REFUTED: {claim.describe_strength(self.bound)}, {claimed} ({confidence}); "
                f"{self.detectable_in_words}{'; ' * bool(claim.caveat)}{claim.caveat}"
            )
        elif self.findings:
            text = "INCONCLUSIVE: " + "\n  ".join(str(finding) for finding in self.findings)
        else:
            text = f"INCONCLUSIVE: too few runs ({self.runs:,} per dataset, {confidence}); {self.detectable_in_words}"
            if self.requested_resolution is not None:
                text += f"; {self.requested_resolution:.2g} was asked for"
        if self.stopped == "time":
            text += f"; time limit reached after {self.runs:,} runs per dataset"
        if self.stopped == "request":
            text += f"; stopped on request after {self.runs:,} runs per dataset"
        if not self.is_replayable:
            text += " [not replayable: the mechanism has randomness of its own]"
        if self.low_bits is not None:
            text += f"\n  WARNING: {self.low_bits}"
        return "\n  note: ".join([text, *self.notes])

    def __repr__(self) -> str:
        return (
            f"<AuditResult {self.mechanism}: {self.verdict.value}, "
            f"{self.claim.strength_name} >= {rounded_down(self.bound):g}, claim {self.claim}>"
        )
