"""A mechanism that keeps its claim at distance 1 from a dataset and breaks it at distance 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ....audit.claims.claim import PureDP
from ....audit.errors import ClaimError, DatasetError
from ...noise.laplace import LaplaceMechanism
from ...queries import whole_answer
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class LocalSensitivityLaplace(Twin):
    """The squared number of rows with noise for the sensitivity at the empty dataset: (2m − 1)·ε for up to m rows.

    In practice, the sensitivity is measured on the dataset at hand and its neighbours, where the answer moves by 1, and
    used for all datasets. The bug does not show between 0 rows and 1. It shows at distance 2 from the empty dataset,
    where the answer moves by 4 instead of 2, and between 1 row and 2, where it moves by 3.
    """

    epsilon: float
    most_rows: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.most_rows, int) or self.most_rows < 1:
            raise ClaimError(
                f"most_rows={self.most_rows!r} is not a number of rows; use a whole number from 1.",
                most_rows=self.most_rows,
            )
        LaplaceMechanism(self.epsilon, sensitivity=2 * self.most_rows - 1)  # the right mechanism refuses the same

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
