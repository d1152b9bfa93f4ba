"""The slope of log-probabilities: enumeration, the likelihood equation, planted bugs and correct twins."""

import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.audit.distribution_checks.check_slope import check_slope, fit_slope, slope_points
from dpaudit.audit.errors import DatasetError, MechanismError, OptionError
from dpaudit.audit.records.json_codec import from_json, to_json
from dpaudit.audit.records.suite import Entry, Suite
from dpaudit.audit.results.audit_result import Verdict

U = (0.0, 1.0, 2.0, 4.0)


def choosing(slope, utilities=U, names=None):
    """Probabilities in the ratio exp(slope · utility)."""
    weights = np.exp(slope * (np.array(utilities) - max(utilities)))
    p = weights / weights.sum()

    def mechanism(data, size, rng):
        places = rng.choice(len(p), p=p, size=size)
        return places if names is None else [names[place] for place in places]

    return mechanism


def outcomes(n, k):
    """Yield all counts of n runs over k candidates."""
    if k == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in outcomes(n - first, k - 1):
            yield (first, *rest)


@pytest.mark.parametrize("slope", [0.0, 0.4, -1.5])
def test_all_intervals_hold_together_as_often_as_they_say(slope):
    """All outcomes of 6 runs with three candidates."""
    u, n, alpha, missed = np.array([0.0, 1.0, 2.5]), 6, 0.2, 0.0
    p = np.exp(slope * u) / np.exp(slope * u).sum()
    for counts in outcomes(n, 3):
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
    assert "utility is lost, but privacy is not" in flat.notes[0]


def test_a_curve_that_is_no_line_is_found_at_its_average_slope():
    bent = choosing(1.0, (0.0, 1.5, 1.7, 2.0))
    slope = check_slope(bent, U, U, epsilon=1.0, jobs=1).points[0].estimate
    found = check_slope(bent, U, U, epsilon=2 * slope, jobs=1)
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
    near = check_slope(choosing(0.5), U, list, epsilon=1.0, runs=5_000, jobs=1)
    far = check_slope(choosing(0.5), 1e9, lambda data: [data + u for u in U], epsilon=1.0, runs=5_000, jobs=1)
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


def test_few_runs_are_inconclusive():
    assert check_slope(choosing(0.05), U, U, epsilon=0.1, runs=40, jobs=1).verdict is Verdict.INCONCLUSIVE


def test_choices_that_a_call_shares_are_inconclusive():
    """A twin with new choices in every run is refuted with probability 1e-6."""

    def shared(data, size, rng):
        return np.repeat(choosing(0.5)(data, -(-size // 8), rng), 8)[:size]

    for mechanism, verdict in ((shared, Verdict.INCONCLUSIVE), (choosing(0.5), Verdict.NOT_REFUTED)):
        found = check_slope(mechanism, U, U, epsilon=1.0, runs=20_000, alpha=1e-6, jobs=1)
        assert found.verdict is verdict
        assert bool(found.findings) == (verdict is Verdict.INCONCLUSIVE)
        assert (
            from_json(to_json(Suite(title="", entries=(Entry(name="slope", result=found),)))).entries[0].result == found
        )


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (lambda data: 4, "returned 60 outputs in 60 runs that are not among the 4 candidates, such as '4'"),
        (lambda data, rng: math.nan if rng.random() < 0.5 else 1, "such as 'nan'"),
        (lambda data: None, "such as 'None'"),
        (lambda data, rng: 1 if rng.random() < 0.5 else 1 / 0, "such as 'raises ZeroDivisionError'"),
        (lambda data: 1 / 0, "raised in every one"),
    ],
)
def test_outputs_that_are_no_candidates_are_refused(mechanism, words):
    with pytest.raises(MechanismError, match=words):
        check_slope(mechanism, U, U, epsilon=1.0, runs=60, jobs=1)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"utilities": (1.0, 1.0)}, OptionError, "all 2 utilities are 1"),
        ({"utilities": (1.0,)}, OptionError, "utilities are not finite numbers"),
        ({"utilities": (1.0, math.nan)}, OptionError, "utilities are not finite numbers"),
        ({"utilities": ((1.0, 2.0), (3.0,))}, OptionError, "utilities are not finite numbers"),
        ({"utilities": lambda data: data.scores}, DatasetError, "utilities raised AttributeError"),
        ({"epsilon": 0.0}, OptionError, "epsilon=0.0 is not allowed"),
        ({"epsilon": math.nan}, OptionError, "epsilon=nan"),
        ({"sensitivity": math.inf}, OptionError, "sensitivity=inf"),
        ({"candidates": (0, 1, 2)}, OptionError, "3 different candidates were passed for 4 utilities"),
        ({"candidates": (0, 1, 2, 2)}, OptionError, "3 different candidates"),
        ({"candidates": ([0], 1, 2, 3)}, OptionError, "not hashable"),
        ({"runs": 10}, OptionError, "runs=10"),
        ({"alpha": 1.0}, OptionError, "alpha=1.0"),
    ],
)
def test_arguments_outside_their_range_are_refused(changes, error, words):
    arguments = {"utilities": U, "epsilon": 1.0, "runs": 60, "jobs": 1} | changes
    with pytest.raises(error, match=words):
        check_slope(choosing(0.5), U, **arguments)


def test_results_do_not_depend_on_workers_and_are_kept():
    one, two = (check_slope(choosing(0.6), U, U, epsilon=1.0, runs=300_000, jobs=jobs) for jobs in (1, 2))
    assert one == two
    assert one.notes
    suite = Suite(title="slope", entries=(Entry(name="slope", result=one),))
    assert from_json(to_json(suite)) == suite


def test_a_true_slope_is_refuted_no_more_often_than_allowed():
    """Of 100 checks at alpha .1; the limit is exceeded with probability 1e-7."""
    check = {"epsilon": 1.0, "runs": 300, "alpha": 0.1, "jobs": 1}
    refuted = sum(check_slope(choosing(0.5), U, U, seed=seed, **check).is_refuted for seed in range(100))
    assert refuted <= stats.binom.isf(1e-7, 100, 0.1)
