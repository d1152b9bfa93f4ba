"""Every faulty twin breaks its claim on a stated pair and keeps its true guarantee, by exact laws."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from dpaudit.audit.claims.claim import ApproxDP, PureDP
from dpaudit.audit.errors import ClaimError
from dpaudit.mechanisms import exact_delta, exact_epsilon
from dpaudit.mechanisms import faulty as f

ONE_UP = [1.0] + [-1.0] * 49
# twin, x, y, exact epsilon there, whether the pair attains the truth
PURE = [
    (f.UnderstatedSensitivityLaplace(0.5), 0.0, 2.0, 1.0, True),
    (f.UnderstatedSensitivityLaplace(0.5, bound=10.0), 0.0, 10.0, 5.0, True),
    (f.InvertedScaleLaplace(0.5), 0, 1, 2.0, True),
    (f.PerRowGeometric(0.5, rows_per_user=3), 4, 7, 1.5, True),
    (f.SquaredRatioGeometric(0.5), 4, 5, 1.0, True),
    (f.TruthAmongTheLies(1.0), 0, 1, math.log(1 + 2 * math.e), True),
    (f.TruthAmongTheLies(1.0, k=4), 3, 1, math.log(1 + 4 * math.e / 3), True),
    (f.BinaryOddsForManyValues(1.0, k=5), 0, 4, 1 + math.log(4), True),
    (f.LocalSensitivityLaplace(0.5, most_rows=3), [0, 0], [0, 0, 0], 2.5, True),
    (f.SparseVectorUnscaledNoise(1.0), [0.0, 0.0], [1.0, -1.0], 1.1648439, False),
    (f.ExponentialMissingFactorTwo(1.0), [0.0] * 50, ONE_UP, 1.8797479, False),
    (f.ExponentialMissingFactorTwo(1.0), [0.0, -3.0], [-1.0, -2.0], 1.7353257, False),
    (f.ExponentialMissingFactorTwo(1.0), [0.0, -3.0], [1.0, -4.0], 1.9581280, False),
]


@pytest.mark.parametrize(("twin", "x", "y", "epsilon", "is_tight"), PURE)
def test_pure_claims_are_broken_and_truths_hold(twin, x, y, epsilon, is_tight):
    found = exact_epsilon(twin.law(x), twin.law(y))
    assert found == pytest.approx(epsilon, abs=1e-7)
    assert found > twin.claim.epsilon
    assert found <= twin.truth.epsilon + 1e-12
    assert not is_tight or found == pytest.approx(twin.truth.epsilon, rel=1e-12)


@pytest.mark.parametrize("noise", ["laplace", "exponential", "gumbel"])
def test_noisy_max_missing_the_two(noise):
    twin = f.NoisyMaxMissingFactorTwo(1.0, noise=noise)
    near = exact_epsilon(twin.law([0.0, 3.0]), twin.law([1.0, 2.0]))
    far = exact_epsilon(twin.law([0.0, 40.0]), twin.law([1.0, 39.0]))
    assert 1.4 < near <= far <= 2.0 + 1e-12
    assert far > 1.94
    assert twin.claim == PureDP(1.0)
    assert twin.truth == PureDP(2.0)


def test_parameters_at_which_bugs_do_no_harm():
    """A test at these parameters or pairs passes in spite of the bug."""
    assert f.InvertedScaleLaplace(1.0).truth == PureDP(1.0)
    assert f.InvertedScaleLaplace(4.0).truth.epsilon < f.InvertedScaleLaplace(4.0).claim.epsilon
    assert f.VarianceAsScaleGaussian(0.5, 1e-5).truth.delta < 1e-5
    assert f.ClassicalBeyondOneGaussian(1.1, 1e-5).truth.delta < 1e-5
    assert f.BinaryOddsForManyValues(1.0, k=2).truth == PureDP(1.0)
    moved = [1.0] + [0.0] * 49
    twin = f.ExponentialMissingFactorTwo(1.0)
    assert exact_epsilon(twin.law([0.0] * 50), twin.law(moved)) < 1.0


@pytest.mark.parametrize(
    ("twin", "delta"),
    [  # from Balle & Wang's formula in mpmath, 50 digits
        (f.ClassicalBeyondOneGaussian(10.0, 0.1), 0.405601575864),
        (f.VarianceAsScaleGaussian(8.0, 1e-5), 0.0384082852106),
        (f.VarianceAsScaleGaussian(1.0, 1e-5, sensitivity=0.1), 0.0422645050787),
    ],
)
def test_approximate_claims_are_broken_by_the_true_delta(twin, delta):
    x, y = 0.0, twin.sensitivity
    assert exact_delta(twin.law(x), twin.law(y), twin.epsilon) == pytest.approx(twin.truth.delta, rel=1e-9)
    assert twin.truth.delta == pytest.approx(delta, rel=1e-9)
    assert twin.truth.delta > twin.claim.delta
    assert exact_epsilon(twin.law(x), twin.law(y), twin.delta) > twin.epsilon
    assert twin.claim == ApproxDP(twin.epsilon, twin.delta)


@pytest.mark.parametrize("n_candidates", [1, 3, 10])
def test_the_released_maximum_loses_epsilon_for_every_candidate(n_candidates):
    twin = f.NoisyMaxReleasingValue(0.5, n_candidates)
    law_x, law_y = twin.law([0.0] * n_candidates), twin.law([1.0] * n_candidates)
    assert twin.truth == PureDP(0.5 * n_candidates)
    # The event "below both" attains the truth …
    assert math.log(law_x.cdf(0.0) / law_y.cdf(0.0)) == pytest.approx(twin.truth.epsilon, rel=1e-12)
    # … and no density ratio exceeds it.
    z = np.linspace(-60, 60, 4801)
    assert np.abs(law_x.log_density(z) - law_y.log_density(z)).max() == pytest.approx(twin.truth.epsilon, rel=1e-9)


@dataclass(frozen=True, slots=True)
class ShownRow(f.Flaw):
    """The row itself, always: no δ below 1."""

    delta: float
    epsilon: float = 0.0

    @property
    def claim(self):
        return ApproxDP(self.epsilon, self.delta)

    def sample(self, dataset, size, rng):
        return np.full(size, dataset)


@dataclass(frozen=True, slots=True)
class NoClaim(f.Flaw):
    """The row itself, of a mechanism whose claim was forgotten."""

    delta: float

    def sample(self, dataset, size, rng):
        return np.full(size, dataset)


def test_a_flaw_without_epsilon_must_state_its_claim():
    with pytest.raises(ClaimError, match=r"NoClaim has no epsilon, .*; override claim"):
        NoClaim(0.1)


def test_a_flaw_may_claim_epsilon_0_with_a_delta():
    assert ShownRow(0.1).claim == ApproxDP(0.0, 0.1)
    assert f.TwiceExposed(0.1).claim == ApproxDP(0.0, 0.1)
    assert f.TwiceExposed(0.1).epsilon == 0.0
    with pytest.raises(ClaimError, match="epsilon=-1 is not allowed"):
        ShownRow(0.1, -1)
