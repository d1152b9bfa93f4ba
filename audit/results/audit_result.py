"""The result of an audit: the counts, and what was decided from them."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from ..claims.claim import Claim
from ..errors import OptionError
from ..events.events import Event, Sketch
from ..health.findings import ANY_FALSE_ALARM, Finding
from ..inference.divergence_test import DivergenceTest
from ..inference.event_test import Counts, Direction, directed, parameter_estimate
from ..inference.guess_test import Guesses
from ..inference.multiplicity import ErrorBudget
from ..options import FloatingPoint, as_number, check_fields, checked
from ..portfolio.floating_point_leaks import FALSE_WARNING, FloatingPointLeak
from ..printing import least_beside, shorten
from ..sampling.object_identity import Provenance
from .bin_result import BinCounts
from .claim_pair_and_alpha import Pair
from .result import SHOWN, Result, on_demand
from .verdict import Verdict, verdict_of

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

Excess: TypeAlias = float | None  # a name that `check_fields` does not know, as to read the field computes it

BARELY = 0.01  # excess of a bound, as a share of the claim, that may be chance


# What results of random runs have in common, and those of a claim.


def _constant(value: Any) -> Any:
    """The value, of which a type checker knows nothing, because fields of subclasses have the same name."""
    return value


@dataclass(frozen=True, kw_only=True, repr=False)
class SampledResult(Result):
    """A result of random runs, with all that repeats it.

    Attributes
    ----------
    findings : tuple of Finding
        Failed health checks, with which nothing is refuted.
    provenance : Provenance, optional
        The mechanism's code; None if it was not recorded.
    """

    alpha: float = field()  # required, though `Result` has defaults
    runs: int = field()
    seed: int = field()
    findings: tuple[Finding, ...] = ()
    provenance: Provenance | None = None

    # What only audits of outputs have, so that a report asks any result.
    interim_analyses = _constant(())
    """The interim analyses of a sequential audit, one after each batch."""
    stopped = _constant(None)
    """Why a sequential audit ended; None for an audit of fixed size."""
    is_closed = _constant(False)
    """Whether a sequential audit ended with its final test."""
    ignored = _constant(())
    """Health checks that were silenced."""
    doubt = _constant("")
    """Why the datasets may not be neighbours; empty without a doubt."""
    floating_point_leak = _constant(None)
    """The warning that a floating-point leak breaks the claim."""

    @property
    def why_not_reproducible(self) -> str:
        """Why the seed alone does not repeat the counts; empty if it does."""
        return self._words.why_not_reproducible

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


@dataclass(frozen=True, kw_only=True, repr=False)
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
        Smallest excess over the claim that is detected with probability `power`; may be infinite. It is computed when
        it is first read, as a refutation does not need it; None in files of refutations that did not keep it.
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
    min_detectable_excess: Excess = on_demand()  # noqa: RUF009  # a descriptor
    power: float = 0.95
    detect: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        excess, is_refuted = vars(self)["min_detectable_excess"], self.bound > self.directed_claim.parameter
        is_possible = callable(excess) or (is_refuted if excess is None else as_number(excess) > 0.0)
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
        return verdict_of(
            self.directed_claim, self.bound, lambda: self.min_detectable_excess, self.detect, self.findings
        )

    @property
    def detectable_in_words(self) -> str:
        """For example "minimum detectable excess: 0.018 (95% power, this event)"."""
        words: str = SHOWN["detectable"](self)
        return words

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


@dataclass(frozen=True, kw_only=True, repr=False)
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
    excess_basis: Basis = on_demand("event")  # noqa: RUF009  # a descriptor
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
        super().__post_init__()
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
        return self._words.events[0]

    @property
    def opposite_in_words(self) -> str:
        """The event of the other direction in the same words; empty if only one direction was tested."""
        return "".join(self._words.events[1:])

    @property
    def observation(self) -> str:
        """What the bound rests on: a divergence, or the event or the events of both directions, and `tested`."""
        return self._words.observation

    @property
    def counterexample(self) -> str:
        """The difference of the pair and the observation that refutes the claim; empty if none does."""
        return f"{self.pair.difference}\n{self.observation}" if self.is_refuted else ""

    @property
    def shows_only_more(self) -> bool:
        """Whether the audit stopped as soon as its bound was barely above the claim."""
        return self.has_stopped_early and self.is_barely_above

    @property
    def is_barely_above(self) -> bool:
        """Whether the bound is within a hundredth of the claim, or below it."""
        return self.bound <= (1.0 + BARELY) * self.directed_claim.parameter


@dataclass(frozen=True, kw_only=True, repr=False)
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


@dataclass(frozen=True, kw_only=True, repr=False)
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

    # Without field() the base's constants of the same names would become the defaults.
    interim_analyses: tuple[InterimAnalysis, ...] = field()
    stopped: Stop = field()
    final_alpha: float = 0.0
    is_closed: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        self._refuse_impossible(final_alpha=0.0 <= self.final_alpha < self.alpha)
        super().__post_init__()

    @property
    def test_shares(self) -> tuple[tuple[str, float], ...]:
        if not self.final_alpha:
            return (("betting test", self.alpha),)
        return ("betting test", self.alpha - self.final_alpha), *self._shares_of_test("final test", self.final_alpha)
