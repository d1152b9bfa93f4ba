"""Google's test cases: their number, their pairs, the planned events by exact distributions, and audits on PyDP."""

import dataclasses
import math
from collections import Counter

import numpy as np
import pytest

from dpaudit.audit.claims.claim import GroupClaim
from dpaudit.experiments.benchmarks import google
from dpaudit.experiments.benchmarks.google import VARIANT_SHARE, least_noise_that_passes, noise, passes, release
from dpaudit.experiments.benchmarks.measure import Effort, is_met
from dpaudit.experiments.libraries.subjects import is_installed
from dpaudit.mechanisms import GaussianDistribution, LaplaceDistribution

CASES = {case.key: case for case in google.cases()}
ALPHA = 1e-6
PLANNED = (
    "count: Laplace noise, small count, small epsilon",
    "count: Gaussian noise, small count, two partitions contributed",
    "bounded sum: Laplace noise, large mixed sum, default parameters",
    "long bounded sum: Laplace noise, empty sum, large epsilon",
    "long bounded sum: Gaussian noise, large positive sum, many contributed partitions",
)
needs_pydp = pytest.mark.skipif(not is_installed("pydp"), reason="pydp cannot be imported")


def test_every_file_has_its_cases_of_neighbours():
    assert Counter(case.file for case in CASES.values()) == {"count": 36, "bounded sum": 38, "long bounded sum": 38}
    for case in CASES.values():
        norm = case.partitions if case.is_laplace else math.sqrt(case.partitions)
        added = sum(case.extra) if case.is_count else len(case.extra)
        assert 0 < added <= norm, case.key
    case = CASES["bounded sum: Gaussian noise, small positive sum, many partitions contributed"]
    x, y = case.pair()
    assert y[: len(x)] == x == list(enumerate(case.rows))
    assert Counter(user for user, _ in y[len(x) :]) == {5: 5}


@needs_pydp
@pytest.mark.parametrize("key", PLANNED)
def test_the_known_event_breaks_the_claim_of_the_variant_only(key):
    """By the exact distributions: p is above the boundary at q with 95% of the noise, and not with all of it."""
    case = CASES[key]
    planned = noise(case, alpha=ALPHA)
    x, y = planned.pair
    added = y[len(x) :]
    moved = sum(value for _, value in added) if case.is_count else case.change * len(added)
    assert len({user for user, _ in y}) - len(x) == planned.users
    assert planned.mechanism.sign * (case.answer(y) - planned.mechanism.origin) < 0, "it is averted from y"
    assert planned.mechanism.least % 1.0 == 0.5 or not case.is_whole, "no rounded output is on its edge"
    claim = GroupClaim(planned.claim, planned.users) if planned.users > 1 else planned.claim
    kind, least = LaplaceDistribution if case.is_laplace else GaussianDistribution, planned.mechanism.least
    for share in (1.0, VARIANT_SHARE):  # the event is {noise ≤ −least}
        p, q = (float(kind(0.0, case.scale * share).cdf(end)) for end in (-least, -least - moved))
        assert (p > claim.max_power(q)[0] * (1 + 1e-9)) == (share < 1)


@needs_pydp
def test_pydp_with_half_of_its_noise_is_refuted_on_the_known_event():
    """`dpaudit bench google` audits all cases, and variants with 95% of their noise."""
    half = noise(CASES["count: Laplace noise, empty count, default parameters"], alpha=ALPHA, share=0.5)
    assert str(half.mechanism) == "PyDP Count"
    assert half.audit(alpha=ALPHA, seed=3, runs=4_000).is_refuted


@needs_pydp
def test_a_variant_that_is_not_refuted_misses_its_target(monkeypatch):
    planned = google.noise
    monkeypatch.setattr(google, "noise", lambda case, **options: planned(case, alpha=ALPHA))
    monkeypatch.setattr(google, "SAMPLES", 1_000)
    key = "count: Laplace noise, empty count, small epsilon"
    _, targets = google._cells(Effort(), range, key)
    assert [target["what"] for target in targets if not is_met(target)] == ["refuted variants"]


@needs_pydp
@pytest.mark.parametrize(
    ("key", "on"),
    [
        ("count: Laplace noise, large count, default parameters", "PyDP LaplaceMechanism on the count"),
        ("bounded sum: Gaussian noise, small positive sum, small epsilon", "PyDP GaussianMechanism on the sum"),
        ("long bounded sum: Laplace noise, small positive sum, default parameters", "PyDP BoundedSum"),
    ],
)
def test_releases_are_those_of_pydp_where_it_has_the_aggregate(key, on):
    released = release(CASES[key])
    assert str(released.mechanism) == on
    assert len(released.mechanism.sample(released.pair[1], 3, np.random.default_rng(0))) == 3


def test_their_test_accepts_all_of_the_noise_and_rejects_half_of_it():
    for key in PLANNED[1:3]:
        assert passes(CASES[key], 1.0, seed=1)
        assert not passes(CASES[key], 0.5, seed=1)
    assert 0.5 < least_noise_that_passes(CASES[PLANNED[1]], seed=2) < 1.0
    anything = dataclasses.replace(CASES[PLANNED[2]], tolerance=1.0)
    assert least_noise_that_passes(anything, seed=2) == 0.1
