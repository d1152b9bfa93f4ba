"""From pilot outputs to the event to test: the event with the largest expected lower bound.

By the Neyman-Pearson lemma the best events are {likelihood ratio ≥ t}, and {likelihood ratio ≤ t} for the other
direction. Families of such events come from several estimates of the ratio, and the expected lower bound decides which
event is tested. The test never sees these outputs, so the choice costs no alpha.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..claims.claim import Array, Claim
from ..events.events import Event, Outcomes
from ..events.outputs import tally
from ..inference.counts import Counts
from ..inference.direction import Direction
from .event_families import TABLE, Effort, Family, event_families
from .low_bits import bit_families
from .pilot_split import PilotSplit

# Standard errors subtracted from the pilot's frequencies, because the best of many noisy events looks better than it
# is. For Laplace noise, where all half-lines in the tail have the same ratio and only the largest is wanted, the gap is
# 1.9 times the oracle's (median) with 1.5 and 1.12 times with 4. If the best event is rare even in a long pilot, the
# ratio grows into the tail and caution costs depth, so less is subtracted.
CAUTION, _RARE_CAUTION, _RARE_HITS = 4.0, 2.0, 1000
# Among the many families of a long vector, one has such a tail by chance.
_FEW_FAMILIES, _RARE_AMONG_MANY = 8, 5.0
# Shares of the caution for the single event that a fitted curve proposes: more for an event far in a tail, with less
# than a thousandth of the runs on either dataset, whose step may be noise.
_FITTED_SHARE, _FITTED_TAIL_SHARE, _TAIL = 0.25, 0.6, 0.001
_SPARE = 0.02  # share of the gap between bound and ratio given away to keep an event well inside a plateau
# There are only a dozen learned scores, each with a single slope, so the best looks only slightly better than it is.
_LEARNED_CAUTION, _CURVE_CAUTION = 3.0, 1.0
# An event that contradicts the claim by this many standard errors in the pilot is preferred to one that does not: it
# may be rare, and the most cautious choice would never take it.
_SUSPICION = 3.0
# If the pilot shows no difference, an event that occurs nearly always or hardly ever has the best bound but could show
# no excess. The pilot is then made longer; if it still shows nothing, an event is taken that has at least this share of
# the runs, as has its complement, and that shows a difference with less caution, reduced step by step. If all outputs
# but one are rare, a smaller share is enough.
_COMMON, _LESS_COMMON, _LESS_CAUTION = 0.05, (0.05, 0.005, 0.0005), (4.0, 3.0, 2.0, 1.0)
_LONG = 10_000  # runs from which a sequential audit learns trees too
_COMMON_FROM = 200  # runs from which it bets on common events if nothing shows a difference
# Bets learn their events again and again: from few runs a bold choice wins more, and a wrong one is soon replaced.
_PER_LOG, _OFFSET, _LEAST_EARLY, _MOST_LATE = 0.75, 2.0, 1.0, 6.0
_DIRECTIONS: tuple[Direction, ...] = ("x", "y")
_Best = tuple[float, Family[Any], bool, Direction, int]
"""Value of an event, its family, whether it is the event itself (not its complement), its direction and index."""
_ANGLES = np.linspace(0.0, math.pi / 2, 9)[:, None]
_SINES, _COSINES = np.sin(_ANGLES), np.cos(_ANGLES)


@dataclass(frozen=True, slots=True)
class Choice:
    """The event to test and its direction, with the pilot counts that it was chosen on.

    `shows_nothing` says that not even this event showed a difference between x and y.
    """

    event: Event
    likelier_on: Direction
    pilot_hits_x: int
    pilot_hits_y: int
    pilot_runs: int
    shows_nothing: bool = False

    @property
    def pilot_counts(self) -> Counts:
        """Hits in the held-out runs, on which the event was chosen but not learned."""
        return Counts(
            hits_x=self.pilot_hits_x, runs_x=self.pilot_runs, hits_y=self.pilot_hits_y, runs_y=self.pilot_runs
        )


def choose_event(
    split: PilotSplit,
    claim: Claim,
    runs: int,
    alpha: float,
    *,
    deep: bool = False,
    bits: bool = False,
) -> Choice:
    """The event with the largest expected lower bound from `runs` runs on each dataset, in either direction.

    Parameters
    ----------
    split : PilotSplit
        Pilot outputs: one half to learn scores on, the other to choose on.
    claim : Claim
        The claim to be tested: p on the likelier side against the boundary, or its reverse if that side is y.
    runs, alpha : int, float
        Runs on each dataset and error probability of the test.
    deep : bool
        Whether the pilot was made longer because the best event is rare or nothing was seen.
    bits : bool
        Whether to include events by the low bits of outputs.
    """
    families = _families(split, bits, "trees")
    criterion = _Criterion(claim, runs, _z(alpha), CAUTION)
    best = _best_or_suspect(families, criterion, _DIRECTIONS)
    if best is not None and _shows_nothing(best, claim):
        if not deep and not _nearly_always_happens(best):
            return replace(_choice(best), shows_nothing=True)
        best = _common_one(families, criterion) or best
    elif deep:
        rare = _RARE_CAUTION if len(families) <= _FEW_FAMILIES else _RARE_AMONG_MANY
        bold = _best(families, replace(criterion, caution=rare), _DIRECTIONS)
        is_enough = best is not None and best[0] > 0 and min(_hits(best)) > _RARE_HITS
        best = bold if bold is not None and min(_hits(bold)) <= _RARE_HITS and not is_enough else best
    return _likelier(_anything_else(split)) if best is None else _choice(best)


def choose_event_each_way(
    split: PilotSplit,
    claim: Claim,
    runs: int,
    alpha: float,
    *,
    bits: bool = False,
) -> tuple[Choice | None, Choice | None]:
    """The best event for each direction, as in `choose_event`; None for a direction without a useful event.

    For a claim that is the same in both directions, the complement of an event says the same in the other direction. So
    events of probability above a half, on average over the datasets, are left to the other direction: the two events
    then say different things, and a bet on both wins more.
    """
    runs_learned = len(split.learn_x)
    families = _families(split, bits, "trees" if runs_learned >= _LONG else "sums")
    is_symmetric = claim.reversed() == claim
    caution = float(np.clip(_PER_LOG * math.log(runs) - _OFFSET, _LEAST_EARLY, _MOST_LATE))
    criterion = _Criterion(claim, runs, _z(alpha), caution, is_one_way=True, is_small=is_symmetric)
    found = [_best_or_suspect(families, criterion, (direction,)) for direction in _DIRECTIONS]
    if found == [None, None]:
        return _anything_else(split)
    if runs_learned >= _COMMON_FROM and claim.strength > 0:
        bold = _best(families, replace(criterion, caution=_SUSPICION), _DIRECTIONS)
        if all(best is None or _shows_nothing(best, claim) for best in (*found, bold)):
            common = [_common_one(families, criterion, (direction,)) for direction in _DIRECTIONS]
            found = [better or best for better, best in zip(common, found, strict=True)]
    best_x, best_y = found
    return best_x and _choice(best_x), best_y and _choice(best_y)


def choose_among(
    families: list[Family[Any]], claim: Claim, runs: int, alpha: float, *, caution: float = CAUTION
) -> Choice | None:
    """The best event of these families in either direction for a test of `runs` runs; None if none is useful."""
    best = _best(families, _Criterion(claim, runs, _z(alpha), caution), _DIRECTIONS)
    return best and _choice(best)


def expected_excess(choice: Choice, claim: Claim, runs: int, alpha: float, *, caution: float) -> float:
    """Expected excess over the claim of the bound from `runs` runs of an event; −∞ if the event is useless.

    Computed from the pilot counts of the choice minus `caution` standard errors.
    """
    criterion = _Criterion(claim, runs, _z(alpha), caution, is_one_way=True)
    hits_x, hits_y = (np.array([float(hits)]) for hits in (choice.pilot_hits_x, choice.pilot_hits_y))
    return float(criterion.values(hits_x, hits_y, choice.pilot_runs, True, choice.likelier_on)[0])


def _families(split: PilotSplit, bits: bool, effort: Effort) -> list[Family[Any]]:
    return [*event_families(split, effort=effort), *(bit_families(split) if bits else ())]


def _anything_else(split: PilotSplit) -> tuple[Choice, Choice]:
    """For each direction the set of outputs seen on that side, or its complement if every output is in it.

    For outputs that never vary, or hardly ever occur twice. The learning half alone settles the events; their hits are
    those of the held-out half.
    """
    choices = []
    for side, direction in zip((split.learn_x, split.learn_y), _DIRECTIONS, strict=True):
        times, names = tally(side)
        event = Outcomes(tuple(names[key] for key, _ in times.most_common(TABLE)))
        hits_x, hits_y, runs = event.count(split.held_x), event.count(split.held_y), split.held_runs
        if hits_x + hits_y == 2 * runs:
            choices.append(Choice(replace(event, others=True), direction, 0, 0, runs))
            continue
        more, fewer = (hits_x, hits_y) if direction == "x" else (hits_y, hits_x)
        shows_nothing = more - fewer <= _SUSPICION * math.sqrt(more + fewer)
        choices.append(Choice(event, direction, hits_x, hits_y, runs, shows_nothing))
    return choices[0], choices[1]


def _likelier(choices: tuple[Choice, Choice]) -> Choice:
    """The choice whose hits differ by more."""
    return max(choices, key=lambda one: (one.pilot_hits_x - one.pilot_hits_y) * (1 if one.likelier_on == "x" else -1))


def _z(alpha: float) -> float:
    return max(float(-ndtri(alpha)), 0.0)


def _best_or_suspect(
    families: list[Family[Any]], criterion: _Criterion, directions: tuple[Direction, ...]
) -> _Best | None:
    """The best event of all families, or a suspect one if the best shows no excess; None if every event is useless."""
    best = _best(families, criterion, directions)
    if best is not None and best[0] <= 0:
        suspect = _best(families, replace(criterion, caution=_SUSPICION), directions)
        if suspect is not None and suspect[0] > 0:
            return suspect
    return best


def _hits(best: _Best) -> tuple[int, int]:
    """The event's pilot hits on x and on y."""
    _, family, inside, _, index = best
    hits_x, hits_y = int(family.hits_x[index]), int(family.hits_y[index])
    return (hits_x, hits_y) if inside else (family.runs - hits_x, family.runs - hits_y)


def _common_one(
    families: list[Family[Any]], criterion: _Criterion, directions: tuple[Direction, ...] = _DIRECTIONS
) -> _Best | None:
    """The best event that is neither rare nor nearly certain, with less caution if that shows a difference."""
    for share in _LESS_COMMON:
        best: _Best | None = None
        for caution in _LESS_CAUTION:
            common = _best(families, replace(criterion, least_share=share, caution=caution), directions)
            best = common or best
            if common is not None and not _shows_nothing(common, criterion.claim):
                break
        if best is not None:
            return best
    return None


def _shows_nothing(best: _Best, claim: Claim) -> bool:
    """Whether not even the best event shows a difference; δ itself is not a difference between the laws."""
    return best[0] + claim.strength <= 0 and claim.strength_name != "delta"


def _nearly_always_happens(best: _Best) -> bool:
    runs = best[1].runs
    return runs - min(_hits(best)) <= min(_RARE_HITS, _COMMON * runs)


def _choice(best: _Best) -> Choice:
    _, family, inside, direction, index = best
    return Choice(family.build(index, inside), direction, *_hits(best), family.runs)


def _best(families: list[Family[Any]], criterion: _Criterion, directions: tuple[Direction, ...]) -> _Best | None:
    """The best event by a criterion."""
    best: _Best | None = None
    for family in families:
        for inside in (True, False):
            for direction in directions:
                index, value, doubt = _best_of(family, criterion, inside, direction)
                # Families are ordered from simple to complex: the first stays unless a later one is clearly better.
                margin = family.margin * criterion.claim.strength
                if best is not None and best[1] is not family:
                    margin = max(margin, doubt)
                if value > (-math.inf if best is None else best[0] + margin):
                    best = value, family, inside, direction, index
    return best


def _best_of(
    family: Family[Any], criterion: _Criterion, inside: bool, direction: Direction
) -> tuple[int, float, float]:
    """Index and value of the best event of a family, and the standard error of the value for a learned score."""

    def counted(caution: float, at: slice = slice(None)) -> Array:
        return criterion.values(family.hits_x[at], family.hits_y[at], family.runs, inside, direction, caution)

    def counted_at(index: int, caution: float) -> float:
        return float(counted(caution, slice(index, index + 1))[0])

    def fitted(curve: tuple[Array, Array], caution: float) -> Array:
        return criterion.values(*curve, family.runs, inside, direction, caution)

    if family.is_learned:
        caution = _LEARNED_CAUTION if family.fitted else max(criterion.caution, _LEARNED_CAUTION)
        values = counted(caution)
        most = int(np.argmax(values))
        value = float(values[most])
        doubt = value - counted_at(most, caution + 1.0) if value > -math.inf else 0.0
        if family.fitted is None:
            return most, value, doubt
        # The curve tells where the best event lies; its value has to show in the counts, there or elsewhere.
        expected = fitted(family.fitted, _CURVE_CAUTION)
        index = int(np.argmax(expected))
        return index, min(value, float(expected[index])), doubt
    if family.fitted is None:
        values = counted(criterion.caution)
        index = int(np.argmax(values))
        return index, float(values[index]), 0.0
    # A fitted curve proposes its event without the noise of the counts.
    certain = replace(criterion, z=0.0, caution=0.0).values(*family.fitted, family.runs, inside, direction)
    index = _well_inside(fitted(family.fitted, 0.0), certain, -1 if inside else 1)
    hits = [
        float(side[index]) if inside else family.runs - float(side[index]) for side in (family.hits_x, family.hits_y)
    ]
    share = _FITTED_SHARE if max(hits) > _TAIL * family.runs else _FITTED_TAIL_SHARE
    return index, counted_at(index, share * criterion.caution), 0.0


def _well_inside(values: Array, certain: Array, inward: int) -> int:
    """A slightly smaller event than the best one with nearly the same value; `inward` is the step in the index.

    The end of a plateau of the ratio is not known exactly. An event that reaches beyond the plateau loses more than one
    that ends before it: the bound falls with the ratio, but only with the square root of the event's probability.
    """
    best = int(np.argmax(values))
    if values[best] == -math.inf:
        return best
    least = values[best] - _SPARE * (certain[best] - values[best])
    while 0 <= best + inward < len(values) and values[best + inward] >= least:
        best += inward
    return best


@dataclass(frozen=True, slots=True)
class _Criterion:
    """Approximate excess of an event's lower bound over the claim, minus the noise of the pilot."""

    claim: Claim
    runs: int
    z: float
    caution: float
    least_share: float = 0.0  # of the pilot runs that must lie inside the event, and outside
    is_one_way: bool = False  # whether the direction is given, not chosen with the event
    is_small: bool = False  # whether events of probability above a half, on average over x and y, are useless

    def values(
        self, hits_x: Array, hits_y: Array, held: int, inside: bool, direction: Direction, caution: float | None = None
    ) -> Array:
        """The criterion for events with these hits in `held` runs, or for their complements; −∞ for useless events.

        `caution` overrides the criterion's own.
        """
        hits_p, hits_q = (hits_x, hits_y) if direction == "x" else (hits_y, hits_x)
        if not inside:
            hits_p, hits_q = held - hits_p, held - hits_q
        # The asymptotic ellipse of the joint test on the arcsine scale, where a standard error is 1/(2√n): p is turned
        # back by its share of the error, and q forward by the rest.
        caution = self.caution if caution is None else caution
        size = 0.5 * (self.z / math.sqrt(self.runs) + caution / math.sqrt(held))
        for_p, for_q = (_SINES, _COSINES) if size > 0.0 else (_SINES[:1], _COSINES[:1])
        p, p_rest = _turned(hits_p, held, -size * for_p)
        q, q_rest = _turned(hits_q, held, size * for_q)
        claim = self.claim if direction == "x" else self.claim.reversed()
        found = claim.rough_strength_of(p, q, p_rest, q_rest).min(axis=0)
        # An event is equivalent to its complement in the other direction; keep the one with the larger ratio.
        # An event that always occurs on one side cannot be likelier on the other.
        useless = np.isnan(found) | (hits_q == held)
        if self.least_share > 0.0:
            useless |= np.minimum(np.minimum(hits_p, held - hits_p), np.minimum(hits_q, held - hits_q)) < (
                self.least_share * held
            )
        if self.is_small:
            useless |= hits_p + hits_q > held
        if not self.is_one_way:
            useless |= hits_p * (held - hits_p) < hits_q * (held - hits_q)
        return np.where(useless, -math.inf, found - claim.strength)


def _turned(hits: Array, held: int, angle: Array) -> tuple[Array, Array]:
    """Frequency of `hits` in `held` runs and its complement, moved by an angle on the arcsine scale."""
    share = (hits + 0.375) / (held + 0.75)
    sine, cosine = np.sqrt(share), np.sqrt(1.0 - share)
    turn_sine, turn_cosine = np.sin(angle), np.cos(angle)
    moved = np.maximum(sine * turn_cosine + cosine * turn_sine, 0.0)
    rest = np.maximum(cosine * turn_cosine - sine * turn_sine, 0.0)
    # Beyond 0 or π/2 one of the two is 0 and the other is 1.
    return np.where(rest > 0.0, moved**2, 1.0), np.where(moved > 0.0, rest**2, 1.0)
