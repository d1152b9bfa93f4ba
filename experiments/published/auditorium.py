"""DP-Auditorium's mechanisms at epsilon 1: means, noisy max, and six sparse vectors with lists of words as outputs.

References
----------
Kong, Muñoz Medina, Ribero & Syed (2023), DP-Auditorium: a large scale library for auditing differential privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from ...audit.claims.pure_approx_gaussian import PureDP
from ...audit.datasets.adjacency import AddRemove
from ...audit.datasets.domains import Rows
from ...mechanisms import CategoryCounts, LaplaceLaw, NoisyThreshold, ReportNoisyMax
from .answer_lists import AnswerLists
from .entry import Entry
from .exposed_means import ExposedMean, MeanOverExactCount

EPSILON: Final = 1.0
CLAIM: Final = PureDP(EPSILON)
N_QUERIES: Final = 8
CUTOFF: Final = 2
THRESHOLD: Final = 0.5

_PAIR: Final = [0, 1], [0, 1, 0]


def entries() -> list[Entry]:
    """The suite; `exact` is worked out from the laws."""
    return [*_means(), *_noisy_maxima(), *_sparse_vectors()]


def revealed_records(records: Sequence[float]) -> list[float]:
    """Answers to eight queries that reveal records of 0 or 1: seven times the last but one, then the last.

    A record that is not there counts as 0. With one record more all eight may change, seven in one direction and one in
    the other. The losses reported for the records (0, 1) and (0, 1, 0) single these answers out among all of 0 and 1.
    """
    last_but_one, last = [0.0, 0.0, *map(float, records)][-2:]
    return [last_but_one] * (N_QUERIES - 1) + [last]


def sparse_vector(
    threshold_scale: float, query_scale: float, *, cutoff: int = CUTOFF, refresh: bool = False, values: bool = False
) -> AnswerLists:
    """A variant with noise of these scales, on the queries that reveal records; their sensitivity is 1."""
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
    """SVT1 to SVT6, the last two with a stop as the others; the numbering is that of Lyu, Su & Li (2017)."""
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
    first, unit = MeanOverExactCount(EPSILON), Rows(low=0.0, high=1.0)
    none, one_more = [0.0], [0.0, 1.0]
    one, of_two = [1.0], [1.0, 0.0]
    bare = "no noise where the noisy count is negative: 30% of the runs on x give the exact mean"
    return [
        _entry("private_mean", private, none, one_more, _loss_at(0.0, private, none, one_more), unit, bare),
        _entry(
            "non_private_mean_v1",
            first,
            one,
            of_two,
            laplace_loss(first.law(one), first.law(of_two)),
            unit,
            "the noise's scale tells the number of rows, in the tails",
        ),
        _entry("non_private_mean_v2", second, one, of_two, _loss_at(1.0, second, one, of_two), unit, bare),
    ]


def _noisy_maxima() -> list[Entry]:
    """The first and the last of the library's four variants; the losses reported for equal counts tell their noise.

    On the pair here the loss is the largest, and its event rare; on equal counts noisy_max_v4 loses 1.43 in every
    other run.
    """

    def noisy_max(epsilon: float) -> ReportNoisyMax:
        return ReportNoisyMax(epsilon, noise="gumbel", counts=CategoryCounts((0, 1)))

    x, y, records = [1, 1, 1, 1], [1, 1, 1, 1, 1], Rows(values=(0, 1))
    right, wrong = noisy_max(EPSILON), noisy_max(4 * EPSILON)
    return [
        _entry("noisy_max_v1", right, x, y, _loss(right, x, y), records, "one count moves, so half of epsilon is lost"),
        _entry("noisy_max_v4", wrong, x, y, _loss(wrong, x, y), records, "a quarter of the noise"),
    ]


def _sparse_vectors() -> list[Entry]:
    notes = {
        "svt3": "releases the noisy answers, which bound the threshold's noise",
        "svt4": "noise on answers that does not grow with the cutoff",
        "svt5": "no noise on the answers: 22% of the runs on x are impossible on y",
        "svt6": "noise on answers for a single one",
    }
    x, y = _PAIR
    return [
        _entry(name, mechanism, x, y, _loss(mechanism, x, y), Rows(values=(0, 1)), notes.get(name, ""))
        for name, mechanism in sparse_vectors().items()
    ]


def _entry(name: str, mechanism: Any, x: Any, y: Any, exact: float, domain: Rows, note: str) -> Entry:
    return Entry(
        name=name,
        mechanism=mechanism,
        claim=CLAIM,
        is_broken=exact > EPSILON,
        adjacency=AddRemove(),
        domain=domain,
        x=x,
        y=y,
        exact=exact,
        note=note,
    )


def _loss(mechanism: Any, x: Any, y: Any) -> float:
    return float(mechanism.law(x).epsilon_from(mechanism.law(y), 0.0))


def _loss_at(output: float, mechanism: ExposedMean, x: Any, y: Any) -> float:
    """The log-likelihood ratio of an output that has a probability of its own on x."""
    return float(mechanism.law(x).log_mass(output) - mechanism.law(y).log_mass(output))


def laplace_loss(law_x: LaplaceLaw, law_y: LaplaceLaw) -> float:
    """The largest log-likelihood ratio of two Laplace laws of any scales.

    Infinite in the tails where the first is the wider one; else it falls from the first law's location to the tails,
    or is largest there.
    """
    if law_x.scale > law_y.scale:
        return math.inf
    return float(law_x.log_density(law_x.location) - law_y.log_density(law_x.location))
