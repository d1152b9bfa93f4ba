"""The test of every outcome alone: its size by enumeration, and that no refutation is left out."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from scipy.stats import multinomial

from dpaudit import ApproxDP, GaussianDP, PureDP
from dpaudit.audit.inference import outcome_test as module
from dpaudit.audit.inference.boundary_test import Counts, joint_test, p_value
from dpaudit.audit.inference.outcome_test import most_outcomes, outcome_test

CLAIMS = [PureDP(1.0), ApproxDP(1.0, 0.05), GaussianDP(1.0)]


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_size_by_enumeration(claim, monkeypatch):
    """All counts of six runs on each dataset with three outcomes, one of them on the boundary of the claim."""
    monkeypatch.setattr(module, "joint_test", functools.cache(joint_test))
    q = np.array([0.15, 0.6, 0.25])
    p = np.array([float(claim.max_power(0.15)[0]), 0.0, 0.0])
    p[1:] = (1.0 - p[0]) * q[1:] / q[1:].sum()
    runs, alpha, size = 6, 0.6, 0.0
    splits = [np.array(split) for split in itertools.product(range(runs + 1), repeat=3) if sum(split) == runs]
    on_x, on_y = multinomial(runs, p), multinomial(runs, q)
    for x, y in itertools.product(splits, splits):
        found = outcome_test(x, y, runs, runs, claim, alpha=alpha)
        if found is not None and found.bound > claim.strength:
            assert found.p_value <= alpha
            size += on_x.pmf(x) * on_y.pmf(y)
    assert 0.0 < size <= alpha / 6  # five of the six tests are of outcomes that are far from the boundary


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_no_refutation_is_left_out(claim):
    """With hits near the edge of the rejection region, the outcomes that are tested are those that refute."""
    rng = np.random.default_rng(0)
    runs, outcomes, alpha = 2_000, 8, 0.05
    refuted = 0
    for _ in range(16):
        q = rng.dirichlet(np.full(outcomes, 0.7))
        p = q.copy()
        p[0] = float(claim.with_strength(claim.strength + rng.uniform(0.0, 0.8)).max_power(q[0])[0])
        p[1:] *= (1.0 - p[0]) / p[1:].sum()
        on_x, on_y = rng.multinomial(runs, p), rng.multinomial(runs, q)
        level = alpha / (2 * outcomes)
        is_refuted = any(
            p_value(Counts(hits_x=int(a), runs_x=runs, hits_y=int(b), runs_y=runs), claim, alpha=level) <= level
            for x, y in ((on_x, on_y), (on_y, on_x))
            for a, b in zip(x, y, strict=True)
        )
        found = outcome_test(on_x, on_y, runs, runs, claim, alpha=alpha)
        assert (found is not None and found.p_value <= alpha) == is_refuted
        refuted += is_refuted
    assert 3 < refuted < 16


def test_one_wrong_outcome_among_many():
    on_y = np.full(100, 10_000)
    on_x = on_y.copy()
    on_x[37] = 5_000
    found = outcome_test(on_x, on_y, 1_000_000, 1_000_000, PureDP(0.5), alpha=1e-5)
    assert (found.index, found.likelier_on) == (37, "y")
    assert found.counts == Counts(hits_x=5_000, runs_x=1_000_000, hits_y=10_000, runs_y=1_000_000)
    level = 1e-5 / 200
    p, bound = joint_test(found.counts.swapped(), PureDP(0.5), alpha=level)
    assert (found.p_value, found.bound) == (200 * p, bound)
    assert 0.5 < found.bound < math.log(2)


def test_nothing_comes_near():
    hits = np.array([500, 300, 200])
    assert outcome_test(hits, hits, 1_000, 1_000, PureDP(1.0), alpha=0.05) is None


def test_p_values_are_those_of_the_smallest_alpha_that_refutes():
    on_x, on_y = np.array([600, 300, 100]), np.array([520, 460, 20])
    found = outcome_test(on_x, on_y, 1_000, 1_000, PureDP(1.0), alpha=0.05)
    assert found.index == 2
    at = outcome_test(on_x, on_y, 1_000, 1_000, PureDP(1.0), alpha=found.p_value)
    assert at.p_value == pytest.approx(found.p_value, rel=0.05), "tuning to another alpha hardly changes it"


def test_as_many_outcomes_as_exact_p_values_can_tell_apart():
    for alpha in (0.005, 1e-6):
        assert alpha / (2 * most_outcomes(alpha)) >= 2e-9 * (1 - 1e-12)
        assert alpha / (2 * (most_outcomes(alpha) + 1)) < 2e-9
