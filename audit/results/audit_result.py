"""The result of an audit: the counts, and what was decided from them."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import scipy

from ..claims.claim import Claim, GroupClaim, PureDP
from ..datasets.adjacency import NAMED
from ..errors import OptionError
from ..events.events import Event, Sketch
from ..health.event_checks import NO_NOISE
from ..health.findings import ANY_FALSE_ALARM, Finding, HealthCheck, failed_checks
from ..inference.binomial_tails import clopper_pearson
from ..inference.divergence_test import DivergenceTest
from ..inference.event_test import LEAST_ALPHA, Counts, Direction, check_test_alpha, directed, parameter_estimate
from ..inference.guess_test import Guesses
from ..inference.multiplicity import ErrorBudget
from ..options import MOST_RUNS, FloatingPoint, check_fields, checked
from ..portfolio.floating_point_leaks import FALSE_WARNING, FloatingPointLeak
from ..printing import confidence as confidence_words
from ..printing import one_line, rounded_up, shorten
from ..sampling.object_identity import Provenance
from .bin_result import BinCounts
from .result import SHOWN, Result
from .verdict import (
    Verdict,
    bound_beside_claim,
    claim_in_call,
    event_in_words,
    largest_excess,
    least_beside,
    rough,
    steps_of,
    untested_in_words,
    verdict_of,
)

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


Basis = Literal["event", "chosen", "gaussian", "common"]
"""The kind of violation that a minimum detectable excess is stated for."""

_DOUBT = (
    ". A claim for one row says nothing about such a pair. Pass adjacency= to have the pair checked (AddRemove() or "
    'Replace() for rows, Within("linf") for query answers), or distance= for a claim at that distance.'
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
        Why the pair may not be neighbours, if no relation was given and the datasets differ in more rows.
    contents : tuple of str, optional
        The datasets themselves as text, only where the caller asked to keep them: a data frame as CSV, any other on one
        line.
    """

    x: str
    y: str
    difference: str
    adjacency: str
    unit: str = ""
    distance: float
    doubt: str = ""
    contents: tuple[str, str] | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """The doubt with its remedy, if there is one."""
        return (f"WARNING: {self.doubt}{_DOUBT}",) if self.doubt else ()


# What results of random runs have in common, and those of a claim.


def _constant(value: Any, doc: str) -> Any:
    def get(result: Result) -> Any:
        return value

    return property(get, doc=doc)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SampledResult(Result):
    """A result of random runs, with all that repeats it.

    Attributes
    ----------
    findings : tuple of Finding
        Failed health checks, with which nothing is refuted.
    provenance : Provenance, optional
        The mechanism's code; None if it was not recorded.
    versions : tuple of (str, str)
        Names and versions of the libraries.
    environment : dict
        Timings and machine: all that may differ between two runs with the same seed; and the call. Not compared.
    """

    alpha: float = field()  # required, though `Result` has defaults
    runs: int = field()
    seed: int = field()
    findings: tuple[Finding, ...] = ()
    provenance: Provenance | None = None
    versions: tuple[tuple[str, str], ...] = ()
    environment: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The failed health checks and the notes, as they are printed below the verdict."""
        return *map(str, self.findings), *self._noted

    # What only audits of outputs have, so that a report asks any result.
    interim_analyses = _constant((), "The interim analyses of a sequential audit, one after each batch.")
    stopped = _constant(None, "Why a sequential audit ended; None for an audit of fixed size.")
    is_closed = _constant(False, "Whether a sequential audit ended with its final test.")
    ignored = _constant((), "Health checks that were silenced.")
    doubt = _constant("", "Why the datasets may not be neighbours; empty without a doubt.")
    floating_point_leak = _constant(None, "The warning that a floating-point leak breaks the claim.")
    why_not_reproducible = _constant("", "Why the seed alone does not repeat the counts; empty if it does.")

    @property
    def has_stopped_early(self) -> bool:
        """Whether the audit stopped at its refutation: then the bound does not show how large the loss may be."""
        return self.stopped == "refuted" and not self.is_closed

    def to_dict(self) -> dict[str, Any]:
        flat: dict[str, Any] = SHOWN["to_dict"](self)
        return flat

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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
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
    min_detectable_excess : float, optional
        Smallest excess over the claim that is detected with probability `power`; may be infinite. None where the bound
        exceeds the claim, as it is computed only where it decides between NOT REFUTED and INCONCLUSIVE.
    power : float
    detect : float, optional
        The excess that the caller asked to detect.
    """

    _limit_fields: ClassVar = ("bound", None)
    mechanism: str
    claim: Claim
    claim_source: str = ""
    pvalue: float
    bound: float
    min_detectable_excess: float | None
    power: float = 0.95
    detect: float | None = None

    def __post_init__(self) -> None:
        SampledResult.__post_init__(self)  # super() does not know the class that slots make
        excess = self.min_detectable_excess
        is_possible = self.bound > self.directed_claim.parameter if excess is None else excess > 0.0
        self._refuse_impossible(
            pvalue=0.0 <= self.pvalue <= 1.0, bound=self.bound >= 0.0, min_detectable_excess=is_possible
        )
        checked("power", self.power)

    @property
    def directed_claim(self) -> Claim:
        """The claim in the direction that is tested."""
        return self.claim

    @property
    def verdict(self) -> Verdict:
        """REFUTED if and only if the bound exceeds the claim and no health check failed."""
        return verdict_of(self.directed_claim, self.bound, self.min_detectable_excess, self.detect, self.findings)

    @property
    @abstractmethod
    def _excess_basis_in_words(self) -> str:
        """What the minimum detectable excess is for."""

    @property
    def detectable_in_words(self) -> str:
        """For example "minimum detectable excess: 0.018 (95% power, this event)"."""
        if self.min_detectable_excess is None:
            return "not stated, because the bound exceeds the claim"
        if math.isinf(self.min_detectable_excess):
            return f"no minimum detectable excess can be stated ({100 * self.power:.6g}% power)"
        power = f"{100 * self.power:.6g}% power, {self._excess_basis_in_words}"
        return f"minimum detectable excess: {self.min_detectable_excess:.2g} ({power})"

    @property
    @abstractmethod
    def _found(self) -> str:
        """The number against the claim, or why there is none."""

    @property
    def headline(self) -> str:
        """Verdict, name of the mechanism, and number against claim."""
        return f"{self.verdict.value.upper()}  {one_line(self.mechanism)}: {self._found}"

    @property
    def shows_only_more(self) -> bool:
        """Whether the bound shows that the claim is exceeded, and not by how much."""
        return False

    @property
    def limit(self) -> tuple[str, str]:
        """A sign and the lower bound, with as many digits as show that it exceeds the claim, if it does."""
        if self.shows_only_more:
            return ">", f"{self.directed_claim.parameter:.4g}"
        sign, least, _ = least_beside(self.bound, self.directed_claim.parameter)
        return sign, least

    @property
    def measured(self) -> str:
        return f"{self.claim.parameter_name} {' '.join(self.limit)}"


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
    excess_basis : {"event", "chosen", "gaussian", "common"}
        Whether the minimum detectable excess is for an event as frequent as this one, for one as frequent as that
        chosen on the pilot where a plain event decides, for Gaussian noise, or for an event of probability 1/2.
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
    floating_point : {"warn", "test", "ignore"}
        Whether events by the low bits of outputs belong to the verdict ("test") or only give a warning.
    floating_point_leak : FloatingPointLeak, optional
        The warning that a floating-point leak breaks the claim.
    """

    kind: ClassVar = "audit"
    pair: Pair
    event: Event
    more_likely_on: Direction
    counts: Counts
    opposite: OtherDirection | None = None
    divergence: DivergenceTest | None = None
    excess_basis: Basis = "event"
    net_events: int = 0
    net_alpha: float = 0.0
    pilot_runs: int
    searched: int = 0
    is_reproducible: bool = True
    ignored: tuple[str, ...] = ()
    sketch: Sketch | None = None
    floating_point: FloatingPoint = "warn"
    floating_point_leak: FloatingPointLeak | None = None

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
    def bins(self) -> BinCounts | None:
        """Runs counted in bins of outputs; only an audit of fixed size counts them."""
        return None

    @property
    def adjacency(self) -> str:
        """The neighbour relation of the pair."""
        return self.pair.adjacency

    @property
    def doubt(self) -> str:
        return self.pair.doubt

    def __post_init__(self) -> None:
        ClaimResult.__post_init__(self)
        self._refuse_impossible(
            pilot_runs=0 <= self.pilot_runs <= self.runs,
            searched=0 <= self.searched < 2**63,
            divergence=self.divergence is None or isinstance(self.divergence, DivergenceTest),
            bins=self.bins is None or isinstance(self.bins, BinCounts),
            net_alpha=0.0 <= self.net_alpha < self.alpha and (self.net_alpha > 0.0 or self.net_events == 0),
        )
        self._refuse_impossible(alpha=all(share > 0.0 for _, share in self.test_shares))

    @property
    def error_budget(self) -> ErrorBudget:
        """How alpha is spent, with the errors outside alpha, which refute nothing: false warnings and false alarms."""
        warning = [("false warning of a floating-point leak", FALSE_WARNING)] if self.floating_point == "warn" else []
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
    def by_bins(self) -> bool:
        """Whether the intervals of the bins refute the claim, with a larger bound than all tests."""
        bins = self.bins
        return bins is not None and self.bound > self.claim.parameter and self.bound == bins.parameter_lower(self.claim)

    @property
    def estimate(self) -> float:
        """Point estimate: the smallest parameter that allows the observed frequencies; infinite if there is none.

        If the intervals of the bins refute the claim, their bound.
        """
        if self.by_divergence is not None:
            return self.by_divergence.estimate
        if self.by_bins:
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
    def observation(self) -> str:
        """What the bound rests on: a divergence, or the event or the events of both directions, and `tested`."""
        lines = (self._basis, self.event_in_words, self.opposite_in_words, str(self.tested))
        return "\n".join(filter(None, lines))

    @property
    def counterexample(self) -> str:
        """The difference of the pair and the observation that refutes the claim; empty if none does."""
        return f"{self.pair.difference}\n{self.observation}" if self.is_refuted else ""

    @property
    def _basis(self) -> str:
        """The intervals of bins or the divergence that the bound rests on; empty if it rests on events."""
        if self.by_bins:
            return "the intervals of the bins exclude the claim"
        by = self.by_divergence
        return "" if by is None else f"{by}: about {self.claim.describe_bound(f'= {by.estimate:.4g}')}"

    @property
    def _sides(self) -> tuple[Direction, Direction]:
        """The dataset whose probability of the event is tested, and the other one."""
        return ("x", "y") if self.more_likely_on == "x" else ("y", "x")

    @property
    def seen(self) -> str:
        """The counts that refute the claim: guesses of the dataset, or runs on each dataset with the event."""
        if self.verdict is not Verdict.REFUTED or self._basis:
            return self._basis
        if self.opposite is not None:
            events: dict[str, Event] = dict(zip(self._sides, (self.event, self.opposite.event), strict=True))
            guess = ", ".join(f"{side} if {one_line(str(events[side]))}" for side in ("x", "y"))
            return f"{guess}: {self.opposite.guesses}"
        counts, event = self.counts, one_line(str(self.event))
        tested = self.directed_counts
        if math.isinf(self.estimate) and tested.count_y > 0 and tested.count_x == tested.runs_x:
            event, counts = f"all but {event}", counts.outside()
        return (
            f"{event}: {counts.count_x:,} of {counts.runs_x:,} runs on x, {counts.count_y:,} of {counts.runs_y:,} on y"
        )

    @property
    def next_step(self) -> str:
        """Replay after a refutation, and what makes an inconclusive audit conclusive."""
        if self.findings or self.verdict is Verdict.NOT_REFUTED or self._is_close:
            return ""
        if self.verdict is not Verdict.REFUTED:
            return self._remedy
        if not any(note.endswith(NO_NOISE) for note in self.notes):
            return self._replay
        given = ", from a parameter rng" if self._replay else ""
        return "; ".join(filter(None, (f"draw new noise in every run{given}, not from a fixed seed", self._replay)))

    @property
    def _replay(self) -> str:
        """The call that looks for the line at which the claim breaks; empty if no mechanism was run."""
        code = self.provenance
        if code is None or not code.fingerprint or code.where.endswith(":Program"):  # whose noise no replay records
            return ""
        own, _, part = self.mechanism.partition(", output ")
        name = own if own.isidentifier() and code.where.endswith(f":{own}") else "mechanism"
        part = part.removeprefix("by ").replace("<lambda>", "output")
        base, distance = steps_of(self.claim)
        if base == PureDP(0.0):  # such as that two versions are equal: any difference is a leak
            return ""
        claim = claim_in_call(base)
        relation = [f', adjacency="{named}"' for named, each in NAMED.items() if str(each) == self.pair.adjacency]
        more = (
            "".join(relation[:1])
            + (f", distance={distance}" if distance > 1 else "")
            + (f", output={part}" if part else "")
        )
        return f"replay({name}, x, y, claim={claim}{more}) looks for the line that leaks"

    @property
    def _remedy(self) -> str:
        """What makes an inconclusive audit conclusive."""
        assert self.min_detectable_excess is not None
        is_run_here = self.provenance is not None and bool(self.provenance.fingerprint)
        search = " (find_worst_pair, or neighbours= in pytest)" if is_run_here else ""
        pair = "another domain or more search_runs=" if self.searched else f"another pair{search}"
        excess, aim = self.min_detectable_excess, self.detect or largest_excess(self.directed_claim)
        # The excess falls with the root of the runs, as the standard errors of the frequencies do.
        ratio = excess / aim
        needed = self.runs * (ratio * ratio)  # not a power, which raises an error where this is infinite
        if self._shows_less or (needed > MOST_RUNS and math.isfinite(excess)):
            remedy = f"use {pair}: on this one only an event that is too rare for these runs can show more;"
        else:
            remedy = f"use {'more' if math.isinf(excess) else f'about {rounded_up(needed, 2):,.0f}'} runs per dataset,"
        return remedy[:-1] if math.isinf(excess) else f"{remedy} or accept this with detect={rounded_up(excess, 2):g}"

    @property
    def _shows_less(self) -> bool:
        """Whether the event's frequencies, within exact limits, exclude that it ever refutes the claim on this pair.

        So must Gaussian noise of as clear an event, where the claim allows some: its rarer events show more.
        """
        claim, counts = self.directed_claim, self.directed_counts
        if self.opposite is not None:
            counts = self.opposite.guesses.as_counts
        _, (p, p_rest) = clopper_pearson(counts.count_x, counts.runs_x, alpha=self.alpha)
        (q, q_rest), _ = clopper_pearson(counts.count_y, counts.runs_y, alpha=self.alpha)
        mu = claim.gaussian_mu
        if mu is not None and float(scipy.special.ndtri(p) - scipy.special.ndtri(q)) > mu:
            return False
        return bool(claim.divergence_slopes) or bool(claim.parameter_of(p, q, p_rest, q_rest) <= claim.parameter)

    @property
    def _too_little(self) -> str:
        """What the audit could not have found."""
        assert self.min_detectable_excess is not None
        few = f"too few runs for {confidence_words(self.alpha)} ({self.runs:,} per dataset); {self.detectable_in_words}"
        if math.isinf(self.min_detectable_excess):
            return few
        if self.detect is not None:
            return f"{few}; requested: {self.detect:.2g}"
        untested = untested_in_words(self.directed_claim, self.min_detectable_excess, " on this pair")
        return f"{untested} ({100 * self.power:.6g}% power)"

    @property
    def _excess_basis_in_words(self) -> str:
        if self.opposite is not None and self.excess_basis == "event":
            return "these events"
        return _BASES[self.excess_basis]

    @property
    def shows_only_more(self) -> bool:
        """Whether the audit stopped as soon as its bound was barely above the claim."""
        return self.has_stopped_early and self._is_barely_above

    @property
    def _when_refuted(self) -> str:
        """When a sequential audit refuted the claim, for the verdict line."""
        if self.stopped != "refuted":
            return ""
        if self.is_closed:
            return f", by the final test after {self.runs:,} runs per dataset"
        is_shown = math.isfinite(self.estimate) and float(rough(self.estimate)) > self.directed_claim.parameter
        about = f", about {rough(self.estimate)}" if is_shown else ""
        return f"{about}; stopped after {self.runs:,} runs per dataset"

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
    def _found(self) -> str:
        claim, confidence = self.directed_claim, confidence_words(self.alpha)
        per_step = " per step" if isinstance(claim, GroupClaim) else ""
        found = bound_beside_claim(claim, self.bound) + per_step
        if self.verdict is Verdict.REFUTED:
            if self.shows_only_more:
                found = claim.describe_bound(f"more than the claimed {claim.parameter:.4g}")
            text = f"{found} ({confidence}){self._when_refuted}"
        elif self.verdict is Verdict.NOT_REFUTED:
            text = f"{found} ({confidence}); {self.detectable_in_words}"
        else:
            text = failed_checks(self.findings) if self.findings else self._too_little
        return text + self._when_stopped

    @property
    def sentence(self) -> str:
        """The verdict in a sentence: bound, claim, confidence, runs to a refutation or minimum detectable excess."""
        remedy = self.next_step if self.verdict is Verdict.INCONCLUSIVE else ""
        return "; ".join(filter(None, (f"{self.verdict.value.upper()}: {self._found}", remedy, self.pair.doubt)))

    @property
    def why_not_reproducible(self) -> str:
        if self.is_reproducible:
            return ""
        if any(finding.check is HealthCheck.DATASET_MUTATED for finding in self.findings):
            return "the mechanism changes the datasets"
        return "the mechanism has its own randomness"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What must be read with the verdict: failed health checks, a warning of a floating-point leak, and notes."""
        remarks = [str(finding) for finding in self.findings]
        remarks += self.pair.warnings
        remarks += [f"WARNING: {self.floating_point_leak}"] if self.floating_point_leak is not None else []
        remarks += [] if self.is_reproducible else [f"note: not reproducible, as {self.why_not_reproducible}"]
        remarks += [f"note: {self._when_close}"] if self._is_close else []
        return *remarks, *self._noted

    @property
    def _is_close(self) -> bool:
        """Whether a bound barely above the claim refutes it, at an alpha at which that may be chance."""
        is_barely = self.verdict is Verdict.REFUTED and self._is_barely_above
        return is_barely and self.alpha >= _CHANCE and not self.has_stopped_early

    @property
    def _is_barely_above(self) -> bool:
        return self.bound <= (1.0 + _BARELY) * self.directed_claim.parameter

    @property
    def _when_close(self) -> str:
        """What to do about a bound barely above the claim."""
        again = (
            "and another seed"
            if self.is_reproducible
            else "(the seed does not fix the mechanism's randomness, so another seed alone changes nothing)"
        )
        return (
            f"the bound exceeds the claim by less than {100 * _BARELY:g}%, which may be chance: up to "
            f"{100 * self.alpha:g}% of audits refute a mechanism that just keeps its claim. Audit again with more runs "
            f"{again}"
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FixedSizeResult(AuditResult):
    """Result of an audit whose number of runs was fixed before: the event is tested once, on the main runs.

    The bound and the p-value are valid for any number of runs. The counts are those of the main runs: event and
    direction were chosen on the pilot, so the test needs no correction for that choice. Up to a fifth of alpha tests
    plain events, `net_events` in number: half-lines, intervals and single outcomes. If such a test gives the larger
    bound, its event is that of the result, and bound and p-value are corrected for the number of events.

    Attributes
    ----------
    bins : BinCounts, optional
        Main runs in bins of outputs, with intervals and curves. If these exclude the claim, the claim is refuted; if
        they give the largest bound, it is the result's, and the p-value is at most alpha.
    """

    bins: BinCounts | None = None

    @property
    def test_shares(self) -> tuple[tuple[str, float], ...]:
        if self.bins is None:
            return self._shares_of_test("event test", self.alpha)
        of_bins = self.bins.alpha
        return *self._shares_of_test("event test", self.alpha - of_bins), ("intervals of bins", of_bins)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SequentialResult(AuditResult):
    """Result of an audit that bets batch by batch and may stop after any batch.

    The bound and the p-value are valid at all interim analyses together. While the audit bets, the bound is one of a
    fixed grid of privacy parameters, which is densest just above the claim, and the event changes from batch to batch.
    The counts are then counts of the last event in all runs; they are for the reader and do not enter the bound. An
    audit with a planned number of runs reserves half of alpha for a final test. If it makes that test, it takes event
    and counts from there.

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

# Shares of alpha for the bins and for the net of plain events, if they are counted; the event test has the rest.
_BIN_SHARE, _NET_SHARE = 0.1, 0.2
_SMALLER_SHARE = 0.1  # of event and divergence test together, for the one that shows less in the pilot
FINAL_SHARE = 0.5  # share of alpha for the final test of a sequential audit; the bets have the rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings that do not depend on where the outputs come from."""

    claim: Claim
    claim_source: str
    pair: Pair
    alpha: float
    detect: float | None
    power: float
    name: str
    provenance: Provenance | None
    seed: int
    floating_point: FloatingPoint

    def check_shares(self, share: float = 1.0, bins: int = 0) -> None:
        """Refuse an alpha of which the exact test has too small a part, before the first run."""
        part = self.event_alpha(share, has_bins=bins > 0, net=1.0)
        if self.claim.divergence_slopes:
            part -= self.divergence_alpha(part, show_more=False)
        check_test_alpha(self.alpha, part / self.alpha)

    @property
    def bin_alpha(self) -> float:
        """Error probability of the intervals of the bins, if any are counted."""
        return _BIN_SHARE * self.alpha

    def net_alpha(self, part: float, share: float = 1.0) -> float:
        """Error probability of the tests of a net, of which it needs a `part`, in a `share` of alpha."""
        return _NET_SHARE * part * share * self.alpha

    def event_alpha(self, share: float = 1.0, *, has_bins: bool = False, net: float) -> float:
        """Error probability of the event test and, if there is one, the divergence test in a `share` of alpha.

        `net` is the part that the net needs, 0 without one.
        """
        return share * self.alpha * (1 - _BIN_SHARE * has_bins - _NET_SHARE * net)

    def divergence_alpha(self, alpha: float, *, show_more: bool) -> float:
        """Error probability of the divergence test, of the `alpha` that it has together with the event test.

        Nine tenths if the pilot's bins show more than its event, unless too little would be left for an exact test.
        """
        is_large = show_more and _SMALLER_SHARE * alpha > LEAST_ALPHA
        return alpha * (1 - _SMALLER_SHARE if is_large else _SMALLER_SHARE)

    def bet_alpha(self, *, has_final: bool) -> float:
        """Error probability of the bets of a sequential audit."""
        return self.alpha * (1 - FINAL_SHARE) if has_final else self.alpha
