"""The result of an audit: the counts, and what was decided from them."""

from __future__ import annotations

import enum
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ..claims.claim import Claim, GroupClaim
from ..errors import OptionError
from ..events.events import Event, Sketch
from ..health.findings import ANY_FALSE_ALARM, Finding, HealthCheck, failed_checks
from ..inference.divergence_test import DivergenceTest
from ..inference.event_test import LEAST_ALPHA, Counts, Direction, check_test_alpha, directed, parameter_estimate
from ..inference.guess_test import Guesses
from ..inference.multiplicity import ErrorBudget
from ..options import Bits, check_fields, checked
from ..portfolio.low_bits import FALSE_WARNING, LowBits
from ..printing import confidence as confidence_words
from ..printing import rounded_down, rounded_up, shorten
from ..sampling.object_identity import Provenance
from .cell_result import CellCounts
from .result import Result

Stop = Literal["refuted", "runs", "time", "request"]


@dataclass(frozen=True, slots=True)
class InterimAnalysis:
    """State of an audit after a batch.

    Attributes
    ----------
    runs : int
        Runs on each dataset so far.
    bound : float
        Running lower bound, valid at all interim analyses together.
    pvalue : float
        Anytime-valid p-value of the claim.
    """

    runs: int
    bound: float
    pvalue: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherDirection:
    """The event that is more likely on the other dataset, and the guesses that it makes together with the first event.

    An output in the result's event is guessed to be from the dataset on which that event is more likely, an output in
    this event from the other one.

    Attributes
    ----------
    event : Event
        Without outputs of the result's event.
    counts : Counts
        Counts of this event and runs on each dataset.
    guesses : Guesses
        Correct and incorrect guesses in as many runs as coins said, which are tested.
    """

    event: Event
    counts: Counts
    guesses: Guesses


# The verdict of an audit, and how a bound and an event are worded in it.

_MOST_DIGITS = 12  # of a bound that exceeds the claim by little


class Verdict(enum.Enum):
    """Verdict of an audit; an audit never verifies a claim.

    Attributes
    ----------
    REFUTED
        The bound exceeds the claim, and no health check failed.
    NOT_REFUTED
        The audit detects an excess as small as requested, and found none.
    INCONCLUSIVE
        A health check failed, or only a larger excess is detectable.

    See Also
    --------
    results.AuditResult : The result with a verdict.
    results.Result.raise_if_refuted : An exception instead of a verdict.

    Examples
    --------
    >>> from dpaudit import Verdict, check_outputs
    >>> result = check_outputs([0, 1] * 50, [0, 1] * 50, claim=0.1)
    >>> result.verdict is Verdict.INCONCLUSIVE  # a hundred outputs cannot show an excess over 0.1
    True
    """

    REFUTED = "refuted"
    NOT_REFUTED = "not refuted"
    INCONCLUSIVE = "inconclusive"


def verdict_of(
    claim: Claim, bound: float, resolution: float | None, requested: float | None, findings: Sequence[Finding]
) -> Verdict:
    """REFUTED if and only if the bound exceeds the claim and no health check failed.

    INCONCLUSIVE without a detectable excess. The bound is found from below to 0.4% of its gap, so it may not exceed
    the claim although the p-value equals alpha up to rounding.

    Parameters
    ----------
    claim : Claim
        In the direction tested.
    bound : float
        Lower bound on the claim's privacy parameter.
    resolution : float or None
        Minimum detectable excess; a bound above the claim needs none.
    requested : float or None
        Excess that the audit has to detect; without one it is `largest_excess`.
    """
    if findings:
        return Verdict.INCONCLUSIVE
    if bound > claim.parameter:
        return Verdict.REFUTED
    assert resolution is not None  # results that refute nothing have one
    if math.isinf(resolution) or resolution > (largest_excess(claim) if requested is None else requested):
        return Verdict.INCONCLUSIVE
    return Verdict.NOT_REFUTED


def largest_excess(claim: Claim) -> float:
    """The largest detectable excess with which an audit has tested the claim: the claim itself.

    Beyond that twice the claimed loss may pass. A claim of 0 has no such scale. Its audit must detect half of the
    family's largest privacy parameter (a δ of 1/2), or a privacy parameter of 1 if there is no largest: a likelihood
    ratio of e.
    """
    if claim.parameter > 0.0:
        return claim.parameter
    return 0.5 * claim.max_parameter if math.isfinite(claim.max_parameter) else 1.0


def untested_in_words(claim: Claim, resolution: float) -> str:
    """For example "no epsilon below 5.97 would have been found, 1 claimed"."""
    least = "claimed" if claim.parameter > 0.0 else f"claimed; an audit must find {largest_excess(claim):g} above"
    found = f"no {claim.parameter_name} below {claim.parameter + resolution:.3g} would have been found"
    return f"{found}, {claim.parameter:.4g} {least}"


def bound_beside_claim(claim: Claim, bound: float) -> str:
    """Describe a lower bound and the claim's privacy parameter, for example "epsilon >= 1.244, claimed 1"."""
    sign, least, claimed = least_beside(bound, claim.parameter)
    return f"{claim.describe_bound(f'{sign} {least}')}, claimed {claimed}"


def least_in_words(claim: Claim, bound: float) -> str:
    """Describe a lower bound with as many digits as show that it exceeds the claim, if it does."""
    sign, least, _ = least_beside(bound, claim.parameter)
    return claim.describe_bound(f"{sign} {least}")


def least_beside(bound: float, claimed: float) -> tuple[str, str, str]:
    """A sign, a lower bound and a claimed number, to as many digits as show which of them is larger."""
    if not bound > claimed:
        return ">=", f"{rounded_down(bound):g}", f"{claimed:.4g}"
    for digits in range(4, _MOST_DIGITS + 1):
        least, beside = rounded_down(bound, digits), float(f"{claimed:.{digits}g}")
        if least > beside:
            return ">=", f"{least:.{max(digits, 6)}g}", f"{beside:.{max(digits, 6)}g}"
    whole = repr(float(claimed)).removesuffix(".0")
    return ">", whole, whole


def event_in_words(event: Event, counts: Counts, more_likely_on: Direction, *, is_learned_here: bool = False) -> str:
    """How much more likely an event is on one dataset, the one in whose direction it is tested if neither is clear.

    If the event was learned on the counted runs, the ratio describes these runs, and is larger than in others.
    """
    p, q = counts.count_x / counts.runs_x, counts.count_y / counts.runs_y
    if p == q == 0.0:
        return f"{event} never occurred"
    is_on_x = p > q or (p == q and more_likely_on == "x")
    more, less = ("x", "y") if is_on_x else ("y", "x")
    larger, smaller, seen = (p, q, counts.count_x) if is_on_x else (q, p, counts.count_y)
    if smaller == 0.0:
        times = "once" if seen == 1 else f"{seen:,} times"
        return f"{event} occurred {times} on {more} and never on {less}"
    ratio = f"{larger / smaller:.3g}"
    if ratio == "1":
        return f"{event} is about as likely on x as on y"
    how = f"occurred {ratio} times as often" if is_learned_here else f"is {ratio} times as likely"
    return f"{event} {how} on {more}"


Basis = Literal["event", "chosen", "gaussian", "common"]
"""The kind of violation that a minimum detectable excess is stated for."""

_DOUBT = (
    ". A claim for one row says nothing about such a pair. Pass adjacency=, which has the pair checked: AddRemove() or "
    'Replace() for rows, Within("linf") for query answers; or distance= for a claim at that distance.'
)
_BARELY, _CHANCE = 0.01, 0.01  # excess of a bound, as a share of the claim, and alpha, that ask for a repetition
_BASES = {
    "event": "this event",
    "chosen": "an event as frequent as the pilot's",
    "gaussian": "Gaussian noise",
    "common": "an event of probability 1/2",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The two datasets, summarised.

    Attributes
    ----------
    x, y : str
        Type and size of each.
    difference : str
        Description of the difference.
    adjacency : str
        The neighbour relation, or that the caller declared the pair neighbours.
    unit : str
        What a claim at distance 1 protects under that relation, such as "one row"; empty where no relation was given.
    distance : float
        The distance for which the claim was tested.
    doubt : str
        Why the pair may be no neighbours, if no relation was given and the datasets differ in more rows.
    contents : tuple of str, optional
        The datasets themselves as text, only where the caller asked to keep them.
    """

    x: str
    y: str
    difference: str
    adjacency: str
    unit: str = ""
    distance: float
    doubt: str = ""
    contents: tuple[str, str] | None = None


# What results of random runs have in common, and those of a claim.


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledResult(Result):
    """A result of random runs, with all that repeats it.

    Attributes
    ----------
    alpha : float
        Largest probability that a correct mechanism is refuted.
    runs : int
        Runs on each dataset, on average; of a training, the runs of it.
    seed : int
        Random seed that repeats every number.
    findings : tuple of Finding
        Failed health checks, with which nothing is refuted.
    notes : tuple of str
        Remarks that qualify the result: exceptions, outputs that never vary.
    provenance : Provenance, optional
        The mechanism's code; None if it was not recorded.
    versions : tuple of (str, str)
        Names and versions of the libraries.
    environment : dict
        Timings and machine: all that may differ between two runs with the same seed. Not compared.
    """

    alpha: float
    runs: int
    seed: int
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    provenance: Provenance | None = None
    versions: tuple[tuple[str, str], ...] = ()
    environment: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The failed health checks and the notes, as they are printed below the verdict."""
        return *map(str, self.findings), *(f"note: {note}" for note in self.notes)

    def __post_init__(self) -> None:
        check_fields(self)
        checked("alpha", self.alpha)
        self._refuse_impossible(runs=1 <= self.runs < 2**63)

    def _refuse_impossible(self, **possible: bool) -> None:
        """Raise an `OptionError` for the first field that is not possible: no audit finds its value."""
        for name, holds in possible.items():
            if not holds:
                value = getattr(self, name)
                raise OptionError(
                    f"{name}={shorten(value)} is impossible in a result; audit again.", name=name, value=value
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimResult(SampledResult):
    """A claim tested on runs: what the results of audits of outputs and of trainings have in common.

    Attributes
    ----------
    mechanism : str
        Name of the mechanism, or of the training.
    claim : Claim
        The claim at the pair's distance.
    claim_source : str
        Where the claim is from, in the caller's words; may be empty.
    pvalue, bound : float
        p-value of the claim, never below 1e-10 (of a training 1e-12), and lower bound on the privacy parameter of the
        claim's family at confidence 1 − alpha.
    resolution : float, optional
        Smallest excess over the claim that is detected with probability `power`; may be infinite. None where the bound
        exceeds the claim, as it is computed only where it decides between NOT REFUTED and INCONCLUSIVE.
    power : float
    requested_resolution : float, optional
        The resolution that the caller requested.
    """

    mechanism: str
    claim: Claim
    claim_source: str = ""
    pvalue: float
    bound: float
    resolution: float | None
    power: float = 0.95
    requested_resolution: float | None = None

    def __post_init__(self) -> None:
        SampledResult.__post_init__(self)
        self._refuse_impossible(
            pvalue=0.0 <= self.pvalue <= 1.0,
            bound=self.bound >= 0.0,
            resolution=self.bound > self.directed_claim.parameter if self.resolution is None else self.resolution > 0.0,
        )
        checked("power", self.power)

    @property
    def directed_claim(self) -> Claim:
        """The claim in the direction that is tested."""
        return self.claim

    @property
    def verdict(self) -> Verdict:
        """REFUTED if and only if the bound exceeds the claim and no health check failed."""
        return verdict_of(self.directed_claim, self.bound, self.resolution, self.requested_resolution, self.findings)

    @property
    def _limits(self) -> tuple[float, float]:
        return self.bound, math.inf

    def __repr__(self) -> str:
        sign, least, _ = least_beside(self.bound, self.claim.parameter)
        return (
            f"<{type(self).__name__} {self.mechanism}: {self.verdict.value}, "
            f"{self.claim.parameter_name} {sign} {least}, claim {self.claim}>"
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AuditResult(ClaimResult):
    """One audited claim on one pair of datasets: what fixed and sequential audits have in common.

    `check` returns a `FixedSizeResult`, or a `SequentialResult` if the audit was sequential.

    Attributes
    ----------
    pair : Pair
    event : Event
        The event tested, chosen on the pilot runs.
    more_likely_on : {"x", "y"}
        The dataset whose probability of the event is tested against the boundary.
    counts : Counts
        Counts of the event and runs on each dataset.
    opposite : OtherDirection, optional
        The event of the other direction, if both are tested together.
    divergence : DivergenceTest, optional
        The test of all bins of outputs at once, for a claim on Rényi divergences. In a sequential audit that its bets
        ended, what bets on a divergence showed, if they won more than those on events.
    resolution_basis : {"event", "chosen", "gaussian", "common"}
        Whether the resolution is for an event as frequent as this one, for one as frequent as that chosen on the pilot
        where a plain event decides, for Gaussian noise, or for an event of probability 1/2.
    net_events : int
        Number of plain events that were tested too, each by its counts in both directions: half-lines and intervals of
        every number in the outputs, and single outcomes.
    net_alpha : float
        Error probability of these tests together; 0 without them.
    pilot_runs : int
        Number of the runs that chose the event. The others may be divided unevenly: `counts` has the runs on either
        dataset.
    searched : int
        Independent runs on each dataset that a search made on its pair, and which chose the event; not among `runs`.
    is_reproducible : bool
        False if the mechanism has randomness that the seed does not fix.
    ignored : tuple of str
        Health checks that were silenced.
    sketch : Sketch, optional
        Histogram of the kept outputs.
    bits : {"warn", True, False}
        Whether events by the low bits of floating-point outputs belong to the verdict (True) or only give a warning.
    low_bits : LowBits, optional
        The warning that the low bits break the claim.
    """

    pair: Pair
    event: Event
    more_likely_on: Direction
    counts: Counts
    opposite: OtherDirection | None = None
    divergence: DivergenceTest | None = None
    resolution_basis: Basis = "event"
    net_events: int = 0
    net_alpha: float = 0.0
    pilot_runs: int
    searched: int = 0
    is_reproducible: bool = True
    ignored: tuple[str, ...] = ()
    sketch: Sketch | None = None
    bits: Bits = "warn"
    low_bits: LowBits | None = None

    @property
    @abstractmethod
    def test_shares(self) -> tuple[tuple[str, float], ...]:
        """The parts of alpha, by the name of the test that has each."""

    def _shares_of_test(self, name: str, alpha: float) -> tuple[tuple[str, float], ...]:
        """The parts of the alpha of a test of fixed size."""
        beside = []
        if self.net_events:
            beside.append((f"{self.net_events:,} plain events together", self.net_alpha))
        if self.divergence is not None and (self.stopped is None or self.is_closed):
            beside.append(("test of divergences", self.divergence.alpha))
        return (name, alpha - sum(share for _, share in beside)), *beside

    @property
    def cells(self) -> CellCounts | None:
        """Runs counted in cells of outputs; only an audit of fixed size counts them."""
        return None

    @property
    def interim_analyses(self) -> tuple[InterimAnalysis, ...]:
        """The interim analyses of a sequential audit, one after each batch."""
        return ()

    @property
    def stopped(self) -> Stop | None:
        """Why a sequential audit ended; None for an audit of fixed size."""
        return None

    @property
    def is_closed(self) -> bool:
        """Whether a sequential audit ended with its final test."""
        return False

    @property
    def has_stopped_early(self) -> bool:
        """Whether the audit stopped at its refutation: then the bound does not show how large the loss may be."""
        return self.stopped == "refuted" and not self.is_closed

    def __post_init__(self) -> None:
        ClaimResult.__post_init__(self)
        self._refuse_impossible(
            pilot_runs=0 <= self.pilot_runs <= self.runs,
            searched=0 <= self.searched < 2**63,
            divergence=self.divergence is None or isinstance(self.divergence, DivergenceTest),
            cells=self.cells is None or isinstance(self.cells, CellCounts),
            net_alpha=0.0 <= self.net_alpha < self.alpha and (self.net_alpha > 0.0 or self.net_events == 0),
        )
        self._refuse_impossible(alpha=all(share > 0.0 for _, share in self.test_shares))

    @property
    def error_budget(self) -> ErrorBudget:
        """How alpha is spent, with the errors outside alpha, which refute nothing: false warnings and false alarms."""
        warning = [("false low-bits warning", FALSE_WARNING)] if self.bits == "warn" else []
        beside = (*warning, ("false alarm of a health check", ANY_FALSE_ALARM))
        return ErrorBudget(self.alpha, self.test_shares, beside=beside)

    @property
    def directed_counts(self) -> Counts:
        """The counts with the more likely dataset first, as they are tested."""
        return directed(self.claim, self.counts, self.more_likely_on).counts

    @property
    def directed_claim(self) -> Claim:
        """The claim in the direction that is tested."""
        return self.claim if self.more_likely_on == "x" else self.claim.reversed()

    @property
    def by_divergence(self) -> DivergenceTest | None:
        """The test of divergences, if it refutes the claim with the largest bound."""
        test = self.divergence
        return test if test is not None and test.bound == self.bound > self.claim.parameter else None

    @property
    def by_cells(self) -> bool:
        """Whether the cell intervals refute the claim, with a larger bound than all tests."""
        cells = self.cells
        return (
            cells is not None and self.bound > self.claim.parameter and self.bound == cells.parameter_lower(self.claim)
        )

    @property
    def estimate(self) -> float:
        """Point estimate: the smallest parameter that allows the observed frequencies; infinite if there is none.

        If the cell intervals refute the claim, their bound.
        """
        if self.by_divergence is not None:
            return self.by_divergence.estimate
        if self.by_cells:
            return self.bound
        if self.opposite is not None:
            return parameter_estimate(self.opposite.guesses.as_counts, self.claim)
        return parameter_estimate(self.directed_counts, self.directed_claim)

    @property
    def ratio(self) -> float:
        """Observed likelihood ratio of the event, the more likely dataset's frequency over the other's."""
        counts = self.directed_counts
        if counts.count_y == 0:
            return math.inf if counts.count_x else math.nan
        return (counts.count_x / counts.runs_x) / (counts.count_y / counts.runs_y)

    @property
    def tested(self) -> Counts | Guesses:
        """The counts that are tested: counts of the event, or correct and incorrect guesses in both directions."""
        return self.counts if self.opposite is None else self.opposite.guesses

    @property
    def event_in_words(self) -> str:
        """For example "output ≤ -0.31 is 2.70 times as likely on x", where the event is more frequent on x."""
        return event_in_words(self.event, self.counts, self.more_likely_on, is_learned_here=self._is_learned_here)

    @property
    def opposite_in_words(self) -> str:
        """The event of the other direction in the same words; empty if only one direction was tested."""
        if self.opposite is None:
            return ""
        return event_in_words(
            self.opposite.event, self.opposite.counts, self._sides[1], is_learned_here=self._is_learned_here
        )

    @property
    def evidence(self) -> str:
        """What the bound rests on: a divergence, or the event or the events of both directions, and `tested`."""
        by = self.by_divergence
        basis = "" if by is None else f"{by}: about {self.claim.describe_bound(f'= {by.estimate:.4g}')}"
        basis = "the cell intervals exclude the claim" if self.by_cells else basis
        return "\n".join(filter(None, (basis, self.event_in_words, self.opposite_in_words, str(self.tested))))

    @property
    def _sides(self) -> tuple[Direction, Direction]:
        """The dataset whose probability of the event is tested, and the other one."""
        return ("x", "y") if self.more_likely_on == "x" else ("y", "x")

    @property
    def _certain(self) -> str:
        """The counts that no finite privacy parameter allows."""
        counts, (tested, other) = self.directed_counts, self._sides
        if self.opposite is not None and self.opposite.guesses.wrong == 0:
            return f"0 of {self.opposite.guesses.right:,} guesses were incorrect"
        what, count_x, count_y = "the event", counts.count_x, counts.count_y
        if counts.count_y > 0 and counts.count_x == counts.runs_x:
            what, count_x, count_y = "outputs outside the event", 0, counts.runs_y - counts.count_y
        on_tested = f"{count_x:,} of {counts.runs_x:,} runs on {tested}"
        return f"{what} in {on_tested} and {count_y:,} of {counts.runs_y:,} on {other}"

    @property
    def _too_little(self) -> str:
        """What the audit could not have found, and what to do."""
        few = f"too few runs for {confidence_words(self.alpha)} ({self.runs:,} per dataset)"
        remedy = "use more runs or another pair (find_worst_pair, or neighbours= in pytest)"
        assert self.resolution is not None
        if math.isinf(self.resolution):
            return f"{few}; {self.detectable_in_words}; {remedy}"
        remedy += f", or accept this with resolution={rounded_up(self.resolution, 2):g}"
        if self.requested_resolution is not None:
            return f"{few}; {self.detectable_in_words}; requested: {self.requested_resolution:.2g}; {remedy}"
        return (
            f"{untested_in_words(self.directed_claim, self.resolution)} ({100 * self.power:.6g}% power, "
            f"{self._basis_in_words}); {remedy}"
        )

    @property
    def _basis_in_words(self) -> str:
        """The kind of violation that the minimum detectable excess is for."""
        if self.opposite is not None and self.resolution_basis == "event":
            return "these events"
        return _BASES[self.resolution_basis]

    @property
    def detectable_in_words(self) -> str:
        """For example "minimum detectable excess: 0.018 (95% power, this event)"."""
        if self.resolution is None:
            return "not stated, because the bound exceeds the claim"
        if math.isinf(self.resolution):
            return f"no detectable excess can be stated ({100 * self.power:.6g}% power)"
        power = f"{100 * self.power:.6g}% power, {self._basis_in_words}"
        return f"minimum detectable excess: {self.resolution:.2g} ({power})"

    @property
    def _when_refuted(self) -> str:
        """When a sequential audit refuted the claim, for the verdict line."""
        if self.stopped != "refuted":
            return ""
        if self.is_closed:
            return f" by the final test, after {self.runs:,} runs per dataset"
        text = f" after {self.runs:,} runs per dataset"
        if self.bound < self.estimate < math.inf:
            text += f"; point estimate {self.estimate:.3g}, biased upward by the early stop"
        return text

    @property
    def _when_stopped(self) -> str:
        """What ended a sequential audit early, for the verdict line."""
        why = {"time": "time limit reached", "request": "stopped on request"}.get(self.stopped or "")
        return f"; {why} after {self.runs:,} runs per dataset" if why else ""

    @property
    def _is_learned_here(self) -> bool:
        """Whether the counts include the runs on which the event was learned."""
        return self.stopped is not None and not self.is_closed

    @property
    def sentence(self) -> str:
        """The verdict in a sentence: bound, claim, confidence, runs to a refutation or minimum detectable excess."""
        claim, confidence = self.directed_claim, confidence_words(self.alpha)
        found = f"{bound_beside_claim(claim, self.bound)}{' per step' if isinstance(claim, GroupClaim) else ''}"
        if self.verdict is Verdict.REFUTED:
            if self.has_stopped_early and f"{self.bound:.3g}" == f"{claim.parameter:.3g}":
                found = claim.describe_bound(f"above the claimed {claim.parameter:.4g}")
            text = f"REFUTED: {found} ({confidence}){self._when_refuted}"
            if math.isinf(self.estimate):
                text += f"; {self._certain}"
        elif self.verdict is Verdict.NOT_REFUTED:
            text = f"NOT REFUTED: {found} ({confidence}); {self.detectable_in_words}"
        elif self.findings:
            text = failed_checks(self.findings)
        else:
            text = f"INCONCLUSIVE: {self._too_little}"
        return text + self._when_stopped + (f"; {self.pair.doubt}" if self.pair.doubt else "")

    @property
    def why_not_reproducible(self) -> str:
        """Why the seed alone does not repeat the counts; empty if it does."""
        if self.is_reproducible:
            return ""
        if any(finding.check is HealthCheck.DATASET_MUTATED for finding in self.findings):
            return "the mechanism changes the datasets"
        return "the mechanism has its own randomness"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What must be read with the verdict: failed health checks, a warning of low bits, and notes."""
        remarks = [str(finding) for finding in self.findings]
        remarks += [f"WARNING: {self.pair.doubt}{_DOUBT}"] if self.pair.doubt else []
        remarks += [f"WARNING: {self.low_bits}"] if self.low_bits is not None else []
        remarks += [] if self.is_reproducible else [f"note: not reproducible, as {self.why_not_reproducible}"]
        remarks += [f"note: {self._when_close}"] if self._is_close else []
        return *remarks, *(f"note: {note}" for note in self.notes)

    @property
    def _is_close(self) -> bool:
        """Whether a bound barely above the claim refutes it, at an alpha at which that may be chance."""
        is_barely = self.bound <= (1.0 + _BARELY) * self.directed_claim.parameter
        return self.verdict is Verdict.REFUTED and is_barely and self.alpha >= _CHANCE and not self.has_stopped_early

    @property
    def _when_close(self) -> str:
        """What to do about a bound barely above the claim."""
        again = (
            "and another seed"
            if self.is_reproducible
            else "(the seed does not fix the mechanism's randomness, so another seed alone changes nothing)"
        )
        return (
            f"the bound exceeds the claim by less than {100 * _BARELY:g}%, and up to {100 * self.alpha:g}% of audits "
            f"refute a mechanism that just keeps its claim. Audit again with more runs {again}"
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FixedSizeResult(AuditResult):
    """Result of an audit whose number of runs was fixed before: the event is tested once, on the main runs.

    The bound and the p-value are valid for any number of runs. The counts are those of the main runs: event and
    direction were chosen on the pilot, so the test needs no correction for that choice. If outcomes recur, a tenth of
    alpha tests each of them alone. Where such a test refutes the claim and gives the larger bound, its outcome is the
    result's event, and bound and p-value are corrected for the number of outcomes.

    Attributes
    ----------
    cells : CellCounts, optional
        Main runs in cells of outputs, with intervals and curves. If these exclude the claim, the claim is refuted; if
        they give the largest bound, it is the result's, and the p-value is at most alpha.
    """

    cells: CellCounts | None = None

    @property
    def test_shares(self) -> tuple[tuple[str, float], ...]:
        if self.cells is None:
            return self._shares_of_test("event test", self.alpha)
        of_cells = self.cells.alpha
        return *self._shares_of_test("event test", self.alpha - of_cells), ("cell intervals", of_cells)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SequentialResult(AuditResult):
    """Result of an audit that bets batch by batch and may stop after any batch.

    The bound and the p-value are valid at all interim analyses together. While the audit bets, the bound is one of a
    fixed grid of privacy parameters, which is densest just above the claim, and the event changes from batch to batch;
    the counts are then counts of the last event in all runs, for the reader, and do not enter the bound. An audit with
    a planned number of runs reserves half of alpha for a final test. If it comes to it, event and counts are those of
    that test.

    Attributes
    ----------
    interim_analyses : tuple of InterimAnalysis
        State of the audit after each batch; the last one includes the final test.
    stopped : {"refuted", "runs", "time", "request"}
        Why the audit ended.
    final_alpha : float
        Error probability reserved for the final test; 0 if none was planned.
    is_closed : bool
        Whether the final test was made.
    """

    # Without field() the base's properties of the same names would become the defaults.
    interim_analyses: tuple[InterimAnalysis, ...] = field()
    stopped: Stop = field()
    final_alpha: float = 0.0
    is_closed: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        self._refuse_impossible(final_alpha=0.0 <= self.final_alpha < self.alpha)
        AuditResult.__post_init__(self)

    @property
    def test_shares(self) -> tuple[tuple[str, float], ...]:
        if not self.final_alpha:
            return (("betting test", self.alpha),)
        return ("betting test", self.alpha - self.final_alpha), *self._shares_of_test("final test", self.final_alpha)


# The settings of an audit, known before any output is drawn.

# Shares of alpha for the cells and for the net of plain events, if they are counted; the event test has the rest.
_CELL_SHARE, _NET_SHARE = 0.1, 0.2
_SMALLER_SHARE = 0.1  # of event and divergence test together, for the one that shows less in the pilot
FINAL_SHARE = 0.5
"""Share of alpha for the final test of a sequential audit; the bets have the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings that do not depend on where the outputs come from."""

    claim: Claim
    claim_source: str
    pair: Pair
    alpha: float
    resolution: float | None
    power: float
    name: str
    provenance: Provenance | None
    seed: int
    bits: Bits

    def check_shares(self, share: float = 1.0, cells: int = 0) -> None:
        """Refuse an alpha of which the exact test has too small a part, before the first run."""
        part = self.event_alpha(share, has_cells=cells > 0, net=1.0)
        if self.claim.divergence_slopes:
            part -= self.divergence_alpha(part, show_more=False)
        check_test_alpha(self.alpha, part / self.alpha)

    @property
    def cell_alpha(self) -> float:
        """Error probability of the cell intervals, if cells are counted."""
        return _CELL_SHARE * self.alpha

    def net_alpha(self, part: float, share: float = 1.0) -> float:
        """Error probability of the tests of a net, of which it needs a `part`, in a `share` of alpha."""
        return _NET_SHARE * part * share * self.alpha

    def event_alpha(self, share: float = 1.0, *, has_cells: bool = False, net: float) -> float:
        """Error probability of the event test and, if there is one, the divergence test in a `share` of alpha.

        `net` is the part that the net needs, 0 without one.
        """
        return share * self.alpha * (1 - _CELL_SHARE * has_cells - _NET_SHARE * net)

    def divergence_alpha(self, alpha: float, *, show_more: bool) -> float:
        """Error probability of the divergence test, of the `alpha` that it has together with the event test.

        Nine tenths if the pilot's bins show more than its event, unless too little would be left for an exact test.
        """
        is_large = show_more and _SMALLER_SHARE * alpha > LEAST_ALPHA
        return alpha * (1 - _SMALLER_SHARE if is_large else _SMALLER_SHARE)

    def bet_alpha(self, *, has_final: bool) -> float:
        """Error probability of the bets of a sequential audit."""
        return self.alpha * (1 - FINAL_SHARE) if has_final else self.alpha
