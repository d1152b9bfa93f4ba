"""Partitions learned from pilot outputs, with cells whose likelihood ratios differ."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from ..claims.claim import Claim
from ..events.events import Array, ExceptFor, Labels, NumberCells, OutcomeCells, Partition, PlainEvents, Scored
from ..events.outputs import Outputs, as_numbers, as_vectors, is_vector, tally
from ..events.scores import Number, Score, Weighted
from ..families.event_families import TABLE, fisher_direction
from ..families.quantile_cells import ratio_by_cell
from ..inference.divergence_test import smoothed, telling_divergence
from .choice import Choice, directed_shares

_FEW = 64  # outcomes with their own cell; the rarer ones share a cell
_LOOKED_AT = 2_000  # outputs of which half or more have to repeat
_TWO = 2  # outcomes, each of which is the complement of the other
_LEAST_HITS = 3  # pilot runs that an outcome needs for its own cell
# Cells of a number that stretches consist of. Any interval with a quarter of the runs then holds a stretch of half of
# it, and the 53 stretches are as many events as the final test of an audit at alpha 1e-5 can tell apart (62).
_CELLS, _FEWEST_EDGES = 16, 4
_BINS, _BIN_RUNS = 64, 32  # bins for divergences at most, and the pilot runs that each needs


@dataclass(frozen=True, slots=True)
class Bins:
    """A partition for the test of Rényi divergences, with the runs from which it was learned.

    Attributes
    ----------
    partition : Partition
    known_x, known_y : ndarray of int, shape (bins,)
        These runs in each bin.
    show_more : bool
        Whether they show more against the claim than the event that was chosen.
    """

    partition: Partition
    known_x: Labels
    known_y: Labels
    show_more: bool


def learn_cells(x: Outputs, y: Outputs, n_cells: int, *, spread: bool = False) -> Partition:
    """A partition of the outputs by estimated likelihood ratio.

    Parameters
    ----------
    x, y : ndarray
        Pilot outputs on each dataset, which are not counted in the cells.
    n_cells : int
        Number of cells for numbers. Up to 64 outcomes have a cell each, regardless of this number.
    spread : bool
        Whether cells of numbers are to be even in the mean of mass and log-likelihood ratio, instead of in mass.
    """
    width = _commonest_width(x)
    if width is None:
        seen = tally(x[:2000])[0] + tally(y[:2000])[0]
        is_finite = len(seen) <= max(n_cells, _FEW) and 4 * len(seen) <= seen.total()
        if is_finite or not np.isfinite(as_numbers(x).astype(np.float64)).any():
            return _outcome_cells(x, y, max(n_cells, _FEW))
        return _number_cells(Number(), x, y, n_cells, spread=spread)
    x, y = as_vectors(x, width), as_vectors(y, width)
    weights = fisher_direction(x, y) or (1.0,) + (0.0,) * (width - 1)
    score = Weighted(weights)
    return _number_cells(score, x, y, n_cells, spread=spread)


def plain_events(x: Outputs, y: Outputs, most: int) -> PlainEvents | None:
    """Events to count in the main runs in case the pilot chooses the wrong one; None if there are none.

    The commonest outcomes if outcomes recur, unless there are only two, and stretches of a number.

    Parameters
    ----------
    x, y : ndarray
        Pilot outputs on each dataset, which are not counted in the events.
    most : int
        Number of events at most.
    """
    numbers = [each[np.isfinite(each)] for each in (as_numbers(side) for side in (x, y) if side.ndim == 1)]
    found = PlainEvents(None, _cell_edges(np.sort(np.concatenate([np.zeros(0), *numbers]))))
    if found.n_cells > most:
        found = PlainEvents(None)
    found = replace(found, outcomes=_recurring(x, y, most - found.n_cells))
    return found if found.n_cells else None


def _recurring(x: Outputs, y: Outputs, most: int) -> OutcomeCells | None:
    """A cell for each of the commonest outcomes; None for outputs that hardly repeat, and for two outcomes at most."""
    if not recur(x, y):
        return None
    (on_x, names_x), (on_y, names_y) = tally(x), tally(y)
    names, seen = names_y | names_x, on_x + on_y
    if min(len(seen), most) <= _TWO:
        return None
    return OutcomeCells(tuple(names[key] for key, _ in seen.most_common(min(TABLE, most) - 1)), len(seen))


def _cell_edges(values: Array) -> tuple[float, ...]:
    """Edges of cells with equal numbers of the sorted values; a value that fills a cell has it to itself.

    None for fewer than four different edges: stretches of so few cells are outcomes or half-lines.
    """
    if len(values) == 0:
        return ()
    at = values[np.arange(1, _CELLS) * (len(values) - 1) // _CELLS]
    atoms = at[1:][at[1:] == at[:-1]]
    edges = np.unique(np.concatenate([at, np.nextafter(atoms, -np.inf)]))
    edges = edges[(edges >= values[0]) & (edges < values[-1])]
    return tuple(edges.tolist()) if len(edges) >= _FEWEST_EDGES else ()


def recur(x: Outputs, y: Outputs) -> bool:
    """Whether each of the first outputs on either dataset occurs twice on average, as with a discrete mechanism."""
    return all(2 * len(tally(side[:_LOOKED_AT])[0]) <= len(side[:_LOOKED_AT]) for side in (x, y))


def _commonest_width(outputs: Outputs) -> int | None:
    """Length of the vectors if most outputs are vectors of one length, else None."""
    if outputs.ndim == 2:
        return int(outputs.shape[1]) or None
    lengths = [len(output) for output in outputs if type(output) is tuple and output] if outputs.dtype == object else []
    width = int(np.bincount(lengths).argmax()) if lengths else 0
    return width if sum(is_vector(output, width) for output in outputs) > len(outputs) / 2 else None


def _outcome_cells(x: Outputs, y: Outputs, most: int) -> OutcomeCells:
    (on_x, names_x), (on_y, names_y) = tally(x), tally(y)
    names = names_y | names_x
    common = (on_x + on_y).most_common(most)
    kept = [key for place, (key, hits) in enumerate(common) if hits >= _LEAST_HITS or place == 0]
    kept.sort(key=lambda key: -math.log((on_x[key] + 0.5) / (on_y[key] + 0.5)))
    return OutcomeCells(tuple(names[key] for key in kept), len(on_x | on_y))


def learn_bins(x: Outputs, y: Outputs, choice: Choice, claim: Claim) -> Bins | None:
    """Bins for the test of Rényi divergences; None for a claim on anything else.

    They are cells of the outputs, or of the score by which the pilot chose its event, whichever shows more. Evenness in
    mass and log ratio at once loses less than in mass, at any order: .1% of a Gaussian's divergence of order 1, and at
    order 32 what rare outputs show.
    """
    if not claim.divergence_slopes:
        return None
    number = number_of_bins(min(len(x), len(y)))
    event = choice.event.event if isinstance(choice.event, ExceptFor) else choice.event
    by_score = [_number_cells(event.score, x, y, number, spread=True)] if isinstance(event, Scored) else []
    is_vector = bool(by_score) and _commonest_width(x) is not None  # a linear score was among those of the pilot
    partitions: list[Partition] = [*([] if is_vector else [learn_cells(x, y, number, spread=True)]), *by_score]
    found: list[tuple[float, Bins]] = []
    for partition in partitions:
        on_x, on_y = partition.count(x), partition.count(y)
        p, q = smoothed(on_x), smoothed(on_y)
        _, away = telling_divergence(p, q, claim, len(x), len(y), min(len(x), len(y)))
        found.append((away, Bins(partition, on_x, on_y, bool(away > _above_claim(choice, claim, len(x))))))
    return max(found, key=itemgetter(0))[1]


def number_of_bins(runs: int) -> int:
    """Return the largest number of bins that so many pilot runs on each dataset make."""
    return min(max(runs // _BIN_RUNS, 2), _BINS)


def _above_claim(choice: Choice, claim: Claim, runs: int) -> float:
    """Standard errors by which the frequencies of the chosen event would exceed the claim in so many runs."""
    p, q = (min(max(side, 0.5 / runs), 1.0 - 0.5 / runs) for side in directed_shares(choice))
    error_p, error_q = (math.sqrt(side * (1.0 - side) / runs) for side in (p, q))
    at = np.array([q, min(q + error_q, 1.0)])
    allowed, beside = claim.max_power(at)[0].tolist()
    both = math.sqrt(2.0) if choice.opposite is not None else 1.0
    return float(both * (p - allowed) / math.hypot(error_p, beside - allowed))


def _number_cells(score: Score, on_x: Outputs, on_y: Outputs, n_cells: int, *, spread: bool) -> NumberCells:
    """Fine intervals, merged in the order of their fitted ratio into cells of equal mass on the likelier side.

    If they are to be spread, the mean of the mass and of the log ratio, both scaled to 1, rises evenly over the cells.
    """
    x, y = score.values(on_x), score.values(on_y)
    has_others = bool(np.isnan(x).any() or np.isnan(y).any())
    known_x, known_y = np.sort(x[~np.isnan(x)]), np.sort(y[~np.isnan(y)])
    found = ratio_by_cell(known_x, known_y)
    if found is not None:
        cells, ratio, hits_x, hits_y = found
        order = np.argsort(-ratio, kind="stable")
        position = np.maximum(hits_x / len(x), hits_y / len(y))[order].cumsum()
        position /= position[-1]
        if spread and np.ptp(ratio) > 0.0:
            position = 0.5 * (position + (ratio.max() - ratio[order]) / np.ptp(ratio))
        rank = np.minimum((position * n_cells).astype(np.int64), n_cells - 1)
        different, rank = np.unique(rank, return_inverse=True)
        if len(different) > 1:
            group = np.empty(len(cells), dtype=np.int64)
            group[order] = rank
            return NumberCells(tuple(high for _, high in cells[:-1]), tuple(group.tolist()), score, has_others)
    # An atom with most of the mass, or infinities: a single cell would be useless.
    edges = _equal_mass(np.sort(np.concatenate([known_x, known_y])), n_cells)
    return NumberCells(edges, tuple(range(len(edges) + 1)), score, has_others)


def _equal_mass(values: Array, n_cells: int) -> tuple[float, ...]:
    """Edges of intervals with equal numbers of the sorted values, as far as the values differ."""
    if len(values) == 0:
        return ()
    at = np.arange(1, n_cells) * (len(values) - 1) // n_cells
    return tuple(edge for edge in np.unique(values[at]).tolist() if edge < values[-1])
