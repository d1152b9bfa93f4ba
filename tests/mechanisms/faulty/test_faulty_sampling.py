"""Subsampling that is claimed and not done: the loss of each way of drawing, from mixtures of Laplace laws."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.audit.claims.claim import PureDP
from dpaudit.audit.errors import ClaimError
from dpaudit.mechanisms.faulty import SampledTotal

ALARM, RUNS = 1e-8, 100_000


def totals(sampling, rows, rate=0.5):
    """Law of the sum of the sample, by enumeration of all samples: {sum: probability}."""
    n, batch = len(rows), math.floor(rate * len(rows))
    samples = {
        "none": [(rows, 1.0)],
        "first": [(rows[:batch], 1.0)],
        "poisson": [
            (
                [row for row, is_in in zip(rows, mask, strict=True) if is_in],
                rate ** sum(mask) * (1 - rate) ** (n - sum(mask)),
            )
            for mask in itertools.product((0, 1), repeat=n)
        ],
        "fixed": [(sample, 1 / math.comb(n, batch)) for sample in itertools.combinations(rows, batch)],
        "replacement": [(sample, n**-batch) for sample in itertools.product(rows, repeat=batch)],
    }[sampling]
    found = {}
    for sample, probability in samples:
        found[sum(sample)] = found.get(sum(sample), 0.0) + probability
    return found


def largest_loss(law_x, law_y, epsilon=1.0):
    """Largest loss between two mixtures of Laplace laws of scale 1/ε, on a grid that reaches beyond all locations."""
    z = np.linspace(-8, 8, 1601)
    log_x, log_y = (np.log(sum(p * np.exp(-epsilon * np.abs(z - a)) for a, p in law.items())) for law in (law_x, law_y))
    return np.abs(log_x - log_y).max()


@pytest.mark.parametrize(
    ("sampling", "x", "y", "loss"),
    [
        ("none", [0.0] * 2, [0.0] * 2 + [1.0], 1.0),
        ("first", [0.0] * 2, [1.0] + [0.0] * 2, 1.0),
        ("fixed", [-1.0] * 2, [-1.0] * 2 + [1.0], math.log(2 / 3 + math.exp(2) / 3)),
        ("replacement", [0.0] * 3, [0.0] * 3 + [1.0], 2 * math.log(0.75 + 0.25 * math.e)),
        ("poisson", [0.0] * 2, [0.0] * 2 + [1.0], math.log(0.5 + 0.5 * math.e)),
    ],
)
def test_losses(sampling, x, y, loss):
    mechanism = SampledTotal(1.0, 0.5, sampling)
    found = largest_loss(totals(sampling, x), totals(sampling, y))
    assert found == pytest.approx(loss, rel=1e-9)
    assert (found > mechanism.claim.epsilon + 1e-9) == (sampling != "poisson")
    assert mechanism.truth is None or found <= mechanism.truth.epsilon + 1e-9


def test_a_row_that_is_drawn_more_than_once():
    mechanism, x = SampledTotal(2.0, 0.75, "replacement"), [0.0] * 3
    found = largest_loss(totals("replacement", x, 0.75), totals("replacement", [*x, 1.0], 0.75), 2.0)
    assert found == pytest.approx(3 * math.log(0.75 + 0.25 * math.exp(2)), rel=1e-9)
    assert found > 1.6 * mechanism.claim.epsilon


def test_poisson_sampling_keeps_the_claim_on_small_datasets():
    claim = SampledTotal(1.0, 0.5).claim
    assert claim == PureDP(math.log(0.5 + 0.5 * math.e))
    for size in range(3):
        for rows in itertools.product((-1.0, 0.5, 1.0), repeat=size):
            for added in (-1.0, 1.0):
                law_x, law_y = totals("poisson", rows), totals("poisson", (*rows, added))
                assert largest_loss(law_x, law_y) <= claim.epsilon + 1e-9


@pytest.mark.parametrize("sampling", ["poisson", "none", "first", "fixed", "replacement"])
def test_outputs_follow_the_mixture(sampling):
    rows = [0.25, -1.0, 1.0, 0.5]
    outputs = SampledTotal(1.0, 0.5, sampling).sample(rows, RUNS, np.random.default_rng(3))
    for z in (-1.0, 0.3, 1.2):
        below = sum(p * stats.laplace.cdf(z - a) for a, p in totals(sampling, rows).items())
        limits = stats.binom(RUNS, below)
        assert limits.ppf(ALARM / 2) <= np.count_nonzero(outputs <= z) <= limits.isf(ALARM / 2)


@pytest.mark.parametrize("sampling", ["poisson", "none", "first", "fixed", "replacement"])
def test_a_dataset_without_rows_has_sum_0(sampling):
    assert abs(np.median(SampledTotal(1.0, 0.5, sampling).sample([], 1001, np.random.default_rng(3)))) < 0.5


def test_errors():
    with pytest.raises(ClaimError, match="sampling='all' is unknown; use one of poisson, none"):
        SampledTotal(1.0, 0.5, "all")
    with pytest.raises(ClaimError, match="rate=1 is not allowed"):
        SampledTotal(1.0, 1)
