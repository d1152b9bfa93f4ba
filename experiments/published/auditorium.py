"""Mechanisms of DP-Auditorium at epsilon 1: means, noisy max, and six sparse vectors whose outputs are lists.

References
----------
Kong, Muñoz Medina, Ribero & Syed (2023), DP-Auditorium: a large scale library for auditing differential privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from ...audit.claims.claim import PureDP
from ...audit.datasets.adjacency import AddRemove
from ...audit.datasets.domains import Rows
from ...mechanisms import CategoryCounts, LaplaceLaw, NoisyThreshold, ReportNoisyMax
from .answer_lists import AnswerLists
from .entry import Entry, entry
from .exposed_means import ExposedMean, MeanOverExactCount

EPSILON: Final = 1.0
CLAIM: Final = PureDP(EPSILON)
N_QUERIES: Final = 8
CUTOFF: Final = 2
THRESHOLD: Final = 0.5

_PAIR: Final = [0, 1], [0, 1, 0]


def entries() -> list[Entry]:
    """Return the suite; `exact` is computed from the laws."""
    return [*_means(), *_noisy_maxima(), *_sparse_vectors()]


def revealed_records(records: Sequence[float]) -> list[float]:
    """Return eight answers that reveal records of 0 or 1: seven times the last but one, then the last.

    A missing record counts as 0. An additional record may change all eight answers, seven in one direction and one in
    the other. Among all answers of 0 and 1, only these give the losses reported for the records (0, 1) and (0, 1, 0).
    """
    last_but_one, last = [0.0, 0.0, *map(float, records)][-2:]
    return [last_but_one] * (N_QUERIES - 1) + [last]


def sparse_vector(
    threshold_scale: float, query_scale: float, *, cutoff: int = CUTOFF, refresh: bool = False, values: bool = False
) -> AnswerLists:
    """Return a variant with noise of these scales on the queries that reveal records, of sensitivity 1."""
    return AnswerLists(
        NoisyThreshold(
            CLAIM,
            threshold_scale / EPSILON,
            query_scale / EPSILON,
            cutoff=cutoff,
            threshold=THRESHOLD,
            refresh=refresh,
            release_value=values,
            queries=revealed_records,
        )
    )


def sparse_vectors(cutoff: int = CUTOFF) -> dict[str, AnswerLists]:
    """Return SVT1 to SVT6, numbered as by Lyu, Su & Li (2017); the last two have the same cutoff as the others."""
    return {
        "svt1": sparse_vector(2, 4 * cutoff, cutoff=cutoff),
        "svt2": sparse_vector(2 * cutoff, 4 * cutoff, cutoff=cutoff, refresh=True),
        "svt3": sparse_vector(2, 2 * cutoff, cutoff=cutoff, values=True),
        "svt4": sparse_vector(4, 4 / 3, cutoff=cutoff),
        "svt5": sparse_vector(2, 0, cutoff=cutoff),
        "svt6": sparse_vector(2, 2, cutoff=cutoff),
    }


def _means() -> list[Entry]:
    private, second = ExposedMean(EPSILON), ExposedMean(EPSILON, noisy_divisor=False)
    first, unit, rows = MeanOverExactCount(EPSILON), Rows(low=0.0, high=1.0), AddRemove()
    added, one = ([0.0], [0.0, 1.0]), ([1.0], [1.0, 0.0])
    scale = laplace_loss(first.law(one[0]), first.law(one[1]))
    bare = "no noise at a negative noisy count, exact mean in 30% of the runs on x"
    tails = "noise scale that reveals the number of rows, in the tails"
    return [
        entry("private_mean", private, added, rows, unit, bare, exact=_mass_loss(0.0, private, added)),
        entry("non_private_mean_v1", first, one, rows, unit, tails, exact=scale),
        entry("non_private_mean_v2", second, one, rows, unit, bare, exact=_mass_loss(1.0, second, one)),
    ]


def _noisy_maxima() -> list[Entry]:
    """Return the first and the last of the library's four variants.

    The losses reported for equal counts identify their noise. This pair has the largest loss, with a rare event; on
    equal counts noisy_max_v4 loses 1.43 in every second run.
    """
    right, wrong = (ReportNoisyMax(e, noise="gumbel", counts=CategoryCounts((0, 1))) for e in (EPSILON, 4 * EPSILON))
    pair, records, rows = ([1] * 4, [1] * 5), Rows(values=(0, 1)), AddRemove()
    return [
        entry("noisy_max_v1", right, pair, rows, records, "one changed count, half of epsilon lost"),
        entry("noisy_max_v4", wrong, pair, rows, records, "a quarter of the noise", claim=CLAIM),
    ]


def _sparse_vectors() -> list[Entry]:
    notes = {
        "svt3": "release of the noisy answers, a bound on the threshold noise",
        "svt4": "noise on answers independent of the cutoff",
        "svt5": "no noise on the answers, 22% of the runs on x impossible on y",
        "svt6": "noise on answers for a single answer above",
    }
    records = Rows(values=(0, 1))
    return [
        entry(name, mechanism, _PAIR, AddRemove(), records, notes.get(name, ""))
        for name, mechanism in sparse_vectors().items()
    ]


def _mass_loss(output: float, mechanism: ExposedMean, pair: tuple[Any, Any]) -> float:
    """Return the log-likelihood ratio of an output with positive probability on x."""
    x, y = (mechanism.law(dataset) for dataset in pair)
    return float(x.log_mass(output) - y.log_mass(output))


def laplace_loss(law_x: LaplaceLaw, law_y: LaplaceLaw) -> float:
    """Return the largest log-likelihood ratio of two Laplace laws of any scales.

    The ratio is unbounded in the tails if the first law is wider; otherwise the location of the first law attains the
    maximum.
    """
    if law_x.scale > law_y.scale:
        return math.inf
    return float(law_x.log_density(law_x.location) - law_y.log_density(law_x.location))
