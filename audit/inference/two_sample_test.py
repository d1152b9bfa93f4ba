"""An exact two-sample test that an event has the same probability in both samples.

Proof: docs/proofs/multiplicity.md
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from ..errors import OptionError

_CHUNK = 1 << 14
_NEGLIGIBLE = 1e-18  # relative to the partial sum


def change_pvalue(counts: int, runs: int, counts_before: int, runs_before: int) -> float:
    """Return the exact p-value of the null that the event has the same probability in both samples.

    Given the total count, the counts of the first sample are hypergeometric for every probability of the
    event, so the test is exact for any numbers of runs of two independent samples. The two-sided p-value is twice the
    tail from the observed counts on, at most 1. Impossible counts raise an `OptionError`.

    References
    ----------
    Fisher (1935), The logic of inductive inference.

    Examples
    --------
    >>> change_pvalue(10, 100, 10, 100), round(change_pvalue(0, 100, 10, 100), 5)
    (1.0, 0.00154)
    """
    for value, total in ((counts, runs), (counts_before, runs_before)):
        if not 0 <= value <= total or total < 1:
            raise OptionError(
                f"{value} counts in {total} runs are impossible; use 0 <= counts <= runs and runs >= 1.",
                counts=value,
                runs=total,
            )
    return min(1.0, 2.0 * hypergeometric_tail(counts, runs, counts + counts_before, runs + runs_before))


def hypergeometric_tail(counts: int, runs: int, seen: int, total: int) -> float:
    """Return the one-sided tail from `counts` on, for `runs` draws out of `total` with `seen` counts."""
    if counts * total < runs * seen:  # smaller counts than expected: use the tail of the misses
        counts, seen = runs - counts, total - seen
    most = min(runs, seen)  # terms decrease from the mean on
    first = _log_ways(seen, counts) + _log_ways(total - seen, runs - counts) - _log_ways(total, runs)
    term, added = 1.0, 1.0
    for start in range(counts, most, _CHUNK):
        k = np.arange(start, min(start + _CHUNK, most), dtype=np.float64)
        terms = term * np.cumprod((seen - k) / (k + 1.0) * (runs - k) / (total - seen - runs + k + 1.0))
        added, term = added + float(terms.sum()), float(terms[-1])
        if term < _NEGLIGIBLE * added:
            break
    return math.exp(min(first + math.log(added), 0.0))


def _log_ways(of: int, chosen: int) -> float:
    gammaln = scipy.special.gammaln
    return float(gammaln(of + 1.0) - gammaln(chosen + 1.0) - gammaln(of - chosen + 1.0))
