"""Many responses of one person, against enumeration; and exact Rényi divergences, against sums and integrals."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit.audit.claims import PureDP
from dpaudit.audit.errors import ClaimError, DatasetError, OptionError
from dpaudit.mechanisms import (
    FiniteLaw,
    GaussianLaw,
    GeometricLaw,
    LaplaceLaw,
    LaplaceMechanism,
    RandomisedResponse,
    RandomisedResponseFold,
    UpAndDown,
    composed,
    exact_epsilon,
    exact_renyi,
)


def up_and_down_by_paths(epsilon, n, value):
    """The number of yeses by going through all answers."""
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    found = np.zeros(n + 1)
    for answers in itertools.product((False, True), repeat=n):
        probability, threshold = 1.0, 0
        for answer in answers:
            probability *= truth if answer == (value > threshold) else 1 - truth
            threshold += 1 if answer else -1
        found[sum(answers)] += probability
    return found


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_the_number_of_ones_is_binomial_and_attains_the_claim(n):
    fold = RandomisedResponseFold(0.2, n)
    assert fold.claim == PureDP(n * 0.2)
    truth = math.exp(0.2) / (1 + math.exp(0.2))
    for bit, probability in ((1, truth), (0, 1 - truth)):
        expected = stats.binom.logpmf(np.arange(n + 1), n, probability)
        assert fold.law(bit).log_probabilities == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert exact_epsilon(fold.law(0), fold.law(1)) == pytest.approx(n * 0.2, rel=1e-9)
    if n == 1:
        assert fold.law(1).log_probabilities == pytest.approx(RandomisedResponse(0.2).law(1).log_probabilities)


@pytest.mark.parametrize("value", [-9, -2, 0, 1, 3, 9])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_up_and_down_is_the_sum_over_all_answers(n, value):
    law = UpAndDown(0.6, n).law(value)
    assert law.probabilities == pytest.approx(up_and_down_by_paths(0.6, n, value), rel=1e-12)


def test_up_and_down_keeps_its_claim_on_all_pairs_and_attains_it_on_one():
    mechanism = UpAndDown(0.5, 6)
    losses = {
        (x, y): exact_epsilon(mechanism.law(x), mechanism.law(y)) for x, y in itertools.combinations(range(-7, 8), 2)
    }
    assert max(losses.values()) == losses[-7, 7] == pytest.approx(3.0, rel=1e-12)
    assert losses[0, 1] < 2.0
    assert losses[6, 7] == 0.0  # above all thresholds
    fold = RandomisedResponseFold(0.5, 6)
    assert mechanism.law(6).log_probabilities == pytest.approx(fold.law(1).log_probabilities, rel=1e-12)


def test_up_and_down_asks_about_the_last_threshold():
    """With answers that are never lies (but for once in 10¹² runs) the thresholds are known."""
    mechanism = UpAndDown(30.0, 9)
    for value, last in ((-20, -9), (20, 9), (0, -1), (1, 1), (3, 3), (4, 3), (2, 1)):
        yeses = mechanism.sample(value, 50, np.random.default_rng(1))
        assert (2 * yeses - 9 == last).all()


@pytest.mark.parametrize(
    ("law_x", "law_y", "log_ratio"),
    [
        (LaplaceLaw(0.0, 2.0), LaplaceLaw(3.0, 2.0), 3 / 2),
        (LaplaceLaw(1.0, 0.5), LaplaceLaw(0.5, 0.5), 1.0),
        (GaussianLaw(0.0, 2.0), GaussianLaw(1.0, 2.0), None),
    ],
    ids=["laplace", "laplace-near", "gaussian"],
)
@pytest.mark.parametrize("order", [1.01, 1.5, 2, 7])
def test_renyi_divergences_are_integrals(law_x, law_y, log_ratio, order):
    def integrand(z):
        return math.exp(order * law_x.log_density(z) + (1 - order) * law_y.log_density(z))

    moment = integrate.quad(integrand, -60, 60, points=(0, 0.5, 1, 3), limit=400, epsabs=1e-13)[0]
    found = exact_renyi(law_x, law_y, order)
    assert found == pytest.approx(math.log(moment) / (order - 1), rel=1e-7)
    assert found == pytest.approx(exact_renyi(law_y, law_x, order), rel=1e-12)
    if log_ratio is not None:
        assert found < log_ratio
        assert exact_renyi(law_x, law_y, 1e6) == pytest.approx(log_ratio, rel=1e-4)


@pytest.mark.parametrize("order", [1.1, 2, 20])
@pytest.mark.parametrize("n", [1, 10, 100])
def test_independent_outputs_add_up(n, order):
    one, fold = RandomisedResponse(0.3), RandomisedResponseFold(0.3, n)
    single = exact_renyi(one.law(0), one.law(1), order)
    assert exact_renyi(fold.law(0), fold.law(1), order) == pytest.approx(n * single, rel=1e-9)
    laplace = LaplaceMechanism(0.3)
    many = composed(laplace, n)
    single = exact_renyi(laplace.law(0.0), laplace.law(1.0), order)
    assert exact_renyi(many.law(0.0), many.law(1.0), order) == pytest.approx(n * single, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 3.0])
def test_epsilon_bounds_the_divergence_of_every_order(epsilon):
    """Mironov (2017), Lemma 1, has 2aε²; Bun & Steinke (2016), Proposition 3.3, the tight aε²/2."""
    for order in (1.001, 1.5, 2, 10, 1000):
        for mechanism, x, y in ((RandomisedResponse(epsilon), 0, 1), (LaplaceMechanism(epsilon), 0.0, 1.0)):
            found = exact_renyi(mechanism.law(x), mechanism.law(y), order)
            assert 0 < found <= min(order * epsilon**2 / 2, epsilon)
    response = RandomisedResponse(0.001)
    tight = exact_renyi(response.law(0), response.law(1), 3)
    assert tight == pytest.approx(3 * 0.001**2 / 2, rel=1e-5)  # no smaller constant would do


def test_an_impossible_outcome_has_an_infinite_divergence():
    some, all_ = FiniteLaw((0.0, -math.inf)), FiniteLaw((math.log(0.5), math.log(0.5)))
    assert exact_renyi(all_, some, 2) == math.inf
    assert exact_renyi(some, all_, 2) == pytest.approx(math.log(2))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: RandomisedResponseFold(0, 3), ClaimError, "epsilon_each=0 is not allowed; use 0 < epsilon_each"),
        (lambda: RandomisedResponseFold(1, 0), ClaimError, "n=0 is not a number of responses"),
        (lambda: UpAndDown(1, 2.5), ClaimError, "n=2.5 is not a number of responses"),
        (lambda: RandomisedResponseFold(1, 3).law(2), DatasetError, "dataset=2 is not one of the k=2 values"),
        (lambda: UpAndDown(1, 3).sample(0.5, 3, None), DatasetError, "answered 0.5, which is not a whole number"),
        (lambda: exact_renyi(LaplaceLaw(0, 1), LaplaceLaw(0, 1), 1), OptionError, "order=1 is not allowed"),
        (lambda: exact_renyi(LaplaceLaw(0, 1), LaplaceLaw(0, 2), 2), OptionError, "have no closed form"),
        (lambda: exact_renyi(LaplaceLaw(0, 1), GaussianLaw(0, 1), 2), OptionError, "have no closed form"),
        (lambda: exact_renyi(GeometricLaw(0, 0.5), GeometricLaw(1, 0.5), 2), OptionError, "have no closed form"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)
