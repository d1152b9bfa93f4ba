"""Replays of user functions that invoke OpenDP measurements: the input's move, and the loss of the map for it."""

from __future__ import annotations

import math

import pytest

from dpaudit import PureDP, ReplayResult, Rows, ZeroConcentratedDP, find_worst_pair, replay
from dpaudit.audit.replay.replay_result import ReplayVerdict
from dpaudit.audit.replay.replayed_call import FindingKind

dp = pytest.importorskip("opendp.prelude", reason="OpenDP is an optional library")
dp.enable_features("contrib")

NUMBER = dp.atom_domain(T=int), dp.absolute_distance(T=int)
ROWS = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


def laplace(scale=1.0):
    return dp.m.make_laplace(*NUMBER, scale=scale)


def noisy_sum(rows):
    return laplace()(sum(rows))


def noisy_count(rows):
    return (ROWS >> dp.t.then_count() >> laplace())(rows)


def replayed(function, claim=1.0) -> ReplayResult:
    return replay(function, [1, 3], [1], claim=claim, adjacency="add-remove")


def test_the_map_states_the_loss_of_a_move():
    result = replayed(noisy_sum)
    (call,) = result.calls
    assert (call.moved, call.worst_loss, call.promised) == (3.0, 3.0, PureDP(3.0))
    assert result.has_excess
    line = noisy_sum.__code__.co_firstlineno + 1
    assert f"test_opendp_replays.py:{line} in noisy_sum: OpenDP measurement: its input moved by 3" in str(result)
    assert "return laplace()(sum(rows))" in str(result)


@pytest.mark.parametrize("function", [noisy_count, lambda rows: laplace().invoke(len(rows))])
def test_what_moves_by_one_step_is_bounded(function):
    result = replayed(function)
    assert result.verdict is ReplayVerdict.BOUNDED
    assert result.loss.epsilon == 1.0
    assert replayed(function, claim=0.9).has_excess


def test_two_measurements_add_up():
    def twice(rows):
        return noisy_count(rows), laplace(4.0)(sum(rows))

    result = replayed(twice)
    assert [finding.kind for finding in result.findings] == [FindingKind.SUM_ABOVE_CLAIM]
    assert result.loss.epsilon == 1.75


@pytest.mark.parametrize(("scale", "mu"), [(2.0, 1.5), (0.5, None)])
def test_gaussian_noise(scale, mu):
    """A normal law from scale 1 on; below it the discrete law differs, and the map's rho is compared."""

    def noisy(rows):
        return dp.m.make_gaussian(*NUMBER, scale=scale)(sum(rows))

    rho = 4.5 / scale**2
    result = replayed(noisy, ZeroConcentratedDP(rho * 0.99))
    assert result.has_excess
    assert result.calls[0].mu == (None if mu is None else pytest.approx(mu, rel=1e-9))
    assert f"rho >= {rho:.4g}" in str(result)
    assert not replayed(noisy, ZeroConcentratedDP(rho * 1.01)).has_excess


def test_vectors():
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)

    def histogram(rows):
        return dp.m.make_laplace(*domain, scale=2.0)([float(len(rows)), float(sum(rows))])

    (call,) = replayed(histogram).calls
    assert (call.moved, call.worst_loss) == (4.0, pytest.approx(2.0))


def test_noise_that_depends_on_the_data_is_a_finding_of_unknown_loss():
    def scaled(rows):
        return laplace(1.0 + len(rows))(sum(rows))

    result = replayed(scaled)
    assert [finding.kind for finding in result.findings] == [FindingKind.PARAMETERS_DIFFER]
    assert result.verdict is ReplayVerdict.OPEN


def test_a_queryable_is_not_recorded_and_said():
    def asked(rows):
        mids = dp.c.make_adaptive_composition(*ROWS, dp.max_divergence(), d_in=1, d_mids=[1.0])
        return mids(rows)(ROWS >> dp.t.then_count() >> laplace()), noisy_count(rows)

    result = replayed(asked)
    assert len(result.calls) == 1, "the count alone"
    assert result.unrecorded
    assert result.verdict is ReplayVerdict.OPEN


def test_a_search_guided_by_them():
    options = {"claim": 1.0, "adjacency": "add-remove", "runs": 2_000, "search_runs": 1_000, "jobs": 1}
    found = find_worst_pair(noisy_sum, Rows(values=(0, 1, 2, 7)), guide="replay", **options)
    assert abs(sum(found.x) - sum(found.y)) == 7
    assert found.is_refuted
    assert math.isfinite(found.audit.bound)
