"""Boundaries compared with closed forms, high precision and another accountant, and distributions of every boundary."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import ApproxDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP, TradeOffCurve, ZeroConcentratedDP
from dpaudit.audit.claims import renyi as coins
from dpaudit.audit.claims.claim import GroupClaim, claim_at
from dpaudit.audit.errors import ClaimError
from dpaudit.claims import Claim, NFoldComposition, ProbabilityPreservation

CLAIMS: list[Claim] = [
    PureDP(0.0), PureDP(1.0), PureDP(30.0), ApproxDP(1.0, 1e-5), ApproxDP(0.0, 0.2, bound_on="delta"), GaussianDP(1.0),
    GaussianDP(5.0), RenyiDP(2.0, 0.1), RenyiDP(1.5, 3.0), RenyiDP(50.0, 1.0), ZeroConcentratedDP(0.0),
    ZeroConcentratedDP(0.5), PrivacyProfile((0.0, 0.5, 1.0), (0.4, 0.2, 0.1)), TradeOffCurve((0.1, 0.4), (0.6, 0.2)),
    TradeOffCurve((0.0, 0.3), (0.7, 0.0)), TradeOffCurve((1e-3, 0.1), (0.1, 1e-6), excess=0.05),
    ProbabilityPreservation(2.0, 0.1), ProbabilityPreservation(20.0, 1.0), NFoldComposition(0.1, 4),
    NFoldComposition(1.0, 1), PureDP(0.5).group(3), ApproxDP(0.5, 0.01).group(2), GaussianDP(0.4).group(4),
    TradeOffCurve((0.1, 0.4), (0.6, 0.2)).group(2),
]  # fmt: skip

TINY = np.geomspace(1e-300, 1e-3, 40)
Q = np.concatenate([TINY, np.linspace(0.001, 0.999, 200), 1 - TINY[TINY > 1e-16][::-1]])
Q_REST = np.concatenate([1 - TINY, 1 - np.linspace(0.001, 0.999, 200), TINY[TINY > 1e-16][::-1]])


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
class TestEveryBoundary:
    """Every boundary is above the diagonal, nondecreasing, concave and its own mirror image."""

    def test_is_made_of_probabilities_above_the_diagonal_and_grows_with_q_and_the_parameter(self, claim):
        value, rest = claim.max_power(Q, Q_REST)
        assert np.all((value >= 0) & (value <= 1) & (rest >= 0) & (rest <= 1))
        np.testing.assert_allclose(value + rest, 1.0, rtol=0, atol=1e-7)
        assert np.all(value >= Q * (1 - 1e-12))
        assert np.all(rest <= Q_REST * (1 + 1e-12))
        assert np.all(np.diff(value) >= -1e-12)
        stronger = claim.with_parameter(min(claim.parameter * 1.5 + 0.05, 0.99 * claim.max_parameter))
        assert np.all(stronger.max_power(Q, Q_REST)[0] >= value * (1 - 1e-9))

    def test_is_concave(self, claim):
        value, _ = claim.max_power(np.linspace(0.0, 1.0, 401))
        assert np.all(np.diff(value, 2) <= 1e-6)

    def test_mirror_image(self, claim):
        """S on (x, y) and its complement on (y, x) are equivalent: B(1 − B(q)) = 1 − q where B is not flat."""
        q = np.linspace(0.01, 0.99, 99)
        if isinstance(claim, NFoldComposition):
            return  # the claim is for one direction, and its mirror image is another curve
        value, rest = claim.max_power(q)
        back, _ = claim.max_power(rest, value)
        inside = value < 1 - 1e-9
        assert np.all(back[inside] <= 1 - q[inside] + 1e-6)

    def test_parameter_of_inverts_the_boundary(self, claim):
        q = np.array([1e-9, 1e-3, 0.05, 0.3, 0.6])
        value, rest = claim.max_power(q)
        inside = (value < 1 - 1e-6) & (value > q * (1 + 1e-9))
        found = claim.parameter_of(value, q, rest)[inside]
        np.testing.assert_allclose(found, claim.parameter, rtol=1e-6, atol=1e-7)

    def test_shapes_and_ends(self, claim):
        assert claim.max_power(0.25)[0].shape == ()
        assert claim.max_power(np.full((2, 3), 0.25))[0].shape == (2, 3)
        none = np.empty((3, 0))
        assert claim.max_power(none)[0].shape == claim.parameter_of(none, none).shape == (3, 0)
        value, rest = claim.max_power([0.0, 1.0])
        assert value[0] <= 0.5
        assert (value[1], rest[1]) == (1.0, 0.0)


def quantile(q):
    """Φ⁻¹(q) with the digits of mpmath."""
    if q > 1e-20:
        return -mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * q)
    return mpmath.findroot(lambda z: mpmath.log(mpmath.ncdf(z)) - mpmath.log(q), (-40, -5), solver="anderson")


@pytest.mark.parametrize("q", ["1e-300", "1e-5", "0.2", "0.9"])
def test_boundaries_at_high_precision(q):
    with mpmath.workdps(60):
        exact = mpmath.mpf(q)
        e = mpmath.e
        expected = {
            PureDP(1.0): min(e * exact, 1 - (1 - exact) / e),
            ApproxDP(1.0, 0.125): min(1, e * exact + 0.125, 1 - (1 - 0.125 - exact) / e),
            GaussianDP(1.0): mpmath.ncdf(quantile(exact) + 1),
        }
        for claim, value in expected.items():
            found, rest = (float(v) for v in claim.max_power(float(q)))
            assert found == pytest.approx(float(value), rel=1e-11), claim
            assert rest == pytest.approx(float(1 - value), rel=1e-11), claim


@pytest.mark.parametrize("rest", [1e-16, 1e-3])
def test_complement_is_accurate_near_one(rest):
    assert float(PureDP(2.0).max_power(1 - rest, rest)[1]) == pytest.approx(math.exp(-2) * rest, rel=1e-13)
    z = mpmath.findroot(lambda z: mpmath.log(mpmath.ncdf(z)) - mpmath.log(rest), (-9.5, 0), solver="anderson")
    assert float(GaussianDP(1.0).max_power(1 - rest, rest)[1]) == pytest.approx(float(mpmath.ncdf(z - 1)), rel=1e-10)


@pytest.mark.parametrize(("order", "divergence"), [(2.0, 0.1), (1.2, 0.5), (8.0, 2.0)])
@pytest.mark.parametrize("q", [1e-8, 1e-4, 0.3, 0.95])
def test_renyi_boundary_solves_its_equation(order, divergence, q):
    """By definition, the larger of the two divergences of the coins equals the divergence of the claim."""
    value, rest = (float(v) for v in RenyiDP(order, divergence).max_power(q))

    def coin(p, p_rest, r, r_rest):
        return math.log(p**order * r ** (1 - order) + p_rest**order * r_rest ** (1 - order)) / (order - 1)

    assert max(coin(value, rest, q, 1 - q), coin(q, 1 - q, value, rest)) == pytest.approx(divergence, rel=1e-7)


@pytest.mark.parametrize("seed", range(2))
def test_renyi_boundary_is_never_below_the_true_one(seed):
    """400 digits also resolve divergences that rounding hides: any order, and divergences from 1e-18 on."""
    rng = np.random.default_rng(seed)
    for _ in range(40):
        order, divergence = min(1 + 10 ** rng.uniform(-6, 6), 9e5), 10 ** rng.uniform(-18, 2)
        q = 10 ** rng.uniform(-20, -0.1)
        q, q_rest = (q, 1 - q) if rng.random() < 0.5 else (1 - q, q)
        if q_rest == 0.0 or q == 0.0:
            continue
        p, p_rest = (float(v) for v in RenyiDP(order, divergence).max_power(q, q_rest))
        if p_rest < 1e-299:  # p is 1 up to underflow
            continue
        with mpmath.workdps(400):
            larger = larger_divergence(mpmath.mpf(order), _exactly(p, p_rest), _exactly(q, q_rest))
            assert larger >= mpmath.mpf(divergence)


def larger_divergence(a, one, other):
    """The larger of the divergences of order a of two coins from each other, in mpmath."""
    (p, p_rest), (q, q_rest) = one, other
    forward = p**a * q ** (1 - a) + p_rest**a * q_rest ** (1 - a)
    backward = q**a * p ** (1 - a) + q_rest**a * p_rest ** (1 - a)
    return mpmath.log(max(forward, backward)) / (a - 1)


def test_divergence_of_coins_is_the_larger_of_the_two():
    """Agree with 60 digits up to rounding of the log-odds, also near order 1, where the moments are nearly 1."""
    rng = np.random.default_rng(0)
    with mpmath.workdps(60):
        for _ in range(100):
            order = 1 + 10 ** rng.uniform(-6, 4)
            logits = np.sort(rng.normal(0.0, 10 ** rng.uniform(-1, 2), 2))
            q, p = ((1 / (1 + mpmath.exp(-t)), 1 / (1 + mpmath.exp(t))) for t in map(float, logits))
            larger, (q, q_rest) = float(larger_divergence(mpmath.mpf(order), p, q)), q
            ours = coins.Coins.of(np.float64(q), np.float64(q_rest)).divergence(np.float64(order), logits[1])
            assert float(ours) == pytest.approx(larger, rel=1e-12, abs=1e-14 * (1 + abs(logits).max()))


@pytest.mark.parametrize("order", [1 + 1e-6, 2.0, 9e5])
@pytest.mark.parametrize("divergence", [1e-300, 0.3, 1e4, 1e308])
def test_renyi_boundary_is_found_in_few_steps(order, divergence, monkeypatch):
    steps, real = [], coins._solve

    def solved(function, low, high, start):
        def counted(logit):
            steps.append(1)
            return function(logit)

        return real(counted, low, high, start)

    monkeypatch.setattr(coins, "_solve", solved)
    small = np.geomspace(1e-300, 0.5, 50)
    q, rest = np.concatenate([small, 1 - small]), np.concatenate([1 - small, small])
    value, complement = RenyiDP(order, divergence).max_power(q, rest)
    assert np.all(value >= q)
    assert np.all(complement <= rest)
    assert len(steps) <= 75  # bisection alone takes about 50 steps


def _exactly(value, complement):
    """Return a probability and its complement, both exact given the smaller of the two."""
    small = mpmath.mpf(min(value, complement))
    return (small, 1 - small) if value < complement else (1 - small, small)


@pytest.mark.parametrize("rho", [0.0012, 0.5, 10.5])
def test_zcdp_boundary_is_the_least_over_thousands_of_orders(rho):
    """The boundary is near the minimum, in standard deviations of one run, also where the best order falls to 1."""
    small = np.geomspace(1e-9, 0.5, 12)
    q, q_rest = np.append(small, 1 - small[::-1]), np.append(1 - small, small[::-1])
    orders = 1.0 + np.exp(np.linspace(-13.0, 10.0, 2000))[:, None]
    least, rest_of_least = coins.probabilities(coins.Coins.of(q, q_rest).most(orders, rho * orders).min(axis=0))
    value, rest = ZeroConcentratedDP(rho).max_power(q, q_rest)
    excess = np.where(value < 0.5, value - least, rest_of_least - rest) / np.sqrt(least * rest_of_least + 1e-300)
    assert excess.max() < 1e-3  # the grid has orders nearer to 1 than the search
    assert np.median(excess) < 1e-8
    assert excess.min() > -1e-3  # the grid omits some orders


@pytest.mark.parametrize("rho", [31.0, 311.0])
def test_zcdp_boundary_is_the_least_over_orders_where_rho_is_large(rho):
    """Near q = e^−ρ the best order is sensitive to p; compared in log-odds, for p from 1e-200 to 1 − 1e-200."""
    log_q = np.append(-rho * np.linspace(0.7, 1.3, 60), np.log([1e-3, 0.0077, 0.1]))
    given, orders = coins.Coins.of(np.exp(log_q), -np.expm1(log_q)), 1.0 + np.geomspace(3e-5, 10.0, 1500)[:, None]
    least = given.most(orders, rho * orders).min(axis=0)
    found = given.most_at_any_order(rho)[0]
    assert np.all((found <= least + 1e-6)[np.abs(least) < 460.0])
    assert np.all(found >= least - 1e-3)  # the grid omits some orders


def test_zcdp_boundary_at_the_limit_of_order_one():
    """For p + q = 1 the smallest order is the most informative: the Kullback-Leibler divergence is at most ρ."""
    for rho, q in [(0.1, 0.3888), (1.0, 0.175744), (5.0, 0.00593)]:
        p = float(ZeroConcentratedDP(rho).max_power(q)[0])
        divergence = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
        assert rho * (1 - 1e-9) <= divergence <= rho * (1 + 5e-5)
        assert float(ZeroConcentratedDP(rho).parameter_of(p, q)) == pytest.approx(rho, rel=1e-4)


@pytest.mark.parametrize("rho", [0.003, 0.2, 8.0])
def test_zcdp_boundary_grows_with_the_parameter_and_with_q(rho):
    """The boundary grows in small and in tiny steps, so that the regions of the exact test are nested."""
    q = np.linspace(0.01, 0.97, 60)
    for step in (1e-10, 1e-6, 1e-3):
        found = [ZeroConcentratedDP(rho * (1 + step * k)).max_power(q) for k in range(20)]
        deviation = np.sqrt(found[0][0] * found[0][1] + 1e-300)
        assert (np.diff([value for value, _ in found], axis=0) / deviation).min() >= -1e-8
        along = np.add.outer(step * np.arange(20), q)
        assert (np.diff(ZeroConcentratedDP(rho).max_power(along)[0], axis=0) / deviation).min() >= -1e-8


def test_profile_of_a_privacy_loss_distribution():
    """The profile of the Gaussian mechanism from an independent accountant has the boundary of GDP."""
    pytest.importorskip("dp_accounting", reason="pip install 'dpaudit[accounting]'")
    from dp_accounting.pld import privacy_loss_distribution

    pld = privacy_loss_distribution.from_gaussian_mechanism(1.0, value_discretization_interval=1e-3)
    claim = PrivacyProfile.from_pld(pld)
    q = np.linspace(0.001, 0.9, 50)
    ours, other = GaussianDP(1.0).max_power(q)[0], claim.max_power(q)[0]
    assert np.all(other >= ours - 1e-12)  # a grid of epsilons and a pessimistic accountant can only enlarge it
    np.testing.assert_allclose(other, ours, rtol=2e-3)


def test_group_claims():
    assert PureDP(1.0).group(1) == PureDP(1.0)
    small = np.array([1e-9, 1e-4])
    np.testing.assert_allclose(PureDP(1.0).group(3).max_power(small)[0], math.exp(3) * small, rtol=1e-12)
    assert np.all(PureDP(1.0).group(3).max_power(Q)[0] <= PureDP(3.0).max_power(Q)[0] * (1 + 1e-12))
    np.testing.assert_allclose(
        GaussianDP(0.5).group(4).max_power(Q[20:-20])[0], GaussianDP(2.0).max_power(Q[20:-20])[0], rtol=1e-9
    )
    # Vadhan's sum δ(1 + e^ε + …) at distance k, for an event that is impossible on y.
    assert float(ApproxDP(0.5, 0.01).group(3).max_power(0.0)[0]) == pytest.approx(
        0.01 * (1 + math.exp(0.5) + math.exp(1.0)), rel=1e-9
    )
    parameter = float(ApproxDP(1.0, 0.01).group(3).parameter_of(0.5, 0.0))
    assert 0.01 * (1 + math.exp(parameter) + math.exp(2 * parameter)) == pytest.approx(0.5, rel=1e-9)
    assert float(ApproxDP(1.0, 0.01).group(3).parameter_of(1.0, 0.5)) == pytest.approx(parameter, rel=1e-9)
    assert ZeroConcentratedDP(1e305).group(100).max_power([0.25])[0].tolist() == [1.0], "k²ρ overflows"


@pytest.mark.parametrize(("rho", "distance"), [(0.1, 2), (0.05, 5)])
def test_composed_zcdp_is_never_above_the_group_theorem(rho, distance):
    """The group theorem with k²ρ bounds the composed boundary; both boundaries come from a search."""
    composed = ZeroConcentratedDP(rho).group(distance).max_power(Q, Q_REST)
    direct = ZeroConcentratedDP(distance**2 * rho).max_power(Q, Q_REST)
    excess = [np.log(direct[1] / composed[1]), np.log(composed[0] / direct[0])]
    assert np.max(excess / (1.0 - np.log(direct[::-1]))) < 1e-8


@given(st.floats(0, 20), st.floats(0, 0.9), st.floats(1e-200, 1 - 1e-9))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_approximate_dp_is_the_largest_that_keeps_both_inequalities(epsilon, delta, q):
    value, rest = (float(v) for v in ApproxDP(epsilon, delta).max_power(q))
    assert value <= math.exp(epsilon) * q + delta + 1e-12
    assert 1 - q <= math.exp(epsilon) * rest + delta + 1e-9
    larger = min(1.0, value * (1 + 1e-6) + 1e-300)
    if value < 1 - 1e-6 and rest > 1e-9:
        assert larger > math.exp(epsilon) * q + delta or 1 - q > math.exp(epsilon) * (1 - larger) + delta


@pytest.mark.parametrize("base", [PureDP(1.0), ZeroConcentratedDP(0.5)], ids=str)
def test_no_parameter_at_a_distance_allows_what_never_is_on_the_other_side(base):
    """A finite privacy parameter would reach the doubles next to 0 and 1."""
    assert float(base.group(5).parameter_of(0.5, 0.0)) == math.inf
    assert float(base.group(5).parameter_of(1.0, 0.5)) == math.inf


def test_claim_at_a_distance():
    assert claim_at(PureDP(0.5), 1) == PureDP(0.5)
    assert claim_at(PureDP(0.5), 2) == PureDP(0.5).group(2)
    assert claim_at(lambda d: PureDP(0.25 * d), 4) == PureDP(1.0)
    assert claim_at(PureDP(0.5).group(3), 1) == PureDP(0.5).group(3)  # a pair declared at this distance


PARAMETERS = (
    PureDP, GaussianDP, ZeroConcentratedDP, lambda v: ApproxDP(v, 1e-5), lambda v: RenyiDP(2.0, v),
    lambda v: RenyiDP(v, 1.0), lambda v: ProbabilityPreservation(2.0, v), lambda v: ProbabilityPreservation(v, 1.0),
    lambda v: NFoldComposition(v, 3), lambda v: NFoldComposition(1.0, v),
)  # fmt: skip
PURE = PureDP(1.0)


def test_parameters_outside_their_range_are_refused():
    for make, value in itertools.product(PARAMETERS, (-1.0, math.nan, math.inf)):
        with pytest.raises(ClaimError, match="is not allowed; use"):
            make(value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ApproxDP(1.0, 1.0), "use 0 <= delta < 1"), (lambda: ApproxDP(1.0, math.nan), "use 0 <= delta < 1"),
        (lambda: NFoldComposition(1.0, 2.5), "n=2.5 is not a whole number"),
        (lambda: PrivacyProfile((0.0, 1.0), (0.5,)), "pair up"), (lambda: PrivacyProfile((), ()), "non-empty"),
        (lambda: PrivacyProfile((0.0,), (math.nan,)), "from 0 to 1"),
        (lambda: PrivacyProfile(3, (0.1,)), "epsilons"), (lambda: PrivacyProfile((0.0,), ("x",)), "deltas"),
        (lambda: TradeOffCurve((0.1, 0.1), (0.5, 0.4)), "do not form a trade-off curve"),
        (lambda: TradeOffCurve((0.1, 0.5), (0.5, 0.6)), "do not form a trade-off curve"),
        (lambda: TradeOffCurve((0.1, 0.2, 0.3), (0.8, 0.75, 0.2)), "convex"),
        (lambda: TradeOffCurve((10**400,), (0.1,)), "false_positive"),
        (lambda: PURE.max_power([1.5]), "not a probability"), (lambda: GroupClaim(PURE, 2.5), "is not a group claim"),
        (lambda: PURE.group(math.inf), "distance"), (lambda: PURE.group(10**400), "distance"),
        (lambda: claim_at(lambda d: 3, 1), "returned 3"), (lambda: claim_at(PURE, 1.5), r"distance=1\.5"),
        (lambda: claim_at(PureDP(0.5).group(3), 3), "already holds at a distance, and distance=3 would group it again"),
    ],
)  # fmt: skip
def test_what_is_no_claim_is_refused(call, message):
    with pytest.raises(ClaimError, match=message):
        call()
