"""Wrong calibrations of Gaussian noise, wrong inversions of a CDF, and counts forced into a range."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import ApproxDP, Claim, PureDP
from ...audit.errors import DatasetError
from ..distributions.distributions import DiscreteDistribution, GaussianDistribution, LaplaceDistribution
from ..distributions.divergences import NamedByParameters, ScalarDistribution
from ..noise.gaussian import analytic_gaussian_scale, gaussian_delta
from ..noise.laplace import GeometricMechanism, open_uniform
from ..noise_samplers import Floats, draw_indices, gaussian_on_grid, round_to_grid
from ..queries import Query, identity, real_answer
from .flaw import PureFlaw, Variant

__all__ = [
    "AnswerInTheBranchLaplace", "MixedUniformsLaplace", "ClosedEndLaplace", "VarianceAsScaleGaussian",
    "ClassicalBeyondOneGaussian", "OneForEpsilonGaussian", "MisprintedNewtonGaussian", "RangedCount",
]  # fmt: skip

# Gaussian noise of the wrong standard deviation.


@dataclass(frozen=True, slots=True)
class GaussianOfScale:
    """A real answer plus Gaussian noise of a given standard deviation."""

    scale: float
    claim: Claim
    query: Query = identity

    def distribution(self, dataset: Any) -> GaussianDistribution:
        return GaussianDistribution(real_answer(self.query, dataset), self.scale)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        return gaussian_on_grid(real_answer(self.query, dataset), self.scale, size, rng)


@dataclass(frozen=True, slots=True)
class _MiscalibratedGaussian(Variant):
    delta: float
    sensitivity: float = 1.0
    query: Query = identity
    runs_as = property(lambda t: GaussianOfScale(t.scale, t.claim, t.query))
    claim = property(lambda t: ApproxDP(t.epsilon, t.delta))
    right_scale = property(
        lambda t: analytic_gaussian_scale(t.epsilon, t.delta, t.sensitivity), doc="Standard deviation that is enough."
    )

    @property
    @abstractmethod
    def scale(self) -> float:
        """Standard deviation of the noise that is added instead of `right_scale`."""

    @property
    def truth(self) -> ApproxDP | None:
        """The claimed ε with its true δ; None if the true δ rounds to 1."""
        delta = gaussian_delta(self.epsilon, self.scale, self.sensitivity)
        return ApproxDP(self.epsilon, delta) if delta < 1 else None


@dataclass(frozen=True, slots=True)
class VarianceAsScaleGaussian(_MiscalibratedGaussian):
    """Gaussian noise whose generator is given the variance σ² instead of σ.

    In practice, a formula for the variance meets a library that expects the standard deviation. There is too little
    noise when σ < 1 (a large ε or a small sensitivity) and too much when σ > 1, so a test at small ε never sees it.
    """

    scale = property(lambda t: t.right_scale**2)


@dataclass(frozen=True, slots=True)
class ClassicalBeyondOneGaussian(_MiscalibratedGaussian):
    """Gaussian noise from the classical formula at an ε above 1, where its theorem does not hold.

    In practice, the formula is copied without its condition (Balle & Wang 2018). Far above 1 the noise is too small: at
    ε = 10 and δ = 0.1 the true δ is 0.406. An ε slightly above 1 does no harm, as the formula has slack there.
    """

    scale = property(lambda t: t.sensitivity * math.sqrt(2 * math.log(1.25 / t.delta)) / t.epsilon)


@dataclass(frozen=True, slots=True)
class OneForEpsilonGaussian(_MiscalibratedGaussian):
    """Gaussian noise whose calibration solves for χ with √(χ² + 1) instead of √(χ² + ε).

    In practice, a formula is programmed for ε = 1, and the parameter is changed later. At δ = 1e-5 the noise is too
    large below ε = 1, by a factor of 1.4 at ε = .1, and a quarter too small at ε = 1.1 (true δ 3.9e-4). At a somewhat
    larger ε the solver gives up where the equation is flat, its failure is not checked, and the noise is about twice
    what is needed.
    """

    scale = property(lambda t: scale_from_chi(solve_with_one(t.epsilon, t.delta), t.epsilon, t.sensitivity))


@dataclass(frozen=True, slots=True)
class MisprintedNewtonGaussian(_MiscalibratedGaussian):
    """Gaussian noise whose calibration, Newton's iteration with a misprinted derivative, stops near its start.

    In practice, an exponent loses its sign in print, and a loose tolerance hides that nothing converges: −e^{−χ²} is
    copied as −e^{2χ²}, and √(χ² + ε) as √(χ² + 1). From χ = 2 the steps become so short that the iteration ends only
    because its tolerance is 1e-3 in the equation for δ, or because its steps are used up. If χ is then too low the
    noise is too small: at ε = 1 and δ = 1e-5 the true δ is 2.1e-4.
    """

    @property
    def scale(self) -> float:
        chi = misprinted_newton(self.epsilon, self.delta, tolerance=1e-3, most_steps=1000)
        return scale_from_chi(chi, self.epsilon, self.sensitivity)


def scale_from_chi(chi: float, epsilon: float, sensitivity: float) -> float:
    """Standard deviation S/(√2 (√(χ² + ε) − χ)), in the form in which Bao et al. (2021) state the calibration."""
    return sensitivity * (math.sqrt(chi * chi + epsilon) + chi) / (math.sqrt(2) * epsilon)


def solve_with_one(epsilon: float, delta: float) -> float:
    """χ at which the solver stops for e^ε F(√(χ² + 1)) − F(χ) = C from χ = 2, F the integral of e^{−t²} from 0."""

    from scipy.optimize import root

    def gap(chi: Floats) -> float:
        return _gap(float(chi[0]), 1.0, epsilon, delta)

    return float(root(gap, [2.0], method="hybr").x[0])  # as `fsolve` does; .success is not checked


def misprinted_newton(epsilon: float, delta: float, *, tolerance: float, most_steps: int) -> float:
    """χ at which Newton's iteration stops from 2 with the derivative e^ε e^{−χ²−1} χ/√(χ² + 1) − e^{2χ²}."""
    chi = 2.0
    for _ in range(most_steps):
        slope = math.exp(epsilon - chi * chi - 1) * chi / math.sqrt(chi * chi + 1) - math.exp(2 * chi * chi)
        chi -= _gap(chi, epsilon, epsilon, delta) / slope
        if abs(_gap(chi, epsilon, epsilon, delta)) < tolerance:
            break
    return chi


def _gap(chi: float, under_root: float, epsilon: float, delta: float) -> float:
    """e^ε F(√(χ² + under_root)) − F(χ) − C, with C = √π/2 (2δ − 1 + e^ε); zero at the solution."""
    first, second = math.erf(math.sqrt(chi * chi + under_root)), math.erf(chi)
    return math.sqrt(math.pi) / 2 * (math.exp(epsilon) * (first - 1) - second + 1 - 2 * delta)


# Laplace noise from misprinted or careless inverse CDFs.


@dataclass(frozen=True, slots=True)
class RisingDistributionWithAtom(ScalarDistribution):
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
        is_atom = np.isnan(outputs) if math.isnan(self.atom) else np.asarray(outputs) == self.atom
        return np.where(is_atom, np.inf, rest)

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

    def _mass(self, start: npt.ArrayLike, stop: npt.ArrayLike) -> Floats:
        """Probability between two points, in scales from the location, without the atom."""
        start, stop = np.clip(start, self.low, self.high), np.clip(stop, self.low, self.high)
        with np.errstate(invalid="ignore"):  # −inf − −inf, where start = stop
            return np.where(start < stop, -np.exp(stop) * np.expm1(start - stop) / 2, 0.0)


@dataclass(frozen=True, slots=True)
class _LaplaceByWrongInverse(NamedByParameters, PureFlaw):
    """An answer plus noise from a formula, rounded to the Laplace mechanism's grid."""

    sensitivity: float = 1.0
    query: Query = identity
    scale = property(lambda t: t.sensitivity / t.epsilon, doc="The scale of the right noise.")

    def distribution(self, dataset: Any) -> ScalarDistribution:
        """Distribution of the output before rounding."""
        return self._distribution_of(real_answer(self.query, dataset), self.scale)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        answer = real_answer(self.query, dataset)
        return round_to_grid(self._noise(size, rng, answer, self.scale), self.scale, answer)

    @staticmethod
    @abstractmethod
    def _noise(size: int, rng: np.random.Generator, answer: float, scale: float) -> Floats:
        """Noise that is added to the answer."""

    @staticmethod
    @abstractmethod
    def _distribution_of(answer: float, scale: float) -> ScalarDistribution:
        """Distribution of the output before rounding."""


@dataclass(frozen=True, slots=True)
class AnswerInTheBranchLaplace(_LaplaceByWrongInverse):
    """Inverse CDF of Laplace noise with the answer μ instead of the uniform ξ in one branch: no finite ε.

    The noise is b ln(2ξ) for ξ < ½, but −b ln(2(1 − μ)) otherwise. Half of all outputs are one number that the answer
    decides: infinity for μ = 1, and NaN, the logarithm of a negative number, for every μ above. For these μ the other
    outputs, none of which is above the answer, still distinguish neighbours with certainty.

    In practice, a misprinted formula is copied; the two letters look alike.
    """

    @staticmethod
    def _noise(size: int, rng: np.random.Generator, answer: float, scale: float) -> Floats:
        xi = open_uniform(size, rng)
        return np.where(xi < 0, scale * np.log1p(2 * np.minimum(xi, 0.0)), _misprinted_branch(answer, scale))

    @staticmethod
    def _distribution_of(answer: float, scale: float) -> RisingDistributionWithAtom:
        return RisingDistributionWithAtom(
            answer, scale, -math.inf, 0.0, atom=answer + _misprinted_branch(answer, scale)
        )


def _misprinted_branch(answer: float, scale: float) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        return -scale * float(np.log(2.0 * (1.0 - answer)))


@dataclass(frozen=True, slots=True)
class MixedUniformsLaplace(_LaplaceByWrongInverse):
    """Inverse CDF of Laplace noise with ξ on (0, 1) instead of ξ' = ξ − ½ in the logarithm: no finite ε.

    The output is μ − b·sgn(ξ')·ln(1 − 2 sgn(ξ') ξ). Half of all outputs are NaN. The others lie between μ and
    μ + b ln 2, with a density that rises to that end, and some outputs are possible for only one of two
    neighbours.

    In practice, a variable keeps its name while its range is shifted.
    """

    @staticmethod
    def _noise(size: int, rng: np.random.Generator, answer: float, scale: float) -> Floats:
        xi = open_uniform(size, rng)
        sign = np.sign(xi)
        with np.errstate(invalid="ignore"):
            return -scale * sign * np.log(1.0 - 2.0 * sign * (xi + 0.5))

    @staticmethod
    def _distribution_of(answer: float, scale: float) -> RisingDistributionWithAtom:
        return RisingDistributionWithAtom(answer, scale, 0.0, math.log(2.0), atom=math.nan)


@dataclass(frozen=True, slots=True)
class ClosedEndLaplace(_LaplaceByWrongInverse):
    """The right inverse CDF of `Generator.random() − ½`, which can be −½: minus infinity once in 2⁵³ draws.

    In practice, it is not checked which ends a generator leaves out. The claim still holds, as the infinity does not
    depend on the answer: it is not a leak but a trap for means, sums and ranges of the outputs. No test that draws will
    find it.
    """

    truth = property(lambda t: PureDP(t.epsilon))

    @staticmethod
    def _noise(size: int, rng: np.random.Generator, answer: float, scale: float) -> Floats:
        xi = rng.random(size) - 0.5
        with np.errstate(divide="ignore"):
            noise: Floats = np.sign(xi) * np.log1p(-2 * np.abs(xi))
        return -scale * noise

    @staticmethod
    def _distribution_of(answer: float, scale: float) -> LaplaceDistribution:
        return LaplaceDistribution(answer, scale)


# Counts forced into a range, by redrawing or by a range that depends on the data.


@dataclass(frozen=True, slots=True)
class RangedCount:
    """Number of rows equal to 1, among rows of 0 and 1, with geometric noise and forced into 0 … `most`.

    `most` is by default the number of rows. Noise that leads out of the range is drawn again, or the output is clamped.
    """

    epsilon: float
    most: int | None
    is_redrawn: bool

    claim = property(lambda t: PureDP(t.epsilon), doc="ε-DP, as for a count without a range.")

    def distribution(self, dataset: Any) -> DiscreteDistribution:
        """Exact distribution of the output."""
        rows = np.asarray(dataset, dtype=np.float64)
        if not np.isin(rows, (0.0, 1.0)).all():
            raise DatasetError("a row is neither 0 nor 1; use rows of 0 and 1.", rows=len(rows))
        most, count = len(rows) if self.most is None else self.most, int(rows.sum())
        if count > most:
            raise DatasetError(f"{count} rows are 1, more than most={most}; use fewer.", count=count, most=most)
        noise = GeometricMechanism(self.epsilon).distribution(count)
        values = np.arange(most + 1)
        log_mass = noise.log_density(values)
        if self.is_redrawn:
            log_mass = log_mass - np.logaddexp.reduce(log_mass)
        elif most > 0:
            log_mass[0], log_mass[-1] = math.log(noise.cdf(0)), math.log(noise.sf(most - 1))
        else:
            log_mass[:] = 0.0
        return DiscreteDistribution(tuple(values.astype(float).tolist()), tuple(log_mass.tolist()))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs."""
        distribution = self.distribution(dataset)
        drawn: Floats = np.asarray(distribution.values)[draw_indices(distribution.probabilities, size, rng)]
        return drawn
