"""The certain limits contain closed forms, quadratures of 20 digits, enumerations, and what dp-accounting says."""

import itertools
import math

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting import pld
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import norm

from dpaudit import ApproxDP, PureDP
from dpaudit.accountants import Case, Gaussian, Laplace, true_delta, true_epsilon
from dpaudit.audit.accounting import privacy_loss as module
from dpaudit.audit.errors import ClaimError, OptionError

EPS = np.finfo(float).eps
NEARLY_ALL_LEAKS = ApproxDP(1.0, 1.0 - 2.0**-53)


def contains(limits, exact, width):
    """Whether limits contain a number, and are as narrow as stated, relative to it."""
    return limits.lower <= exact <= limits.upper and limits.upper - limits.lower <= width * exact


# One mechanism, and Gaussian noise.


@pytest.mark.parametrize(
    ("noise", "steps", "delta"), [(1.0, 1, 1e-5), (0.3, 1, 1e-3), (50.0, 100, 1e-9), (4.0, 9, 0.2)]
)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_gaussian_noise_without_sampling_has_a_closed_form(noise, steps, delta, adjacency):
    mu = math.sqrt(steps) / noise * (2.0 if adjacency == "replace" else 1.0)

    def profile(epsilon):  # Balle & Wang (2018), Theorem 8
        return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))

    exact = 0.0 if profile(0.0) <= delta else brentq(lambda e: profile(e) - delta, 0.0, 300.0, xtol=1e-13, rtol=1e-13)
    case = Case(((Gaussian(noise), steps),), delta, adjacency)
    assert contains(true_epsilon(case), exact, 1e-4)
    assert contains(true_delta(case, 0.5), profile(0.5), 1e-2)


def hockey_stick(p, q, epsilon, points):
    """The integral of (p − e^ε q)₊ by quadrature of 20 digits between points, of which the roots are among."""
    with mpmath.workdps(20):
        factor = mpmath.exp(epsilon)
        return float(mpmath.quad(lambda z: max(p(z) - factor * q(z), mpmath.mpf(0)), points))


def mixture(rate, moved, noise):
    """The density of a sum with Gaussian noise that is moved with probability rate."""
    return lambda z: (1 - rate) * mpmath.npdf(z, 0, noise) + rate * mpmath.npdf(z, moved, noise)


@pytest.mark.parametrize(("noise", "rate", "epsilon"), [(1.0, 0.01, 0.2), (0.5, 0.1, 1.0)])
def test_one_step_with_sampling_is_that_of_a_quadrature(noise, rate, epsilon):
    with_one, without, opposite = mixture(rate, 1, noise), mixture(rate, 0, noise), mixture(rate, -1, noise)

    def delta(p, q):  # the sign of p − e^ε q changes once
        low, high = -60.0 * noise, 60.0 * noise
        difference = lambda z: float(mpmath.log(p(mpmath.mpf(z))) - mpmath.log(q(mpmath.mpf(z)))) - epsilon  # noqa: E731
        if difference(low) * difference(high) > 0:
            return 0.0
        root = brentq(difference, low, high, xtol=1e-14)
        return hockey_stick(p, q, epsilon, [low, root - 8 * noise, root, root + 8 * noise, high])

    exact = max(delta(with_one, without), delta(without, with_one))
    for adjacency, value in (("add-remove", exact), ("zero-out", exact), ("replace", delta(with_one, opposite))):
        limits = true_delta(Case.dp_sgd(noise, rate, 1, adjacency=adjacency), epsilon)
        assert contains(limits, value, 2e-3), adjacency


def test_two_steps_with_sampling_are_those_of_a_quadrature():
    """The first step is integrated; the second has a closed form at each of its losses."""
    noise, rate, epsilon = 0.8, 0.1, 1.5

    def one_step(gamma):  # δ of the second step at ln(gamma), of removal
        if gamma <= 1 - rate:
            return 1 - gamma
        z = noise**2 * mpmath.log((gamma - (1 - rate)) / rate) + 0.5
        above = [mpmath.ncdf((moved - z) / noise) for moved in (0, 1)]
        return (1 - rate) * above[0] + rate * above[1] - gamma * above[0]

    reveals = noise**2 * math.log((math.exp(epsilon) / (1 - rate) - (1 - rate)) / rate) + 0.5  # alone, from here on
    with mpmath.workdps(16):
        p, q = mixture(rate, 1, noise), mixture(rate, 0, noise)
        exact = float(
            mpmath.quad(lambda z: p(z) * one_step(mpmath.exp(epsilon) * q(z) / p(z)), [-6, 0, 1, reveals, 4, 9])
        )
    assert contains(true_delta(Case.dp_sgd(noise, rate, 2), epsilon, tolerance=1e-5), exact, 1e-4)


def inverted(noise, rate, steps, epsilon):
    """δ(ε) as the inverse Laplace transform of E[e^{sL}]ⁿ e^{−sε} / (s (s + 1)), without a grid of losses or an FFT."""
    z = np.arange(-12.0 * noise, 12.0 * noise + 1.0, 0.02 * noise)
    density = norm.pdf(z, 0.0, noise) * 0.02 * noise
    loss = np.logaddexp(np.log1p(-rate), np.log(rate) + (z - 0.5) / noise**2)
    found = []
    for losses, weights in ((loss, density * np.exp(loss)), (-loss, density)):  # removed, and added
        moment = lambda s, x=losses, w=weights: np.log(w @ np.exp(s * x))  # noqa: E731
        reals = np.geomspace(0.05, 60.0, 300)
        real = min(reals, key=lambda a: steps * moment(a) - a * epsilon - np.log(a * (a + 1.0)))
        spread = math.sqrt(steps * (moment(real + 0.01) - 2.0 * moment(real) + moment(real - 0.01)) / 1e-4)
        points = real + 1j * np.arange(0.0, 15.0, 0.05) / spread
        values = np.array([steps * moment(s) - s * epsilon - np.log(s * (s + 1.0)) for s in points])
        parts = np.exp(values - values[0]).real
        found.append(math.exp(values[0].real) * (parts.sum() - 0.5) * 0.05 / spread / math.pi)
    return max(found)


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "delta"), [(1.0, 0.01, 1000, 1e-5), (3.33948, 0.577176, 852, 3.72813e-12)]
)
def test_many_steps_with_sampling_are_those_of_an_inverse_transform(noise, rate, steps, delta):
    low, high = true_epsilon(Case.dp_sgd(noise, rate, steps, delta), tolerance=1e-3)
    assert inverted(noise, rate, steps, low) > delta > inverted(noise, rate, steps, high)
    assert contains(true_delta(Case.dp_sgd(noise, rate, steps), high), inverted(noise, rate, steps, high), 0.02)


def test_laplace_noise_has_a_closed_form():
    for scale, epsilon in ((1.0, 0.3), (4.0, 0.1)):
        exact = -math.expm1((epsilon - 1 / scale) / 2)
        assert contains(true_delta(Case(((Laplace(scale), 1),)), epsilon), exact, 1e-4)
        assert contains(true_delta(Case(((Laplace(2 * scale), 1),), 0.0, "replace"), epsilon), exact, 1e-4)
        rate = 0.3  # with sampling, δ'(ln(1 + q (e^ε − 1))) = q δ(ε)
        limits = true_delta(Case(((Laplace(scale, rate), 1),)), math.log1p(rate * math.expm1(epsilon)))
        assert contains(limits, rate * exact, 1e-3)


# Compositions.


@pytest.mark.parametrize(
    ("mechanisms", "width"),
    [
        (((PureDP(0.4), 9),), 1e-8),
        (((PureDP(0.1), 4), (PureDP(0.25), 3)), 1e-8),
        (((PureDP(0.3), 2), (ApproxDP(0.2, 0.01), 3), (ApproxDP(0.5, 1e-4), 2)), 1e-8),
        (((PureDP(math.sqrt(2) / 10), 3), (PureDP(math.pi / 10), 2)), 1e-2),  # no grid has both
    ],
)
def test_compositions_of_guarantees_are_enumerated(mechanisms, width):
    """Kairouz, Oh & Viswanath (2017): four outcomes of each mechanism, of which two leak the dataset."""
    outcomes, epsilon = [], 0.3
    for claim, count in mechanisms:
        delta = getattr(claim, "delta", 0.0)
        high, low = ((1 - delta) / (1 + math.exp(sign * claim.epsilon)) for sign in (-1, 1))
        outcomes += [[(delta, 0.0), (high, low), (low, high), (0.0, delta)][not delta : 3 + bool(delta)]] * count
    products = (np.prod(each, axis=0) for each in itertools.product(*outcomes))
    exact = math.fsum(max(p - math.exp(epsilon) * q, 0.0) for p, q in products)
    assert contains(true_delta(Case(mechanisms), epsilon, tolerance=1e-2), exact, width)
    assert contains(true_epsilon(Case(mechanisms, exact), tolerance=1e-2), epsilon, width)


def test_pure_dp_of_all_is_the_sum_of_the_largest_losses():
    assert contains(true_epsilon(Case(((PureDP(0.2), 3), (Laplace(4.0), 2)), 0.0)), 1.1, 1e-14)
    for rate in (0.01, 0.5, 0.99):  # the loss of a record added is at most −ln(1 − q(1 − e^{−1/b})), which is less
        exact = math.log1p(rate * math.expm1(1 / 2.0))
        assert contains(true_epsilon(Case(((Laplace(2.0, rate), 3),), 0.0)), 3 * exact, 1e-14)


def test_an_epsilon_of_zero_or_infinity_is_exact():
    for case in (Case.dp_sgd(1.0, 0.01, 1000, 0.999), Case.dp_sgd(1e4, 1e-9, 1), Case(((PureDP(0.0), 3),))):
        assert true_epsilon(case) == (0.0, 0.0)
    for claim, count, delta in ((Gaussian(3.0), 1, 0.0), (ApproxDP(0.1, 1e-3), 5, 1e-3), (NEARLY_ALL_LEAKS, 1, 0.5)):
        assert true_epsilon(Case(((claim, count),), delta)) == (math.inf, math.inf)


@pytest.mark.parametrize(("noise", "rate", "steps", "delta"), [(0.8, 0.1, 50, 1e-5), (2.0, 0.2, 50, 1e-10)])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_the_limits_are_around_those_of_another_library(noise, rate, steps, delta, adjacency):
    """Its discretisation is pessimistic, so that it may be above the limits, by little."""
    relation = {"add-remove": "ADD_OR_REMOVE_ONE", "replace": "REPLACE_ONE"}[adjacency]
    options = {"sampling_prob": rate, "neighboring_relation": dp_accounting.NeighboringRelation[relation]}
    theirs = pld.privacy_loss_distribution.from_gaussian_mechanism(
        noise, value_discretization_interval=1e-3, **options
    ).self_compose(steps)
    low, high = true_epsilon(Case.dp_sgd(noise, rate, steps, delta, adjacency), tolerance=2e-3)
    assert low <= theirs.get_epsilon_for_delta(delta) <= high * 1.001
    assert high - low < 2e-3 * high


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_losses_that_overflow_leave_limits(adjacency):
    """With noise that reveals whether the record is in the sample, δ is q."""
    for noise, rate in ((0.02, 0.5), (0.0136, 7e-4), (0.0207, 0.999)):
        assert contains(true_delta(Case.dp_sgd(noise, rate, 1, adjacency=adjacency), 2.0), rate, 1e-8)
        low, high = true_epsilon(Case.dp_sgd(noise, rate, 1, 0.8 * rate, adjacency))
        assert low > 500.0
        assert math.isinf(high)
    for epsilon in (600.0, 800.0):
        low, high = true_epsilon(Case(((PureDP(epsilon), 1),)))
        assert 550.0 < low < high < epsilon * (1.0 + 1e-14)


def test_a_delta_near_one_is_within_its_limits():
    assert contains(true_delta(Case(((ApproxDP(0.0, 0.5), 30),)), 0.0), 1.0 - 2.0**-30, 1e-14)
    assert contains(true_delta(Case(((NEARLY_ALL_LEAKS, 1),)), 0.0), NEARLY_ALL_LEAKS.delta, 1e-13)


def test_limits_are_monotone_and_ordered():
    def limits(noise=1.0, rate=0.05, steps=40, delta=1e-5, adjacency="add-remove"):
        found = true_epsilon(Case.dp_sgd(noise, rate, steps, delta, adjacency), tolerance=1e-2)
        assert found.lower <= found.upper
        return found

    start = limits()
    more = [{"noise": 0.8}, {"rate": 0.07}, {"steps": 60}, {"delta": 1e-6}, {"adjacency": "replace"}]
    assert all(limits(**each).lower > start.upper for each in more)
    assert limits(adjacency="zero-out") == start
    composed = Case(((Gaussian(1.0, 0.05), 15), (Gaussian(1.0, 0.05), 25)))
    assert contains(true_epsilon(composed, tolerance=1e-2), 0.5 * sum(start), 2e-2)


def test_many_small_steps_have_limits_that_are_certain_but_wide(monkeypatch):
    """Where the grid may not be fine enough, the limits stay apart and do not cross."""
    monkeypatch.setattr(module, "_EFFORT", module._Effort(most=2**12))
    case = Case.dp_sgd(0.7, 1e-3, 200, 1e-6)
    wide = module._limits.__wrapped__(case, None, 1e-5)
    monkeypatch.undo()
    low, high = true_epsilon(case, tolerance=3e-2)
    assert wide.lower <= low <= high <= wide.upper
    assert wide.upper > 1.05 * wide.lower


# What the limits assume of floating-point arithmetic.


def test_normal_tails_have_the_relative_error_that_the_limits_assume():
    points = np.concatenate([np.linspace(-37.0, 8.0, 150), -np.geomspace(1e-9, 1.0, 50)])
    with mpmath.workdps(40):
        errors = [abs(float(mpmath.mpf(float(ndtr(x))) / mpmath.ncdf(mpmath.mpf(float(x))) - 1)) for x in points]
    # Squares of arguments are rounded too: an error of the argument, as of the loss.
    assert max(error / (1.0 + x * x) for error, x in zip(errors, points, strict=True)) < 4 * EPS


def test_transforms_have_the_error_that_the_limits_assume():
    rng = np.random.default_rng(0)
    size = 2**8
    angles = np.outer(np.arange(size), np.arange(size)) % size
    turns = np.exp(np.longdouble(-2) * np.pi * 1j * angles.astype(np.longdouble) / size).astype(np.clongdouble)
    for power in (0, 30):
        values = rng.random(size) ** power
        exact = turns @ values.astype(np.longdouble)
        error = np.linalg.norm((np.fft.fft(values) - exact).astype(complex)) / np.linalg.norm(exact.astype(complex))
        assert error < 0.5 * module._FFT * math.log2(size)


def test_a_grid_that_is_not_rounded_down_is_seen(monkeypatch):
    """The wrong variant: losses at the upper ends of their cells."""
    merged = module._merged

    def upward(pair, count, first, n, width):
        grid = merged(pair, count, first, n, width)
        return grid._replace(beyond=grid.beyond + 0.5 * width)

    exact = true_epsilon(Case.dp_sgd(1.0, 0.05, 10), tolerance=1e-5).upper
    monkeypatch.setattr(module, "_merged", upward)
    assert module._limits.__wrapped__(Case.dp_sgd(1.0, 0.05, 10), None, 1e-2).lower > exact


# Cases.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(0.0), "noise_multiplier=0.0 is not allowed"),
        (lambda: Gaussian(1.0, 1.5), "sampling_rate=1.5 is not allowed"),
        (lambda: Laplace(math.nan), "noise_multiplier=nan is not allowed"),
        (lambda: Case(()), "a case without mechanisms"),
        (lambda: Case(((Gaussian(1.0), 0),)), "Gaussian 1 is run 0 times"),
        (lambda: Case((("laplace", 1),)), "is not a mechanism and a number"),
        (lambda: Case(((Gaussian(1.0), 2.0),)), "is not a mechanism and a number"),
        (lambda: Case.dp_sgd(1.0, 0.1, 1, 1.0), "delta=1.0 is not allowed"),
        (lambda: Case.dp_sgd(1.0, 0.1, 1, adjacency="rows"), "adjacency='rows' is unknown; use one of add-remove"),
        (lambda: true_delta(Case.dp_sgd(1.0, 0.1, 1), -1.0), "epsilon=-1.0 is not allowed"),
    ],
)
def test_what_is_no_case_is_refused(make, message):
    with pytest.raises(ClaimError, match=message):
        make()


def test_a_case_without_a_proven_truth_is_refused():
    with pytest.raises(OptionError, match=r"Laplace 1, rate 0\.1 with replaced records has no proven worst case"):
        true_epsilon(Case(((Laplace(1.0, 0.1), 2),), adjacency="replace"))
    with pytest.raises(OptionError, match="is not a composition of one Gaussian mechanism"):
        _ = Case(((Laplace(1.0), 1),)).noise_multiplier
    case = Case.dp_sgd(2.0, 0.5, 7)
    assert (case.noise_multiplier, case.sampling_rate, case.steps) == (2.0, 0.5, 7)
