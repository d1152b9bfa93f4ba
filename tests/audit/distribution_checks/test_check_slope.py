"""Slopes of choices, and independence of noise."""

import functools
import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.audit.distribution_checks.check_independence import _LARGEST_TAIL, _ranks, check_independence
from dpaudit.audit.distribution_checks.check_slope import check_slope, fit_slope, slope_points
from dpaudit.audit.errors import DatasetError, MechanismError, OptionError
from dpaudit.audit.results.verdict import Verdict

U = (0.0, 1.0, 2.0, 4.0)


def choosing(slope, utilities=U, names=None):
    """Probabilities in the ratio exp(slope · utility)."""
    weights = np.exp(slope * (np.array(utilities) - max(utilities)))
    p = weights / weights.sum()

    def mechanism(data, size, rng):
        places = rng.choice(len(p), p=p, size=size)
        return places if names is None else [names[place] for place in places]

    return mechanism


@pytest.mark.parametrize("slope", [0.0, 0.4, -1.5])
def test_all_intervals_hold_together_as_often_as_they_say(slope):
    """All outcomes of 6 runs with three candidates."""
    u, n, alpha, missed = np.array([0.0, 1.0, 2.5]), 6, 0.2, 0.0
    p = np.exp(slope * u) / np.exp(slope * u).sum()
    for counts in (each for each in itertools.product(range(n + 1), repeat=3) if sum(each) == n):
        points = slope_points(u, np.array(counts), slope, alpha)
        missed += stats.multinomial(n, p).pmf(counts) * any(point.is_outside for point in points)
    assert missed <= alpha


def test_the_fit_solves_the_likelihoods_equation():
    """The mean utility under the fit equals that of the runs; the interval's ends have divergence ln(2/alpha)/n."""
    u, counts, alpha = np.array(U), np.array([5, 20, 31, 400]), 0.01

    def log_p(slope):
        return slope * u - np.log(np.exp(slope * u).sum())

    found = fit_slope(u, counts, alpha)
    p = np.exp(log_p(found["estimate"]))
    assert p @ u == pytest.approx(counts @ u / counts.sum(), rel=1e-9)
    for end in ("lower", "upper"):
        divergence = p @ (log_p(found["estimate"]) - log_p(found[end]))
        assert counts.sum() * divergence == pytest.approx(math.log(2 / alpha), rel=1e-9)


@pytest.mark.parametrize(("monotonic", "slope"), [(False, 0.3), (True, 0.6)])
def test_the_stated_slope_passes_and_twice_and_half_of_it_are_found(monotonic, slope):
    check = {"epsilon": 1.2, "sensitivity": 2.0, "monotonic": monotonic, "runs": 50_000, "jobs": 1}
    right = check_slope(choosing(slope), U, U, **check)
    assert right.verdict is Verdict.NOT_REFUTED
    assert right.notes == ()
    assert [point.at for point in right.points] == ["the fit", *(f"utilities {low:g} and 4" for low in U[:-1])]
    steep = check_slope(choosing(2 * slope), U, U, **check)
    assert steep.points[0].is_outside
    assert "the privacy loss exceeds epsilon" in steep.notes[0]
    assert ("as if the factor 2 of the sensitivity were missing" in steep.notes[0]) is not monotonic
    flat = check_slope(choosing(0.5 * slope), U, U, **check)
    assert flat.points[0].is_outside
    assert "utility is lost; privacy is kept" in flat.notes[0]


def test_a_curve_that_is_no_line_is_found_at_its_average_slope():
    bent = choosing(1.0, (0.0, 1.5, 1.7, 2.0))
    slope = check_slope(bent, U, U, epsilon=1.0, runs=50_000, jobs=1).points[0].estimate
    found = check_slope(bent, U, U, epsilon=2 * slope, runs=50_000, jobs=1)
    assert not found.points[0].is_outside
    assert found.is_refuted
    assert found.notes == (
        "the overall slope fits, but pairs do not: the log-probabilities are not linear in the utility",
    )


@pytest.mark.parametrize("names", [("a", "b", "c", "d"), ((0, 1), (1, 1), (2, 2), (3, 0)), (0.5, -1.5, 7.0, 9.0)])
def test_candidates_may_be_anything(names):
    by_name = check_slope(choosing(0.5, names=names), U, U, epsilon=1.0, candidates=names, runs=5_000, jobs=1)
    by_number = check_slope(choosing(0.5), U, U, epsilon=1.0, runs=5_000, jobs=1)
    assert by_name.points == by_number.points


def test_utilities_may_be_found_from_the_dataset_and_lie_far_out():
    near, far = (
        check_slope(choosing(0.5), data, lambda data: [data + u for u in U], epsilon=1.0, runs=5_000, jobs=1)
        for data in (0.0, 1e9)
    )
    for one, other in zip(near.points, far.points, strict=True):
        assert (one.estimate, one.lower, one.upper) == pytest.approx((other.estimate, other.lower, other.upper))


def test_candidates_that_are_hardly_ever_chosen_do_not_hide_the_fit():
    utilities = [float(k) for k in range(100)]
    right = check_slope(choosing(0.5, utilities), 0, utilities, epsilon=1.0, jobs=1)
    assert right.verdict is Verdict.NOT_REFUTED
    assert "were chosen too seldom" in right.notes[0]
    assert len(right.points) < 40
    assert check_slope(choosing(0.55, utilities), 0, utilities, epsilon=1.0, jobs=1).is_refuted


@pytest.mark.parametrize("place", [0, 1, 3])
def test_one_candidate_always_chosen_is_judged_without_an_error(place):
    """The best candidate is consistent with all large slopes; any other is refuted by the fit or by a pair."""
    found = check_slope(lambda data: place, U, U, epsilon=1.0, runs=200, jobs=1)
    assert found.is_refuted == (place < 3 or found.points[1].is_outside)


def test_choices_that_a_call_shares_are_inconclusive():
    """A variant with new choices in every run is refuted with probability 1e-6."""

    def shared(data, size, rng):
        return np.repeat(choosing(0.5)(data, -(-size // 8), rng), 8)[:size]

    for mechanism, verdict in ((shared, Verdict.INCONCLUSIVE), (choosing(0.5), Verdict.NOT_REFUTED)):
        found = check_slope(mechanism, U, U, epsilon=1.0, runs=20_000, alpha=1e-6, jobs=1)
        assert found.verdict is verdict
        assert bool(found.findings) == (verdict is Verdict.INCONCLUSIVE)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"mechanism": lambda data: 4}, MechanismError, "60 outputs in 60 runs that are not among the 4 .* as '4'"),
        ({"mechanism": lambda _, rng: 1 if rng.random() < 0.5 else 1 / 0}, MechanismError, "as 'raises ZeroDivision"),
        ({"mechanism": lambda data: 1 / 0}, MechanismError, "raised in every one"),
        ({"utilities": (1.0, 1.0)}, OptionError, "all 2 utilities are 1"),
        ({"utilities": (1.0, math.nan)}, OptionError, "utilities are not finite numbers"),
        ({"utilities": lambda data: data.scores}, DatasetError, "utilities raised AttributeError"),
        ({"epsilon": 0.0}, OptionError, "epsilon=0.0 is not allowed"),
        ({"candidates": (0, 1, 2)}, OptionError, "3 different candidates were passed for 4 utilities"),
        ({"candidates": ([0], 1, 2, 3)}, OptionError, "not hashable"),
    ],
)
def test_arguments_outside_their_range_and_outputs_that_are_no_candidates_are_refused(changes, error, words):
    arguments = {"mechanism": choosing(0.5), "dataset": U, "utilities": U, "epsilon": 1.0, "runs": 60, "jobs": 1}
    with pytest.raises(error, match=words):
        check_slope(**arguments | changes)


FEW = {"runs": 20_000, "alpha": 1e-3, "jobs": 1}


def fresh(width=None):
    def mechanism(data, size, rng):
        return data + rng.laplace(size=size if width is None else (size, width))

    return mechanism


def kinds(result):
    """Return the refuted kinds."""
    return {point.at.split(":")[0] for point in result.points if point.is_outside}


def test_runs_too_few_for_any_correlation_are_inconclusive():
    """At 40 runs the threshold for successive runs of ten coordinates is a correlation of more than 1."""
    few = check_independence(fresh(10), 0.0, runs=40, alpha=1e-3, jobs=1)
    assert few.verdict is Verdict.INCONCLUSIVE
    assert check_independence(fresh(10), 0.0, runs=400, alpha=1e-3, jobs=1).verdict is Verdict.NOT_REFUTED


@pytest.mark.parametrize("n", [6, 7, 8])
def test_the_threshold_errs_on_the_safe_side_for_every_order(n):
    """All n! orders of the ranks: beyond 2.4 standard deviations their tail is below the normal tail."""
    ranks = np.arange(n) - (n - 1) / 2
    r = np.array(list(itertools.permutations(ranks))) @ ranks / (ranks @ ranks) * math.sqrt(n - 1)
    for z in np.linspace(2.4, 4.0, 30):
        assert np.mean(r >= z - 1e-12) <= stats.norm.sf(z)
    assert stats.norm.isf(_LARGEST_TAIL) >= 2.4


def test_ranks_are_scipys_and_ties_are_broken_in_each_column_anew():
    columns = np.random.default_rng(0).normal(size=(101, 3))
    ranks = _ranks(columns, np.random.default_rng(1))
    assert ranks.shape == (6, 101)
    assert (ranks**2).sum(axis=1) == pytest.approx(np.ones(6))
    own = ranks @ ranks.T
    features = np.concatenate([columns, np.abs(columns - np.median(columns, axis=0))], axis=1)
    assert own == pytest.approx(stats.spearmanr(features).statistic)
    tied = np.zeros((20_001, 2))
    tied[0] = 1.0  # all others are ties
    assert abs(_ranks(tied, np.random.default_rng(2)) @ _ranks(tied, np.random.default_rng(3)).T).max() < 0.06
    both = _ranks(tied, np.random.default_rng(4))
    assert abs(both[0] @ both[1]) < 0.06


@pytest.mark.parametrize("width", [None, 1, 5])
def test_fresh_noise_passes(width):
    found = check_independence(fresh(width), 3, **FEW)
    assert found.verdict is Verdict.NOT_REFUTED
    assert found.notes == ()
    assert len(found.points) == (4 if width == 5 else 3)
    if width == 5:  # four kinds share alpha, and the pairs of a kind: values and distances of two different coordinates
        first = found.points[0]
        radius = stats.norm.isf(FEW["alpha"] / 4 / (2 * 2 * 5 * 4)) / math.sqrt(FEW["runs"] - 1)
        assert first.upper - first.estimate == pytest.approx(radius)


@pytest.mark.parametrize(
    ("couple", "at"),
    [
        (lambda x, y, rng: x + 4 * y, "values of 0 and values of 1"),
        (lambda x, y, rng: x * rng.choice([-1, 1], len(x)), "distances from the median of 0 and distances"),
        (lambda x, y, rng: np.abs(x), "distances from the median of 0"),
    ],
    ids=["in part", "up to sign", "absolute"],
)
def test_coordinates_with_noise_in_common_are_found(couple, at):
    def mechanism(data, size, rng):
        x, y = rng.laplace(size=(2, size))
        return np.stack([x, couple(x, y, rng)], axis=1)

    found = check_independence(mechanism, 0, **FEW)
    assert kinds(found) == {"coordinates"}
    assert at in found.points[0].at
    assert "coordinates of one output share noise" in found.notes[0]


def moving(data, size, rng):
    noise = rng.normal(size=size + 1)
    return noise[1:] + 0.3 * noise[:-1]


def by_pairs(data, size, rng):
    """Like a sampler that reuses the size of a number for the next."""
    noise = rng.normal(size=(size + 1) // 2)
    return np.stack([noise, noise * rng.choice([-1, 1], len(noise))], axis=1).ravel()[:size]


def crossing(data, size, rng):
    """The noise of one coordinate is reused in the other coordinate of the next run."""
    noise = rng.laplace(size=size + 1)
    return np.stack([noise[1:], noise[:-1]], axis=1)


class Looped:
    """Returns each noise twice, a run at a time."""

    kept = None

    def __call__(self, data, rng):
        last, self.kept = self.kept, None
        if last is None:
            self.kept = last = rng.normal()
        return data + last


def kept_from_call_to_call():
    @functools.lru_cache(maxsize=1)
    def kept(rng):
        return rng.laplace(size=20_000)

    return lambda data, size, rng: data + kept(rng)[:size]


RUNS, CALLS, GENERATORS = "successive runs", "successive calls", "calls with other generators"


@pytest.mark.parametrize(
    ("make", "found", "words"),
    [
        (lambda: moving, {RUNS}, "keeps state or reuses noise"), (lambda: by_pairs, {RUNS}, "keeps state"),
        (lambda: crossing, {RUNS}, "keeps state"), (Looped, {RUNS}, "keeps state"),
        (kept_from_call_to_call, {CALLS}, "successive calls with the same generator share noise"),
        (lambda: lambda d, size, rng: np.random.default_rng(3).normal(size=size), {CALLS, GENERATORS}, "fixes a seed"),
    ],
)  # fmt: skip
def test_noise_in_common_between_runs_and_calls_is_found(make, found, words):
    result = check_independence(make(), 0, **FEW)
    assert found <= kinds(result)
    assert words in " ".join(result.notes)
    if found == {CALLS}:
        assert kinds(result) == found


def test_looped_functions_are_compared_without_successive_calls():
    assert check_independence(lambda d, size, rng: np.full(size, rng.normal()), 0, **FEW).is_refuted
    variant = check_independence(lambda data, rng: data + rng.normal(), 0, runs=4_000, alpha=1e-3, jobs=1)
    assert variant.verdict is Verdict.NOT_REFUTED
    assert [point.at.split(":")[0] for point in variant.points] == [RUNS, GENERATORS]
    with pytest.raises(MechanismError, match="returned 'a'"):
        check_independence(lambda d, rng: "a", 0, runs=300, jobs=1)


def test_noise_that_comes_again_at_a_distance_and_changed_datasets_are_inconclusive():
    def again(data, size, rng):  # no two successive runs, coordinates or calls share noise
        return np.resize(rng.laplace(size=size // 2 or 1), size)

    def changing(data, size, rng):
        data.append(0)
        return rng.laplace(size=size)

    found = [check_independence(mechanism, [0], **FEW) for mechanism in (again, changing)]
    assert [each.verdict for each in found] == [Verdict.INCONCLUSIVE] * 2
    findings = [{one.check.value for one in each.findings} for each in found]
    assert findings == [{"serial-dependence"}, {"dataset-mutated"}]


@pytest.mark.parametrize("share", [1e-4, 0.02])
def test_ties_raise_no_alarm_and_hide_no_copy(share):
    """Ones are so rare that the normal distribution is far off for their own correlation."""
    apart, copies = (
        check_independence(lambda d, size, rng, n=n: np.repeat(rng.random((size, n)) < share, 3 // n, axis=1), 0, **FEW)
        for n in (3, 1)
    )
    assert not apart.is_refuted
    assert share < 1e-3 or kinds(copies) == {"coordinates"}


def test_what_never_varies_is_left_out_and_noted():
    found = check_independence(lambda d, size, rng: np.stack([np.zeros(size), rng.random(size)], axis=1), 0, **FEW)
    assert found.verdict is Verdict.NOT_REFUTED
    assert found.notes[0].startswith("output coordinate 0 never varies")
    assert not any(point.at.startswith("coordinates") for point in found.points)
    for constant in (lambda d: 7, lambda d, size, rng: np.ones((size, 2))):
        none = check_independence(constant, 0, runs=100, jobs=1)
        assert none.verdict is Verdict.INCONCLUSIVE
        assert "never varies" in none.notes[0]
