"""The sparse vector technique, correct and in four published incorrect variants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...audit.datasets.adjacency import AddRemove, Within
from ...mechanisms import SparseVector
from ...mechanisms.faulty import (
    SparseVectorReleasingValue,
    SparseVectorUnscaledNoise,
    SparseVectorWithoutCutoff,
    SparseVectorWithoutQueryNoise,
)
from ..cases.experiment import AuditCase, Experiment, fails, holds, stated
from ..statements.gaussian_statements import IsBelow

EPSILON: Final = 1.0
_ANSWERS: Final = Within("linf")


def experiments() -> list[Experiment]:
    """Return experiments M1 and M2."""
    return [
        stated("named", "M1",
            "The sparse vector technique is epsilon-DP for any number of answers below the threshold; half the noise "
            "on the answers is sufficient if all answers move in one direction.",
            "Dwork & Roth (2014), Section 3.6; Lyu, Su & Li (2017), Algorithms 1 and 2", _right()),
        stated("named", "M2",
            "Four variants of the sparse vector technique are not epsilon-DP: one is (1 + 6c)/4 epsilon-DP with "
            "cutoff c, the others have no finite epsilon.",
            "Lyu, Su & Li (2017), Algorithms 3 to 6", _wrong()),
    ]  # fmt: skip


def property_counts(rows: Sequence[Sequence[int]]) -> npt.NDArray[np.int64]:
    """Count the rows with each property, from one or more rows of bits."""
    counts: npt.NDArray[np.int64] = np.sum(rows, axis=0, dtype=np.int64)
    return counts


def rise_and_fall(n_below: int, n_above: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the worst pair for "below …, above …": answers of 0, of which the first rise by 1 and the last fall."""
    return (0.0,) * (n_below + n_above), (1.0,) * n_below + (-1.0,) * n_above


@dataclass(frozen=True, slots=True)
class LastOutput:
    """Return the last coordinate of a mechanism's output: post-processing, which keeps every claim."""

    mechanism: Any

    def __str__(self) -> str:
        return f"last of {self.mechanism}"

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        last: npt.NDArray[Any] = self.mechanism.sample(dataset, size, rng)[:, -1]
        return last


def _right() -> list[AuditCase]:
    nobody, all_but_the_last = (0,) * 6, (1,) * 5 + (0,)
    of_rows = SparseVector(EPSILON, threshold=1.0, monotone=True, queries=property_counts)
    added = [nobody], [nobody, all_but_the_last]
    refreshed, monotone = SparseVector(EPSILON, 2, refresh=True), SparseVector(EPSILON, monotone=True)
    both_ways = "monotone sparse vector, answers moving both ways: nearly 1.5 epsilon"
    return [
        holds("M1-one-above", SparseVector(EPSILON), rise_and_fall(5, 1), _ANSWERS,
            "sparse vector, cutoff 1, six answers, nearly tight"),
        holds("M1-two-above", SparseVector(EPSILON, 2), rise_and_fall(6, 2), _ANSWERS, "sparse vector, cutoff 2"),
        holds("M1-refreshed", refreshed, rise_and_fall(6, 2), _ANSWERS,
            "sparse vector, new noisy threshold after each answer above"),
        holds("M1-monotone", of_rows, added, AddRemove(),
            "monotone sparse vector, counts of six properties, added row with five"),
        fails("M1-monotone-both-ways", monotone, rise_and_fall(5, 1), _ANSWERS, both_ways),
    ]  # fmt: skip


def _wrong() -> list[AuditCase]:
    unscaled, endless = SparseVectorUnscaledNoise(EPSILON), SparseVectorWithoutCutoff(EPSILON)
    silent, more = SparseVectorWithoutQueryNoise(EPSILON), SparseVectorUnscaledNoise(EPSILON, cutoff=3)
    two, four, six = rise_and_fall(1, 1), rise_and_fall(3, 1), rise_and_fall(3, 3)
    crossed = (0.0, 1.0), (1.0, 0.0)
    truth, true_claim = "Algorithm 4, true claim of (1 + 6c)/4 epsilon", unscaled.truth
    return [
        _value_released(n_below=3),
        fails("M2-unscaled-noise", unscaled, four, _ANSWERS, "Algorithm 4, cutoff 1"),
        fails("M2-unscaled-noise-three", more, six, _ANSWERS, "Algorithm 4, cutoff 3"),
        holds("M2-unscaled-noise-truth", unscaled, four, _ANSWERS, truth, claim=true_claim),
        fails("M2-no-query-noise", silent, crossed, _ANSWERS, "Algorithm 5, one answer below, the next above"),
        holds("M2-no-query-noise-one", silent, rise_and_fall(1, 0), _ANSWERS, "Algorithm 5, bug hidden by one answer"),
        fails("M2-no-cutoff", endless, six, _ANSWERS, "Algorithm 6, three answers up and three down"),
        holds("M2-no-cutoff-two", endless, two, _ANSWERS, "Algorithm 6, bug hidden by two answers"),
    ]


def _value_released(n_below: int) -> AuditCase:
    """Audit one bit of Algorithm 3, an event that a pilot may miss, with the largest loss of all outputs.

    Every answer is higher by 1 on y, so that the noise of each must be lower by 1 there for the same threshold noise.
    """
    released = SparseVectorReleasingValue(EPSILON)
    bit, note = IsBelow(LastOutput(released), 0.0), "Algorithm 3, three answers below, then a value of at most 0"
    pair, exact = ((0.0,) * (n_below + 1), (1.0,) * (n_below + 1)), (n_below + 1) / released.runs_as.query_scale
    return fails("M2-value-released", bit, pair, _ANSWERS, note, claim=released.claim, exact=exact, runs=500_000)
