"""What all audits have in common: the choice of what is tested, its test, and the conclusion.

Proofs: docs/proofs/choices.md, docs/proofs/joint-test.md
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ..clock import now
from ..events.events import Counted, Event, Labels, Outcomes, Partition, Scored, sketch, with_names
from ..events.outputs import Outputs
from ..events.scores import Additive
from ..floating_point_errors import with_own_arithmetic
from ..health.event_checks import Evidence, constant_output, ends_of, idle_event, pilot_findings, run_notes
from ..health.findings import FALSE_ALARM, Finding, HealthCheck
from ..health.run_independence import examine
from ..inference.divergence_test import DivergenceTest, divergence_test
from ..inference.event_test import Counts, Direction, directed, joint_test
from ..inference.guess_test import guess_test, guesses_by_coins, is_symmetric
from ..inference.net_test import net_test
from ..portfolio.choice import Choice, choose_on
from ..portfolio.columns import NUMBERS, cuts_of
from ..portfolio.floating_point_leaks import floating_point_leak_in
from ..portfolio.net import Net
from ..portfolio.partitions import Bins, learn_bins, learn_cells, recur
from ..random_streams import Stream, sequence_of
from ..results.audit_result import AuditResult, FixedSizeResult, OtherDirection, Stop
from ..results.bin_result import BinCounts
from ..results.claim_pair_and_alpha import Settings
from ..results.verdict import Verdict, largest_excess, verdict_of
from ..sampling.object_identity import versions
from ..sampling.pilot_and_batch_sizes import grown_pilot_runs, pilot_runs
from ..sampling.tasks import BlockCounts, MainCounts, no_blocks
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
    def _counted(self) -> tuple[Counted | None, ...]:
        divergence = None if self.divergence_bins is None else self.divergence_bins.partition
        return None if self.net is None else self.net.cells, self.bins, divergence

    @property
    def partitions(self) -> tuple[Counted, ...]:
        """Net, bins and divergence bins, as far as there are any; `split` returns their counts."""
        return tuple(each for each in self._counted if each is not None)

    def split(self, counted: MainCounts) -> list[tuple[Labels, Labels]]:
        """Main runs on x and on y in the cells of the net, in the bins, and in the divergence bins."""
        ends = np.cumsum([0 if each is None else each.n_cells for each in self._counted])[:-1]
        return list(zip(*(np.split(side, ends) for side in counted.cells), strict=True))


def longest_pilot(runs: int, width: int) -> int:
    """The pilot of outputs of `width` numbers, if they have several columns or a shorter pilot promises nothing."""
    return max(pilot_runs(runs), min(grown_pilot_runs(runs), NUMBERS // max(width, 1)))


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
        settings, net, learned_bins = self.settings, self.portfolio.net, self.portfolio.divergence_bins
        in_net, _, in_learned_bins = self.portfolio.split(self.counted)
        part = 0.0 if net is None else net.part
        alpha, divergence = settings.event_alpha(self.share, has_bins=self.bins is not None, net=part), None
        if learned_bins is not None:
            level = settings.divergence_alpha(alpha, show_more=learned_bins.show_more)
            coins = np.random.default_rng(sequence_of(self.coin_seed, Stream.BIN_ORDER))
            known = learned_bins.known_x, learned_bins.known_y
            divergence = divergence_test(*known, *in_learned_bins, settings.claim, alpha=level, coins=coins)
            alpha -= level
        tested = self._by_choice(alpha)
        if net is not None:
            tested = self._with_net(tested, net, *in_net)
        if divergence is not None:
            pvalue = min(tested.pvalue, divergence.pvalue / divergence.alpha * settings.alpha)
            bound = max(tested.bound, divergence.bound)
            tested = replace(tested, pvalue=min(1.0, pvalue), bound=bound, divergence=divergence)
        bound = 0.0 if self.bins is None else self.bins.parameter_lower(settings.claim)
        if bound <= max(tested.bound, settings.claim.parameter):
            return tested
        return replace(tested, pvalue=min(tested.pvalue, settings.alpha), bound=bound)

    def _by_choice(self, alpha: float) -> Tested:
        """The test of the chosen event in its direction, or of both events together."""
        claim, choice, counts = self.settings.claim, self.portfolio.choice, self.counted.counts[0]
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
            pvalue=min(1.0, pvalue * (self.settings.alpha / alpha)),
            bound=bound,
            event_alpha=alpha,
            opposite=opposite,
        )

    def _with_net(self, tested: Tested, net: Net, in_cells_x: Labels, in_cells_y: Labels) -> Tested:
        """The tests of the choice and of the net; the event with the largest bound decides."""
        settings = self.settings
        level, seen = settings.net_alpha(net.part, self.share), (net.counts(in_cells_x), net.counts(in_cells_y))
        tested = replace(tested, net_alpha=level)
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
        self.is_sized = False  # whether the runs were chosen for the excess that the caller asked to detect
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

    @property
    def width(self) -> int:
        """Numbers in one output."""
        return self.x.shape[1] if self.x.ndim == 2 else 1

    def choose(self, runs: int, longest: int) -> Portfolio | None:
        """What is tested, chosen on the outputs so far; None if the `longest` pilot is to choose it.

        That is so where outputs have several columns, and where fewer of them promise no bound. `runs` are planned on
        each dataset, without those of a search.
        """
        x, y, settings = self.x, self.y, self.settings
        is_last, main = len(x) >= longest, runs - len(x) + self.searched
        if not is_last and (x.dtype == object or self.width > 1) and not recur(x, y):  # scores have to be learned
            return None
        claim, alpha = settings.claim, self.share * settings.alpha
        cuts = cuts_of(x, y, bits=settings.floating_point == "test")
        choice, promise = choose_on(x, y, cuts, claim, main, alpha, self.suggested, both=True, is_last=is_last)
        if not is_last and promise <= 0.0:
            return None
        bins = learn_cells(x, y, self.n_bins) if self.n_bins else None
        divergence_bins = learn_bins(x, y, choice, claim) if claim.divergence_slopes else None
        return Portfolio(choice, Net.of(cuts, claim, main) if cuts else None, bins, divergence_bins)

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

    def detectable(self, evidence: Evidence, tested: Tested) -> Callable[[], Detectable]:
        """Return a function that computes the smallest excess that these runs show with the power of the settings.

        It holds numbers and no outputs, as the result keeps it until the excess is read.
        """
        assert self.test is not None
        claim, power, alpha = self.settings.claim, self.settings.power, tested.event_alpha
        choice, counts, known = evidence.choice, evidence.counts, learned(evidence)
        held = directed(claim, counts, choice.more_likely_on)
        if tested.opposite is not None:
            against = directed(claim, tested.opposite.counts, choice.more_likely_on).counts
            other = replace(tested.opposite, counts=against)
            of_event = partial(detectable_by_guesses, claim, other, held.counts, self.runs, known)
        else:
            of_event = partial(detectable, held.claim, held.counts, self.runs, known)
        is_another, bins, by_bins = tested.event is not choice.event, self.test.portfolio.divergence_bins, None
        if bins is not None:
            level = alpha if tested.divergence is None else tested.divergence.alpha
            sizes = int(bins.known_x.sum()), counts.runs_x, counts.runs_y
            by_bins = partial(detectable_by_divergence, claim, *sizes, alpha=level, power=power)

        def compute() -> Detectable:
            found = of_event(alpha=alpha, power=power)
            if found.basis == "event" and is_another:
                found = replace(found, basis="chosen")
            if by_bins is None or found.basis != "gaussian":
                return found
            return replace(found, excess=min(found.excess, by_bins()))

        return compute

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
        choice = evidence.choice
        claim = directed(settings.claim, tested.counts, tested.more_likely_on).claim
        # It may be computed after the call, under any settings of the user.
        detectable, detect = functools.cache(with_own_arithmetic(self.detectable(evidence, tested))), settings.detect
        if self.is_sized and detect is not None and self.stopped != "request":
            # It states the excess that it reached and never calls itself too small, unless it missed the request by a
            # factor of two, or the caller accepts more than an audit may have without being inconclusive.
            is_missed = tested.bound <= claim.parameter and detectable().excess > 2.0 * detect
            detect = detect if is_missed or detect > largest_excess(settings.claim) else None
        unsteady = []
        if self.is_in_order and self.test is not None:
            tried = zip((choice, *choice.others), self.test.counted.counts, strict=True)
            unsteady = [finding for each, counts in tried for finding in pilot_findings(each, counts, of_runs)]
        verdict = verdict_of(claim, tested.bound, lambda: detectable().excess, detect, of_runs)
        of_event = unsteady or constant_output(evidence)
        if not of_event and not of_runs and verdict is not Verdict.REFUTED:  # too few runs are said already
            of_event = idle_event(evidence, says_too_few=verdict is Verdict.INCONCLUSIVE)
        if verdict is Verdict.NOT_REFUTED and not of_event:
            of_event = self._of_silence(tested)
        findings = (*of_datasets, *of_runs, *(finding for finding in of_event if finding.check not in ignored))
        if any(finding.check is HealthCheck.DATASET_MUTATED for finding in of_datasets):
            findings = of_datasets
        leak = None
        if settings.floating_point == "warn":
            leak = floating_point_leak_in(self.x, self.y, settings.claim, choice)
        net, own = None if self.test is None else self.test.portfolio.net, self.own_fields(tested)
        if net is not None:
            own |= {"net_events": net.n_events, "net_alpha": tested.net_alpha}
        own |= {"min_detectable_excess": lambda: detectable().excess, "excess_basis": lambda: detectable().basis}
        own_notes = (*run_notes(self.x, self.y, *self.main, runs=self.kept_runs), *self.note_of_cut, *notes)
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
            power=settings.power,
            detect=detect,
            runs=self.runs,
            pilot_runs=self.pilot_runs,
            searched=self.searched,
            seed=settings.seed,
            is_reproducible=self.is_reproducible,
            findings=findings,
            ignored=tuple(sorted(check.value for check in ignored)),
            notes=own_notes,
            sketch=sketch(self.x, self.y),
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
    is_learned = any(isinstance(event, Scored) and isinstance(event.score, Additive) for event in events)
    return Learned(choice.pilot_counts, ends, is_discrete, is_learned)
