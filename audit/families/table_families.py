"""Sets of outcomes, ordered by their shrunken log-likelihood ratios.

Few outcomes are compared on the whole pilot, many are ordered by one half and counted on the other. The ratios are
shrunk towards what simpler models say: a score that adds up over the columns of an output, the fitted curve of a
number, or a ratio of 1 for labels without order.

A set of many outcomes is stored as a list if the list is short. Otherwise it is stored as a half-line of the additive
score, except for the outcomes whose own counts contradict the score. Either list is cut to the outcomes that matter
most, by their hits times the distance of their log ratio from that of the outcomes that are not listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from ..events.events import Event, ExceptFor, Intervals, Outcomes, Scored
from ..events.outputs import Outputs, outcome_list
from ..events.scores import Additive
from .number_families import Family, number_families
from .outcome_counts import OutcomeCounts, count_outcomes
from .pilot_split import PilotSplit, ordered
from .shrunken_ratios import calibrated, log_likelihood, shrunken_log_ratios

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_FEW = 64  # outcomes that are compared on the whole pilot
_MOST_NUMBERS = 16_384  # numbers or words of known outcomes: at most 240 kB in a file of results, one line each
_MOST_OUTCOMES = 100_000  # most outcomes with counts of their own, the commonest ones
_REPEATED, _RECURRING, _MOSTLY = 3, 0.2, 0.5  # hits of an outcome that recurs, and shares of runs in such outcomes


def table_families(
    split: PilotSplit,
    runs: PilotSplit,
    *,
    scores: Sequence[Additive] = (),
    curve: Callable[[Array], Array] | None = None,
) -> Iterator[Family[Any]]:
    """Sets of outcomes with the largest estimated log-likelihood ratios.

    Parameters
    ----------
    split : PilotSplit
        Pilot outputs, or those of them that recur.
    runs : PilotSplit
        All pilot outputs.
    scores : sequence of Additive
        Scores learned on the first half; log ratios are shrunk towards the best of them.
    curve : callable, optional
        Log-likelihood ratio of numbers according to a fitted curve; log ratios are shrunk towards it.
    """
    table = count_outcomes(split)
    if len(table) <= (split is runs):  # one outcome of all runs tells nothing; one that recurs among others may
        return
    pilot = len(runs.learn_x) + runs.held_runs
    if len(table) == 1:
        hits_x, hits_y = (table.counts[[side, side + 2]].sum(axis=0).astype(np.float64) for side in (0, 1))
        yield Family(hits_x, hits_y, pilot, _Listed(outcome_list(table.values)))
        return
    if len(table) <= _FEW:
        yield _whole_table(table, pilot, curve)
        return
    learned = table.counts[:2].sum(axis=0)
    is_float = split.learn_x.dtype.kind == "f"
    recurring = float(learned[learned >= _REPEATED].sum()) / max(int(learned.sum()), 1)
    if recurring < _RECURRING and (scores or is_float):
        return
    # If few outcomes occur three times, rare outcomes are all there is to learn from. A floating-point number that
    # occurs once, however, says nothing about other runs.
    known = learned >= (_REPEATED if recurring >= _MOSTLY or is_float else 1)
    if np.count_nonzero(known) > _MOST_OUTCOMES:
        known &= learned > np.partition(learned, -_MOST_OUTCOMES)[-_MOST_OUTCOMES]
    if known.any():
        yield from _half_table(table, known, runs.held_runs, scores, curve)


def _whole_table(table: OutcomeCounts, runs: int, curve: Callable[[Array], Array] | None) -> Family[Any]:
    """Sets of a few outcomes, with the hits on the whole pilot that the shrunken ratios expect.

    The order follows the noise of the counts, so the observed hits of the best set are too good to be true.
    """
    hits_x, hits_y = (table.counts[[side, side + 2]].sum(axis=0).astype(np.float64) for side in (0, 1))
    ratios = shrunken_log_ratios(_predicted(table, curve), hits_x, hits_y)
    order = np.argsort(-ratios, kind="stable")
    share, hits = expit(ratios)[order], (hits_x + hits_y)[order]
    expected = _up_to(share * hits, hits_x.sum()), _up_to((1.0 - share) * hits, hits_y.sum())
    build = _Listed(outcome_list(table.values[order]))
    return Family(*expected, runs, build, expected)


def _up_to(expected: Array, total: float) -> Array:
    """Cumulative sums, scaled so that the last one is the total exactly."""
    sums = expected.cumsum()
    return np.append(sums[:-1] * (total / sums[-1]), total) if sums[-1] > 0.0 else np.zeros(len(sums))


def _half_table(
    table: OutcomeCounts, known: Mask, runs: int, scores: Sequence[Additive], curve: Callable[[Array], Array] | None
) -> Iterator[Family[Any]]:
    """Sets of many outcomes, ordered by the counts of one half of the pilot and counted on the other."""
    hits_x, hits_y = table.counts[:2].astype(np.float64)
    base, plain, level, slope = _best_score(table, scores)
    predicted = _predicted(table, curve) if base is None else level + slope * plain
    own = shrunken_log_ratios(predicted[known], hits_x[known], hits_y[known])
    most = max(_MOST_NUMBERS // _width(table.values), 1)
    if base is None or len(own) <= most:  # a list of all outcomes is short
        base, plain, away = None, np.zeros(len(table)), np.abs(own)
    else:
        away, own = np.abs(own - predicted[known]), (own - level) / slope
    important = np.argsort(-(hits_x + hits_y)[known] * away, kind="stable")[:most]
    places, own = np.flatnonzero(known)[important], own[important]
    scored = _Scored(base, table.values[places], own, plain[places])
    held = plain.copy()
    held[places] = own
    on_x, on_y = (
        ordered(np.append(np.repeat(held, times), np.zeros(runs - times.sum()))) for times in table.counts[2:]
    )
    both = PilotSplit(on_x, on_y, np.zeros(0), np.zeros(0))
    for family in number_families(both, learned=True):
        build = _OfTable(scored, family.build)
        yield Family(family.hits_x, family.hits_y, runs, build, family.fitted, family.margin, is_learned=True)


def _predicted(table: OutcomeCounts, curve: Callable[[Array], Array] | None) -> Array:
    return np.zeros(len(table)) if curve is None else curve(table.values.astype(np.float64))


def _best_score(table: OutcomeCounts, scores: Sequence[Additive]) -> tuple[Additive | None, Array, float, float]:
    """The score that explains the counts best (Akaike), its values, and the a and b of its log ratio a + b·score.

    Without a score the values are 0.
    """
    hits_x, hits_y = table.counts[:2].astype(np.float64)
    best: tuple[Additive | None, Array, float, float] = None, np.zeros(len(table)), 0.0, 1.0
    least = -2.0 * log_likelihood(np.zeros(len(table)), hits_x, hits_y)
    columns, read = None, np.zeros((0, len(table)))
    for score in scores:
        if score.columns is not columns:  # read once, because that takes longest
            columns, read = score.columns, score.columns.read(table.values)
        values = score.add_up(read)
        if not np.isfinite(values).all():  # an outcome lacks a column
            continue
        level, slope = calibrated(values, hits_x, hits_y)
        criterion = 2.0 * (len(score.pieces) - log_likelihood(level + slope * values, hits_x, hits_y))
        if slope > 0.0 and criterion < least:
            least, best = criterion, (score, values, level, slope)
    return best


def _width(values: Outputs) -> int:
    """Numbers and words in an outcome, on average."""
    if values.dtype != object:
        return int(values.shape[1]) if values.ndim == 2 else 1
    some = values[:100].tolist()
    return max(sum(map(_leaves, some)) // len(some), 1)


def _leaves(value: Any) -> int:
    return sum(map(_leaves, value)) if type(value) is tuple else 1


@dataclass(frozen=True, slots=True)
class _Listed:
    values: list[Any]

    def __call__(self, index: int, inside: bool) -> Outcomes:
        return Outcomes(tuple(self.values[: index + 1]), others=not inside)


@dataclass(frozen=True, slots=True)
class _Scored:
    """Scores of listed outcomes, and of all others: those of an additive score, or 0."""

    base: Additive | None
    listed: Outputs
    own: Array
    plain: Array

    def event(self, where: Intervals) -> Event:
        """The outputs whose score lies in the intervals."""
        odd = where.contains(self.own) != where.contains(self.plain)
        outcomes = tuple(outcome_list(self.listed[odd]))
        if self.base is None:
            return Outcomes(outcomes, others=bool(where.contains(np.zeros(1))[0]))
        return ExceptFor(Scored(self.base, where), Outcomes(outcomes))


@dataclass(frozen=True, slots=True)
class _OfTable:
    scored: _Scored
    build: Callable[[int, bool], Intervals]

    def __call__(self, index: int, inside: bool) -> Event:
        return self.scored.event(self.build(index, inside))
