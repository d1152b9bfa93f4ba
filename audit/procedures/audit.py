"""What all audits have in common: the choice of what is tested, its test, and the conclusion.

Proofs: docs/proofs/choices.md, docs/proofs/joint-test.md
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ..claims.claim import Claim
from ..clock import now
from ..datasets.description import number_text
from ..events.events import Apart, Counted, Event, Intervals, Labels, Outcomes, Partition, Scored, sketch, with_names
from ..events.outputs import Outputs, are_equal, n_different, outcome_key, outcome_list, outcome_words
from ..events.scores import Additive
from ..health.findings import FALSE_ALARM, Finding, HealthCheck
from ..health.run_independence import examine
from ..inference.divergence_test import DivergenceTest, divergence_test
from ..inference.event_test import Counts, Direction, directed, joint_test
from ..inference.guess_test import guess_test, guesses_by_coins, is_symmetric
from ..inference.net_test import net_test
from ..portfolio.choice import Choice, choose_event, choose_seen, directed_shares, expected_excess
from ..portfolio.columns import cuts_of
from ..portfolio.floating_point_leaks import FALSE_WARNING, floating_point_leak_in
from ..portfolio.net import Net
from ..portfolio.partitions import Bins, learn_bins, learn_cells, recur
from ..random_streams import Stream, sequence_of
from ..results.audit_result import NO_NOISE, AuditResult, FixedSizeResult, OtherDirection, Settings, Stop
from ..results.bin_result import BinCounts
from ..results.verdict import Verdict, verdict_of
from ..sampling.object_identity import versions
from ..sampling.pilot_and_batch_sizes import grown_pilot_runs, pilot_runs
from ..sampling.tasks import BlockCounts, MainCounts, no_blocks, raised_in
from .detectable_excess import (
    FEW,
    Detectable,
    Learned,
    detectable,
    detectable_by_divergence,
    detectable_by_guesses,
    shows_no_difference,
)

# What an audit tests: events, plain events and partitions, chosen on outputs that do not enter the test.

_NUMBERS = 4_000_000  # coordinates of vectors on each side in a grown pilot: 32 megabytes
Split: TypeAlias = tuple[tuple[Labels, Labels], tuple[Labels, Labels], tuple[Labels, Labels]]


@dataclass(frozen=True, slots=True)
class Portfolio:
    """What is counted in the main runs and tested, each on a share of alpha; fixed before these runs."""

    choice: Choice  # of one event, or of one for each direction
    net: Net | None  # plain events, each of which is tested
    bins: Partition | None  # for the likelihood ratio, if the caller asked for them
    divergence_bins: Bins | None  # in which divergences are tested, for a claim on these

    @property
    def events(self) -> tuple[Event, ...]:
        """The chosen events."""
        return tuple(each.event for each in (self.choice, *self.choice.others))

    @property
    def partitions(self) -> tuple[Counted, ...]:
        """Net, bins and divergence bins, as far as there are any; `split` returns their counts."""
        net, divergence = (
            None if self.net is None else self.net.cells,
            None if self.divergence_bins is None else self.divergence_bins.partition,
        )
        wanted: tuple[Counted | None, ...] = (net, self.bins, divergence)
        return tuple(each for each in wanted if each is not None)

    def split(self, counted: MainCounts) -> Split:
        """Main runs on x and on y in the cells of the net, in the bins, and in the divergence bins."""
        net = None if self.net is None else self.net.cells
        ends = np.cumsum([0 if each is None else each.n_cells for each in (net, self.bins)])
        (net_x, bins_x, last_x), (net_y, bins_y, last_y) = (np.split(side, ends) for side in counted.cells)
        return (net_x, net_y), (bins_x, bins_y), (last_x, last_y)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a pilot chose: the event or pair of events, the net, and the parameter that the bound is likely to reach."""

    choice: Choice
    net: Net | None
    promise: float


def choose_on(
    x: Outputs,
    y: Outputs,
    claim: Claim,
    main: int,
    alpha: float,
    suggested: Choice | None = None,
    *,
    bits: bool,
    both: bool = False,
    is_last: bool = True,
) -> Chosen:
    """The events chosen on a pilot for `main` main runs.

    The event by which a search ranked the pair is taken instead where it shows more, less a standard error.
    """
    cuts = cuts_of(x, y, bits=bits)
    choice, promise = choose_event(cuts, claim, main, alpha, both=both, is_last=is_last)
    if choice is None:
        choice = max(choose_seen(x, y), key=lambda one: directed_shares(one)[0] - directed_shares(one)[1])
        promise = -math.inf if choice.shows_nothing else 0.0
    if suggested is not None and choice.opposite is None:
        counted = suggested.counted_on(x, y)
        own = expected_excess(choice, claim, main, alpha, penalty=0.0)
        shown = expected_excess(counted, claim, main, alpha, penalty=1.0)
        if shown > own:
            choice, promise = counted, max(promise, claim.parameter + shown)
    return Chosen(choice, Net.of(cuts, claim, main) if cuts else None, promise)


def longest_pilot(runs: int, outputs: Outputs) -> int:
    """The pilot of outputs with several columns, or of an audit that a shorter one promises nothing."""
    return max(pilot_runs(runs), min(grown_pilot_runs(runs), _NUMBERS // max(_width(outputs), 1)))


def _has_columns(x: Outputs, y: Outputs) -> bool:
    """Whether outputs have several numbers and barely recur, so that scores have to be learned."""
    return (x.dtype == object or _width(x) > 1) and not recur(x, y)


def _width(outputs: Outputs) -> int:
    """Numbers in one output."""
    return outputs.shape[1] if outputs.ndim == 2 else 1


# Notes on outputs, and health checks of counts: outputs vary, the event occurs in some runs, as often as in the pilot.

_STUB = "Look for a stub, an early return, or noise from a fixed seed."
_OF_NAN = "unless NaN is meant, look for 0/0, infinite numbers or missing values"
_OF_NONE = "unless None is meant, a return is missing in some branch"
_FIRST = 100  # outputs compared first, because most outputs vary
_NEARLY_ALL = 0.5  # share of different outputs above which their values teach nothing
_SCORES = 1_000  # largest number of scores that a pilot chooses from, each with nested events or with intervals


def run_notes(
    x: Outputs, y: Outputs, main_x: BlockCounts, main_y: BlockCounts, *, runs: str = "pilot runs"
) -> tuple[str, ...]:
    """Return notes on exceptions, and on outputs that never vary, are NaN or are None.

    They concern the kept outputs, which `runs` names; exceptions also concern the runs that were only counted.
    """
    notes = []
    if (text := number_text(x)) is not None and number_text(y) is not None:
        notes.append(f"outputs are texts of numbers, such as {text!r}; return numbers if the values are meant")
    for side, outputs in (("x", x), ("y", y)):
        seen = f"{len(outputs):,} {runs} on {side}"
        raised = raised_in(outputs)
        notes += [f"{exception} was raised in {times:,} of {seen}" for exception, times in sorted(raised.items())]
    notes += [*_without_noise(x, y, runs), *_without_values(x, y)]
    for side, main in (("x", main_x), ("y", main_y)):
        others = f"{int(main.sizes.sum()):,} main runs on {side}"
        notes += [
            f"{exception} was raised in {times:,} of {others}" for exception, times in sorted(main.raised.items())
        ]
    return tuple(notes)


def _without_noise(x: Outputs, y: Outputs, runs: str) -> Iterator[str]:
    """Yield a note if all outputs on a dataset are equal, the same one for both datasets."""
    kept = {"x": x, "y": y}
    same = {side: outcome_list(each[:1])[0] for side, each in kept.items() if not raised_in(each) and are_same(each)}
    if not same:
        return
    parts = [part for each in same.values() for part in (each if isinstance(each, tuple) else (each,))]
    are_two, are_one = len(same) == 2, len(same) == 2 and are_equal(x[:1], y[:1])
    cause = NO_NOISE if are_two and not are_one else "is its noise drawn anew in each run?"
    if None in same.values():
        cause = "is a return missing?"
    elif "nan" in map(repr, parts):  # noise changes no NaN
        cause = "is it computed from NaN, or from infinite numbers?"
    side, output = next(iter(same.items()))
    on = "x and on y" if are_one else side
    other = f", and all on y {outcome_words(same['y'])}" if are_two and not are_one else ""
    yield f"all {len(kept[side]):,} {runs} on {on} gave the same output, {outcome_words(output)}{other}; {cause}"


def _without_values(x: Outputs, y: Outputs) -> Iterator[str]:
    """Yield a note if some outputs on a dataset are NaN, or None, and others are not."""
    for what, cause in ((math.nan, _OF_NAN), (None, _OF_NONE)):
        shares = [_share_of(what, outputs) for outputs in (x, y)]
        if any(0.0 < share < 1.0 for share in shares):
            on_x, on_y = (f"{100 * share:.3g}%" for share in shares)
            verb = "have a" if x.ndim == y.ndim == 2 else "are"
            yield f"{on_x} of the outputs {verb} {'None' if what is None else 'NaN'} on x, {on_y} on y; {cause}"


def _share_of(missing: float | None, outputs: Outputs) -> float:
    """Return the share of outputs that are None, or NaN, or vectors with a NaN."""
    if outputs.dtype != object:
        is_nan = outputs != outputs
        return 0.0 if missing is None else float(np.mean(is_nan.any(axis=1) if is_nan.ndim == 2 else is_nan))
    found = [each for each in outputs.tolist() if type(each) is type(missing) and (each is None or each != each)]
    return len(found) / len(outputs)


def are_same(outputs: Outputs) -> bool:
    """Whether all outputs are equal; NaN equals NaN."""
    return _are_same(outputs[:_FIRST]) and _are_same(outputs)


def _are_same(outputs: Outputs) -> bool:
    if outputs.dtype.kind in "biuf" and len(outputs) > 0:
        first = outputs[0]
        return bool(np.all((outputs == first) | ((outputs != outputs) & (first != first))))
    return len({outcome_key(output) for output in outcome_list(outputs)}) == 1


@dataclass(frozen=True, slots=True)
class Evidence:
    """An event that an audit chose, with its counts, and the outputs that were kept."""

    x: Outputs
    y: Outputs
    choice: Choice
    counts: Counts
    fresh_counts: Counts  # in runs that the event was not learned from
    uncounted_runs: int = 0  # on each dataset, which `counts` leaves out


def event_findings(evidence: Evidence, verdict: Verdict, of_runs: tuple[Finding, ...] = ()) -> list[Finding]:
    """The first check of outputs and event that fails, given the verdict before these checks.

    Findings on the runs' independence explain what the event shows.
    """
    constant = _constant_output(evidence)
    if constant or verdict is Verdict.REFUTED or of_runs:
        return constant
    if verdict is Verdict.INCONCLUSIVE:  # for too few runs, as is said already
        return _idle_event(evidence, says_too_few=True)
    return _idle_event(evidence)


def pilot_findings(
    choice: Choice, counts: Counts, findings: tuple[Finding, ...], alpha: float = FALSE_ALARM
) -> list[Finding]:
    """Sides on which the event's frequency in the main runs cannot be reconciled with its frequency in the pilot.

    With probability at least 1 − a the frequencies of all half-lines of a score lie within √(ln(2/a)/2n) of their
    probabilities; an interval is the difference of two half-lines. A learned score is left out: each half of the pilot
    is scored by what the other half taught.

    References
    ----------
    Massart (1990), The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality, Corollary 1. For the main runs,
    whose event is given: Hoeffding (1963), Probability inequalities for sums of bounded random variables, Theorem 1.
    """
    ends = ends_of(choice.event)
    if ends is None or choice.pilot_runs == 0 or any(_explains(finding) for finding in findings):
        return []
    log_share = math.log(2.0 * 4.0 / alpha)  # two sides and two phases
    # The pilot chooses up to twice, as it is made longer once.
    reach = ends * math.sqrt((log_share + math.log(2.0 * _SCORES)) / (2.0 * choice.pilot_runs))
    found = []
    for side, in_pilot, seen, runs in (
        ("x", choice.pilot_count_x, counts.count_x, counts.runs_x),
        ("y", choice.pilot_count_y, counts.count_y, counts.runs_y),
    ):
        if abs(in_pilot / choice.pilot_runs - seen / runs) > reach + math.sqrt(log_share / (2.0 * runs)):
            found.append(
                Finding(
                    HealthCheck.NONSTATIONARY,
                    f"the event ({choice.event}) occurred in {in_pilot:,} of {choice.pilot_runs:,} pilot runs on "
                    f"{side}, but in {seen:,} of the next {runs:,} runs, so the runs are not independent. Look for "
                    "state that the mechanism keeps, such as a budget or a counter.",
                )
            )
    return found


def ends_of(event: Event) -> int | None:
    """Number of half-lines whose indicators add up to that of the event, with signs; None of a learned score."""
    match event:
        case Scored(score, _) if not isinstance(score, Additive):
            return ends_of(event.event)
        case Intervals():
            return max(1, sum(math.isfinite(end) for pair in event.intervals for end in pair) + event.others)
        case Outcomes():
            return max(1, 2 * len(event.values))
    return None


def _explains(finding: Finding) -> bool:
    return finding.check in (HealthCheck.DUPLICATE_OUTPUTS, HealthCheck.NONSTATIONARY)


def _constant_output(evidence: Evidence) -> list[Finding]:
    """The same output in every kept run, and in all other runs as far as the event can show."""
    x, y, counts = evidence.x, evidence.y, evidence.counts
    first = x[:1]
    if not (are_equal(first, y[:1]) and _is_decided(counts)):
        return []
    if not (are_same(x) and are_same(y)):
        return []
    if bool(evidence.choice.event.contains(first)[0]) != bool(counts.count_x):
        return []
    output = outcome_list(first)[0]
    runs_x, runs_y = (runs + evidence.uncounted_runs for runs in (counts.runs_x, counts.runs_y))
    return [
        Finding(
            HealthCheck.CONSTANT_OUTPUT,
            f"all {runs_x:,} runs on x and {runs_y:,} on y gave the same output, "
            f"{outcome_words(output)}, so the audit saw nothing of how the mechanism uses its data. "
            + ("Is a return missing?" if output is None else _STUB),
        )
    ]


def _idle_event(evidence: Evidence, *, says_too_few: bool = False) -> list[Finding]:
    """An event that occurred in all runs that it was not learned from, or in none.

    If the audit says that its runs are too few, only outputs that rarely recur are a finding.
    """
    x, y, counts, event = evidence.x, evidence.y, evidence.fresh_counts, evidence.choice.event
    if not _is_decided(counts):
        return []
    often = "all" if counts.count_x else "none"
    occurred = f"occurred in {often} of {counts.runs_x:,} runs on x and {counts.runs_y:,} on y"
    different, kept = sum(map(n_different, (x, y))), len(x) + len(y)
    if different > _NEARLY_ALL * kept:
        message = (
            f"no event could be learned, because {different:,} of the first {kept:,} outputs are different. The event "
            f"that was tried ({event}) {occurred}, so nothing was tested. Audit a part or a summary of the output "
            "whose values recur."
        )
    elif says_too_few:
        return []
    else:
        message = (
            f"the event chosen on the pilot ({event}) {occurred}, so nothing was tested. The event may be "
            "too rare for this number of runs (use more), or the mechanism may keep state (look for it)."
        )
    return [Finding(HealthCheck.NO_POWER, message)]


def _is_decided(counts: Counts) -> bool:
    """Whether the event occurred in all runs on both datasets, or in none."""
    return counts.count_x + counts.count_y in (0, counts.runs_x + counts.runs_y)


# The test of what was chosen, by its counts.


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """The event that decides, with the p-value and the bound at the audit's alpha."""

    event: Event
    more_likely_on: Direction
    counts: Counts
    pvalue: float
    bound: float
    event_alpha: float  # of the test of the chosen event, or of both events
    net_alpha: float = 0.0  # of the tests of plain events
    opposite: OtherDirection | None = None  # the event of the other direction, if both decide together
    divergence: DivergenceTest | None = None  # of a claim on divergences


@dataclass(frozen=True, slots=True)
class PortfolioTest:
    """The test of a portfolio by its counts, in a share of alpha."""

    settings: Settings
    portfolio: Portfolio
    counted: MainCounts
    coin_seed: int  # which the audit's seed fixes as far as it fixes the outputs
    share: float = 1.0
    bins: BinCounts | None = None

    def tested(self) -> Tested:
        """Test event, net, divergences and bins, as far as they are counted.

        The largest bound counts: each of them exceeds the true privacy parameter with a probability of at most its part
        of alpha.
        """
        settings, tested, divergence = self.settings, self._by_events(), self._divergence()
        if divergence is not None:
            pvalue = min(tested.pvalue, divergence.pvalue / divergence.alpha * settings.alpha)
            bound = max(tested.bound, divergence.bound)
            tested = replace(tested, pvalue=min(1.0, pvalue), bound=bound, divergence=divergence)
        bound = 0.0 if self.bins is None else self.bins.parameter_lower(settings.claim)
        if bound <= max(tested.bound, settings.claim.parameter):
            return tested
        return replace(tested, pvalue=min(tested.pvalue, settings.alpha), bound=bound)

    @property
    def _alphas(self) -> tuple[float, float]:
        """Error probabilities of the event test and of the divergence test."""
        bins, net = self.portfolio.divergence_bins, self.portfolio.net
        part = 0.0 if net is None else net.part
        alpha = self.settings.event_alpha(self.share, has_bins=self.bins is not None, net=part)
        if bins is None:
            return alpha, 0.0
        of_divergence = self.settings.divergence_alpha(alpha, show_more=bins.show_more)
        return alpha - of_divergence, of_divergence

    def _divergence(self) -> DivergenceTest | None:
        """The test of a claim on divergences; None for other claims."""
        bins = self.portfolio.divergence_bins
        if bins is None:
            return None
        _, alpha = self._alphas
        coins = np.random.default_rng(sequence_of(self.coin_seed, Stream.BIN_ORDER))
        *_, counts = self.portfolio.split(self.counted)
        return divergence_test(bins.known_x, bins.known_y, *counts, self.settings.claim, alpha=alpha, coins=coins)

    def _by_events(self) -> Tested:
        """Test the chosen event, or both together, and the net; the event with the largest bound decides."""
        settings, net = self.settings, self.portfolio.net
        tested = self._by_choice()
        tested = replace(tested, pvalue=min(1.0, tested.pvalue * (settings.alpha / tested.event_alpha)))
        if net is None:
            return tested
        level = settings.net_alpha(net.part, self.share)
        tested = replace(tested, net_alpha=level)
        (on_x, on_y), *_ = self.portfolio.split(self.counted)
        seen = net.counts(on_x), net.counts(on_y)
        plain = net_test(*seen, *self.counted.runs, settings.claim, net.weights, alpha=level, known=tested.bound)
        if plain is None:
            return tested
        tested = replace(tested, pvalue=min(tested.pvalue, plain.pvalue * settings.alpha / level))
        if plain.bound <= tested.bound:
            return tested
        more_likely_on, counts = plain.more_likely_on, plain.counts
        # The complement of a frequent event says the same in the other direction, and is what a reader looks for.
        is_frequent = counts.count_x + counts.count_y > 0.5 * (counts.runs_x + counts.runs_y)
        is_outside = is_frequent and is_symmetric(settings.claim)
        if is_outside:
            more_likely_on, counts = "y" if more_likely_on == "x" else "x", counts.outside()
        return replace(
            tested,
            event=net.event(plain.index, outside=is_outside),
            more_likely_on=more_likely_on,
            counts=counts,
            opposite=None,
            bound=plain.bound,
        )

    def _by_choice(self) -> Tested:
        """The test of the chosen event in its direction, or of both events together."""
        claim, choice, counts = self.settings.claim, self.portfolio.choice, self.counted.counts[0]
        alpha, _ = self._alphas
        opposite = None
        if choice.opposite is None:
            held = directed(claim, counts, choice.more_likely_on)
            pvalue, bound = joint_test(held.counts, held.claim, alpha=alpha)
        else:
            against = self.counted.counts[1]
            coins = np.random.default_rng(sequence_of(self.coin_seed, Stream.COINS))
            on_x, on_y = (counts, against) if choice.more_likely_on == "x" else (against, counts)
            guesses, fits = guesses_by_coins(on_x, on_y, coins)
            pvalue, bound = guess_test(guesses, claim, alpha=alpha, fits=fits)
            opposite = OtherDirection(event=choice.opposite.event, counts=against, guesses=guesses)
        return Tested(
            event=choice.event,
            more_likely_on=choice.more_likely_on,
            counts=counts,
            pvalue=pvalue,
            bound=bound,
            event_alpha=alpha,
            opposite=opposite,
        )


# The audit.

Blocks: TypeAlias = tuple[list[Outputs], list[Outputs]]
"""Outputs on x and on y, block by block in the order drawn."""

_LITTLE = 0.1  # share of the claim that the runs must rule out before they say that the data do not matter


class Audit(ABC):
    """One audit: `pilot` draws what it learns from first, each `step` the next runs, and `conclude` tests the counts.

    The attributes are its state so far. What is written here holds for audits that end with the test of a portfolio.
    """

    kind: ClassVar[type[AuditResult]] = FixedSizeResult
    kept_runs: ClassVar[str] = "pilot runs"  # what the kept outputs are in notes
    share: ClassVar[float] = 1.0  # of alpha, for the test of the portfolio
    is_in_order: ClassVar[bool] = False  # whether the pilot runs came before all that are counted

    def __init__(self, settings: Settings, runs: int) -> None:
        self.settings, self.runs = settings, runs  # on each dataset, on average, the pilot's included
        self.names: tuple[str, ...] = ()  # of the columns of outputs
        self.blocks: Blocks = [], []  # kept outputs, which x and y hold in one array each at the end
        self.x: Outputs = np.zeros(0)
        self.y: Outputs = np.zeros(0)
        self.pilot_runs = 0  # on each dataset, without those of a search
        self.searched = 0  # runs of a search on each dataset that were learned from too
        self.suggested: Choice | None = None  # the event by which a search ranked the pair
        self.n_bins = 0  # that the caller asked for
        self.main: tuple[BlockCounts, BlockCounts] = no_blocks(), no_blocks()  # only counted; none drawn elsewhere
        self.is_reproducible = True  # whether redrawing the first block gave the same outputs
        self.portfolio: Portfolio | None = None
        self.test: PortfolioTest | None = None
        self.stopped: Stop = "runs"  # why the audit ended
        self.note_of_cut: tuple[str, ...] = ()
        self.seconds: dict[str, float] = {}  # of each phase

    @abstractmethod
    def pilot(self) -> None:
        """Draws the first runs, as far as they only choose what is tested."""

    @abstractmethod
    def step(self) -> bool:
        """Draws and counts the next runs; returns whether there are more to come."""

    def run(self) -> None:
        """Draws and counts all runs."""
        self.pilot()
        while self.step():
            pass

    def stop(self) -> bool:
        """Ends the audit in the middle of its runs; returns whether it has a verdict nevertheless.

        The runs of a fixed number that are finished by a certain time may be unlike the others: docs/proofs/choices.md.
        """
        return self.test is not None

    def choose(self, x: Outputs, y: Outputs, runs: int, most: int = sys.maxsize) -> int:
        """Chooses what is tested on the first outputs, unless more of them are to choose it; returns how many then.

        `runs` are planned on each dataset, without those of a search, and at most so many outputs are kept. More of
        them choose where outputs have several columns, and where fewer promise no bound.
        """
        longest = min(longest_pilot(runs, x), most)
        is_last, settings, main = len(x) >= longest, self.settings, runs - len(x) + self.searched
        if is_last or not _has_columns(x, y):
            bits, alpha, claim = settings.floating_point == "test", self.share * settings.alpha, settings.claim
            chosen = choose_on(x, y, claim, main, alpha, self.suggested, bits=bits, both=True, is_last=is_last)
            if is_last or chosen.promise > 0.0:
                bins = learn_cells(x, y, self.n_bins) if self.n_bins else None
                self.portfolio = Portfolio(chosen.choice, chosen.net, bins, learn_bins(x, y, chosen.choice, claim))
        return longest

    @property
    def health_share(self) -> float:
        """Share of the health checks' error probability that this conclusion spends."""
        return 1.0

    def examined(self, ignored: frozenset[HealthCheck]) -> tuple[Finding, ...]:
        """Failed checks of the runs' independence."""
        alpha = FALSE_ALARM * self.health_share
        return examine(self.blocks, self.main, ignored, alpha=alpha, names=self.names)

    def evidence(self) -> Evidence:
        """The chosen event with its counts."""
        assert self.test is not None
        counts = self.test.counted.counts[0]
        return Evidence(self.x, self.y, self.test.portfolio.choice, counts, counts, self.pilot_runs + self.searched)

    def tested(self) -> Tested:
        """What decides."""
        assert self.test is not None
        return self.test.tested()

    def detectable(self, evidence: Evidence, tested: Tested) -> Detectable:
        """The smallest excess that these runs would have shown with the power of the settings."""
        assert self.test is not None
        claim, power, alpha = self.settings.claim, self.settings.power, tested.event_alpha
        choice, counts, known = evidence.choice, evidence.counts, learned(evidence)
        held = directed(claim, counts, choice.more_likely_on)
        if tested.opposite is not None:
            against = directed(claim, tested.opposite.counts, choice.more_likely_on).counts
            other = replace(tested.opposite, counts=against)
            found = detectable_by_guesses(claim, other, held.counts, self.runs, known, alpha=alpha, power=power)
        else:
            found = detectable(held.claim, held.counts, self.runs, known, alpha=alpha, power=power)
        if found.basis == "event" and tested.event is not choice.event:
            found = replace(found, basis="chosen")
        bins = self.test.portfolio.divergence_bins
        if bins is None or found.basis != "gaussian":
            return found
        learned_from = int(bins.known_x.sum())
        level = alpha if tested.divergence is None else tested.divergence.alpha
        by_bins = detectable_by_divergence(claim, learned_from, counts.runs_x, counts.runs_y, alpha=level, power=power)
        return replace(found, excess=min(found.excess, by_bins))

    def own_fields(self, tested: Tested) -> dict[str, Any]:
        """Fields of this kind of result, without those of a net."""
        return {"bins": None if self.test is None else self.test.bins}

    def conclude(
        self,
        ignored: frozenset[HealthCheck],
        *,
        of_datasets: tuple[Finding, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> AuditResult:
        """The result, without the checks that are ignored and with more notes.

        A mutated dataset explains all other failures, so those are left out.
        """
        of_runs, started = self.examined(ignored), now()
        settings, evidence, tested = self.settings, self.evidence(), self.tested()
        x, y, choice = evidence.x, evidence.y, evidence.choice
        claim = settings.claim if tested.more_likely_on == "x" else settings.claim.reversed()
        found = None if tested.bound > claim.parameter else self.detectable(evidence, tested)
        excess = None if found is None else found.excess
        unsteady = []
        if self.is_in_order and self.test is not None:
            tried = zip((choice, *choice.others), self.test.counted.counts, strict=True)
            unsteady = [finding for each, counts in tried for finding in pilot_findings(each, counts, of_runs)]
        verdict = verdict_of(claim, tested.bound, excess, settings.detect, of_runs)
        of_event = unsteady or event_findings(evidence, verdict, of_runs)
        if verdict is Verdict.NOT_REFUTED and not of_event:
            of_event = self._of_silence(tested)
        findings = (*of_datasets, *of_runs, *(finding for finding in of_event if finding.check not in ignored))
        if any(finding.check is HealthCheck.DATASET_MUTATED for finding in of_datasets):
            findings = of_datasets
        leak = (
            floating_point_leak_in(x, y, settings.claim, choice, alpha=FALSE_WARNING)
            if settings.floating_point == "warn"
            else None
        )
        net, own = None if self.test is None else self.test.portfolio.net, self.own_fields(tested)
        if net is not None:
            own |= {"net_events": net.n_events, "net_alpha": tested.net_alpha}
        own_notes = (*run_notes(x, y, *self.main, runs=self.kept_runs), *self.note_of_cut, *notes)
        result = self.kind(
            mechanism=settings.name,
            provenance=settings.provenance,
            claim=settings.claim,
            claim_source=settings.claim_source,
            pair=settings.pair,
            event=tested.event,
            more_likely_on=tested.more_likely_on,
            counts=tested.counts,
            opposite=tested.opposite,
            divergence=tested.divergence,
            alpha=settings.alpha,
            pvalue=tested.pvalue,
            bound=tested.bound,
            min_detectable_excess=excess,
            excess_basis="event" if found is None else found.basis,
            power=settings.power,
            detect=settings.detect,
            runs=self.runs,
            pilot_runs=self.pilot_runs,
            searched=self.searched,
            seed=settings.seed,
            is_reproducible=self.is_reproducible,
            findings=findings,
            ignored=tuple(sorted(check.value for check in ignored)),
            notes=own_notes,
            sketch=sketch(x, y),
            versions=versions(),
            floating_point=settings.floating_point,
            floating_point_leak=with_names(leak, self.names),
            **own,
        )
        if self.seconds:
            result.environment.update(self.seconds, seconds_test=round(now() - started, 3))
        return result

    def _of_silence(self, tested: Tested) -> list[Finding]:
        """An event that is as frequent on y as on x, to within a tenth of what the claim allows."""
        counts, claim = tested.counts, self.settings.claim
        if tested.bound > 0.0 or claim.parameter == 0.0 or self.runs <= FEW or not shows_no_difference(counts):
            return []
        sides = ((counts.count_x, counts.runs_x), (counts.count_y, counts.runs_y))
        p, q = ((seen + 0.5) / (runs + 1.0) for seen, runs in sides)
        error = 2.0 * math.sqrt(p * (1 - p) / counts.runs_x + q * (1 - q) / counts.runs_y)
        if max(p, q) + error > float(claim.with_parameter(_LITTLE * claim.parameter).max_power(min(p, q))[0]):
            return []
        way_on = "another domain" if self.searched else "another pair (find_worst_pair, or neighbours= in pytest)"
        message = (
            f"no event distinguishes x from y in these runs, so this pair cannot show a violation; try {way_on}, or "
            "see whether the mechanism uses its data."
        )
        return [Finding(HealthCheck.NO_POWER, message)]


def learned(evidence: Evidence) -> Learned:
    """How well the pilot knows the events."""
    choice, is_discrete = evidence.choice, recur(evidence.x, evidence.y)
    events = [each.event for each in (choice, *choice.others)]
    ends = 0 if is_discrete else max(0 if isinstance(event, Outcomes) else ends_of(event) or 1 for event in events)
    return Learned(choice.pilot_counts, ends, is_discrete, any(map(_is_of_learned_sum, events)))


def _is_of_learned_sum(event: Event) -> bool:
    whole = event.event if isinstance(event, Apart) else event
    return isinstance(whole, Scored) and isinstance(whole.score, Additive)
