"""Parallel composition: disjoint parts of the rows, with one mechanism per part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...audit.errors import ClaimError, DatasetError
from ..laws.product import ProductLaw
from .sequential_composition import Budget, budget, budget_of, check_parts, columns, describe, side_by_side

if TYPE_CHECKING:
    from ..laws.reference_mechanism import ReferenceMechanism


@dataclass(frozen=True, slots=True)
class IntervalOf:
    """Index of the interval (−∞, e₀), [e₀, e₁), …, [e_last, ∞) that contains a number. The intervals are a partition.

    Parameters
    ----------
    edges : sequence of float
        In ascending order.

    Examples
    --------
    >>> [IntervalOf((18, 65))(age) for age in (17, 18, 64, 65)]
    [0, 1, 1, 2]
    """

    edges: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", check_edges(self.edges))

    def __call__(self, row: float) -> int:
        return int(np.searchsorted(self.edges, row, side="right"))


def check_edges(edges: Sequence[float]) -> tuple[float, ...]:
    """Return the edges as floats; raise a `ClaimError` unless they are in ascending order."""
    found = tuple(float(edge) for edge in edges)
    if not np.all(np.diff(found) > 0) or np.isnan(found).any():
        raise ClaimError(f"edges={edges!r:.60} do not define intervals; use numbers in ascending order.", edges=edges)
    return found


@dataclass(frozen=True, slots=True)
class ParallelComposition:
    """Mechanism i on the rows of part i: under add/remove, the largest epsilon and delta of the mechanisms.

    Each row is in one part, so adding or removing it changes the input of one mechanism and costs that mechanism's
    epsilon. The claim does not cover a replaced row, which may leave one part and enter another: the two epsilons add
    up.

    Parameters
    ----------
    mechanisms : sequence of mechanisms
        One per part, each with a claim of epsilon and delta for add/remove. Each receives a list of rows.
    part : callable
        Maps a row to its part in range(len(mechanisms)), independently of the other rows.

    References
    ----------
    McSherry (2009), Privacy integrated queries, Theorem 4 (parallel composition).

    Examples
    --------
    >>> from dpaudit.mechanisms import GeometricMechanism
    >>> counts = [GeometricMechanism(epsilon, query=len) for epsilon in (0.1, 0.5, 0.2)]
    >>> by_age = ParallelComposition(counts, part=IntervalOf((18, 65)))
    >>> print(by_age, by_age.claim)
    Parallel(3 parts, epsilon=0.5) 0.5-DP
    """

    mechanisms: Sequence[ReferenceMechanism]
    part: Callable[[Any], int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "mechanisms", check_parts(self.mechanisms))
        self.claim  # noqa: B018  # checks that every part claims epsilon and delta

    def __str__(self) -> str:
        return f"Parallel({len(self.mechanisms)} parts, {describe(self.claim)})"

    @property
    def epsilon(self) -> float:
        """Epsilon of the claim, in nats."""
        return self.claim.epsilon

    @property
    def claim(self) -> Budget:
        """The largest epsilon and the largest delta of the parts."""
        epsilons, deltas = zip(*(budget_of(mechanism.claim) for mechanism in self.mechanisms), strict=True)
        return budget(max(epsilons), max(deltas))

    def law(self, dataset: Any) -> ProductLaw:
        """The law of a row of outputs, exact if the laws of the parts are."""
        return side_by_side(mechanism.law(rows) for mechanism, rows in self._divided(dataset))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """`size` independent rows, shape (size, n_coords), with the parts' outputs side by side."""
        drawn = [columns(mechanism.sample(rows, size, rng)) for mechanism, rows in self._divided(dataset)]
        return np.concatenate(drawn, axis=1)

    def _divided(self, dataset: Any) -> list[tuple[ReferenceMechanism, list[Any]]]:
        """Return each mechanism with its rows."""
        parts: list[list[Any]] = [[] for _ in self.mechanisms]
        for row in dataset:
            place = self.part(row)
            if not 0 <= place < len(parts):
                raise DatasetError(
                    f"part({row!r:.40})={place!r} is not one of the {len(parts)} parts; return a part in "
                    f"range({len(parts)}).",
                    part=place,
                )
            parts[place].append(row)
        return list(zip(self.mechanisms, parts, strict=True))
