"""Independent and dependent noise: enumeration, planted couplings and their independent twins."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.audit.distribution_checks.check_independence import _LARGEST_TAIL, _ranks, check_independence
from dpaudit.audit.errors import MechanismError, OptionError
from dpaudit.audit.results.audit_result import Verdict

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


@pytest.mark.parametrize(
    ("couple", "at"),
    [
        (lambda x, y, rng: x, "values of 0 and values of 1"),
        (lambda x, y, rng: -x, "values of 0 and values of 1"),
        (lambda x, y, rng: x + 4 * y, "values of 0 and values of 1"),
        (lambda x, y, rng: x * rng.choice([-1, 1], len(x)), "distances from the median of 0 and distances"),
        (lambda x, y, rng: np.abs(y) * np.sign(x), "values of 0 and values of 1"),
        (lambda x, y, rng: np.abs(x), "distances from the median of 0"),
    ],
    ids=["equal", "opposite", "in part", "up to sign", "by sign", "absolute"],
)
def test_coordinates_with_noise_in_common_are_found(couple, at):
    def mechanism(data, size, rng):
        x, y = rng.laplace(size=(2, size))
        return np.stack([x, couple(x, y, rng)], axis=1)

    found = check_independence(mechanism, 0, **FEW)
    assert kinds(found) == {"coordinates"}
    assert at in found.points[0].at
    assert "coordinates of one output share noise" in found.notes[0]


def test_runs_that_depend_on_the_run_before_are_found():
    def moving(data, size, rng):
        noise = rng.normal(size=size + 1)
        return noise[1:] + 0.3 * noise[:-1]

    def by_pairs(data, size, rng):  # like a sampler that reuses the size of a number for the next
        noise = rng.normal(size=(size + 1) // 2)
        return np.stack([noise, noise * rng.choice([-1, 1], len(noise))], axis=1).ravel()[:size]

    def crossing(data, size, rng):  # the noise of one coordinate is reused in the other coordinate of the next run
        noise = rng.laplace(size=size + 1)
        return np.stack([noise[1:], noise[:-1]], axis=1)

    for mechanism in (moving, by_pairs, crossing):
        assert "successive runs" in kinds(check_independence(mechanism, 0, **FEW))


def test_looped_functions_with_state_are_found():
    class Kept:
        def __init__(self):
            self.kept = None

        def __call__(self, data, rng):
            last, self.kept = self.kept, None
            if last is None:
                self.kept = last = rng.normal()
            return data + last

    assert kinds(check_independence(Kept(), 0, runs=4_000, jobs=1)) == {"successive runs"}
    twin = check_independence(lambda data, rng: data + rng.normal(), 0, runs=4_000, alpha=1e-3, jobs=1)
    assert twin.verdict is Verdict.NOT_REFUTED
    assert [point.at.split(":")[0] for point in twin.points] == ["successive runs", "calls with other generators"]


def test_noise_kept_from_call_to_call_is_found():
    kept = {}

    def mechanism(data, size, rng):
        if id(rng) not in kept:
            kept.clear()
            kept[id(rng)] = (rng, rng.laplace(size=200_000))
        return data + kept[id(rng)][1][:size]

    found = check_independence(mechanism, 0, **FEW)
    assert kinds(found) == {"successive calls"}
    assert found.notes[0].startswith("successive calls with the same generator share noise")


def test_a_seed_fixed_inside_is_found():
    found = check_independence(lambda d, size, rng: np.random.default_rng(3).normal(size=size), 0, **FEW)
    assert {"successive calls", "calls with other generators"} <= kinds(found)
    assert "the mechanism fixes a seed" in found.notes[-1]


def test_noise_that_comes_again_at_a_distance_and_changed_datasets_are_inconclusive():
    def again(data, size, rng):  # no two successive runs, coordinates or calls share noise
        return np.resize(rng.laplace(size=size // 2 or 1), size)

    def changing(data, size, rng):
        data.append(0)
        return rng.laplace(size=size)

    found = [check_independence(mechanism, [0], **FEW) for mechanism in (again, changing)]
    assert [each.verdict for each in found] == [Verdict.INCONCLUSIVE] * 2
    assert [{one.check.value for one in each.findings} for each in found] == [
        {"serial-dependence"},
        {"dataset-mutated"},
    ]


def test_one_noise_for_a_whole_block_is_found():
    assert check_independence(lambda d, size, rng: np.full(size, rng.normal()), 0, **FEW).is_refuted


@pytest.mark.parametrize("share", [1e-4, 0.02, 0.5])
def test_ties_raise_no_alarm_and_hide_no_copy(share):
    """Ones are so rare that the normal law is far off for their own correlation."""
    apart = check_independence(lambda d, size, rng: rng.random((size, 3)) < share, 0, **FEW)
    assert not apart.is_refuted
    if share > 1e-3:

        def copies(data, size, rng):
            return np.repeat(rng.random((size, 1)) < share, 2, axis=1)

        assert kinds(check_independence(copies, 0, runs=20_000, jobs=1)) == {"coordinates"}


def test_what_never_varies_is_left_out_and_noted():
    found = check_independence(lambda d, size, rng: np.stack([np.zeros(size), rng.random(size)], axis=1), 0, **FEW)
    assert found.verdict is Verdict.NOT_REFUTED
    assert found.notes[0].startswith("output coordinate 0 never varies")
    assert not any(point.at.startswith("coordinates") for point in found.points)
    for constant in (lambda d: 7, lambda d, size, rng: np.ones((size, 2))):
        none = check_independence(constant, 0, runs=100, jobs=1)
        assert none.verdict is Verdict.INCONCLUSIVE
        assert "never varies" in none.notes[0]


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (lambda d, size, rng: np.full(size, np.nan), "returned nan"),
        (lambda d, rng: "a", "returned 'a'"),
        (lambda d, rng: None, "returned None"),
        (lambda d, rng: rng.normal() if rng.random() < 0.9 else 1 / 0, "raises ZeroDivisionError"),
        (lambda d, size, rng: 1 / 0, "A block sampler must not raise"),
    ],
)
def test_outputs_that_are_no_numbers_are_refused(mechanism, words):
    with pytest.raises(MechanismError, match=words):
        check_independence(mechanism, 0, runs=300, jobs=1)


@pytest.mark.parametrize(("option", "value"), [("runs", 39), ("alpha", 0), ("seed", 0.5), ("jobs", 0)])
def test_options_outside_their_range_are_refused(option, value):
    with pytest.raises(OptionError, match=option if option != "alpha" else "allowed error probability"):
        check_independence(fresh(), 0, **{option: value})


@pytest.mark.parametrize("runs", [40, 41, 75])
def test_few_runs_of_any_number_do(runs):
    for mechanism in (fresh(), fresh(3), lambda data, rng: rng.normal()):
        assert not check_independence(mechanism, 0, runs=runs, alpha=1e-4, jobs=1).is_refuted


def test_results_do_not_depend_on_workers():
    def looped(data, rng):
        return data + rng.laplace(size=2)

    one, two = (check_independence(looped, 0, runs=12_000, jobs=jobs) for jobs in (1, 2))
    assert one == two


@pytest.mark.parametrize("mechanism", [fresh(), fresh(3), lambda d, size, rng: rng.random((size, 2)) < 0.05])
def test_independent_noise_is_refuted_no_more_often_than_allowed(mechanism):
    """Of 150 checks at alpha .1; the limit is exceeded with probability 1e-7."""
    check = {"runs": 300, "alpha": 0.1, "jobs": 1}
    refuted = sum(check_independence(mechanism, 0, seed=seed, **check).is_refuted for seed in range(150))
    assert refuted <= stats.binom.isf(1e-7, 150, 0.1)
