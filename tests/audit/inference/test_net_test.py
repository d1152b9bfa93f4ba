"""The net of events: exact size by enumeration in both directions, and no refutation is left out."""

import functools
import itertools

import numpy as np
import pytest
from scipy.stats import multinomial

from dpaudit import ApproxDP, GaussianDP, PureDP
from dpaudit.audit.inference import net_test as module
from dpaudit.audit.inference.event_test import Counts, joint_test, joint_test_beside, pvalue
from dpaudit.audit.inference.net_test import clearance, net_test, rough_bound

CLAIMS = [PureDP(1.0), ApproxDP(1.0, 0.05), GaussianDP(1.0)]
EVEN = np.full((2, 3), 1 / 6)
UNEVEN = np.array([[0.5, 0.02, 0.08], [0.3, 0.1, 0.0]])
RUNS, ALPHA = 6, 0.6


def enumerated(claim, weights, monkeypatch):
    """Every pair of counts of six runs with three outcomes, and what the net finds in it."""
    monkeypatch.setattr(module, "joint_test_beside", functools.cache(joint_test_beside))
    splits = [np.array(split) for split in itertools.product(range(RUNS + 1), repeat=3) if sum(split) == RUNS]
    return [
        (x, y, net_test(x, y, RUNS, RUNS, claim, weights, alpha=ALPHA)) for x, y in itertools.product(splits, splits)
    ]


def on_boundary(claim, q, way):
    """Two distributions of which the first outcome is as likely as the claim allows, on x or on y."""
    q = np.array([q, *(np.array([0.7, 0.3]) * (1.0 - q))])
    p = q.copy()
    p[0] = float((claim if way == "x" else claim.reversed()).max_power(q[0])[0])
    p[1:] *= (1.0 - p[0]) / (1.0 - q[0])
    return (p, q) if way == "x" else (q, p)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_size_by_enumeration(claim, monkeypatch):
    """At the edge of the claim, for every level, wherever the edge is, and for either more likely dataset."""
    weights = UNEVEN
    found = enumerated(claim, weights, monkeypatch)
    refuted = [(x, y, one) for x, y, one in found if one is not None and one.bound > claim.parameter]
    assert all(one.pvalue <= ALPHA for _, _, one in refuted)
    assert all(one.counts == Counts(count_x=int(x[one.index]), runs_x=RUNS, count_y=int(y[one.index]), runs_y=RUNS)
               for x, y, one in refuted)  # fmt: skip
    pvalues = np.array([1.0 if one is None else one.pvalue for _, _, one in found])
    on_x, on_y = (np.array([pair[side] for pair in found]) for side in (0, 1))
    largest = {"x": 0.0, "y": 0.0}
    for q, way in itertools.product(np.linspace(0.01, 0.6, 25), "xy"):
        p_x, p_y = on_boundary(claim, float(q), way)
        mass = multinomial(RUNS, p_x).pmf(on_x) * multinomial(RUNS, p_y).pmf(on_y)
        assert mass.sum() == pytest.approx(1.0)
        for level in (ALPHA, 0.5 * ALPHA, 0.1 * ALPHA):
            assert mass[pvalues <= level].sum() <= level
        largest[way] = max(largest[way], mass[pvalues <= ALPHA].sum())
    for way, part in zip("xy", weights[:, 0], strict=True):
        assert 0.0 < largest[way] <= ALPHA * part + 0.1, "barely more than the part of the one event at the edge"


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_no_refutation_is_left_out(claim):
    """With counts near the edge of the rejection region, the outcomes that are tested are those that refute."""
    rng = np.random.default_rng(0)
    runs, outcomes, alpha = 2_000, 8, 0.05
    refuted = 0
    for _ in range(16):
        q = rng.dirichlet(np.full(outcomes, 0.7))
        p = q.copy()
        p[0] = float(claim.with_parameter(claim.parameter + rng.uniform(0.0, 0.8)).max_power(q[0])[0])
        p[1:] *= (1.0 - p[0]) / p[1:].sum()
        on_x, on_y = rng.multinomial(runs, p), rng.multinomial(runs, q)
        level = alpha / (2 * outcomes)
        is_refuted = any(
            pvalue(Counts(count_x=int(a), runs_x=runs, count_y=int(b), runs_y=runs), claim, alpha=level) <= level
            for x, y in ((on_x, on_y), (on_y, on_x))
            for a, b in zip(x, y, strict=True)
        )
        found = net_test(on_x, on_y, runs, runs, claim, np.full((2, outcomes), 1 / (2 * outcomes)), alpha=alpha)
        assert (found is not None and found.pvalue <= alpha) == is_refuted
        refuted += is_refuted
    assert 3 < refuted < 16


def test_a_larger_weight_gives_a_larger_bound_and_none_gives_none():
    on_x, on_y = np.array([600, 300, 100]), np.array([520, 460, 20])
    bounds = []
    for part in (0.01, 0.1, 0.9):
        weights = np.full((2, 3), (1.0 - part) / 5.0)
        weights[0, 2] = part
        found = net_test(on_x, on_y, 1_000, 1_000, PureDP(1.0), weights, alpha=0.05)
        assert (found.index, found.more_likely_on) == (2, "x")
        bounds.append(found.bound)
    assert bounds == sorted(bounds)
    weights = np.full((2, 3), 0.2)
    weights[0, 2] = 0.0
    found = net_test(on_x, on_y, 1_000, 1_000, PureDP(1.0), weights, alpha=0.05)
    assert found is None or (found.index, found.more_likely_on) != (2, "x")


def test_the_net_turns_with_the_sides():
    on_x, on_y = np.array([600, 300, 100]), np.array([520, 460, 20])
    for runs_x, runs_y in ((1_000, 1_000), (2_000, 1_000)):
        found = net_test(on_x, on_y, runs_x, runs_y, PureDP(0.1), EVEN, alpha=0.05)
        turned = net_test(on_y, on_x, runs_y, runs_x, PureDP(0.1), EVEN[::-1], alpha=0.05)
        assert (turned.index, turned.bound, turned.pvalue) == (found.index, found.bound, found.pvalue)
        assert {turned.more_likely_on, found.more_likely_on} == {"x", "y"}


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_rough_numbers_are_near_the_exact_ones(claim):
    """Within 7% of the bound, and a clearance above the quantile refutes."""
    count_p, count_q = np.array([3_000, 900]), np.array([800, 200])
    rough = rough_bound(count_p, count_q, 10_000, 10_000, claim, 2.0)
    clear = clearance(count_p, count_q, 10_000, 10_000, claim.with_parameter(0.2))
    for at, (a, b) in enumerate(zip(count_p.tolist(), count_q.tolist(), strict=True)):
        counts = Counts(count_x=a, runs_x=10_000, count_y=b, runs_y=10_000)
        exact = joint_test(counts, claim, alpha=0.0228)[1]
        assert rough[at] == pytest.approx(exact, rel=0.07)
        assert clear[at] > 2.5
        assert pvalue(counts, claim.with_parameter(0.2), alpha=0.0228) < 0.0228
