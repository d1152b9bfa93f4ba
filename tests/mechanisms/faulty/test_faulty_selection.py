"""Faulty selections and local responses: their laws, computed another way, and their losses."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.audit.claims.claim import PureDP
from dpaudit.audit.errors import DatasetError
from dpaudit.mechanisms import ExponentialMechanism, PermuteAndFlip, exact_epsilon
from dpaudit.mechanisms import faulty as f

ALARM, RUNS = 1e-8, 100_000


def rng():
    return np.random.default_rng(3)


def are_plausible(is_hit, probability):
    limits = stats.binom(len(is_hit), probability)
    return limits.ppf(ALARM / 2) <= np.count_nonzero(is_hit) <= limits.isf(ALARM / 2)


def test_powers_of_ten():
    twin = f.PowersOfTen(1.0)
    assert twin.law([0.0, 2.0]).probabilities == pytest.approx([1 / 11, 10 / 11])
    assert exact_epsilon(twin.law([0.0, -40.0]), twin.law([-1.0, -39.0])) == pytest.approx(math.log(10), rel=1e-9)
    assert twin.truth.epsilon == pytest.approx(math.log(10))


def test_weights_that_underflow_make_a_candidate_impossible_and_are_right_elsewhere():
    near, right = f.UnderflowingExponential(1.0), ExponentialMechanism(1.0)
    scores = [0.0, 1.0, -3.0]
    assert near.law(scores).probabilities == pytest.approx(right.law(scores).probabilities, rel=1e-12)
    assert near.law([-1490.0, -1490.0]).probabilities.tolist() == [0.5, 0.5]
    assert near.law([-1491.0, -1490.0]).probabilities.tolist() == [0.0, 1.0]
    with pytest.raises(DatasetError, match="all weights are rounded to zero"):
        near.law([-2000.0, -2000.0])


def test_flips_in_a_fixed_order_stop_at_the_first_of_the_best():
    law = f.FlipWithoutPermuting(1.0).law([-1.0, 0.0, 0.0, -2.0])
    first = math.exp(-0.5)
    assert law.probabilities.tolist() == pytest.approx([first, 1 - first, 0.0, 0.0])
    orders = itertools.permutations([-1.0, 0.0, -2.0])
    in_any_order = [f.FlipWithoutPermuting(1.0).law(order).probabilities[order.index(0.0)] for order in orders]
    right = PermuteAndFlip(1.0).law([-1.0, 0.0, -2.0])
    assert np.mean(in_any_order) == pytest.approx(right.probabilities[1], rel=1e-12)


def test_one_noise_for_all_is_no_noise():
    assert f.OneNoiseForAll(1.0).law([1.0, 2.0, 2.0]).probabilities.tolist() == [0, 1, 0]
    assert set(f.OneNoiseForAll(1.0).sample([1.0, 2.0], 100, rng())) == {1}


def test_the_winner_s_exact_count_is_one_of_the_counts():
    outputs = f.WinnerWithExactCount(1.0).sample((1.0, 1.5), 1000, rng())
    assert {tuple(row) for row in outputs} == {(0.0, 1.0), (1.0, 1.5)}


@pytest.mark.parametrize("parts", [1, 2])
def test_the_winner_and_its_noisy_count(parts):
    mechanism = f.WinnerWithNoisyCount(1.0, parts)
    x, y = (0.0, 0.0), (1.0, -1.0)
    log_x, log_y = (np.array(mechanism.winners(dataset).log_probabilities) for dataset in (x, y))
    # Given the winner, the count is Laplace of rate 1/parts, moved by 1.
    loss = max(abs(log_x - log_y)) + 1 / parts
    assert (loss > 1.0) == (parts == 1)
    assert loss <= mechanism.truth.epsilon
    outputs = mechanism.sample(y, RUNS, rng())
    assert are_plausible(outputs[:, 0] == 0, math.exp(log_y[0]))
    won = outputs[outputs[:, 0] == 1, 1]
    assert are_plausible(won > -1.0 + parts * math.log(2), 0.25)


@pytest.mark.parametrize("charged", [1, 2])
def test_the_top_two_are_two_exponential_mechanisms(charged):
    mechanism = f.TopCandidates(1.0, charged=charged)
    scores = [0.0, 1.0, 3.0]
    found = mechanism.log_probabilities(scores)
    assert math.fsum(map(math.exp, found.values())) == pytest.approx(1.0)
    each = ExponentialMechanism(1.0 / charged)
    first, then = each.law(scores).probabilities[2], each.law([0.0, 1.0]).probabilities[0]
    assert math.exp(found[2, 0]) == pytest.approx(first * then, rel=1e-12)
    outputs = mechanism.sample(scores, RUNS, rng())
    assert outputs.shape == (RUNS, 2)
    for order, log_probability in found.items():
        assert are_plausible((outputs == order).all(axis=1), math.exp(log_probability))


def test_the_top_two_lose_twice_as_much_as_one_unless_charged_for_both():
    x, y = (0.0,) * 4, (1.0, 1.0, -1.0, -1.0)
    losses = []
    for mechanism in (f.TopCandidates(1.0), f.TopCandidates(1.0, charged=2)):
        log_x, log_y = mechanism.log_probabilities(x), mechanism.log_probabilities(y)
        losses.append(max(abs(log_x[order] - log_y[order]) for order in log_x))
        assert losses[-1] <= mechanism.truth.epsilon
    assert losses[0] > 1.3
    assert losses[1] < 1.0


@pytest.mark.parametrize(("bias", "odds"), [(0.5, 3.0), (0.25, 5.0), (0.75, 5.0)])
def test_warner_s_coins(bias, odds):
    mechanism = f.BiasedCoinResponse(bias)
    assert exact_epsilon(mechanism.law(0), mechanism.law(1)) == pytest.approx(math.log(odds), rel=1e-12)
    assert mechanism.truth.epsilon == pytest.approx(math.log(odds), rel=1e-12)
    assert mechanism.claim == PureDP(math.log(3))
    assert are_plausible(mechanism.sample(1, RUNS, rng()) == 1, 0.5 + 0.5 * bias)


def test_a_no_that_is_not_randomised():
    mechanism = f.OnlyYesRandomised(1.0)
    assert exact_epsilon(mechanism.law(0), mechanism.law(1)) == math.inf
    assert set(mechanism.sample(0, 100, rng())) == {0}
    assert are_plausible(mechanism.sample(1, RUNS, rng()) == 1, math.e / (1 + math.e))


def test_remembered_responses_stay_while_the_value_stays():
    mechanism = f.RememberedResponse(1.0)
    same, changed = (mechanism.sample(values, RUNS, rng()) for values in ((0, 0), (0, 1)))
    assert np.array_equal(same[:, 0], same[:, 1])
    truth = math.e / (1 + math.e)
    assert are_plausible(changed[:, 0] != changed[:, 1], truth**2 + (1 - truth) ** 2)
    fresh = f.RememberedResponse(1.0, is_remembered=False).sample((0, 0), RUNS, rng())
    each = math.exp(0.5) / (1 + math.exp(0.5))
    assert are_plausible(fresh[:, 0] != fresh[:, 1], 2 * each * (1 - each))


def test_two_of_the_bits_change():
    twin = f.OneHotAtFullEpsilon(0.5, k=4)
    laws = [twin.law(value) for value in range(4)]
    assert {round(exact_epsilon(*pair), 12) for pair in itertools.combinations(laws, 2)} == {1.0}
    assert twin.truth == PureDP(1.0)
    assert twin.claim == PureDP(0.5)
