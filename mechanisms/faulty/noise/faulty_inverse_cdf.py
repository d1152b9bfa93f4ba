"""Laplace noise from misprinted or careless inverse CDFs."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ....audit.claims.claim import Claim, PureDP
from ...laws.divergences import Floats, ScalarLaw
from ...laws.laws import LaplaceLaw
from ...noise.inverse_cdf import open_uniform
from ...noise.laplace import LaplaceMechanism
from ...noise_samplers import pieces, round_to_grid
from ...queries import Query, identity, real_answer
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class RisingLawWithAtom(ScalarLaw):
    """Density e^{(z − location)/scale}/(2 scale) between two ends, and the remaining probability at an atom.

    The ends are `low` and `high` scales from the location, −inf ≤ low < high ≤ ln 2. The atom is a number, an infinity
    or NaN. NaN is an outcome too, but neither below nor above any number. At the atom the density is infinite.
    """

    location: float
    scale: float
    low: float
    high: float
    atom: float

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        z = self._standard(outputs)
        rest = np.where((self.low < z) & (z < self.high), z - math.log(2 * self.scale), -np.inf)
        return np.where(self._is_atom(outputs), np.inf, rest)

    def cdf(self, outputs: npt.ArrayLike) -> Floats:
        outputs = np.asarray(outputs, dtype=np.float64)
        return self._mass(self.low, self._standard(outputs)) + (self.atom <= outputs) * self.atom_probability

    def sf(self, outputs: npt.ArrayLike) -> Floats:
        outputs = np.asarray(outputs, dtype=np.float64)
        return self._mass(self._standard(outputs), self.high) + (self.atom > outputs) * self.atom_probability

    @property
    def atom_probability(self) -> float:
        return 1.0 - float(self._mass(self.low, self.high))

    def _standard(self, outputs: npt.ArrayLike) -> Floats:
        return (np.asarray(outputs, dtype=np.float64) - self.location) / self.scale

    def _is_atom(self, outputs: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        outputs = np.asarray(outputs, dtype=np.float64)
        return np.isnan(outputs) if math.isnan(self.atom) else np.asarray(outputs == self.atom)

    def _mass(self, start: npt.ArrayLike, stop: npt.ArrayLike) -> Floats:
        """Probability between two points, in scales from the location, without the atom."""
        start, stop = np.clip(start, self.low, self.high), np.clip(stop, self.low, self.high)
        with np.errstate(invalid="ignore"):  # −inf − −inf, where start = stop
            return np.where(start < stop, -np.exp(stop) * np.expm1(start - stop) / 2, 0.0)

    def is_comparable(self, other: Self) -> bool:
        return (self.scale, self.low, self.high) == (other.scale, other.low, other.high)

    def delta_from(self, other: Self, epsilon: float) -> float:
        only_here, shared, loss = self._compared(other)
        return only_here + shared * max(0.0, -math.expm1(epsilon - loss))

    def epsilon_from(self, other: Self, delta: float) -> float:
        only_here, shared, loss = self._compared(other)
        if only_here > delta:
            return math.inf
        return 0.0 if shared <= delta - only_here else max(0.0, loss + math.log1p((only_here - delta) / shared))

    def _compared(self, other: Self) -> tuple[float, float, float]:
        """Probability here of outputs impossible there, probability of the shared interval, and its constant loss."""
        loss = (other.location - self.location) / self.scale
        only_here = self._mass(self.low, self.low + loss) + self._mass(self.high + loss, self.high)
        if not other._is_atom(self.atom):
            only_here += self.atom_probability
        return float(only_here), float(self._mass(self.low + loss, self.high + loss)), loss


@dataclass(frozen=True, slots=True)
class LaplaceByFormula:
    """An answer plus noise from a given formula, rounded to the Laplace mechanism's grid.

    `noise` takes the number of draws, the generator, the answer and the scale. `law_of` takes the answer and the scale
    and returns the law before the rounding.
    """

    noise: Callable[[int, np.random.Generator, float, float], Floats]
    law_of: Callable[[float, float], ScalarLaw]
    scale: float
    claim: Claim
    query: Query

    def law(self, dataset: Any) -> ScalarLaw:
        return self.law_of(real_answer(self.query, dataset), self.scale)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        answer, outputs = real_answer(self.query, dataset), np.empty(size)
        for piece in pieces(size):
            part = outputs[piece]
            part[:] = self.noise(len(part), rng, answer, self.scale)
            round_to_grid(part, self.scale, answer)
        return outputs


@dataclass(frozen=True, slots=True)
class _LaplaceByWrongInverse(Twin):
    epsilon: float
    sensitivity: float = 1.0
    query: Query = identity

    def __post_init__(self) -> None:
        LaplaceMechanism(self.epsilon, self.sensitivity)  # the right mechanism refuses the same parameters

    @property
    def runs_as(self) -> LaplaceByFormula:
        return LaplaceByFormula(self._noise, self._law_of, self.sensitivity / self.epsilon, self.claim, self.query)

    @staticmethod
    @abstractmethod
    def _noise(size: int, rng: np.random.Generator, answer: float, scale: float) -> Floats:
        """Noise that is added to the answer."""

    @staticmethod
    @abstractmethod
    def _law_of(answer: float, scale: float) -> ScalarLaw:
        """Law of the output before rounding."""

    @property
    def truth(self) -> PureDP | None:
        return None


@dataclass(frozen=True, slots=True)
class AnswerInTheBranchLaplace(_LaplaceByWrongInverse):
    """Inverse CDF of Laplace noise with the answer μ instead of the uniform ξ in one branch: no finite ε.

    The noise is b ln(2ξ) for ξ < ½, but −b ln(2(1 − μ)) otherwise. Half of all outputs are one number that the answer
    decides: infinity for μ = 1, and NaN, the logarithm of a negative number, for every μ above. For these μ the other
    outputs, none of which is above the answer, still tell neighbours apart with certainty.

    In practice, a misprinted formula is copied; the two letters look alike.
    """

    @staticmethod
    def _noise(size: int, rng: np.random.Generator, answer: float, scale: float) -> Floats:
        xi = open_uniform(size, rng)
        return np.where(xi < 0, scale * np.log1p(2 * np.minimum(xi, 0.0)), _misprinted_branch(answer, scale))

    @staticmethod
    def _law_of(answer: float, scale: float) -> RisingLawWithAtom:
        return RisingLawWithAtom(answer, scale, -math.inf, 0.0, atom=answer + _misprinted_branch(answer, scale))


def _misprinted_branch(answer: float, scale: float) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        return -scale * float(np.log(2.0 * (1.0 - answer)))


@dataclass(frozen=True, slots=True)
class MixedUniformsLaplace(_LaplaceByWrongInverse):
    """Inverse CDF of Laplace noise with ξ on (0, 1) instead of ξ' = ξ − ½ in the logarithm: no finite ε.

    The output is μ − b·sgn(ξ')·ln(1 − 2 sgn(ξ') ξ). Half of all outputs are NaN. The others lie between μ and
    μ + b ln 2, with a density that rises to that end, and neighbours are told apart by outputs that one of them cannot
    give.

    In practice, a variable keeps its name while its range is shifted.
    """

    @staticmethod
    def _noise(size: int, rng: np.random.Generator, answer: float, scale: float) -> Floats:
        xi = open_uniform(size, rng)
        sign = np.sign(xi)
        with np.errstate(invalid="ignore"):
            return -scale * sign * np.log(1.0 - 2.0 * sign * (xi + 0.5))

    @staticmethod
    def _law_of(answer: float, scale: float) -> RisingLawWithAtom:
        return RisingLawWithAtom(answer, scale, 0.0, math.log(2.0), atom=math.nan)


@dataclass(frozen=True, slots=True)
class ClosedEndLaplace(_LaplaceByWrongInverse):
    """The right inverse CDF of `Generator.random() − ½`, which can be −½: minus infinity once in 2⁵³ draws.

    In practice, it is not checked which ends a generator leaves out. The claim still holds, as the infinity does not
    depend on the answer: it is not a leak but a trap for means, sums and ranges of the outputs. No test that draws will
    find it.
    """

    @staticmethod
    def _noise(size: int, rng: np.random.Generator, answer: float, scale: float) -> Floats:
        xi = rng.random(size) - 0.5
        with np.errstate(divide="ignore"):
            noise: Floats = np.sign(xi) * np.log1p(-2 * np.abs(xi))
        return -scale * noise

    @staticmethod
    def _law_of(answer: float, scale: float) -> LaplaceLaw:
        return LaplaceLaw(answer, scale)

    @property
    def truth(self) -> PureDP:
        return PureDP(self.epsilon)
