"""Canaries: made-up gradients along known directions, and blocks that put them beside the gradients of real records.

The parameters of a canary run are the model's, followed by `n_unused` parameters that no real record touches, as the
rows of an embedding for words that do not occur. The unused ones form `spread` groups of equal size.

References
----------
Nasr, Hayes, Steinke, Balle, Tramèr, Jagielski, Carlini & Terzis (2023), Tight auditing of differentially private
machine learning (Dirac canaries, random gradients).
Steinke, Nasr & Jagielski (2023), Privacy auditing with one (1) training run (many canaries at once).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import check_number
from ...audit.errors import OptionError
from ..noise_samplers import Floats
from ..parameter_checks import check_count
from .gradient_blocks import GradientBlock

_MOST_CELLS: Final = 2**26  # numbers in a matrix of directions: a quarter of a gigabyte in single precision
Group: TypeAlias = tuple[int, int]
"""First parameter of a group, and the first one after it."""


class Canaries(Protocol):
    """m gradients that do not depend on the weights."""

    @property
    def m(self) -> int: ...

    @property
    def norm(self) -> float:
        """Euclidean norm of every canary's gradient, before clipping."""

    def groups(self, n_model: int) -> tuple[Group, ...]:
        """The groups of unused parameters that follow the model's `n_model` parameters."""

    def block(self, group: Group, n_model: int) -> GradientBlock | None:
        """The canaries' gradients in one group; None if they all vanish there."""

    def projector(self, n_model: int) -> Callable[[Floats], Floats]:
        """Function from a vector, shape (parameters,), to its projection onto each canary's direction, shape (m,)."""


@dataclass(frozen=True, slots=True)
class DiracCanaries:
    """Canary i touches one parameter only, or one in each of `spread` groups; the m × d matrix is never formed.

    Parameters are taken from the end: canary i has the (i + 1)th from the end (of each group). If there are fewer
    unused parameters than canaries, the rest touch those of the model, and the gradients of the real records add to
    their scores.

    Parameters
    ----------
    m : int
        Number of canaries.
    norm : float
        Norm of a canary's gradient before clipping, positive.
    n_unused : int or None
        Number of unused parameters; None for m × spread.
    spread : int
        Number of groups of unused parameters in which each canary has an equal part of its norm.
    """

    m: int
    norm: float = 1.0
    n_unused: int | None = None
    spread: int = 1

    def __post_init__(self) -> None:
        _check(self.m, self.norm)
        check_count("spread", self.spread, "groups")
        if self.n_unused is not None:
            check_count("n_unused", self.n_unused, "parameters", 0)
            if self.spread > 1 and self.n_unused != self.m * self.spread:
                raise OptionError(
                    f"n_unused={self.n_unused} does not give every canary a parameter in each of {self.spread} groups; "
                    f"use {self.m * self.spread}, or None.",
                    n_unused=self.n_unused,
                )

    @property
    def unused(self) -> int:
        """Number of unused parameters."""
        return self.m * self.spread if self.n_unused is None else self.n_unused

    def groups(self, n_model: int) -> tuple[Group, ...]:
        if self.m > self.unused + n_model:
            raise OptionError(
                f"{self.m} canaries need as many parameters, but there are {self.unused + n_model}; use fewer canaries "
                "or more unused parameters.",
                m=self.m,
            )
        size = self.unused // self.spread
        return tuple((n_model + g * size, n_model + (g + 1) * size) for g in range(self.spread) if size > 0)

    def block(self, group: Group, n_model: int) -> GradientBlock | None:
        low, high = group
        end = high if self.spread > 1 else n_model + self.unused  # canary i has parameter end − 1 − i
        first, stop = max(end - high, 0), min(end - low, self.m)
        if first >= stop:
            return None
        return _DiracBlock(high - low, self.m, first, high - end + first, stop - first, self._part)

    def projector(self, n_model: int) -> Callable[[Floats], Floats]:
        if self.spread == 1:
            return lambda vector: vector[::-1][: self.m]
        root = math.sqrt(self.spread)
        return lambda vector: vector[n_model:].reshape(self.spread, -1)[:, ::-1].sum(axis=0) / root

    @property
    def _part(self) -> float:
        """A canary's gradient in each of its parameters."""
        return self.norm / math.sqrt(self.spread)


@dataclass(frozen=True, slots=True)
class _DiracBlock:
    """Canaries `first` … `first + count − 1`, one each on the last parameters of a group before the `skipped` ones."""

    size: int
    m: int
    first: int
    skipped: int
    count: int
    part: float

    def squared_norms(self) -> Floats:
        norms = np.zeros((1, self.m))
        norms[0, self.first : self.first + self.count] = self.part**2
        return norms

    def weighted_sum(self, weights: Floats) -> Floats:
        total = np.zeros((len(weights), self.size))
        stop = self.size - self.skipped
        mine = weights[:, self.first : self.first + self.count]
        total[:, stop - self.count : stop] = self.part * mine[:, ::-1]
        return total


@dataclass(frozen=True, slots=True)
class SphereCanaries:
    """Canaries in independent uniformly random directions over the model's and `n_unused` further parameters.

    Their scores interfere, with a variance of about m/d of the squared norm. The directions are a matrix in single
    precision, m × d, of at most 2²⁶ numbers; for more canaries use `DiracCanaries`.

    Parameters
    ----------
    m : int
        Number of canaries.
    norm : float
        Norm of a canary's gradient before clipping, positive.
    n_unused : int
        Number of unused parameters.
    seed : int
        Fixes the directions.
    """

    m: int
    norm: float = 1.0
    n_unused: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        _check(self.m, self.norm)
        check_count("n_unused", self.n_unused, "parameters", 0)

    def groups(self, n_model: int) -> tuple[Group, ...]:
        return ((n_model, n_model + self.n_unused),) if self.n_unused else ()

    def block(self, group: Group, n_model: int) -> GradientBlock:
        return _DenseBlock(self.norm * self.directions(n_model)[:, group[0] : group[1]])

    def projector(self, n_model: int) -> Callable[[Floats], Floats]:
        directions = self.directions(n_model)
        return lambda vector: (directions @ vector.astype(np.float32)).astype(np.float64)

    def directions(self, n_model: int) -> npt.NDArray[np.float32]:
        """The unit vectors, shape (m, parameters)."""
        shape = (self.m, n_model + self.n_unused)
        if math.prod(shape) > _MOST_CELLS:
            raise OptionError(
                f"{self.m} directions of {shape[1]} parameters do not fit into memory; use DiracCanaries, or fewer.",
                m=self.m,
            )
        found = np.random.default_rng(self.seed).standard_normal(shape, dtype=np.float32)
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        return found


@dataclass(frozen=True, slots=True)
class _DenseBlock:
    gradients: npt.NDArray[np.float32]

    @property
    def size(self) -> int:
        return int(self.gradients.shape[1])

    def squared_norms(self) -> Floats:
        norms = np.einsum("mi,mi->m", self.gradients, self.gradients, dtype=np.float64)
        return np.asarray(norms)[None, :]

    def weighted_sum(self, weights: Floats) -> Floats:
        return np.asarray(weights.astype(np.float32) @ self.gradients, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class JointBlock:
    """A group's gradients of n real records, followed by those of m canaries; None where all vanish."""

    size: int
    n: int
    m: int
    records: GradientBlock | None
    canaries: GradientBlock | None

    def squared_norms(self) -> Floats:
        norms = np.zeros((1, self.n + self.m))
        if self.records is not None:
            norms[:, : self.n] = self.records.squared_norms()
        if self.canaries is not None:
            norms[:, self.n :] = self.canaries.squared_norms()
        return norms

    def weighted_sum(self, weights: Floats) -> Floats:
        total = np.zeros((len(weights), self.size))
        if self.records is not None:
            total += self.records.weighted_sum(weights[:, : self.n])
        if self.canaries is not None:
            total += self.canaries.weighted_sum(weights[:, self.n :])
        return total


def joint_blocks(
    records: tuple[GradientBlock, ...], n: int, canaries: tuple[tuple[Group, GradientBlock | None], ...], m: int
) -> tuple[JointBlock, ...]:
    """The blocks of all groups: the model's in their order, with the canaries' parts of them, then the unused ones."""
    padded: list[Any] = [*records, *[None] * (len(canaries) - len(records))]
    return tuple(
        JointBlock(group[1] - group[0], n, m, mine, theirs)
        for mine, (group, theirs) in zip(padded, canaries, strict=True)
    )


def _check(m: int, norm: float) -> None:
    check_count("m", m, "canaries")
    check_number("norm", norm, 0, math.inf, "of a canary's gradient", closed=False)
