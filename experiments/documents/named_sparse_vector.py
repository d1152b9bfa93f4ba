"""The sparse vector technique as it is right, and as it was published wrongly."""

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
from ..cases.experiment import AuditCase, Experiment, false_version
from ..cases.pure_cases import pure_version
from .gaussian_statements import IsBelow

EPSILON: Final = 1.0
_ANSWERS: Final = Within("linf")


def experiments() -> list[Experiment]:
    """Rows M1 and M2."""
    return [
        Experiment(
            id="M1",
            document="named",
            statement="The sparse vector technique is epsilon-DP, however many answers are below the threshold; half "
            "the noise on the answers is enough where all move one way.",
            source="Dwork & Roth (2014), Section 3.6; Lyu, Su & Li (2017), Algorithms 1 and 2",
            cases=tuple(_right()),
        ),
        Experiment(
            id="M2",
            document="named",
            statement="Four variants of the sparse vector technique are not epsilon-DP: of one (1 + 6c)/4 epsilon is "
            "true, c the cutoff, of the others no finite epsilon.",
            source="Lyu, Su & Li (2017), Algorithms 3 to 6",
            cases=tuple(_wrong()),
        ),
    ]


def property_counts(rows: Sequence[Sequence[int]]) -> npt.NDArray[np.int64]:
    """How many rows have each property, from rows of bits, one row or more."""
    counts: npt.NDArray[np.int64] = np.sum(rows, axis=0, dtype=np.int64)
    return counts


def rise_and_fall(n_below: int, n_above: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Answers of 0, of which the first rise by 1 and the last fall: the worst pair for "below …, above …"."""
    return (0.0,) * (n_below + n_above), (1.0,) * n_below + (-1.0,) * n_above


@dataclass(frozen=True, slots=True)
class LastOutput:
    """The last coordinate of a mechanism's output: post-processing, so it keeps every claim."""

    mechanism: Any

    def __str__(self) -> str:
        return f"last of {self.mechanism}"

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        last: npt.NDArray[Any] = self.mechanism.sample(dataset, size, rng)[:, -1]
        return last


def _right() -> list[AuditCase]:
    nobody, all_but_the_last = (0,) * 6, (1,) * 5 + (0,)
    of_rows = SparseVector(EPSILON, threshold=1.0, monotone=True, queries=property_counts)
    return [
        _on_answers("M1-one-above", True, SparseVector(EPSILON), (5, 1), "nearly tight with six answers"),
        _on_answers("M1-two-above", True, SparseVector(EPSILON, 2), (6, 2), "noise that grows with the cutoff"),
        _on_answers(
            "M1-refreshed",
            True,
            SparseVector(EPSILON, 2, refresh=True),
            (6, 2),
            "a new noisy threshold after each answer above",
        ),
        pure_version(
            "M1-monotone",
            True,
            of_rows,
            ([nobody], [nobody, all_but_the_last]),
            AddRemove(),
            "counts of six properties; a row with five of them is added",
        ),
        _on_answers(
            "M1-monotone-both-ways",
            False,
            SparseVector(EPSILON, monotone=True),
            (5, 1),
            "the same noise where answers move both ways: nearly 1.5 epsilon",
        ),
    ]


def _wrong() -> list[AuditCase]:
    unscaled, endless = SparseVectorUnscaledNoise(EPSILON), SparseVectorWithoutCutoff(EPSILON)
    silent = SparseVectorWithoutQueryNoise(EPSILON)
    more = SparseVectorUnscaledNoise(EPSILON, cutoff=3)
    return [
        _value_released(n_below=3),
        _on_answers("M2-unscaled-noise", False, unscaled, (3, 1), "Algorithm 4, where one above ends it"),
        _on_answers("M2-unscaled-noise-three", False, more, (3, 3), "the more answers above, the worse"),
        _on_answers(
            "M2-unscaled-noise-truth", True, unscaled, (3, 1), "(1 + 6c)/4 epsilon is true of it", claim=unscaled.truth
        ),
        pure_version(
            "M2-no-query-noise", False, silent, ((0.0, 1.0), (1.0, 0.0)), _ANSWERS, "Algorithm 5: below, then above"
        ),
        _on_answers("M2-no-query-noise-one", True, silent, (1, 0), "where it does not show: one answer"),
        _on_answers("M2-no-cutoff", False, endless, (3, 3), "Algorithm 6: three answers rise and three fall"),
        _on_answers("M2-no-cutoff-two", True, endless, (1, 1), "where it does not show: two answers"),
    ]


def _on_answers(
    name: str, is_true: bool, mechanism: Any, below_above: tuple[int, int], note: str, **rest: Any
) -> AuditCase:
    return pure_version(name, is_true, mechanism, rise_and_fall(*below_above), _ANSWERS, note, **rest)


def _value_released(n_below: int) -> AuditCase:
    """On one bit, which a pilot would not always find; its loss is the most that any output has.

    Every answer is higher by 1 on y, so its noise must be lower by 1 there, and the threshold's the same.
    """
    released = SparseVectorReleasingValue(EPSILON)
    return false_version(
        "M2-value-released",
        IsBelow(LastOutput(released), 0.0),
        (0.0,) * (n_below + 1),
        (1.0,) * (n_below + 1),
        released.claim,
        _ANSWERS,
        exact=(n_below + 1) / released.runs_as.query_scale,
        runs=500_000,
        note="Algorithm 3: three answers below, then a value of at most 0",
    )
