"""Checks of the scale and shape of noise: exact intervals, deterministic samples, planted bugs and correct variants.

Distances from distributions and their critical values. Random tests state their failure probability.
"""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit.audit.distribution_checks import noise_distributions as law
from dpaudit.audit.distribution_checks.check_noise import check_noise, distribution_quantiles, quantile_series
from dpaudit.audit.errors import DatasetError, MechanismError, OptionError
from dpaudit.audit.results.verdict import Verdict
from dpaudit.noise import ExponentialNoise, GaussianNoise, GeometricNoise, GumbelNoise, LaplaceNoise

SCALE = 2.0
ORACLES = {
    LaplaceNoise: stats.laplace(scale=SCALE), GaussianNoise: stats.norm(scale=SCALE),
    ExponentialNoise: stats.expon(scale=SCALE), GumbelNoise: stats.gumbel_r(scale=SCALE),
    GeometricNoise: stats.dlaplace(1 / SCALE),
}  # fmt: skip
DISTRIBUTIONS = list(ORACLES)
CONTINUOUS = DISTRIBUTIONS[:-1]


def draws(kind, scale, size, rng):
    if kind is GeometricNoise:
        p = -math.expm1(-1 / scale)
        return rng.geometric(p, size) - rng.geometric(p, size)
    name = {LaplaceNoise: "laplace", GaussianNoise: "normal", GumbelNoise: "gumbel"}.get(kind)
    return getattr(rng, name)(0.0, scale, size) if name else rng.exponential(scale, size)


def adding(kind, scale):
    """Return a mechanism that adds this noise to its dataset."""
    return lambda data, size, rng: data + draws(kind, scale, size, rng)


def even(kind, factor=1.0, shift=0.0, runs=100_000):
    """Deterministic noise: the quantiles of `runs` runs lie on an even grid, in random order."""
    levels, calls = (np.random.default_rng(1).permutation(runs) + 0.5) / runs, itertools.count()

    def mechanism(data, size, rng):
        noise = ORACLES[kind].ppf([levels[next(calls) % runs] for _ in range(size)])
        return data + (noise if kind is GeometricNoise else factor * noise) + shift

    return mechanism


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_distributions_are_scipys(kind):
    distribution, oracle, x = kind(SCALE), ORACLES[kind], np.linspace(-9, 60, 139)
    assert distribution.cdf(x) == pytest.approx(oracle.cdf(x), rel=1e-9, abs=1e-300)
    assert distribution.mean == pytest.approx(oracle.mean(), abs=1e-12)
    if kind is GeometricNoise:
        assert distribution.cdf_below(x) == pytest.approx(oracle.cdf(np.ceil(x) - 1), rel=1e-9)
        assert distribution.even_probability() == pytest.approx(oracle.pmf(np.arange(-400, 401, 2)).sum())
        return
    x = x[x > 0]
    assert distribution.log_cdf(x) == pytest.approx(oracle.logcdf(x), rel=1e-7, abs=1e-15)
    assert distribution.log_sf(x) == pytest.approx(oracle.logsf(x), rel=1e-7)
    if distribution.is_symmetric:
        assert distribution.log_cdf(-x) == pytest.approx(oracle.logcdf(-x), rel=1e-9)


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
@pytest.mark.parametrize("alpha", [0.2, 1e-8])
def test_scale_intervals_hold_the_scale_of_even_grids_shrink_and_follow_the_units(kind, alpha):
    distribution, widths = kind(SCALE), []
    for n in (40, 4000):
        noise = ORACLES[kind].ppf((np.arange(n) + 0.5) / n)
        for interval, truth in (
            (distribution.scale_interval(noise, alpha), SCALE),
            (distribution.mean_interval(noise, alpha, SCALE), distribution.mean),
        ):
            estimate, lower, upper = interval
            assert lower < truth < upper
            assert lower <= estimate <= upper
        widths.append(upper - lower)
    assert widths[0] > 3 * widths[1]
    if kind is not GeometricNoise:
        own, other = (distribution.scale_interval(factor * np.abs(noise), alpha) for factor in (1.0, 7.0))
        assert np.multiply(own, 7.0) == pytest.approx(other)


def test_ends_are_where_the_pivots_have_alpha():
    noise, alpha = np.abs(np.random.default_rng(1).normal(size=30)), 0.02
    for distribution, pivot, end in (
        (LaplaceNoise(1.0), stats.gamma(30), lambda scale: noise.sum() / scale),
        (ExponentialNoise(1.0), stats.gamma(30), lambda scale: noise.sum() / scale),
        (GaussianNoise(1.0), stats.chi2(30), lambda scale: (noise**2).sum() / scale**2),
    ):
        _, lower, upper = distribution.scale_interval(noise, alpha)
        assert pivot.sf(end(lower)) == pytest.approx(alpha / 2)
        assert pivot.cdf(end(upper)) == pytest.approx(alpha / 2)
    _, lower, upper = GaussianNoise(1.0).mean_interval(noise, alpha, 1.0)
    assert (lower, upper) == pytest.approx(stats.ttest_1samp(noise, 0).confidence_interval(1 - alpha))


@pytest.mark.parametrize("scale", [0.4, 2.0, 5.0])
@pytest.mark.parametrize("n", [1, 5])
def test_geometric_scale_misses_no_more_often_than_it_says(scale, n):
    """Enumerate the totals of n sizes, whose distribution is the n-fold convolution."""
    sizes = np.arange(400)
    one = ORACLES[GeometricNoise].dist.pmf(sizes, 1 / scale) * np.where(sizes, 2, 1)
    distribution = one
    for _ in range(n - 1):
        distribution = np.convolve(distribution, one)[:400]
    for total in (0, 1, 7):
        assert law._size_tail(total, n, scale, 1) == pytest.approx(distribution[total:].sum(), rel=1e-6)
        assert law._size_tail(total, n, scale, -1) == pytest.approx(distribution[: total + 1].sum(), rel=1e-9)
    alpha, below, above = 0.1, 0.0, 0.0
    totals = int(np.searchsorted(-distribution[::-1].cumsum()[::-1], -1e-9))  # beyond them is almost no probability
    for total in range(totals):
        noise = np.zeros(n)
        noise[0] = -total
        _, lower, upper = GeometricNoise(1.0).scale_interval(noise, alpha)
        below, above = below + distribution[total] * (upper < scale), above + distribution[total] * (lower > scale)
    assert max(below, above + distribution[totals:].sum()) <= alpha / 2


def test_mean_of_symmetric_noise_misses_no_more_often_than_it_says():
    """Enumerate the signs of nine sizes, equal and unequal, with a shift."""
    for sizes in (np.ones(9), np.arange(1.0, 10.0), np.array([50.0, *np.ones(8)])):
        for alpha in (0.5, 0.1, 0.02):
            missed = 0
            for signs in itertools.product((-1.0, 1.0), repeat=9):
                _, lower, upper = LaplaceNoise(1.0).mean_interval(sizes * signs + 3.0, alpha, 1.0)
                missed += not lower <= 3.0 <= upper
            assert missed / 2**9 <= alpha


def test_the_transform_of_gumbel_sizes_is_the_integral_and_chernoff_limits_have_a_closed_form():
    """For K(θ) = ½θ² the best θ gives ±√(2 ln(2/alpha)/n)."""
    for theta in (-0.9, -0.1, 0.3, 0.95):
        pieces = [
            integrate.quad(lambda y: math.exp(theta * abs(y)) * stats.gumbel_r.pdf(y), *ends)[0]  # noqa: B023
            for ends in ((-9, 0), (0, 600))
        ]
        assert law._log_mgf_of_gumbel_size(theta) == pytest.approx(math.log(sum(pieces)), rel=1e-6)
    low, high = law._chernoff_limits(lambda theta: theta * theta / 2, 500, 0.01)
    assert (-low, high) == pytest.approx([math.sqrt(2 * math.log(200) / 500)] * 2, rel=1e-6)


@pytest.mark.parametrize("scale", [0.05, 0.4, 2.0, 1e6])
@pytest.mark.parametrize("n", [40, 100_000])
def test_cells_cover_the_whole_numbers_once(scale, n):
    distribution = GeometricNoise(scale)
    cells = distribution.cells(n)
    assert cells[0][0] == -math.inf
    assert cells[-1][1] == math.inf
    assert all(a[1] + 1 == b[0] for a, b in itertools.pairwise(cells))
    assert sum(distribution.cell_probability(*cell) for cell in cells) == pytest.approx(1.0)
    assert len(cells) < 120


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_right_noise_passes_and_two_percent_are_found_in_both_directions(kind):
    """On even grids and in one sample; of 200 samples (almost) all detect each wrong scale."""
    common = {"noise": kind(SCALE), "answer": 5.0, "jobs": 1}
    right = check_noise(even(kind), 5.0, **common)
    assert right.verdict is Verdict.NOT_REFUTED
    assert right.notes == ()
    assert right.points[0].lower < SCALE < right.points[0].upper
    for factor, words in ((0.98, "less noise than claimed"), (1.02, "more noise than claimed")):
        found = check_noise(adding(kind, factor * SCALE), 5.0, **common)
        assert found.is_refuted
        assert found.points[0].is_outside
        assert (found.points[0].upper < SCALE) == (factor < 1)
        assert words in found.notes[0]


@pytest.mark.parametrize(
    ("noise", "sampler"),
    [
        (LaplaceNoise(2.0), lambda rng, n: rng.normal(0, 2 * math.sqrt(math.pi / 2), n)),  # E|X| agrees
        (LaplaceNoise(2.0), lambda rng, n: rng.normal(0, 2 * math.sqrt(2), n)),  # the variance agrees
        (GaussianNoise(2.0), lambda rng, n: rng.laplace(0, math.sqrt(2), n)),
        (GaussianNoise(2.0), lambda rng, n: 2 * rng.standard_t(20, n) * math.sqrt(0.9)),
        (ExponentialNoise(2.0), lambda rng, n: np.abs(rng.normal(0, 2 * math.sqrt(math.pi / 2), n))),
        (GumbelNoise(2.0), lambda rng, n: rng.normal(2 * np.euler_gamma, 2 * math.pi / math.sqrt(6), n)),
        (GeometricNoise(2.0), lambda rng, n: np.rint(rng.laplace(0, 2, n))),
        (LaplaceNoise(2.0), lambda rng, n: np.rint(rng.laplace(0, 2, n))),  # on a coarse grid
    ],
)
def test_other_shapes_are_found(noise, sampler):
    found = check_noise(lambda data, size, rng: data + sampler(rng, size), 1.0, noise=noise, answer=1, jobs=1)
    assert any(point.is_outside for point in found.points[2:])
    assert found.points[0].is_outside or "the scale fits but the shape does not" in found.notes[0]


@pytest.mark.parametrize(
    ("noise", "true", "words"),
    [
        (GaussianNoise(3.0), GaussianNoise(9.0), "the variance were passed for the standard deviation"),
        (GaussianNoise(4.0), GaussianNoise(2.0), "its square root"),
        (LaplaceNoise(4.0), LaplaceNoise(0.25), "its reciprocal"),
        (LaplaceNoise(4.0), LaplaceNoise(2.0), "half the claim"),
        (GeometricNoise(4.0), GeometricNoise(8.0), "twice the claim"),
    ],
)
def test_scales_that_come_of_common_slips_are_named(noise, true, words):
    found = check_noise(adding(type(true), true.value), 0, noise=noise, answer=0, runs=20_000, alpha=1e-3, jobs=1)
    assert found.is_refuted
    assert words in found.notes[0]
    assert ("privacy is lost" in found.notes[0]) == (true.value < noise.value)


def test_bias_and_values_that_the_distribution_cannot_give_are_found_and_named_however_few():
    found = check_noise(even(LaplaceNoise, shift=0.1), 5.0, noise=LaplaceNoise(2.0), answer=5.0, jobs=1)
    assert found.points[1].is_outside
    assert found.notes[0].startswith("the mean of the noise is off by 0.1")

    def with_one(value, kind=GeometricNoise):
        calls = itertools.count()

        def mechanism(data, size, rng):
            noise = draws(kind, 2.0, size, rng).astype(float)
            noise[: int(next(calls) == 10)] = value
            return noise

        return mechanism

    check = {"noise": GeometricNoise(2.0), "answer": 0, "runs": 20_000, "alpha": 1e-6, "jobs": 1}
    assert check_noise(with_one(0.5), 0, **check).points[-1].is_outside
    assert not check_noise(with_one(1.0), 0, **check).is_refuted
    check["noise"] = ExponentialNoise(2.0)
    found = check_noise(with_one(-0.01, ExponentialNoise), 0, **check)
    assert found.worst.at == "share of negative values"


@pytest.mark.parametrize("kind", CONTINUOUS)
def test_rounding_to_a_fine_grid_passes(kind):
    step = law.GRID * SCALE
    exact, other = (even(kind, runs=20_000) for _ in range(2))

    def rounded(data, size, rng):
        return np.rint(other(data, size, rng) / step) * step

    found = [check_noise(one, 0.0, noise=kind(SCALE), answer=0.0, runs=20_000, jobs=1) for one in (exact, rounded)]
    assert [one.verdict for one in found] == [Verdict.NOT_REFUTED] * 2
    for one, other in zip(*(result.points for result in found), strict=True):
        assert one.lower == pytest.approx(other.lower, abs=1e-7)


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_vectors_one_coordinate_of_which_is_wrong(kind):
    answer = np.array([0, 10, -10, 3])
    check = {"noise": kind(SCALE), "answer": lambda data: data, "runs": 4_000, "alpha": 1e-3, "jobs": 1}

    def mechanism(factor):
        scales = SCALE * np.array([1.0, 1.0, factor, 1.0])
        return lambda data, size, rng: data + np.stack([draws(kind, s, size, rng) for s in scales], axis=1)

    assert check_noise(mechanism(1.0), answer, **check).verdict is Verdict.NOT_REFUTED
    found = check_noise(mechanism(1.3), answer, **check)
    own = [point for point in found.points if point.at.startswith(f"{kind(1.0).parameter} of coordinate 2 of 4")]
    assert [point.is_outside for point in own] == [True]


def test_tolerance_allows_scales_and_the_shapes_that_go_with_them():
    for kind in (GaussianNoise, GeometricNoise):
        check = {"noise": kind(SCALE), "answer": 0, "runs": 40_000, "jobs": 1}
        near, far = adding(kind, 1.03 * SCALE), adding(kind, 1.08 * SCALE)
        assert check_noise(near, 0, alpha=1e-3, **check).is_refuted
        assert not check_noise(near, 0, tolerance=0.03, alpha=1e-4, **check).is_refuted
        assert check_noise(far, 0, tolerance=0.03, **check).is_refuted
    other = check_noise(
        lambda d, size, rng: rng.normal(0, 2.5, size), 0, noise=LaplaceNoise(2), answer=0, tolerance=0.1
    )
    assert any(point.is_outside for point in other.points[2:])


def test_whole_numbers_beyond_doubles_keep_their_noise():
    def one(data, rng):
        return 1000 * data + int(draws(GeometricNoise, 2.0, 1, rng)[0])

    for mechanism, times in ((adding(GeometricNoise, 2.0), 1), (one, 1000)):
        options = {"answer": lambda data, times=times: times * data, "runs": 2_000, "alpha": 1e-3, "jobs": 1}
        found = check_noise(mechanism, 10**17 + 1, noise=GeometricNoise(2.0), **options)
        assert found.verdict is Verdict.NOT_REFUTED


def test_no_noise_at_all_and_noise_that_repeats():
    none = check_noise(lambda data: 3, 3, noise=LaplaceNoise(1.0), answer=3, runs=100, jobs=1)
    assert none.points[0].estimate == 0.0
    assert none.is_refuted
    assert none.notes == ("all 100 outputs are equal, 3; make sure that every run draws new noise",)

    def seeded(from_size):
        return lambda data, size, rng: (np.random.default_rng(0) if size >= from_size else rng).laplace(size=size)

    fixed, found = (
        check_noise(seeded(size), 0, noise=LaplaceNoise(1.0), answer=0, runs=4_000, jobs=1) for size in (1, 2)
    )
    assert fixed.is_refuted  # each run is the same
    assert fixed.notes == ("all 4,000 outputs are equal, 0.3201; make sure that every run draws new noise",)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert str(found).startswith("INCONCLUSIVE: failed health check: duplicate-outputs")
    assert found.series is None


CALLS = itertools.count()


def changing(data, size, rng):
    data.append(0)
    return rng.laplace(size=size)


@pytest.mark.parametrize(
    ("mechanism", "data", "check"),
    [
        (lambda data, size, rng: np.full(size, data + rng.laplace()), 0.0, "serial-dependence"),
        (lambda _, size, rng: np.resize(rng.laplace(size=max(1, size // 8)), size), 0.0, "serial-dependence"),
        (lambda data, size, rng: data + rng.laplace(size=size) + next(CALLS) / 50, 0.0, "nonstationary"),
        (changing, [0], "dataset-mutated"),
    ],
)
def test_runs_that_are_not_independent_are_inconclusive(mechanism, data, check):
    common = {"noise": LaplaceNoise(1.0), "answer": 0, "runs": 4_000, "jobs": 1}
    found = check_noise(mechanism, data, **common)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.series is None
    assert all((point.lower, point.upper) == (-math.inf, math.inf) for point in found.points)
    assert check in [finding.check.value for finding in found.findings]
    assert "Draw new noise" in str(found) or "changed the dataset in place" in str(found)
    assert check not in [each.check.value for each in check_noise(mechanism, data, ignore=check, **common).findings]


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (lambda d, size, rng: np.where(rng.random(size) < 0.5, np.nan, 1.0), "returned nan: .* are not finite numbers"),
        (lambda d, size, rng: np.append(np.zeros(size - 1), np.inf), "returned inf"),
        (lambda d, rng: None, "returned None"),
        (lambda d, rng: "text", "returned 'text'"),
        (lambda d, rng: (1.0,) * int(rng.integers(1, 3)), "are not finite numbers of one shape"),
        (lambda d, rng: 1.0 if rng.random() < 0.9 else 1 / 0, "raises ZeroDivisionError: .* are not finite numbers"),
        (lambda d, rng: 1 / 0, "raised in every one"),
        (lambda d, size, rng: np.zeros((size, 0)), "empty vectors"),
    ],
)
def test_outputs_that_are_no_numbers_are_refused(mechanism, words):
    with pytest.raises(MechanismError, match=words):
        check_noise(mechanism, 0, noise=LaplaceNoise(1.0), answer=0, runs=300, jobs=1)


RIGHT = {"noise": LaplaceNoise(1.0), "answer": 0, "runs": 100, "jobs": 1}


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"noise": 1.0}, OptionError, "is not a distribution of noise"),
        *(
            ({"answer": answer}, OptionError, "is not an exact answer")
            for answer in (math.nan, None, "3", True, [1.0, [2.0]])
        ),
        ({"answer": [1.0, 2.0]}, OptionError, r"answer has shape \(2,\) .* pass a number"),
        ({"answer": lambda data: data.missing}, DatasetError, "answer raised AttributeError on the dataset"),
        *(
            ({name: value}, OptionError, f"{name}={value}")
            for name, value in (
                ("tolerance", 1.0), ("tolerance", math.nan), ("runs", 39), ("alpha", 0.0), ("seed", -1), ("jobs", 0),
            )
        ),
    ],
)  # fmt: skip
def test_arguments_outside_their_range_are_refused(changes, error, words):
    with pytest.raises(error, match=words):
        check_noise(adding(LaplaceNoise, 1.0), 0, **(RIGHT | changes))


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_scales_that_are_none_are_refused(kind):
    for value in (0.0, -1.0, math.nan, math.inf, "2", None, True):
        with pytest.raises(OptionError, match="is not a scale of noise"):
            kind(value)


def test_results_do_not_depend_on_workers():
    one, two = (check_noise(adding(LaplaceNoise, 1.2), 0, **(RIGHT | {"runs": 300_000, "jobs": n})) for n in (1, 2))
    assert one == two
    assert str(one).count("\n  note: ") == len(one.notes) == 2
    assert "99.85% confidence" in one.series.intervals


def test_runs_too_few_to_find_half_of_the_noise_are_inconclusive():
    few, more, far = (
        check_noise(adding(LaplaceNoise, 2.0), 0.0, noise=LaplaceNoise(scale), answer=0, runs=runs, alpha=1e-6, jobs=1)
        for runs, scale in ((40, 2.0), (400, 2.0), (40, 20.0))
    )
    assert (few.verdict, more.verdict) == (Verdict.INCONCLUSIVE, Verdict.NOT_REFUTED)
    assert far.is_refuted


LEVELS = np.array([0.005, 0.1, 0.25, 0.5, 0.9, 0.995])


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_draws_spaced_as_the_distribution_lie_on_the_line_and_others_do_not(kind):
    n, distribution, known = 20_000, kind(SCALE), ORACLES[kind]
    assert distribution_quantiles(distribution, LEVELS) == pytest.approx(known.ppf(LEVELS), rel=1e-9, abs=1e-9 * SCALE)
    values = np.sort(known.ppf((np.arange(n) + 0.5) / n))
    found = quantile_series(values, distribution, alpha=0.01)
    x, estimate = np.array(found.x), np.array(found.estimate)
    assert np.abs(x - estimate).max() <= (1.0 if distribution.is_discrete else 0.05 * SCALE)
    assert (np.diff(x) > 0).all()
    assert all(low <= at <= high for low, at, high in zip(found.lower, found.x, found.upper, strict=True))
    twice = quantile_series(2 * values, distribution, alpha=0.01)
    assert any(not low <= at <= high for low, at, high in zip(twice.lower, twice.stated, twice.upper, strict=True))


def test_the_band_leaves_out_the_distribution_as_often_as_alpha_says_and_few_draws_have_open_ends():
    rng, missed = np.random.default_rng(5), 0
    for _ in range(400):
        found = quantile_series(np.sort(rng.laplace(size=300)), LaplaceNoise(scale=1.0), alpha=0.2)
        missed += any(not low <= at <= high for low, at, high in zip(found.lower, found.x, found.upper, strict=True))
    assert missed <= 124  # binom.isf(1e-7, 400, 0.2): false alarm 1e-7
    assert missed >= 20  # binom.ppf(1e-12, 400, 0.12); the 41 places detect most misses of the whole band
    found = quantile_series(np.array([0.5]), LaplaceNoise(scale=1.0), alpha=0.05)
    middle = len(found.x) // 2
    assert found.lower[middle] == found.lower[0] == -math.inf
    assert found.upper[middle] == found.upper[-1] == math.inf
    assert set(found.estimate) == {0.5}


def test_cells_and_chi_square_share_alpha():
    """Of the 24% of alpha for the tails, a quarter is for the distance, and the rest for exact limits of the cells."""
    distribution, n, alpha = GeometricNoise(2.0), 2_000, 0.1
    found = check_noise(adding(GeometricNoise, 2.0), 0, noise=distribution, answer=0, runs=n, alpha=alpha, jobs=1)
    (squares,) = (point for point in found.points if point.at.startswith("chi-square"))
    (cell,) = (point for point in found.points if point.at.startswith("probability of"))
    cells, tails = distribution.cells(n), 0.24 * alpha
    chances = tuple(distribution.cell_probability(*each) for each in cells)
    assert squares.upper - squares.estimate == pytest.approx(law.chi_square_radius(n, chances, alpha=tails / 4))
    counts, share = round(cell.estimate * n), 0.75 * tails / (2 * (len(cells) + 1))
    assert stats.binom.sf(counts - 1, n, cell.lower) == pytest.approx(share)
    assert stats.binom.cdf(counts, n, cell.upper) == pytest.approx(share)


def test_anderson_darling_values_of_the_literature():
    """Marsaglia & Marsaglia (2004), Evaluating the Anderson-Darling distribution."""
    for tail, value in ((0.10, 1.9329578), (0.05, 2.492367), (0.01, 3.878125)):
        assert law.ad_critical(tail) == pytest.approx(value, rel=1e-6)
        assert law.ad_tail(value) == pytest.approx(tail, rel=1e-6)


def transform(s):
    """Return E exp(−sA²) from the weights 1/(j(j + 1)); the weights beyond 200 enter by their sums."""
    inside = mpmath.fprod(mpmath.sqrt(1 + 2 * s / (j * (j + 1))) for j in range(1, 201))
    return mpmath.exp(-s / 201 + s * s / (3 * mpmath.mpf(201) ** 3)) / inside


@pytest.mark.parametrize("z", [0.3, 2.5, 12.0, 30.0])
def test_anderson_darling_tail_is_the_inverse_of_its_transform(z):
    """Talbot's inversion with 40 digits is also precise far in the tail."""
    with mpmath.workdps(40):
        expected = mpmath.invertlaplace(lambda s: (1 - transform(s)) / s, z, method="talbot", degree=30)
    assert law.ad_tail(z) == pytest.approx(float(expected), rel=1e-6, abs=1e-13)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_anderson_darling_distance_is_the_weighted_integral_and_large_for_impossible_values(n):
    u = np.sort(np.random.default_rng(n).random(n))

    def integrand(v):
        return (np.mean(u <= v) - v) ** 2 / (v * (1 - v))

    expected = sum(integrate.quad(integrand, a, b)[0] for a, b in itertools.pairwise([0.0, *u, 1.0]))
    assert law.ad_distance(np.log(u), np.log1p(-u)) == pytest.approx(math.sqrt(expected), rel=1e-6)
    with np.errstate(divide="ignore"):
        logs = np.log(np.array([0.0, 0.0, 0.5, 1.0])), np.log(np.array([1.0, 1.0, 0.5, 0.0]))
    assert 10 < law.ad_distance(*logs) < math.inf


def test_smirnov_distance_is_scipys_and_that_of_a_distribution_with_atoms_is_found_at_them():
    """Compare with a search over all integers, drawn or not."""
    values = np.sort(np.random.default_rng(0).normal(size=500))
    found = law.ks_distance(values, stats.laplace.cdf, stats.laplace.cdf)
    assert found == pytest.approx(stats.kstest(values, "laplace").statistic, rel=1e-12)
    distribution, values = stats.poisson(3.0), np.sort(np.random.default_rng(1).choice([0.0, 1, 5, 9], size=50))
    every = np.arange(-1, 60)
    expected = max(abs(np.mean(values <= k) - distribution.cdf(k)) for k in every)
    assert law.ks_distance(values, distribution.cdf, lambda v: distribution.cdf(np.ceil(v) - 1)) == pytest.approx(
        expected, rel=1e-12
    )
    same = np.repeat(np.arange(5.0), [1, 2, 3, 2, 2])
    own = lambda v: np.searchsorted(same, v, side="right") / 10  # noqa: E731
    assert law.ks_distance(same, own, lambda v: np.searchsorted(same, v, side="left") / 10) == 0.0


@pytest.mark.parametrize("n", [1, 40, 1000, 100_000, 10**7])
@pytest.mark.parametrize("alpha", [0.1, 1e-3, 1e-9])
def test_smirnov_radius_is_exceeded_with_probability_alpha(n, alpha):
    radius = law.ks_radius(n, alpha=alpha)
    assert stats.kstwo.sf(radius, n) <= alpha * (1 + 1e-3)
    assert radius <= math.sqrt(math.log(2 / alpha) / (2 * n))  # Massart's bound


def level(radius, n, chances):
    """Return Pr[distance > radius] for n draws in three cells, summed over all outcomes."""
    a, b = np.divmod(np.arange((n + 1) ** 2), n + 1)
    counts = np.stack([a, b, n - a - b])[:, a + b <= n]
    distances = np.array([law.chi_square_distance(each, np.array(chances)) for each in counts.T])
    return stats.multinomial(n, chances).pmf(counts.T)[distances > radius].sum()


@pytest.mark.parametrize(
    ("n", "chances"), [(50, (0.1, 0.3, 0.6)), (80, (1 / 3, 1 / 3, 1 / 3)), (60, (0.02, 0.08, 0.9))]
)
@pytest.mark.parametrize("alpha", [0.2, 0.05, 0.01, 1e-3])
def test_chi_square_keeps_its_alpha(n, chances, alpha):
    """Exact levels on lattices where many outcomes have equal distances. Each seed fails with probability 1e-6."""
    radius = law.chi_square_radius(n, chances, alpha=alpha)
    assert level(radius, n, chances) <= alpha
    assert level(radius * (1 - 1e-9), n, chances) > 0.25 * alpha  # including outcomes at the radius


def test_chi_square_keeps_its_alpha_in_many_cells():
    """Of 40,000 fresh samples a share from .3 to 1 of alpha exceeds the radius. False alarm: 1e-6 on either side."""
    distribution, n = GeometricNoise(5.0), 1_000
    chances = np.array([distribution.cell_probability(*cell) for cell in distribution.cells(n)])
    drawn = np.random.default_rng(7).multinomial(n, chances / chances.sum(), size=40_000)
    distances = np.sqrt(((drawn / n - chances) ** 2 / chances).sum(axis=1))
    assert distances[:50].tolist() == pytest.approx([law.chi_square_distance(counts, chances) for counts in drawn[:50]])
    for alpha in (0.05, 1e-3):
        beyond = np.sum(distances > law.chi_square_radius(n, tuple(chances.tolist()), alpha=alpha))
        assert stats.binom.isf(1 - 1e-6, 40_000, 0.3 * alpha) <= beyond <= stats.binom.isf(1e-6, 40_000, alpha)


@pytest.mark.parametrize(("samples", "alpha"), [(200, 0.5), (2000, 0.05), (166_667, 6e-4), (10**6, 1e-4)])
def test_the_safe_rank_is_the_largest_that_seldom_misses(samples, alpha):
    """The distribution of an order statistic: the level beyond the r-th largest is Beta(r, samples − r + 1)."""
    rank = law.safe_rank(samples, alpha)
    missed = [stats.beta.sf(alpha, r, samples - r + 1) for r in (rank, rank + 1)]
    assert missed[0] <= 1e-6 < missed[1]


def test_limits_of_cells_hold_together():
    """All outcomes of 9 draws in three cells."""
    n, alpha, p = 9, 0.1, np.array([0.05, 0.25, 0.7])
    missed = 0.0
    for a in range(n + 1):
        for b in range(n + 1 - a):
            counts = np.array([a, b, n - a - b])
            lower, upper = law.cell_limits(counts, n, alpha=alpha)
            if np.any(lower > p) or np.any(upper < p):
                missed += stats.multinomial(n, p).pmf(counts)
    assert 0 < missed <= alpha


def test_draws_from_the_distribution_are_seldom_far_from_it():
    """40 draws, the fewest: 20,000 samples at alpha .01; both limits are exceeded with probability 1e-7."""
    alpha, n, reps = 0.01, 40, 20_000
    u = np.sort(np.random.default_rng(5).random((reps, n)), axis=1)
    far = sum(law.ad_distance(np.log(row), np.log1p(-row)) > law.ad_radius(n, alpha=alpha) for row in u)
    odd = (2 * np.arange(1, n + 1) - 1) / (2 * n)
    also = int(np.sum(np.abs(u - odd).max(axis=1) + 1 / (2 * n) > law.ks_radius(n, alpha=alpha)))
    for count in (far, also):
        assert stats.binom.isf(1 - 1e-7, reps, alpha) <= count <= stats.binom.isf(1e-7, reps, alpha)


def test_the_nearest_scale_is_found():
    values = np.sort(np.random.default_rng(2).exponential(1.04, size=3000))
    distance = lambda scale: law.ks_distance(values, *[lambda v: -np.expm1(-v / scale)] * 2)  # noqa: E731
    expected = min(distance(scale) for scale in np.linspace(0.9, 1.1, 4001))
    assert law.least(distance, (0.9, 1.1)) <= expected + 1e-5
    assert law.least(distance, (1.0, 1.0)) == distance(1.0)
    assert law.least(distance, (0.5, 0.9)) == pytest.approx(distance(0.9))
