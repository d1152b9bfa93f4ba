"""A mechanism that keeps its claim at one step from a dataset and breaks it at two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ....audit.claims.pure_approx_gaussian import PureDP
from ....audit.errors import ClaimError, DatasetError
from ...noise.laplace import LaplaceMechanism
from ...queries import whole_answer
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class LocalSensitivityLaplace(Twin):
    """The squared number of rows with noise for one step from the empty dataset: (2m − 1)·epsilon, m rows at most.

    In practice the sensitivity is measured on the dataset at hand and its neighbours, where the answer moves by 1, and
    taken for all. Does not show between no row and one. Shows at two steps from there, where it moves by 4 and not by
    2; and between one row and two, where it moves by 3.
    """

    epsilon: float
    most_rows: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.most_rows, int) or self.most_rows < 1:
            raise ClaimError(
                f"most_rows={self.most_rows!r} is no number of rows; use a whole number from 1.",
                most_rows=self.most_rows,
            )
        LaplaceMechanism(self.epsilon, sensitivity=2 * self.most_rows - 1)  # what it should be: refuses the same

    @property
    def runs_as(self) -> LaplaceMechanism:
        return LaplaceMechanism(self.epsilon, query=self._squared_rows)

    @property
    def truth(self) -> PureDP:
        return PureDP((2 * self.most_rows - 1) * self.epsilon)

    def _squared_rows(self, dataset: Any) -> int:
        rows = whole_answer(len, dataset)
        if rows > self.most_rows:
            raise DatasetError(
                f"a dataset of {rows} rows has more than most_rows={self.most_rows}; use a larger one.",
                rows=rows,
                most_rows=self.most_rows,
            )
        return rows**2
