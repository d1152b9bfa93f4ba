"""Claims of DP-SGD against dp_accounting and closed forms, and the laws of the worst case against the claims."""

import math
import sys

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp
from scipy import stats

from dpaudit import ApproxDP, GaussianDP, PrivacyProfile
from dpaudit.audit.datasets.adjacency import AddRemove, Replace
from dpaudit.audit.errors import ClaimError, MissingExtraError
from dpaudit.mechanisms import GaussianLaw, exact_epsilon, gaussian_delta
from dpaudit.mechanisms.adapters import claim_from_event
from dpaudit.mechanisms.faulty.training.true_losses import (
    scales_epsilon,
    shuffled_epsilon_at_least,
)
from dpaudit.mechanisms.training.batches import (
    BallsInBins,
    BatchesInOrder,
    FixedSizeBatches,
    FullBatch,
    PoissonBatches,
    ShuffledBatches,
)
from dpaudit.mechanisms.training.dp_sgd import DPSGD
from dpaudit.mechanisms.training.dp_sgd_claims import dp_sgd_claim, poisson_event
from dpaudit.mechanisms.training.mixture_loss import mixture_epsilon
from dpaudit.mechanisms.training.models import FixedGradients
from dpaudit.mechanisms.training.observers import LastProjection, LogLikelihoodRatio, NoisySums

ALARM, RUNS = 1e-8, 20_000
RELATIONS = dp_accounting.NeighboringRelation


@pytest.mark.parametrize("neighbours", ["add_or_remove_one", "replace_one", "replace_special"])
def test_poisson_claims_are_those_of_the_accountant(neighbours):
    event = dp_accounting.PoissonSampledDpEvent(0.5, dp_accounting.GaussianDpEvent(4.0))
    accountant = pld.PLDAccountant(RELATIONS[neighbours.upper()])
    accountant.compose(dp_accounting.SelfComposedDpEvent(event, 8))
    claim = dp_sgd_claim(PoissonBatches(0.5), 4.0, 8, neighbours=neighbours, delta=1e-5)
    assert claim == ApproxDP(accountant.get_epsilon(1e-5), 1e-5)


def test_the_whole_curve_of_poisson_batches_is_that_of_its_event():
    claim = dp_sgd_claim(PoissonBatches(0.5), 4.0, 8, delta=None)
    assert isinstance(claim, PrivacyProfile)
    assert claim == claim_from_event(poisson_event(0.5, 4.0, 8))


def test_poisson_batches_at_rate_one_are_full_batches():
    poisson, full = (dp_sgd_claim(sampling, 4.0, 8, delta=1e-5) for sampling in (PoissonBatches(1.0), FullBatch()))
    assert full.epsilon <= poisson.epsilon <= full.epsilon + 2e-3


@pytest.mark.parametrize(
    ("sampling", "steps", "neighbours", "mu"),
    [
        (FullBatch(), 9, "add_or_remove_one", 3 / 2), (FullBatch(), 9, "replace_one", 3.0),
        (ShuffledBatches(2, 6), 12, "replace_special", 2 / 2), (ShuffledBatches(2, 6), 10, "replace_one", 2.0),
        (BatchesInOrder(4, 6), 8, "replace_special", 2 / 2), (BallsInBins(3), 3, "add_or_remove_one", 1 / 2),
    ],
)  # fmt: skip
def test_one_gaussian_mechanism_for_each_use_of_a_record(sampling, steps, neighbours, mu):
    assert dp_sgd_claim(sampling, 2.0, steps, neighbours=neighbours, delta=None) == GaussianDP(mu)
    claim = dp_sgd_claim(sampling, 2.0, steps, neighbours=neighbours, delta=1e-5)
    assert gaussian_delta(claim.epsilon, 1.0, mu) == pytest.approx(1e-5, rel=1e-9)


def test_batches_of_fixed_size_have_the_renyi_bound_at_half_the_noise_multiplier():
    accountant = rdp.RdpAccountant(neighboring_relation=RELATIONS.REPLACE_ONE)
    event = dp_accounting.SampledWithoutReplacementDpEvent(100, 10, dp_accounting.GaussianDpEvent(2.0))
    accountant.compose(dp_accounting.SelfComposedDpEvent(event, 20))
    claim = dp_sgd_claim(FixedSizeBatches(10, 100), 4.0, 20, neighbours="replace_one", delta=1e-5)
    assert claim == ApproxDP(accountant.get_epsilon(1e-5), 1e-5)
    whole = dp_sgd_claim(FixedSizeBatches(10, 100), 4.0, 20, neighbours="replace_special", delta=None)
    assert isinstance(whole, PrivacyProfile)
    exact = mixture_epsilon(((0.9, -1.0), (0.1, 1.0)), ((0.9, -1.0), (0.1, 0.0)), 4.0, 20, 1e-5)
    assert exact < claim.epsilon


def test_little_noise_has_a_coarser_grid_and_a_claim_on_the_safe_side():
    claim = dp_sgd_claim(PoissonBatches(1.0), 0.02, 1, delta=1e-5)
    exact = dp_sgd_claim(FullBatch(), 0.02, 1, delta=1e-5).epsilon
    assert exact <= claim.epsilon < exact * 1.01


def test_what_is_not_known_is_not_claimed():
    for sampling in (ShuffledBatches(2, 6), FixedSizeBatches(2, 6), BatchesInOrder(2, 6)):
        with pytest.raises(ClaimError, match="no bound is known here"):
            dp_sgd_claim(sampling, 1.0, 3, neighbours="add_or_remove_one")
    with pytest.raises(ClaimError, match="neighbours='both' is unknown"):
        dp_sgd_claim(FullBatch(), 1.0, 3, neighbours="both")
    with pytest.raises(ClaimError, match="delta=0 is not allowed"):
        dp_sgd_claim(FullBatch(), 1.0, 3, delta=0)


def test_without_the_accountant_the_error_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    for sampling in (PoissonBatches(0.123), FixedSizeBatches(2, 7)):
        with pytest.raises(MissingExtraError, match=r"dpaudit\[accounting\]"):
            dp_sgd_claim(sampling, 1.0, 3, neighbours="replace_one")
    assert dp_sgd_claim(BallsInBins(7), 1.0, 3, delta=None) == GaussianDP(1.0)


def training(**changes):
    given = {"model": FixedGradients(), "sampling": FullBatch(), "noise_multiplier": 2.0, "steps": 4, "clip": 3.0}
    return DPSGD(**{**given, **changes})


def test_the_relation_of_the_claim_is_that_of_the_mechanism():
    assert training().adjacency == AddRemove()
    assert training(neighbours="replace_special").adjacency == Replace()
    assert training().claim == dp_sgd_claim(FullBatch(), 2.0, 4)
    assert str(training()) == "DPSGD(FixedGradients, FullBatch, σ=2, 4 steps)"


@pytest.mark.parametrize(("record", "mean"), [(3.0, -4.0), (30.0, -4.0), (1.5, -2.0), (0.0, 0.0)])
def test_the_last_iterate_of_full_batches_is_normal(record, mean):
    """Its mean and deviation, in clipping norms, are those of the claim: μ = √steps/σ. Random: alarm 1e-8."""
    mechanism = training(observer=LastProjection())
    last = mechanism.sample([[record]], RUNS, np.random.default_rng(0)) / 3.0
    scale = 2.0 * math.sqrt(4)
    assert stats.kstest(last, "norm", args=(mean, scale)).pvalue > ALARM
    if mean == -4.0:
        epsilon = exact_epsilon(GaussianLaw(mean, scale), GaussianLaw(0.0, scale), 1e-5)
        assert epsilon == pytest.approx(mechanism.claim.epsilon, rel=1e-9)


@pytest.mark.parametrize("steps", [1, 3])
def test_the_last_iterate_of_poisson_batches_is_a_binomial_mixture(steps):
    """Random: alarm 1e-8. At one step its law is that of the subsampled Gaussian mechanism itself."""
    sampling = PoissonBatches(0.3)
    mechanism = training(sampling=sampling, steps=steps, observer=LastProjection(), noise_multiplier=1.0)
    last = -mechanism.sample([[3.0]], RUNS, np.random.default_rng(0)) / 3.0
    scale, uses = math.sqrt(steps), range(steps + 1)
    weights = stats.binom.pmf(uses, steps, 0.3)

    def cdf(z):
        return sum(weight * stats.norm.cdf(z, k, scale) for k, weight in zip(uses, weights, strict=True))

    assert stats.kstest(last, cdf).pvalue > ALARM
    assert stats.kstest(last, stats.norm(0, scale).cdf).pvalue < ALARM  # the wrong twin: without the record
    mixture = tuple((float(weight), float(k)) for k, weight in zip(uses, weights, strict=True))
    epsilon = mixture_epsilon(mixture, ((1.0, 0.0),), scale, 1, 1e-5)
    claimed = mechanism.claim.epsilon
    assert epsilon < claimed + 1e-3
    assert (epsilon > claimed - 0.01) == (steps == 1)  # later noisy sums show more than their total


@pytest.mark.parametrize("event", ["record", "no record"])
def test_the_ratio_has_the_delta_of_the_claim(event):
    """The share of runs beyond the claimed ε, less its part in the other law, is δ. Random: alarm 1e-8 for each."""
    rate, sigma, steps, delta = 0.5, 2.0, 4, 0.05
    claim = dp_sgd_claim(PoissonBatches(rate), sigma, steps, delta=delta)
    mechanism = training(
        sampling=PoissonBatches(rate), clip=1.0, noise_multiplier=sigma, steps=steps,
        observer=LogLikelihoodRatio(rate, sigma), delta=delta,
    )  # fmt: skip
    sign = 1 if event == "record" else -1
    x, y = [[1.0]], np.empty((0, 1))
    with_it, without = (sign * mechanism.sample(rows, RUNS, np.random.default_rng(4)) for rows in (x, y))
    p, q = ((sums > claim.epsilon).mean() for sums in ((with_it, without)[::sign]))
    found = p - math.exp(claim.epsilon) * q
    limit = stats.norm.isf(ALARM) * math.sqrt((1 + math.exp(2 * claim.epsilon)) / 4 / RUNS)
    assert found < delta + limit
    if sign > 0:
        assert found > delta - limit


def test_mixtures_and_scales_against_closed_forms():
    gaussian = exact_epsilon(GaussianLaw(0, 1), GaussianLaw(1, 1), 1e-5)
    assert gaussian - 0.01 < mixture_epsilon(((1.0, 1.0),), ((1.0, 0.0),), 2.0, 4, 1e-5) <= gaussian + 1e-6
    epsilon = scales_epsilon(2.0, 1, 0.1)
    t = math.sqrt(2 * (epsilon + math.log(2)) / (1 - 1 / 4))
    assert 2 * stats.norm.sf(t, 0, 2) - math.exp(epsilon) * 2 * stats.norm.sf(t) == pytest.approx(0.1, rel=1e-9)


def test_the_bound_for_shuffled_batches_lies_between_zero_and_one_gaussian_mechanism():
    for sigma in (0.5, 1.0, 2.0):
        known = dp_sgd_claim(ShuffledBatches(1, 10), sigma, 10, neighbours="replace_special", delta=1e-3).epsilon
        assert 0 <= shuffled_epsilon_at_least(sigma, 10, 1e-3) <= known
    assert shuffled_epsilon_at_least(1.0, 10, 1e-3) > 3 > dp_sgd_claim(PoissonBatches(0.1), 1.0, 10, delta=1e-3).epsilon


def test_balls_in_bins_keep_less_than_their_bound_on_the_worst_pair():
    """The record's batch is uniform, so the loss of the steps is that of a mixture: below one Gaussian mechanism."""
    mechanism = training(sampling=BallsInBins(3), clip=1.0, steps=3, observer=NoisySums())
    sums = mechanism.sample([[1.0]], RUNS, np.random.default_rng(0))
    assert stats.kstest(sums.sum(axis=1), "norm", args=(1.0, 2.0 * math.sqrt(3))).pvalue > ALARM
    assert mechanism.claim == dp_sgd_claim(FullBatch(), 2.0, 1)
