"""A sparse vector whose outputs are lists with one word or number for each answer up to the cutoff."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import repeat
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import Claim
from ...mechanisms import Law, NoisyThreshold
from ...mechanisms.laws.divergences import Floats
from ...mechanisms.laws.transcripts import ABOVE, BELOW, STOPPED
from ...mechanisms.queries import candidate_scores


class Comparison(Enum):
    """Result of the comparison of an answer with the threshold."""

    ABOVE = "above"
    BELOW = "below"


AnswerList = tuple[Comparison | float, ...]


@dataclass(frozen=True, slots=True)
class AnswerListLaw(Law):
    """The law of lists, computed from the law of the same outputs as rows of numbers."""

    rows: Law
    n_answers: int
    releases_values: bool

    def log_density(self, outputs: Iterable[Sequence[Comparison | float]]) -> Floats:  # type: ignore[override]
        """Return the log-density of each list."""
        return self.rows.log_density([self._row(output) for output in outputs])

    def is_comparable(self, other: Self) -> bool:
        return type(self.rows) is type(other.rows) and self.rows.is_comparable(other.rows)

    def delta_from(self, other: Self, epsilon: float) -> float:
        return self.rows.delta_from(other.rows, epsilon)

    def epsilon_from(self, other: Self, delta: float) -> float:
        return self.rows.epsilon_from(other.rows, delta)

    def _row(self, output: Sequence[Comparison | float]) -> list[float]:
        below, stopped = (np.nan, np.nan) if self.releases_values else (BELOW, STOPPED)
        numbers = {Comparison.BELOW: below, Comparison.ABOVE: ABOVE}
        row = [float(numbers[part] if isinstance(part, Comparison) else part) for part in output]
        return row + [float(stopped)] * (self.n_answers - len(row))


@dataclass(frozen=True, slots=True)
class AnswerLists:
    """A sparse vector whose outputs are tuples of `Comparison` and, if it releases values, numbers.

    A tuple ends with the last compared answer, so that lengths vary.

    Parameters
    ----------
    compares : NoisyThreshold
        The sparse vector, for at most 16 answers.

    Examples
    --------
    >>> from dpaudit.mechanisms import NoisyThreshold
    >>> from dpaudit import PureDP
    >>> mechanism = AnswerLists(NoisyThreshold(PureDP(1.0), 1e-3, 1e-3, cutoff=1))
    >>> [part.name for part in mechanism.sample([-1.0, 1.0, 1.0], 1, np.random.default_rng(0))[0]]
    ['BELOW', 'ABOVE']
    """

    compares: NoisyThreshold

    def __str__(self) -> str:
        scales = f"{self.compares.threshold_scale:g}, {self.compares.query_scale:g}"
        return f"AnswerLists(scales {scales}, cutoff={self.compares.cutoff})"

    @property
    def claim(self) -> Claim:
        return self.compares.claim

    def law(self, dataset: Any) -> AnswerListLaw:
        n_answers = len(candidate_scores(self.compares.queries, dataset))
        return AnswerListLaw(self.compares.law(dataset), n_answers, self.compares.release_value)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> npt.NDArray[np.object_]:
        """Draw `size` independent lists as tuples, shape (size,)."""
        rows = self.compares.sample(dataset, size, rng)
        bits = 1 << np.arange(rows.shape[1])
        is_above = ~np.isnan(rows) if self.compares.release_value else rows == ABOVE
        kinds, kind = np.unique(is_above @ bits, return_inverse=True)
        templates = np.fromiter((self._template((k & bits) > 0) for k in kinds.tolist()), dtype=object)
        if not self.compares.release_value:
            return templates[kind]
        lists = np.empty(size, dtype=object)
        order = np.argsort(kind, kind="stable")
        for members in np.split(order, np.flatnonzero(np.diff(kind[order])) + 1):
            template = templates[kind[members[0]]]
            columns = [
                rows[members, j].tolist() if part is Comparison.ABOVE else repeat(part, len(members))
                for j, part in enumerate(template)
            ]
            lists[members] = np.fromiter(zip(*columns, strict=True), dtype=object, count=len(members))
        return lists

    def _template(self, is_above: npt.NDArray[np.bool_]) -> AnswerList:
        """Return the list of words for one set of answers above."""
        cutoff = self.compares.cutoff
        places = np.flatnonzero(is_above)
        end = len(is_above) if cutoff is None or len(places) < cutoff else int(places[cutoff - 1]) + 1
        return tuple(Comparison.ABOVE if above else Comparison.BELOW for above in is_above[:end].tolist())
