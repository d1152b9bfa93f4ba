"""The losses of a replay's calls, composed by dp_accounting."""

import math
import os

import pytest
from scipy import stats

from dpaudit import replay
from dpaudit.audit.errors import ClaimError
from dpaudit.mechanisms.adapters import pld_from_replay

pytest.importorskip("dp_accounting", reason="dp_accounting is an optional library")


def composed(mechanism, claim=50.0):
    return pld_from_replay(replay(mechanism, [1, 1], [1], claim=claim))


def gaussian_delta(mu, epsilon):
    return stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)


def test_gaussian_calls_add_up_to_one():
    loss = composed(lambda rows, rng: [rng.normal(len(rows), 2.0) for _ in range(4)])
    assert loss.get_delta_for_epsilon(1.0) == pytest.approx(gaussian_delta(1.0, 1.0), rel=1e-3)


def test_pure_losses_of_few_calls_add_up_and_many_cost_less():
    two = composed(lambda rows, rng: (rng.laplace(len(rows), 4.0), rng.laplace([len(rows), 2.0], 2.0)))  # 1/4 and 1/2
    assert two.get_epsilon_for_delta(1e-12) == pytest.approx(0.75, abs=1e-3)
    many = composed(lambda rows, rng: [rng.laplace(len(rows), 10.0) for _ in range(100)])
    assert many.get_epsilon_for_delta(1e-6) > 4.5
    assert many.get_epsilon_for_delta(1e-6) < 5.0


def test_choices_count_with_their_worst_case():
    loss = composed(lambda rows, rng: rng.choice(2, p=[0.5, 0.5] if len(rows) > 1 else [0.25, 0.75]))
    assert loss.get_epsilon_for_delta(1e-12) == pytest.approx(math.log(2.0), abs=1e-3)


def test_what_is_the_same_on_both_costs_nothing():
    assert composed(lambda rows, rng: rng.laplace(1.0)).get_epsilon_for_delta(0.0) == 0.0


def test_a_loss_that_is_unknown_or_infinite_composes_to_no_budget():
    with pytest.raises(ClaimError, match=r"the loss of Generator\.laplace at .* is infinite"):
        composed(lambda rows, rng: rng.laplace(0.0, len(rows)))


def test_noise_that_is_added_to_something_unknown_composes_to_no_budget():
    with pytest.raises(ClaimError, match=r"what the noise of Generator\.laplace at .* is added to is not known"):
        composed(lambda rows, rng: (len(rows) + rng.laplace()) / (1.0 + abs(rng.laplace())))


def test_an_open_result_is_composed_only_by_request():
    result = replay(lambda rows, rng: (rng.laplace(len(rows), 2.0), os.urandom(1)[0]), [1, 1], [1], claim=50.0)
    with pytest.raises(ClaimError, match=r"the replay is open \(.*partial=True composes these alone"):
        pld_from_replay(result)
    assert pld_from_replay(result, partial=True).get_epsilon_for_delta(1e-12) == pytest.approx(0.5, abs=1e-3)
