"""Sets of outputs that were seen on one dataset only: what a rare leak looks like after a few hits.

A leak of probability p shows np times in n runs. Families of events are ranked with caution, which a dozen hits do not
survive. These sets need few hits, and are often chance finds: they are tested on a small share of alpha, or bet on with
a small share of the wealth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from operator import itemgetter

import numpy as np

from ..events.events import Event, Intervals, Outcomes, Scored
from ..events.outputs import Outputs, tally
from ..events.scores import Weighted
from .pilot_split import PilotSplit
from .quantile_cells import Array, distinct, merged

_MOST = 8  # intervals or outcomes in a set
_CLUSTERS = (3, 5, 8, *(13 << power for power in range(15)))  # spacings in a cluster, up to 213,000
# Outputs on either side of a cluster that show how dense outputs are there: at least these, and as many as the
# spacings. With more outputs than spacings and neighbours, a cluster would hide itself.
_NEIGHBOURS = 32
_STARTS = 16  # places where a cluster of many spacings may begin, per length
_BY_CHANCE = 1e-4  # expected number of clusters as narrow as one that counts, if outputs are spread evenly
# Outputs at an end, the multiple of their range that lies between them and what is far off, and how many times as many
# outputs there are as may be far off.
_TAIL, _FAR, _TAIL_SHARE = 10, 2.0, 10
_FEW_RECUR = 32  # most values that recur, if they are leaks and not the grid of rounded outputs
_AMONG_MANY = 8  # times that an outcome has to be seen where others recur too
_MOST_COORDINATES = 64

_Interval = tuple[float, float]


def one_sided_sets(split: PilotSplit, *, least: int) -> tuple[Event | None, Event | None]:
    """A set of outputs seen on x at least `least` times and never on y, and the reverse; None where there is none.

    Numbers far beyond the bulk of the noise, values that recur, narrow clusters, and NaN; the coordinate of vectors
    with most such outputs; outcomes of any other kind. Values and outcomes have to be seen eight times where others
    recur too, since one among many rare ones is seen on one dataset only by chance.

    Examples
    --------
    >>> on_x, on_y = np.array([0.1, 0.2, 0.3, 7.0, 8.0]), np.array([0.15, 0.25, 0.35, 0.4, 0.05])
    >>> str(one_sided_sets(PilotSplit.in_half(on_x, on_y), least=2)[0])
    '6 ≤ output ≤ 9'
    >>> print(one_sided_sets(PilotSplit.in_half(on_x[:3], on_y), least=2)[0])
    None
    """
    if any(part.dtype == object for part in split):
        x, y = split.whole
        times = max(least, _AMONG_MANY)
        return _outcomes(x, y, times), _outcomes(y, x, times)
    if split.learn_x.ndim == 1:
        return _numbers(split.ordered, least)
    best: tuple[Event | None, Event | None] = (None, None)
    most, width = 0, split.learn_x.shape[1]
    for place in range(min(width, _MOST_COORDINATES)):
        own = split.map(itemgetter((slice(None), place)))
        found = _numbers(own.ordered, least)
        sides = (own.learn_x, own.held_x), (own.learn_y, own.held_y)
        hits = sum(
            0 if event is None else sum(map(event.count, parts)) for event, parts in zip(found, sides, strict=True)
        )
        if hits > most:
            score = Weighted(tuple(float(place == other) for other in range(width)))
            best = tuple(None if each is None else Scored(score, each) for each in found)  # type: ignore[assignment]
            most = hits
    return best


def _outcomes(own: Outputs, other: Outputs, least: int) -> Event | None:
    seen, names = tally(own)
    elsewhere = tally(other)[0]
    values = [names[key] for key, times in seen.most_common() if times >= least and key not in elsewhere]
    return Outcomes(tuple(values[:_MOST])) if values else None


def _numbers(ordered: PilotSplit, least: int) -> tuple[Intervals | None, Intervals | None]:
    pooled = merged(ordered.learn_x, ordered.held_x), merged(ordered.learn_y, ordered.held_y)
    on_x, on_y = (side[: np.searchsorted(side, math.nan)] for side in pooled)
    if len(on_x) == 0 or len(on_y) == 0:
        return None, None
    nans = [len(side) - len(part) for side, part in zip(pooled, (on_x, on_y), strict=True)]
    found, is_continuous = [], 2 * len(distinct(on_x)) > len(on_x)
    again = least if is_continuous else max(least, _AMONG_MANY)
    for (own, other), (times, elsewhere) in (((on_x, on_y), nans), ((on_y, on_x), nans[::-1])):
        is_new = times >= again and elsewhere == 0
        parts = _recurring(own, other, again)
        own, other = own[np.isfinite(own)], other[np.isfinite(other)]
        # A value that recurs is not a cluster with its neighbours.
        single = own[~np.isin(own, [value for value, _ in parts])] if parts else own
        if len(own) and len(other):
            parts += [*_beyond(own, other, least), *_clusters(single, other)]
        found.append(Intervals(_united(parts[:_MOST]), is_new) if parts or is_new else None)
    return found[0], found[1]


def _beyond(own: Array, other: Array, least: int) -> Iterator[_Interval]:
    """Intervals around what lies so far beyond the bulk of both datasets that no tail reaches it.

    The other dataset may have outputs there too. An interval holds at least half of the own ones and none of the
    others, and is at most three times as long as its outputs lie apart, since the other dataset may leak nearby.
    """
    for sign in (1.0, -1.0):
        ours, theirs = (own, other) if sign > 0.0 else (-own[::-1], -other[::-1])
        bulk = _end_of_bulk(ours, theirs)
        ours, theirs = ours[ours > bulk], theirs[theirs > bulk]
        edges = np.concatenate([[bulk], theirs, [math.inf]])
        gaps, hits = np.unique(np.searchsorted(theirs, ours), return_counts=True)
        if len(hits) == 0 or hits.max() < max(least, len(ours) / 2):
            continue
        gap = int(gaps[hits.argmax()])
        low, high = (np.nextafter(edges[gap], math.inf), np.nextafter(edges[gap + 1], -math.inf))
        ours = ours[(ours >= low) & (ours <= high)]
        if len(ours) and (spread := ours[-1] - ours[0]) > 0.0:
            ends = sign * max(low, ours[0] - spread), sign * min(high, ours[-1] + spread)
            yield float(min(ends)), float(max(ends))


def _end_of_bulk(x: Array, y: Array) -> float:
    """The output before the widest gap in the upper tenth that is twice as wide as the ten outputs before; else ∞."""
    far = (len(x) + len(y)) // _TAIL_SHARE + 2
    kept = far + _TAIL
    pooled = merged(x[-kept:], y[-kept:])[-kept:]
    ends = np.arange(max(len(pooled) - far, 1), len(pooled) - 1)
    before, gaps = pooled[ends] - pooled[np.maximum(ends - _TAIL, 0)], pooled[ends + 1] - pooled[ends]
    wide = np.where((before > 0.0) & (gaps > _FAR * before), gaps, 0.0)
    return float(pooled[ends[wide.argmax()]]) if wide.any() else math.inf


def _recurring(own: Array, other: Array, least: int) -> list[_Interval]:
    """Values that recur and that the other dataset never has, the commonest first; none if many values recur."""
    if len(own) < least or len(distinct(own[1:][own[1:] == own[:-1]])) > _FEW_RECUR:
        return []
    again = distinct(own[least - 1 :][own[least - 1 :] == own[: len(own) - least + 1]])
    again = again[other[np.minimum(np.searchsorted(other, again), len(other) - 1)] != again]
    times = np.searchsorted(own, again, side="right") - np.searchsorted(own, again)
    return [(float(value), float(value)) for value in again[np.argsort(-times, kind="stable")[:_MOST]]]


def _clusters(own: Array, other: Array) -> list[_Interval]:
    """Intervals without outputs of the other dataset in which outputs are far denser than beside them; densest first.

    In an evenly spread stretch the length of k spacings, in units of the mean spacing, is at most r with probability at
    most rᵏ/k!.
    """
    found: list[tuple[float, _Interval]] = []
    for k in _CLUSTERS:
        neighbours = max(_NEIGHBOURS, k)
        if len(own) <= k + 2 * neighbours:
            break
        step, last = max(1, k // _STARTS), len(own) - k
        low, high = own[neighbours : last - neighbours : step], own[neighbours + k : last + k - neighbours : step]
        before = low - own[: last - 2 * neighbours : step]
        after = own[2 * neighbours + k :: step] - high
        beside = np.minimum(before, after, out=before)
        longest = math.exp((math.log(_BY_CHANCE / len(own)) + math.lgamma(k + 1.0)) / k)
        dense = np.flatnonzero(np.subtract(high, low, out=after) < longest / neighbours * beside)
        low, high, beside = low[dense], high[dense], beside[dense] / neighbours
        wide = high > low
        low, high, beside = low[wide], high[wide], beside[wide]
        is_alone = np.searchsorted(other, low) == np.searchsorted(other, high, side="right")
        low, high, beside = low[is_alone], high[is_alone], beside[is_alone]
        log_chance = k * np.log((high - low) / beside) - math.lgamma(k + 1.0)
        best = np.argsort(log_chance, kind="stable")[:_MOST]
        found += [(float(log_chance[i]), (float(low[i]), float(high[i]))) for i in best]
    return [interval for _, interval in sorted(found)]


def _united(parts: list[_Interval]) -> tuple[_Interval, ...]:
    """Disjoint intervals with the same union."""
    united: list[_Interval] = []
    for low, high in sorted(parts):
        if united and low <= united[-1][1]:
            united[-1] = united[-1][0], max(united[-1][1], high)
        else:
            united.append((low, high))
    assert all(before[1] < after[0] for before, after in pairwise(united))
    return tuple(united)
