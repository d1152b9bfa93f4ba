"""The exponential mechanism."""

import math

import mpmath
import numpy as np
import pytest

from dpaudit.audit.claims.claim import PureDP
from dpaudit.audit.errors import DatasetError
from dpaudit.mechanisms import EachCandidate, ExponentialMechanism, exact_epsilon

RIGHT = ExponentialMechanism(1.0)
ONE_UP = [1.0] + [-1.0] * 49


def test_law_by_the_formula():
    utilities = np.array([0.0, 2.0, -1.0, 5.0])
    for monotone, rate in ((False, 0.3 / (2 * 1.5)), (True, 0.3 / 1.5)):
        weights = np.exp(rate * utilities)
        found = ExponentialMechanism(0.3, 1.5, monotone=monotone).law(utilities).probabilities
        np.testing.assert_allclose(found, weights / weights.sum(), rtol=1e-13)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6, 1e12, 1e100, 1e300])
@pytest.mark.parametrize("monotone", [False, True])
def test_log_probabilities_are_exact_for_utilities_of_any_size(size, monotone):
    """Relative error against 400 digits, although each exponent is as large as the utilities."""
    mechanism = ExponentialMechanism(0.7, 3.0, monotone=monotone)
    utilities = size * np.array([1.0, 0.999999, -0.25, 1.0, 0.0])
    with mpmath.workdps(400):
        rate = mpmath.mpf(0.7) / (3 if monotone else 6)
        exponents = [rate * mpmath.mpf(float(u)) for u in utilities]
        total = mpmath.log(mpmath.fsum(mpmath.exp(e - exponents[0]) for e in exponents)) + exponents[0]
        expected = [float(e - total) for e in exponents]
    np.testing.assert_allclose(mechanism.law(utilities).log_probabilities, expected, rtol=5e-15)


def test_adding_a_constant_to_all_utilities_changes_nothing():
    assert RIGHT.law([1e15, 1e15 + 2]) == RIGHT.law([0.0, 2.0])


def test_a_million_scales_apart_the_claim_still_holds_exactly():
    far = np.array([0.0, 2e6, -3e8])
    assert exact_epsilon(RIGHT.law(far), RIGHT.law(far + np.array([1, -1, 1]))) == pytest.approx(1.0, rel=1e-7)


def test_outputs_at_a_million_scales_are_the_best_candidate():
    assert set(RIGHT.sample([0.0, 2e6, 1e6], 1000, np.random.default_rng(1)).tolist()) == {1}


@pytest.mark.parametrize(
    ("x", "y", "loss"),
    [
        ([0.0] * 50, ONE_UP, 0.966),
        ([0.0, -3.0], [-1.0, -2.0], 0.727),
        ([0.0, -3.0], [1.0, -4.0], 0.877),
    ],
)
def test_losses_computed_by_hand(x, y, loss):
    assert RIGHT.claim == PureDP(1.0)
    assert exact_epsilon(RIGHT.law(x), RIGHT.law(y)) == pytest.approx(loss, abs=5e-4)


def test_claim_is_approached_but_not_exceeded():
    losses = [exact_epsilon(RIGHT.law([0.0] * k), RIGHT.law([1.0] + [-1.0] * (k - 1))) for k in (2, 10, 1000, 100_000)]
    assert losses == sorted(losses)
    assert losses[-1] < 1.0
    assert losses[-1] > 0.9999


def test_neighbours_drawn_at_random_stay_within_the_claim():
    rng = np.random.default_rng(1)
    for _ in range(200):
        u = rng.normal(0, 3, 6)
        general = ExponentialMechanism(0.8, 2.0)
        assert exact_epsilon(general.law(u), general.law(u + rng.uniform(-2, 2, 6))) <= 0.8
        monotone = ExponentialMechanism(0.8, 2.0, monotone=True)
        assert exact_epsilon(monotone.law(u), monotone.law(u + rng.uniform(0, 2, 6))) <= 0.8


def test_monotone_saving_is_false_under_replace():
    mechanism = ExponentialMechanism(1.0, monotone=True)
    assert exact_epsilon(mechanism.law([0.0] * 50), mechanism.law(ONE_UP)) == pytest.approx(1.880, abs=5e-4)


@pytest.mark.parametrize("seed", range(20))
def test_each_half_of_the_loss_is_within_half_of_epsilon(seed):
    """The proof of Theorem 3.10 in numbers: the candidate's term and the normaliser's add up to the loss."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 10, 5)
    for monotone, step in ((False, rng.uniform(-2, 2, 5)), (True, rng.uniform(0, 2, 5))):
        mechanism = ExponentialMechanism(0.6, 2.0, monotone=monotone)
        own, normaliser = mechanism.loss_parts(x + step, x)
        half = 0.6 if monotone else 0.3
        assert np.abs(own).max() <= half
        assert abs(normaliser) <= half
        assert not monotone or normaliser <= 0 <= own.min()
        losses = np.subtract(mechanism.law(x + step).log_probabilities, mechanism.law(x).log_probabilities)
        np.testing.assert_allclose(own + normaliser, losses, atol=1e-13)


def test_without_the_two_each_part_reaches_epsilon():
    own, normaliser = ExponentialMechanism(1.0, monotone=True).loss_parts([1.0] + [-1.0] * 10_000, [0.0] * 10_001)
    assert own.max() == 1.0
    assert 0.999 < normaliser < 1.0


def test_parts_of_the_loss_need_one_range():
    with pytest.raises(DatasetError, match="x has 2 candidates and y 3; use the same candidates for every dataset"):
        RIGHT.loss_parts([0.0, 1.0], [0.0, 1.0, 2.0])


def test_any_objects_are_candidates():
    def nearness(salaries, month):
        return -abs(sum(salaries) - month["budget"])

    months = [{"budget": 10}, {"budget": 12}]
    mechanism = ExponentialMechanism(2.0, utilities=EachCandidate(nearness, months))
    assert mechanism.law([5, 6, 1]) == ExponentialMechanism(2.0).law([-2.0, 0.0])


@pytest.mark.parametrize(
    ("utilities", "message"),
    [
        ([], "an empty vector, so there is nothing to choose from; return the score of at least one candidate"),
        (
            [1.0, math.nan],
            "the score of candidate 1 is nan; use finite scores, and leave out a candidate that must never",
        ),
        ([1.0, 2.0, -math.inf], "the score of candidate 2 is -inf; use finite scores"),
        ([math.inf], "the score of candidate 0 is inf"),
        ([[1.0]], "which is not a vector of scores; return one number per candidate"),
        (3.0, "which is not a vector of scores"),
        (["a"], "which is not a vector of scores"),
        (
            [-1.5e308, 1.5e308],
            r"the scores reach from -1.5e\+308 to 1.5e\+308, which a double cannot hold in scales of 2;",
        ),
    ],
    ids=["empty", "nan", "minus infinity", "infinity", "matrix", "number", "word", "spread"],
)
def test_utilities_that_cannot_be_used_are_refused(utilities, message):
    with pytest.raises(DatasetError, match=message):
        RIGHT.law(utilities)


def test_a_scale_that_no_double_holds_is_refused():
    with pytest.raises(DatasetError, match="in scales of 0; bring the scores closer together, or use a larger"):
        ExponentialMechanism(1e200, 1e-200).law([0.0, 1.0])
