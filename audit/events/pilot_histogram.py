"""A small table of the pilot outputs for the figures of a report."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .outputs import Outputs, as_numbers, outcome_key, outcome_words, tally

_RUNS = 100_000  # runs used of a longer pilot, the first ones
_BINS = 40
_OUTCOMES = 24


@dataclass(frozen=True, slots=True)
class Sketch:
    """Counts of the pilot outputs on x and on y, in bins or by outcome.

    Attributes
    ----------
    labels : tuple of str
        Names of the outcomes; empty for numbers in bins.
    edges : tuple of float
        Inner edges of the bins, one fewer than the counts because the outer bins are open; empty for outcomes.
    counts_x, counts_y : tuple of int
        Pilot runs in each bin or with each outcome.
    runs : int
        Pilot runs on each dataset, including outputs that are in no bin, such as non-numbers; 0 if not recorded.
    """

    labels: tuple[str, ...]
    edges: tuple[float, ...]
    counts_x: tuple[int, ...]
    counts_y: tuple[int, ...]
    runs: int = 0


def sketch(x: Outputs, y: Outputs) -> Sketch | None:
    """Return the table: by outcome if few outputs are distinct, in bins if most outputs are numbers, else None."""
    if x.ndim == 2:
        return None
    x, y = x[:_RUNS], y[:_RUNS]
    head = {outcome_key(value) for value in [*x[:1000].tolist(), *y[:1000].tolist()]}
    if len(head) <= _OUTCOMES:
        (on_x, names_x), (on_y, names_y) = tally(x), tally(y)
        names = names_x | names_y
        keys = [key for key, _ in (on_x + on_y).most_common(_OUTCOMES)]
        if all(isinstance(key, (int, float)) for key in keys):
            keys.sort()
        counts = [tuple(found[key] for key in keys) for found in (on_x, on_y)]
        return Sketch(tuple(outcome_words(names[key]) for key in keys), (), counts[0], counts[1], len(x))
    numbers = [as_numbers(part).astype(np.float64) for part in (x, y)]
    pooled = np.concatenate(numbers)
    pooled = pooled[np.isfinite(pooled)]
    if len(pooled) < len(x):  # mostly not numbers
        return None
    low, high = np.quantile(pooled, [0.002, 0.998])
    if not 0.0 < high / 2 - low / 2 < 1e300:
        return None
    edges = np.linspace(low, high, _BINS - 1)
    counts = [
        tuple(np.bincount(np.searchsorted(edges, part[~np.isnan(part)]), minlength=_BINS).tolist()) for part in numbers
    ]
    return Sketch((), tuple(edges.tolist()), counts[0], counts[1], len(x))
