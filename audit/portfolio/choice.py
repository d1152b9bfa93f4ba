"""The event of each direction with the largest expected bound, and whether both are tested together or only one.

By the Neyman-Pearson lemma the best events are {log ratio ≥ t}, and {log ratio ≤ t} for the other direction. The curve
of a column orders its cells and proposes the best of these sets, and the pair of both, without a penalty: what the
pilot cannot say is in the curve. Columns compete by what their curves expect, less errors of the pilot, since some
column of many looks good by chance. The test never sees these runs, so the choice costs no alpha.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import scipy

from ..claims.claim import Array, Claim
from ..events.events import Event, Outcomes
from ..events.outputs import Outputs, tally
from ..inference.event_test import Counts, Direction
from ..inference.guess_test import coins_for, is_symmetric
from ..inference.net_test import clearance
from .cells import ATOMS, HALF_LINE, RECURS, ROUNDED, Cut

DIRECTIONS: tuple[Direction, ...] = ("x", "y")
# Standard errors of the pilot that are subtracted where proposals compete: from a set of a part of the output, from one
# of a column that is computed from several, and from a column or a value that picked itself among hundreds.
_OF_PART, _OF_SEVERAL, _PICKED = 1.0, 2.0, 3.0
# Standard errors of the pilot that decide: by which one direction has to lead to be tested by itself, which a promise
# loses before it has to be positive, and by which an event may exceed a probability of a half.
DOUBT = 2.0
_CLEAR = 3.0  # standard errors by which an outcome seen in the first half of a pilot has to differ in the second
# Where the pilot shows nothing, an event is tested that could show an excess if there were one: of these shares of the
# runs at least, as has its complement. If all outputs but one are rare, a smaller share has to do.
_COMMON = (0.05, 0.005, 0.0005)
_ANGLES = np.linspace(0.0, math.pi / 2, 9)[:, None]
_SINES, _COSINES = np.sin(_ANGLES), np.cos(_ANGLES)  # of the quarter of the ellipse


# The criterion of an event: the expected excess of its lower bound over the claim, minus the noise of the pilot.
#
# The asymptotic ellipse of the test stands in for the test: on the arcsine scale a standard error is 1/(2√n), p is
# turned back by its share of the error, and q forward by the rest. For guesses in both directions the two shares are
# correlated.


@dataclass(frozen=True, slots=True)
class Criterion:
    """Approximate excess of an event's lower bound over the claim, minus the noise of the pilot."""

    claim: Claim
    runs: int
    z: float
    least_share: float = 0.0  # of the pilot runs that must lie inside the event, and outside
    is_one_way: bool = False  # whether the direction is given, not chosen with the event
    is_small: bool = False  # whether events of probability above a half, on average over x and y, are useless
    spare: float = 0.0  # standard errors by which that mean may exceed a half

    def values(
        self, count_x: Array, count_y: Array, held: int, more_likely_on: Direction, penalty: float = 0.0
    ) -> Array:
        """The criterion for events by their counts in `held` runs on each dataset; −∞ for useless events.

        The counts are expected, or those of a pilot, whose standard errors are then subtracted `penalty` times.
        """
        count_p, count_q = (count_x, count_y) if more_likely_on == "x" else (count_y, count_x)
        values = np.full(len(count_p), -math.inf)
        useful = np.flatnonzero(~self._are_useless(count_p, count_q, held))
        size = self._size(self.runs, held, penalty)
        p, p_rest = _turned(count_p[useful], held, -size * _SINES)
        q, q_rest = _turned(count_q[useful], held, size * _COSINES)
        claim = self.claim if more_likely_on == "x" else self.claim.reversed()
        found = claim.rough_parameter_of(p, q, p_rest, q_rest).min(axis=0)
        with np.errstate(over="ignore"):  # of claims near the largest double
            values[useful] = np.where(np.isnan(found), -math.inf, found - claim.parameter).round(ROUNDED)
        return values

    def value(self, counts: tuple[float, float], held: int, more_likely_on: Direction, penalty: float) -> float:
        """The criterion for a single event."""
        count_x, count_y = (np.array([float(side)]) for side in counts)
        return float(self.values(count_x, count_y, held, more_likely_on, penalty)[0])

    def _are_useless(self, count_p: Array, count_q: Array, held: int) -> npt.NDArray[np.bool_]:
        # An event is equivalent to its complement in the other direction; keep the one with the larger ratio.
        # An event that always occurs on one side cannot be more likely on the other.
        useless: npt.NDArray[np.bool_] = count_q == held
        if self.least_share > 0.0:
            useless |= np.minimum(np.minimum(count_p, held - count_p), np.minimum(count_q, held - count_q)) < (
                self.least_share * held
            )
        spare = self.spare * np.sqrt((count_p * (held - count_p) + count_q * (held - count_q)) / held)
        if self.is_small:
            useless |= count_p + count_q > held + spare
        if not self.is_one_way:
            more = count_p * (held - count_p) - count_q * (held - count_q)
            useless |= more < -spare * np.abs(count_p - count_q)
        return useless

    def value_of_guesses(self, right: float, wrong: float, held: int, penalty: float) -> float:
        """The criterion for guesses in both directions, of which these are right and wrong in 2·held runs."""
        runs = 2 * held
        c, w = right / runs, wrong / runs
        # 1 where every output is guessed: then one more correct guess is one incorrect guess less.
        correlation = 1.0 if right + wrong >= runs else math.sqrt(c * w / ((1.0 - c) * (1.0 - w)))
        widest = math.acos(min(correlation, 1.0))
        turn = np.linspace(-0.5, 0.5, 9) * widest
        size = self._size(coins_for(self.runs), runs, penalty)
        p, p_rest = _turned(np.full(9, right), runs, -size * np.cos(turn - 0.5 * widest))
        q, q_rest = _turned(np.full(9, wrong), runs, size * np.cos(turn + 0.5 * widest))
        found = self.claim.rough_parameter_of(p, q, p_rest, q_rest).min()
        return -math.inf if math.isnan(found) else round(float(found) - self.claim.parameter, ROUNDED)

    def _size(self, runs: int, held: int, penalty: float) -> float:
        return 0.5 * (self.z / math.sqrt(runs) + penalty / math.sqrt(held))


def _turned(counts: Array, held: int, angle: Array) -> tuple[Array, Array]:
    """Frequency of `counts` in `held` runs and its complement, moved by an angle on the arcsine scale."""
    share = (counts + 0.375) / (held + 0.75)
    sine, cosine = np.sqrt(share), np.sqrt(1.0 - share)
    turn_sine, turn_cosine = np.sin(angle), np.cos(angle)
    moved, rest = sine * turn_cosine, cosine * turn_cosine
    moved += cosine * turn_sine
    rest -= sine * turn_sine
    np.maximum(moved, 0.0, out=moved)
    np.maximum(rest, 0.0, out=rest)
    # Beyond 0 or π/2 one of the two is 0 and the other is 1.
    is_certain, is_impossible = rest == 0.0, moved == 0.0
    for turned, is_one in ((moved, is_certain), (rest, is_impossible)):
        np.square(turned, out=turned)
        np.copyto(turned, 1.0, where=is_one)
    return moved, rest


# The event that is chosen, and the sets of cells among which it is.


@dataclass(frozen=True, slots=True)
class Choice:
    """The event to test and its direction, with the pilot counts that it was chosen on.

    `shows_nothing` says that not even this event showed a difference between x and y. `opposite` is the event of the
    other direction, if both are to be tested together; the two exclude each other.
    """

    event: Event
    more_likely_on: Direction
    pilot_count_x: int
    pilot_count_y: int
    pilot_runs: int
    shows_nothing: bool = False
    opposite: Choice | None = None

    @property
    def others(self) -> tuple[Choice, ...]:
        """The other event to count in the main runs, if there is one."""
        return () if self.opposite is None else (self.opposite,)

    @property
    def pilot_counts(self) -> Counts:
        """Counts in the runs on which the event was chosen, without those that its column was learned from."""
        return Counts(
            count_x=self.pilot_count_x, runs_x=self.pilot_runs, count_y=self.pilot_count_y, runs_y=self.pilot_runs
        )

    def counted_on(self, x: Outputs, y: Outputs) -> Choice:
        """The same event, with its counts in these independent outputs, equally many on x and on y."""
        return replace(self, pilot_count_x=self.event.count(x), pilot_count_y=self.event.count(y), pilot_runs=len(x))


def directed_shares(choice: Choice) -> tuple[float, float]:
    """Frequencies of an event in the pilot, that of the more likely dataset first."""
    shares = choice.pilot_count_x / choice.pilot_runs, choice.pilot_count_y / choice.pilot_runs
    return shares if choice.more_likely_on == "x" else shares[::-1]


def expected_excess(choice: Choice, claim: Claim, runs: int, alpha: float, *, penalty: float) -> float:
    """Expected excess of the bound from `runs` runs, less `penalty` standard errors of the pilot; −∞ if useless."""
    criterion = Criterion(claim, runs, normal_quantile(alpha), is_one_way=True)
    counts = choice.pilot_count_x, choice.pilot_count_y
    return criterion.value(counts, choice.pilot_runs, choice.more_likely_on, penalty)


def normal_quantile(alpha: float) -> float:
    """The quantile of the normal distribution that an event has to exceed at this level."""
    return max(float(-scipy.special.ndtri(alpha)), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """A set of cells of one column, which its curve proposes, or a plain event."""

    cut: Cut
    cells: npt.NDArray[np.bool_]
    more_likely_on: Direction
    is_plain: bool = False
    value: float = 0.0  # what a test of this set alone should then show beyond the claim

    @classmethod
    def plain(cls, cut: Cut, event: int, more_likely_on: Direction, value: float = 0.0) -> Proposal:
        """An event of the net."""
        return cls(cut, _mask(cut, cut.places(event)), more_likely_on, is_plain=True, value=value)

    @property
    def counts(self) -> tuple[float, float]:
        """Counts on x and on y in the pilot."""
        return self.cut.counts(self.cells)

    @property
    def fitted(self) -> tuple[float, float]:
        """The same as the curve expects them."""
        return self.cut.fitted(self.cells)

    @property
    def expected(self) -> tuple[float, float]:
        """The counts by which proposals compete: those in the pilot only for the output itself and for plain events."""
        return self.counts if self.is_plain or self.cut.column.is_output else self.fitted

    @property
    def penalty(self) -> float:
        """Standard errors of the pilot that are subtracted."""
        column = self.cut.column
        if column.is_part and not self.is_plain:
            return _OF_PART
        return _PICKED if self.is_plain or column.first else _OF_SEVERAL

    @property
    def choice(self) -> Choice:
        """The event."""
        count_x, count_y = self.counts
        return Choice(self.cut.event(self.cells), self.more_likely_on, round(count_x), round(count_y), self.cut.runs)

    @property
    def is_more_likely(self) -> bool:
        """Whether the pilot has a larger count on its dataset than on the other."""
        count_x, count_y = self.counts
        return count_x > count_y if self.more_likely_on == "x" else count_y > count_x

    def value_of(self, criterion: Criterion, penalty: float, counts: tuple[float, float] | None = None) -> float:
        """What a test of only this set should show beyond the claim, with the expected counts or others."""
        return criterion.value(counts or self.expected, self.cut.runs, self.more_likely_on, penalty)


def _mask(cut: Cut, places: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    cells = np.zeros(len(cut.count_x), np.bool_)
    cells[places] = True
    return cells


def choose_on(
    x: Outputs,
    y: Outputs,
    cuts: Sequence[Cut],
    claim: Claim,
    runs: int,
    alpha: float,
    suggested: Choice | None = None,
    *,
    both: bool = False,
    is_last: bool = True,
) -> tuple[Choice, float]:
    """As `choose_event` on the columns of these outputs; outcomes that were seen if no column varies.

    The event by which a search ranked the pair is taken instead where it shows more, less a standard error.
    """
    choice, promise = choose_event(cuts, claim, runs, alpha, both=both, is_last=is_last)
    if choice is None:
        choice = max(choose_seen(x, y), key=lambda one: directed_shares(one)[0] - directed_shares(one)[1])
        promise = -math.inf if choice.shows_nothing else 0.0
    if suggested is not None and choice.opposite is None:
        counted = suggested.counted_on(x, y)
        own = expected_excess(choice, claim, runs, alpha, penalty=0.0)
        shown = expected_excess(counted, claim, runs, alpha, penalty=1.0)
        if shown > own:
            choice, promise = counted, max(promise, claim.parameter + shown)
    return choice, promise


def choose_event(
    cuts: Sequence[Cut], claim: Claim, runs: int, alpha: float, *, both: bool = False, is_last: bool = True
) -> tuple[Choice | None, float]:
    """The event with the largest expected lower bound from `runs` runs on each dataset, and what it promises.

    The promise is the privacy parameter that the bound is expected to reach, less two standard errors of the pilot.
    With `both`, an event of the other direction may be tested together with the best one. In the last pilot, where no
    curve promises anything, the event is the half-line or run of cells that differs most, or one that is common; None
    if no column varies.
    """
    criterion = Criterion(claim, runs, normal_quantile(alpha))
    choice, promise = _chosen(_proposals(cuts, criterion), criterion, both=both)
    if promise <= 0.0 and is_last:
        nothing = claim.with_parameter(0.0)
        clear, clear_promise = _chosen([_sharpened(_clearest(cuts, nothing), nothing)], criterion, both=both)
        choice, promise = (clear, clear_promise) if clear_promise > 0.0 else (choice, promise)
    shares = (0.0, 1.0) if choice is None else directed_shares(choice)
    if promise <= 0.0 and min(*shares, 1.0 - max(shares)) < _COMMON[0]:
        choice = _common(cuts, criterion) or choice
    return choice, promise


def choose_each_way(cuts: Sequence[Cut], claim: Claim, runs: int, alpha: float) -> tuple[Choice | None, Choice | None]:
    """The best event for each direction, as in `choose_event`; None for a direction without a useful event.

    For a claim that is the same in both directions, events of probability above a half are left to the other direction,
    in which their complement says the same: a bet on two events that say different things wins more.
    """
    criterion = Criterion(claim, runs, normal_quantile(alpha), is_one_way=True)
    tried = [one for each in _proposals(cuts, criterion) for one in each.values()]
    of_output = [cut for cut in cuts if cut.column.is_output]  # after a few runs, no curve has evidence for a ramp
    tried += _best_plain(of_output, replace(criterion, is_small=is_symmetric(claim)), _OF_SEVERAL)
    best: list[Choice | None] = []
    for way in DIRECTIONS:
        found = [one for one in tried if one.more_likely_on == way and one.is_more_likely and one.value > -math.inf]
        best.append(max(found, key=lambda one: one.value).choice if found else None)
    return best[0], best[1]


def choose_among(
    cuts: Sequence[Cut], claim: Claim, runs: int, alpha: float, penalties: Sequence[float]
) -> list[Choice]:
    """For each penalty the best of the curves' events and of half-lines, in either direction; none twice."""
    criterion = Criterion(claim, runs, normal_quantile(alpha))
    of_curves = [one for cut in cuts for one in _of_curve(cut, criterion)]
    best: list[Proposal] = []
    for penalty in penalties:
        tried = [replace(one, value=one.value_of(criterion, penalty)) for one in of_curves]
        found = max((*tried, *_best_plain(cuts, criterion, penalty)), key=lambda one: one.value, default=None)
        if found is not None and found.value > -math.inf:
            best.append(found)
    return [
        one.choice for one in {(id(one.cut), one.more_likely_on, one.cells.tobytes()): one for one in best}.values()
    ]


def _best_plain(cuts: Sequence[Cut], criterion: Criterion, penalty: float) -> Iterator[Proposal]:
    """For each column and direction the best half-line, or value that recurs, by its counts."""
    for cut in cuts:
        plain = np.flatnonzero(cut.kind <= HALF_LINE)
        count_x, count_y = cut.in_events(cut.count_x, plain), cut.in_events(cut.count_y, plain)
        for way in DIRECTIONS:
            values = criterion.values(count_x, count_y, cut.runs, way, penalty)
            at = int(np.argmax(values))
            yield Proposal.plain(cut, int(plain[at]), way, float(values[at]))


def seen_on_one_dataset(cuts: Sequence[Cut], least: int) -> tuple[Choice | None, Choice | None]:
    """For each direction the event with the largest count on its dataset, and none on the other.

    Among k events that show nothing, one has log₂ k counts on one dataset and none on the other. So an event of the net
    needs so many more than the `least`, for the k of its kind. A half-line does not if it lies farther from all outputs
    of the other dataset than these from each other, as the tail of noise does not.
    """
    found: list[Choice | None] = []
    kinds, times = np.unique(np.concatenate([np.zeros(0, np.int64), *(cut.kind for cut in cuts)]), return_counts=True)
    for way in DIRECTIONS:
        best: tuple[float, Cut, int] | None = None
        for cut in cuts:
            own, other = (cut.in_events(side) for side in cut.directed(way))
            by_chance = np.log2(times)[np.searchsorted(kinds, cut.kind)]
            by_chance[(cut.kind == HALF_LINE) & cut.lies_far(way)] = 0.0
            more = np.where(other == 0.0, own - by_chance, 0.0)
            at = int(more.argmax())
            if more[at] >= least and (best is None or more[at] > best[0]):
                best = float(more[at]), cut, at
        found.append(None if best is None else Proposal.plain(best[1], best[2], way).choice)
    return found[0], found[1]


def choose_seen(x: Outputs, y: Outputs) -> tuple[Choice, Choice]:
    """Outputs that the first half saw on one dataset, counted in the second, if outputs never vary or hardly recur."""
    half, found = len(x) // 2, []
    for way, side in zip(DIRECTIONS, (x, y), strict=True):
        times, names = tally(side[:half])
        event = Outcomes(tuple(names[key] for key, _ in times.most_common(ATOMS)))
        choice = Choice(event, way, 0, 0, 0).counted_on(x[half:], y[half:])
        if choice.pilot_count_x + choice.pilot_count_y == 2 * choice.pilot_runs:  # the complement may yet occur
            choice = replace(choice, event=replace(event, others=True), pilot_count_x=0, pilot_count_y=0)
        p, q = directed_shares(choice)
        clear = (p - q) * choice.pilot_runs > _CLEAR * math.sqrt((p + q) * choice.pilot_runs)
        found.append(replace(choice, shows_nothing=not clear))
    return found[0], found[1]


_Proposals: TypeAlias = dict[Direction, Proposal]


def _proposals(cuts: Sequence[Cut], criterion: Criterion) -> list[_Proposals]:
    """The best set of each column's fitted curve for each direction, and the clearest values that recur."""
    proposing = criterion
    if is_symmetric(criterion.claim):
        criterion = replace(criterion, is_small=True, spare=DOUBT)
        proposing = replace(criterion, runs=coins_for(criterion.runs) or criterion.runs)
    of_columns = [{one.more_likely_on: one for one in _of_curve(cut, proposing)} for cut in cuts]
    of_columns.append(_sharpened(_clearest(cuts, criterion.claim, recurring=True), criterion.claim.with_parameter(0.0)))
    return [
        {way: replace(one, value=one.value_of(criterion, one.penalty)) for way, one in of_column.items()}
        for of_column in of_columns
    ]


def _of_curve(cut: Cut, criterion: Criterion) -> Iterator[Proposal]:
    """The set that the curve of a column proposes in each direction, if the pilot has a larger count on its dataset."""
    if cut.ratio is None:
        return
    decreasing, (fitted_x, fitted_y) = cut.order, cut.fitted_cells
    for direction, order in zip(DIRECTIONS, (decreasing, decreasing[::-1]), strict=True):
        fit_x, fit_y = (np.minimum(side[order].cumsum(), cut.runs) for side in (fitted_x, fitted_y))
        value = criterion.values(fit_x, fit_y, cut.runs, direction)
        last = int(np.argmax(value))
        one = Proposal(cut, _mask(cut, order[: last + 1]), direction)
        if np.isfinite(value[last]) and one.is_more_likely:
            yield one


def _clearest(cuts: Sequence[Cut], claim: Claim, *, recurring: bool = False) -> _Proposals:
    """For each direction the event of the net that exceeds a claim by most standard errors.

    Among all events, or values that recur among many others and clusters; none that exceeds it by less than the
    largest of as many errors rarely does.
    """
    found: _Proposals = {}
    events = [np.flatnonzero(cut.kind == RECURS) if recurring else np.arange(len(cut.low)) for cut in cuts]
    least = math.sqrt(2.0 * math.log(max(2 * sum(map(len, events)), 1)))
    is_turned = is_symmetric(claim)
    for cut, places in zip(cuts, events, strict=True):
        for way, directed in zip(DIRECTIONS, (claim, claim.reversed()), strict=True) if len(places) else ():
            own, other = (cut.in_events(side, places) for side in cut.directed(way))
            clear = clearance(own, other, cut.runs, cut.runs, directed)
            if is_turned:
                clear[own + other > cut.runs] = -np.inf
            at = int(np.argmax(clear))
            if clear[at] > (found[way].value if way in found else least):
                found[way] = Proposal.plain(cut, int(places[at]), way, float(clear[at]))
    return found


def _sharpened(proposals: _Proposals, claim: Claim) -> _Proposals:
    """The same half-lines and runs of cells, but each from the value to the value between which it is clearest.

    Cells are too coarse for the ends of an interval. Each end moves in turn to the best change point for the other end,
    at most a width beyond the event and to its middle, while that makes the event clearer.
    """
    ends = {way: _change_points(one, claim if way == "x" else claim.reversed()) for way, one in proposals.items()}
    found: _Proposals = {}
    for way, one in proposals.items():
        alike = [other for other in proposals if proposals[other].cut is one.cut]
        points = np.concatenate([ends[other] for other in alike])
        done = [found[other].cut for other in alike if other in found]  # events of one column may form a pair
        cut = done[0] if done else one.cut.with_edges(points[np.isfinite(points)])
        low, high = (0 if end == -math.inf else int(np.searchsorted(cut.edges, end)) + 1 for end in ends[way])
        cells = _mask(cut, np.arange(low, len(cut.count_x) if ends[way][1] == math.inf else high))
        found[way] = replace(one, cut=cut, cells=cells)
    return found


def _change_points(one: Proposal, claim: Claim) -> Array:
    """The first value of an event that starts and ends near this one, and the first one beyond it, or an infinity."""
    cut, cells = one.cut, np.flatnonzero(one.cells)
    bounds = np.concatenate([[-math.inf], cut.edges, [math.nan, math.inf]])
    ends = bounds[[cells[0], cells[-1] + 1]]
    if np.isnan(ends).any():
        return ends
    sides = (cut.column.x, cut.column.y)[:: 1 if one.more_likely_on == "x" else -1]
    values = np.unique(np.concatenate(sides))
    values = np.concatenate([[-math.inf], values[np.isfinite(values)], [math.inf]])
    count_p, count_q = (np.append(np.searchsorted(np.sort(side), values[:-1]), cut.runs) for side in sides)
    first, last = (int(end) for end in np.searchsorted(values, ends))
    if last - first == 1:  # a value that recurs
        return ends
    clearest, beyond = -math.inf, len(values) - 1
    while True:
        width, middle = last - first, (first + last) // 2
        firsts = np.arange(max(first - width, 1), middle + 1) if first else np.array([0])
        lasts = np.arange(middle + 1, min(last + width, beyond)) if last < beyond else np.array([last])
        for tried in (firsts, lasts):
            start, end = (tried, last) if tried is firsts else (first, tried)
            found = clearance(count_p[end] - count_p[start], count_q[end] - count_q[start], cut.runs, cut.runs, claim)
            best = int(np.argmax(found))
            first, last = (int(tried[best]), last) if tried is firsts else (first, int(tried[best]))
        if found[best] <= clearest:
            return values[[first, last]]
        clearest = float(found[best])


def _common(cuts: Sequence[Cut], criterion: Criterion) -> Choice | None:
    """The best half-line that is neither rare nor nearly certain; it shows nothing."""
    for share in _COMMON:
        plain = _best_plain(cuts, replace(criterion, least_share=share), 0.0)
        best = max(plain, key=lambda one: one.value, default=None)
        if best is not None and best.value > -math.inf:
            return replace(best.choice, shows_nothing=True)
    return None


def _chosen(of_columns: Sequence[_Proposals], criterion: Criterion, *, both: bool) -> tuple[Choice | None, float]:
    """The best pair of one column, or the best single event, and what it promises; none without any bound."""
    parameter, one_way = criterion.claim.parameter, replace(criterion, is_one_way=True)
    alone = max((one for each in of_columns for one in each.values()), key=lambda one: one.value, default=None)
    if alone is None:
        return None, -math.inf
    if both and is_symmetric(criterion.claim) and coins_for(criterion.runs):
        pairs = [pair for each in of_columns if (pair := _paired(each, criterion)) is not None]
        by_value = partial(_value_of_pair, criterion)
        pair = max(pairs, key=lambda each: by_value(each, max(one.penalty for one in each)), default=None)
        if pair is not None and parameter + by_value(pair, 0.0, _COUNTS) > 0.0:
            value, less = by_value(pair, 0.0), by_value(pair, 1.0)
            if alone.value_of(one_way, 0.0) < value + DOUBT * (value - less):
                first, second = sorted(pair, key=lambda one: -one.value)
                return replace(first.choice, opposite=second.choice), parameter + by_value(pair, DOUBT)
    if parameter + alone.value_of(one_way, 0.0, alone.counts) <= 0.0:
        return None, -math.inf
    return alone.choice, parameter + alone.value_of(one_way, DOUBT)


_Pair: TypeAlias = tuple[Proposal, Proposal]  # disjoint sets of one column, the first more likely on x
_EXPECTED, _COUNTS, _FITTED = map(attrgetter, ("expected", "counts", "fitted"))


def _value_of_pair(
    criterion: Criterion, pair: _Pair, penalty: float, counts: Callable[[Proposal], tuple[float, float]] = _EXPECTED
) -> float:
    """What guesses by both sets should show beyond the claim, with these counts of either on x and on y."""
    (right_x, wrong_x), (wrong_y, right_y) = map(counts, pair)
    return criterion.value_of_guesses(right_x + right_y, wrong_x + wrong_y, pair[0].cut.runs, penalty)


def _paired(proposals: _Proposals, criterion: Criterion) -> _Pair | None:
    """The best pair of a column's events of both directions.

    Beside the two proposals, each is tried with an event that is as likely as the other one: a boundary that is curved
    wants events that are equally likely where they are unlikely.
    """
    on_x, on_y = (proposals.get(way) for way in DIRECTIONS)
    if on_x is None or on_y is None or on_x.cut is not on_y.cut:
        return None
    tried = ((on_x, on_y), (_as_likely(on_x, on_y), on_y), (on_x, _as_likely(on_y, on_x)))
    pairs = [
        (replace(one, cells=one.cells & ~other.cells), replace(other, cells=other.cells & ~one.cells))
        for one, other in tried
    ]
    found = [pair for pair in pairs if all(sum(one.counts) > 0.0 for one in pair)]
    return max(found, key=lambda pair: _value_of_pair(criterion, pair, 0.0, _FITTED), default=None)


def _as_likely(one: Proposal, other: Proposal) -> Proposal:
    """The event of this one's curve that is as likely as the other one, each where it is unlikely."""
    cut = one.cut
    if cut.ratio is None:
        return one
    order = cut.order[:: 1 if one.more_likely_on == "x" else -1]
    unlikely = cut.directed(one.more_likely_on)[1][order].cumsum()
    wanted = other.counts[1 if other.more_likely_on == "x" else 0]
    return replace(one, cells=_mask(cut, order[: int(np.argmin(np.abs(unlikely - wanted))) + 1]))
