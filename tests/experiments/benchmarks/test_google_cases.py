"""Google's test cases: their number, their pairs, the planned events by exact distributions, and audits on PyDP.

The alpha of each audit is 1e-6, and each count of counts is outside its limits with probability at most 1e-8.
"""

import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

from dpaudit.audit.claims.claim import GroupClaim
from dpaudit.experiments.benchmarks.google import (
    VARIANT_SHARE,
    least_noise_that_passes,
    noise,
    passes,
    release,
    why_not_pydp,
)
from dpaudit.experiments.benchmarks.google_cases import REJECTED, VOTES, closeness_cases, dp_cases
from dpaudit.experiments.libraries.subjects import is_installed
from dpaudit.mechanisms import GaussianDistribution, LaplaceDistribution, analytic_gaussian_scale

CASES = {case.key: case for case in dp_cases()}
CLOSENESS = list(closeness_cases())
NUMBERS = {
    "count": 36, "bounded sum": 38, "long bounded sum": 38, "bounded mean": 47, "standard deviation": 42,
    "quantiles": 39, "approximate bounds": 14, "Laplace closeness": 19, "Gaussian closeness": 23,
}  # fmt: skip
ALPHA, ALARM = 1e-6, 1e-8
ONE_ANSWER = (
    "count: Laplace noise, small count, small epsilon",
    "count: Gaussian noise, small count, two partitions contributed",
    "bounded sum: Laplace noise, large mixed sum, default parameters",
    "long bounded sum: Laplace noise, empty sum, large epsilon",
    "long bounded sum: Gaussian noise, large positive sum, many contributed partitions",
)
PARTS = {  # and how many of the noisy answers change
    "bounded mean: Laplace noise, large mixed mean, many contributions per partition": 2,
    "bounded mean: Gaussian noise, empty mean, many partitions contributed": 2,
    "standard deviation: Laplace noise, one entry, small epsilon": 3,
    "quantiles: Laplace noise, empty distribution, different tree parameters": 3,
    "quantiles: Gaussian noise, linear distribution, many partitions contributed": 2,
}

needs_pydp = pytest.mark.skipif(not is_installed("pydp"), reason="pydp cannot be imported")


class TestCases:
    def test_every_file_has_its_number_of_cases_with_names_of_their_own(self):
        every = [*CASES.values(), *CLOSENESS]
        assert Counter(case.file for case in every) == NUMBERS
        assert set(REJECTED) == set(NUMBERS)
        assert len({case.key for case in every}) == sum(NUMBERS.values()) == 296

    def test_no_pair_is_farther_than_the_sensitivity(self):
        for case in CASES.values():
            norm = case.partitions if case.noise == "laplace" else math.sqrt(case.partitions)
            added = sum(case.extra) if case.file == "count" else len(case.extra)
            assert 0 < added <= norm * case.per_partition, case.key

    def test_pairs_are_users_with_their_rows(self):
        case = CASES["bounded sum: Gaussian noise, small positive sum, many partitions contributed"]
        x, y = case.pair(users=2)
        assert y[: len(x)] == x == list(enumerate(case.rows))
        assert Counter(user for user, _ in y[len(x) :]) == {5: 5, 6: 5}

    def test_the_variance_of_a_closeness_case_is_that_of_its_noise(self):
        for case in CLOSENESS:
            if case.noise == "gaussian":
                needed = analytic_gaussian_scale(case.epsilon, case.delta) * math.sqrt(case.partitions) * case.change
                assert 1.0 <= math.sqrt(case.variance) / needed < 1.001, case.key

    def test_what_pydp_cannot_release_has_a_reason(self):
        reasons = Counter(why_not_pydp(case) for case in CASES.values())
        assert reasons[""] == 123
        assert sorted(reasons.values()) == [5, 14, 112, 123]


@needs_pydp
@pytest.mark.parametrize("key", ONE_ANSWER)
def test_the_known_event_of_one_answer_breaks_the_claim_of_the_variant_only(key):
    """By the exact distributions: p is above the boundary at q with 95% of the noise, and not with all of it."""
    case = CASES[key]
    planned = noise(case, alpha=ALPHA)
    change = 1.0 if case.file == "count" else max(abs(case.lower), abs(case.upper))
    if case.noise == "laplace":
        distribution = LaplaceDistribution(0.0, case.partitions * change / case.epsilon)
    else:
        distribution = GaussianDistribution(
            0.0, analytic_gaussian_scale(case.epsilon, case.delta) * math.sqrt(case.partitions) * change
        )
    added = planned.y[len(planned.x) :]
    moved = sum(value for _, value in added) if case.file == "count" else change * len(added)
    assert _exceeds(planned, distribution, moved) == [False, True]
    assert len({user for user, _ in planned.y}) - len(planned.x) == planned.users


def _exceeds(planned, distribution, moved):
    """Return whether the event {noise ≤ −least} exceeds the claim, with all of the noise and with the variant's."""
    claim = GroupClaim(planned.claim, planned.users) if planned.users > 1 else planned.claim
    ends = -planned.mechanism.least, -planned.mechanism.least - moved
    found = []
    for share in (1.0, VARIANT_SHARE):
        p, q = (float(type(distribution)(0.0, distribution.scale * share).cdf(end)) for end in ends)
        found.append(bool(p > claim.max_power(q)[0] * (1 + 1e-9)))
    return found


@pytest.mark.parametrize(("key", "changed"), PARTS.items())
@pytest.mark.parametrize("share", [1.0, VARIANT_SHARE])
def test_noisy_sums_hit_the_known_event_as_often_as_planned(key, changed, share):
    """Laplace noise: all changed answers are beyond those of x. Gaussian noise: a half-line of probability .15 on y."""
    case = CASES[key]
    planned, runs = noise(case, alpha=ALPHA, share=share), 10_000
    assert planned.runs < case.samples * VOTES
    loss = planned.users * planned.claim.parameter
    if case.noise == "laplace":
        rates = 0.5**changed, 0.5**changed * math.exp(-loss / share)
    else:  # in standard deviations of all of the noise, the event is {score ≥ least} and y is `loss` away
        end = float(ndtri(0.15))
        rates = float(ndtr((end + loss) / share)), float(ndtr(end / share))
    for rows, rate in zip((planned.x, planned.y), rates, strict=True):
        counts = int(planned.mechanism.sample(rows, runs, np.random.default_rng(len(rows))).sum())
        assert stats.binom.sf(counts - 1, runs, rate) > ALARM
        assert stats.binom.cdf(counts, runs, rate) > ALARM


@needs_pydp
def test_pydp_with_half_of_its_noise_is_refuted_on_the_known_event():
    """`dpaudit bench google` audits all cases, and variants with 95% of their noise."""
    half = noise(CASES["count: Laplace noise, empty count, default parameters"], alpha=ALPHA, share=0.5)
    assert half.on == "PyDP Count"
    assert half.audit(alpha=ALPHA, seed=3, runs=4_000).is_refuted


@needs_pydp
@pytest.mark.parametrize(
    ("key", "on"),
    [
        ("count: Laplace noise, large count, default parameters", "PyDP LaplaceMechanism on the count"),
        ("long bounded sum: Laplace noise, small positive sum, default parameters", "PyDP BoundedSum"),
        ("bounded mean: Laplace noise, empty mean, default parameters", "PyDP BoundedMean"),
        ("bounded mean: Gaussian noise, empty mean, small delta", "reference bounded mean"),
    ],
)
def test_releases_are_those_of_pydp_where_it_has_the_aggregate(key, on):
    released = release(CASES[key])
    assert released.on == on
    assert len(released.mechanism.sample(released.y, 3, np.random.default_rng(0))) == 3


@needs_pydp
def test_quantiles_are_released_at_all_ranks():
    case = CASES["quantiles: Gaussian noise, binary distribution, many partitions contributed"]
    released = release(case)
    found = released.mechanism.sample(released.y, 3, np.random.default_rng(0))
    assert found.shape == (3, len(case.ranks))
    assert ((found >= case.lower) & (found <= case.upper)).all()
    assert (np.diff(found) >= 0.0).all()


def test_their_test_accepts_all_of_the_noise_and_rejects_half_of_it():
    for key in ONE_ANSWER[1:3]:
        assert passes(CASES[key], 1.0, seed=1)
        assert not passes(CASES[key], 0.5, seed=1)
    assert 0.5 < least_noise_that_passes(CASES[ONE_ANSWER[1]], seed=2) < 1.0
