"""Replays of user functions that invoke OpenDP measurements: the input's move, and the loss of the map for it."""

from __future__ import annotations

import math

import pytest

from dpaudit import GaussianDP, PureDP, ReplayResult, Rows, ZeroConcentratedDP, find_worst_pair, replay
from dpaudit.audit.replay.replay_result import FindingKind, ReplayVerdict
from dpaudit.mechanisms.adapters import from_opendp

dp = pytest.importorskip("opendp.prelude", reason="OpenDP is an optional library")
dp.enable_features("contrib", "honest-but-curious")

NUMBER = dp.atom_domain(T=int), dp.absolute_distance(T=int)
ROWS = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


def laplace(scale=1.0):
    return dp.m.make_laplace(*NUMBER, scale=scale)


def noisy_sum(rows):
    return laplace()(sum(rows))


COUNT = ROWS >> dp.t.then_count() >> laplace()
ONE = laplace()


def noisy_count(rows):
    return COUNT(rows)


def replayed(function, claim=1.0) -> ReplayResult:
    return replay(function, [1, 3], [1], claim=claim, adjacency="add-remove")


def test_the_map_states_the_loss_of_a_move():
    result = replayed(noisy_sum)
    (call,) = result.calls
    assert (call.moved, call.worst_loss, call.promised) == (3.0, 3.0, PureDP(3.0))
    assert not result.has_excess  # the map bounds the loss from above
    line = noisy_sum.__code__.co_firstlineno + 1
    assert f"test_opendp_replays.py:{line} in noisy_sum: OpenDP measurement: its input moved by 3" in str(result)
    assert "return laplace()(sum(rows))" in str(result)


@pytest.mark.parametrize("function", [noisy_count, lambda rows: ONE.invoke(len(rows))])
def test_a_map_is_stated_and_proves_nothing(function):
    result = replayed(function)
    assert (result.verdict, result.loss.epsilon, result.findings) == (ReplayVerdict.OPEN, 1.0, ())
    assert "is the one that it states for itself" in str(result)
    (finding,) = replayed(function, claim=0.9).findings
    assert finding.kind is FindingKind.LOSS_ABOVE_CLAIM
    assert "that is what the primitive allows at most" in finding.message


def test_the_map_of_a_chain_may_be_wrong():
    """A tree whose map is smaller than its stability, in releases without its repair."""
    domain = dp.vector_domain(dp.atom_domain(T=int), size=4)
    tree = dp.t.make_b_ary_tree(domain, dp.l2_distance(T=int), leaf_count=4, branching_factor=4)
    claimed = from_opendp(tree >> dp.m.then_gaussian(scale=4.0), d_in=2)
    assert replay(claimed, [0, 0, 0, 0], [1, 1, 1, 1]).verdict is ReplayVerdict.OPEN
    same = replay(claimed, [0, 0, 0, 0], [0, 0, 0, 0])
    assert same.loss.rho == 0.0


@pytest.mark.parametrize(
    "made",
    [
        lambda rows: laplace()(len(rows)),
        lambda rows: (ONE >> (lambda value: value + 100 * len(rows)))(len(rows)),
        lambda rows: (ROWS >> dp.t.then_count_by_categories(sorted(set(rows))) >> dp.m.then_laplace(1.0))(rows),
    ],
)
def test_a_measurement_that_is_made_in_the_mechanism_is_open(made):
    """What it does with its result may depend on the data."""
    result = replay(made, [1, 3, 3], [1, 3], claim=1.0)
    assert result.verdict is ReplayVerdict.OPEN
    assert "not the same measurement" in str(result)


def test_two_measurements_add_up():
    def twice(rows):
        return noisy_count(rows), laplace(4.0)(sum(rows))

    result = replayed(twice)
    assert [finding.kind for finding in result.findings] == [FindingKind.SUM_ABOVE_CLAIM]
    assert result.loss.epsilon == 1.75


@pytest.mark.parametrize("scale", [2.0, 0.5])
def test_gaussian_noise(scale):
    """The map's rho is compared; a map in rho says nothing of other claims."""
    gaussian = dp.m.make_gaussian(*NUMBER, scale=scale)

    def noisy(rows):
        return gaussian(sum(rows))

    rho = 4.5 / scale**2
    result = replayed(noisy, ZeroConcentratedDP(rho * 0.99))
    assert [finding.kind for finding in result.findings] == [FindingKind.LOSS_ABOVE_CLAIM]
    assert result.calls[0].mu is None
    assert f"rho >= {rho:.4g}" in str(result)
    result = replayed(noisy, ZeroConcentratedDP(rho * 1.01))
    assert (result.verdict, result.findings) == (ReplayVerdict.OPEN, ())
    assert result.loss.rho == pytest.approx(rho)
    assert replayed(noisy, GaussianDP(9.0)).verdict is ReplayVerdict.OPEN


def test_a_map_in_rho_need_not_be_that_of_gaussian_noise():
    """Laplace noise of loss 1 does not keep 1-GDP, though both are 0.5-zCDP; and it keeps 1-DP."""
    converted = dp.c.make_pureDP_to_zCDP(ONE)
    for claim in (GaussianDP(1.0), PureDP(1.0)):
        assert replayed(lambda rows: converted(len(rows)), claim).verdict is ReplayVerdict.OPEN


def test_whole_numbers_beyond_the_doubles():
    """As floats the two inputs are equal."""
    large = dp.m.make_laplace(dp.atom_domain(T="i64"), dp.absolute_distance(T="i64"), scale=1.0)
    result = replay(lambda rows: large(sum(rows)), [2**60, 1], [2**60], claim=0.1)
    assert result.calls[0].worst_loss == 1.0


def test_noise_about_zero_that_decides_something():
    assert replayed(lambda rows: sum(rows) + ONE(0) > 50).verdict is ReplayVerdict.OPEN


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


@pytest.mark.evidence
def test_a_search_guided_by_them():
    options = {"claim": 1.0, "adjacency": "add-remove", "runs": 2_000, "search_runs": 1_000, "jobs": 1}
    found = find_worst_pair(noisy_sum, Rows(values=(0, 1, 2, 7)), guide="replay", **options)
    assert abs(sum(found.x) - sum(found.y)) == 7
    assert found.is_refuted
    assert math.isfinite(found.audit.bound)
