"""Two versions of a mechanism: found to differ, shown to be within a margin, or neither."""

import functools
import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpaudit import PureDP, Verdict, check
from dpaudit.audit.errors import InconclusiveError, OptionError, RefutedError
from dpaudit.audit.inference.total_variation import total_variation_upper
from dpaudit.audit.procedures.check_equivalence import check_equivalence
from dpaudit.audit.results.verdict import Equivalence

ROWS = [1, 1, 1]
RARE = 1e-6  # alpha where versions that are the same have to pass


def laplace(scale=1.0):
    return lambda rows, size, rng: len(rows) + rng.laplace(scale=scale, size=size)


def coin(p):
    return lambda rows, size, rng: rng.random(size) < p


def compositions(total, parts):
    """Every tuple of `parts` counts that sum to `total`."""
    if parts == 1:
        return [(total,)]
    return [(first, *rest) for first in range(total + 1) for rest in compositions(total - first, parts - 1)]


def distributions(cells, steps):
    """Probabilities on a grid that holds the corners, and some next to them."""
    found = [tuple(count / steps for count in distribution) for distribution in compositions(steps, cells)]
    return [*found, *(tuple(0.999 * p + 0.001 / cells for p in distribution) for distribution in found)]


def failure_rates(cells, runs, steps, upper):
    """For every pair of distributions, the probability that an upper limit is below their total variation."""
    outcomes = np.array(compositions(runs, cells))
    at = distributions(cells, steps)
    chances = np.array([stats.multinomial.pmf(outcomes, runs, distribution) for distribution in at])
    limit = np.array([[upper(x, y) for y in outcomes.tolist()] for x in outcomes.tolist()])
    for (i, p), (j, q) in itertools.product(enumerate(at), repeat=2):
        distance = 0.5 * sum(abs(a - b) for a, b in zip(p, q, strict=True))
        yield float(chances[i] @ (limit < distance - 1e-9) @ chances[j])


@pytest.mark.parametrize(("cells", "runs", "steps"), [(2, 14, 20), (3, 5, 5)])
@pytest.mark.parametrize("alpha", [0.025, 0.9])
def test_the_upper_limit_fails_with_probability_alpha_at_most(cells, runs, steps, alpha):
    @functools.cache
    def limit(excess):
        return total_variation_upper((excess, runs - excess), (0, runs), alpha=alpha)

    def upper(x, y):
        return limit(sum(max(a - b, 0) for a, b in zip(x, y, strict=True)))

    worst = max(failure_rates(cells, runs, steps, upper))
    assert worst <= alpha + 1e-12
    assert worst > (0.4 * min(alpha, 0.25) if (cells, runs) == (2, 14) else -1)  # nor is it idle


def test_counted_in_full_what_has_no_cell_is_covered_too():
    def upper(x, y):  # four outcomes, two of which share the last cell
        return total_variation_upper(
            (*x[:2], x[2] + x[3]), (*y[:2], y[2] + y[3]), alpha=0.1, counts_unlisted=counts_unlisted
        )

    counts_unlisted = True
    assert max(failure_rates(4, 3, 3, upper)) <= 0.1 + 1e-12
    counts_unlisted = False
    assert max(failure_rates(4, 3, 3, upper)) > 0.5


def pairs_of_counts(seed, many=40):
    rng = np.random.default_rng(seed)
    for _ in range(many):
        distribution = rng.dirichlet(np.ones(rng.integers(2, 7)))
        runs = int(rng.integers(1, 10 ** rng.integers(1, 7)))
        yield rng.multinomial(runs, distribution).tolist(), rng.multinomial(runs, distribution).tolist(), runs


def test_the_upper_limit_is_the_largest_over_all_sets_of_cells():
    for x, y, runs in pairs_of_counts(0):
        sets = itertools.product((0, 1), repeat=len(x))
        sums = np.array([runs + np.dot(s, x) - np.dot(s, y) for s in sets])
        ends = np.where(sums >= 2 * runs - 1, 1.0, 2 * stats.beta.isf(0.03, sums + 1, 2 * runs - sums) - 1)
        assert total_variation_upper(x, y, alpha=0.03) == pytest.approx(ends.max(), rel=1e-6, abs=1e-7)


def test_impossible_counts_are_refused():
    for x, y in (((3, 4), (3, 5)), ((3, 4), (7,)), ((0, 0), (0, 0)), ((8, -1), (3, 4))):
        with pytest.raises(OptionError):
            total_variation_upper(x, y, alpha=0.1)


def strings(p):
    return lambda rows, size, rng: np.array(["yes", "no", "neither"])[rng.choice(3, p=[p, 0.7 - p, 0.3], size=size)]


def mixed(p):
    """One run at a time: a tuple, None, or an exception."""

    def run(rows, rng):
        kind = rng.random()
        if kind < 0.3:
            raise ValueError
        return None if kind < 0.3 + p else ("left", rng.integers(3))

    return run


VERSIONS = {
    "numbers": (laplace(), laplace(), laplace(2.5)),
    "strings": (strings(0.3), strings(0.3), strings(0.55)),
    "outputs of all kinds": (mixed(0.3), mixed(0.3), mixed(0.6)),
    "runs and blocks": (lambda rows, rng: rng.normal(), lambda rows, size, rng: rng.normal(size=size), lambda rows: 3),
}


@pytest.mark.parametrize(("kind", "sequential"), [*((kind, False) for kind in VERSIONS), ("numbers", True)])
def test_variants_pass_and_others_do_not(kind, sequential):
    old, variant, other = VERSIONS[kind]
    options = {"runs": 1_000, "jobs": 1, "sequential": sequential, "floating_point": "ignore"}
    assert check_equivalence(old, variant, ROWS, alpha=RARE, **options).verdict is Verdict.NOT_REFUTED
    assert check_equivalence(old, other, ROWS, alpha=RARE, **options).is_refuted


def test_it_is_the_audit_of_a_hand_made_combination():
    def combined(scale, size, rng):
        return len(ROWS) + rng.laplace(scale=scale, size=size)

    by_hand = check(combined, 1.0, 1.2, claim=PureDP(0.0), runs=1_000, name="a name")
    found = check_equivalence(laplace(1.0), laplace(1.2), ROWS, runs=1_000, name="a name")
    assert found.counts == by_hand.counts
    assert (found.event, found.bound, found.pvalue) == (by_hand.event, by_hand.bound, by_hand.pvalue)
    assert found.mechanism == "a name"


def test_the_versions_are_named():
    def first(rows, size, rng):
        return rng.laplace(size=size)

    options = {"runs": 400, "floating_point": "ignore"}
    found = check_equivalence(first, functools.partial(first), ROWS, **options)
    assert found.mechanism == "first, old and new"
    assert (found.pair.x, found.pair.y) == ("the old version first, on list of 3", "the new version first, on the same")
    assert "x is the old version first, y is the new version first" in str(found)
    other = check_equivalence(first, laplace(), ROWS, **options).mechanism
    assert other.startswith("first and lambda at test_check_equivalence.py:")


def compare(old, new, margin=0.05, **options):
    return check_equivalence(old, new, ROWS, **{"margin": margin, "runs": 40_000, "jobs": 1, "alpha": RARE, **options})


def test_equivalence_is_shown_refuted_or_open():
    shown, different, unclear = (compare(coin(0.5), coin(p)) for p in (0.5, 0.6, 0.55))
    assert shown.verdict is Equivalence.SHOWN
    assert str(shown).startswith("EQUIVALENT: total variation distance at most 0.0")
    assert different.verdict is Equivalence.DIFFERENT
    assert different.lower > 0.05
    assert str(different).startswith(f"DIFFERENT: total variation distance at least {different.lower:.4g}"[:-1])
    assert "runs of the old version lambda at test_check_equivalence.py:" in str(different)
    assert unclear.verdict is Equivalence.INCONCLUSIVE
    assert "equal versions would have been shown" in str(unclear)
    few = compare(coin(0.5), coin(0.5), margin=0.005)
    assert few.verdict is Equivalence.INCONCLUSIVE
    assert f"about {few.runs_needed:,} needed" in str(few)
    for result in (shown, different, unclear, few):
        assert 0 <= result.lower <= result.estimate <= result.upper <= 1
        assert "99.9999% confidence" in str(result)
        assert result.verdict.value in repr(result)


def test_the_scope_is_said_with_every_upper_limit():
    for margin in (0.1, 0.001):
        numbers = compare(laplace(), laplace(), margin=margin, runs=5_000)
        assert numbers.scope == "for these 32 bins only; other events may differ by more"
        assert numbers.scope in str(numbers)
    few = compare(strings(0.3), strings(0.3), margin=0.1)
    assert few.scope == "for every event, outcomes that were never seen included"
    assert few.counts_unlisted


def test_outcomes_that_the_pilot_missed_count_as_different():
    """A version that turns to new outcomes once in a while: the runs outside all cells are in the upper limit."""
    rare = 2e-3

    def leaking(rows, size, rng):
        return np.where(rng.random(size) < rare, rng.integers(10, 10**9, size=size), rng.integers(2, size=size))

    found = compare(lambda rows, size, rng: rng.integers(2, size=size), leaking, margin=0.1)
    assert found.counts_unlisted
    assert found.bins.count_y[-1] > 20
    assert found.upper >= total_variation_upper(found.bins.count_x, found.bins.count_y, alpha=RARE / 2)
    observed = sum(max(b - a, 0) for a, b in zip(found.bins.count_x, found.bins.count_y, strict=True))
    assert found.upper > observed / found.bins.runs_x > rare / 2


def stuck(rows, size, rng):
    """Runs that repeat the one before them, half of the time."""
    return np.repeat(rng.normal(size=size), 2)[:size]


def test_runs_that_are_not_independent_are_inconclusive():
    found = compare(laplace(), stuck, margin=0.5)
    assert found.verdict is Equivalence.INCONCLUSIVE
    assert "Silence this check" in str(found)
    assert compare(stuck, stuck, margin=0.5, ignore=["serial-dependence", "nonstationary"]).is_shown


def _appending(rows, rng):
    rows.append(0)
    return int(rng.integers(2))


def _sorting(rows, size, rng):
    """The first run changes the dataset, and the others find it as they want it."""
    rows.sort()
    return rng.laplace(size=size)


@pytest.mark.parametrize("changing", [_appending, _sorting])
@pytest.mark.parametrize(("margin", "jobs"), [(None, 1), (0.5, 1), (0.5, 2)])
def test_a_dataset_that_a_version_changes_is_found_in_every_process(changing, margin, jobs):
    result = check_equivalence(changing, lambda rows, rng: 0, [3, 1, 2], margin=margin, runs=400, jobs=jobs)
    assert result.verdict.name == "INCONCLUSIVE"
    assert [finding.check.value for finding in result.findings] == ["dataset-mutated"]


BAD = [*({"margin": m} for m in (0, 1, math.nan, True)), *({"bins": c} for c in (0, 1, 2.5, 10**6)),
       *({"alpha": a} for a in (0, 1, 1e-9)), {"runs": 39}, {"seed": -1}, {"jobs": 0}, {"ignore": "x"}]  # fmt: skip


def test_bad_settings_and_options_of_the_other_comparison_are_refused_before_anything_is_drawn():
    def mechanism(rows, size, rng):
        raise AssertionError

    for changes in BAD:
        with pytest.raises(OptionError, match=next(iter(changes))):
            check_equivalence(mechanism, mechanism, ROWS, **{"margin": 0.1, **changes})
    with pytest.raises(OptionError, match="bins= counts outputs for a margin"):
        check_equivalence(mechanism, mechanism, ROWS, bins=8)
    with pytest.raises(OptionError, match="sequential= is for a comparison without a margin"):
        check_equivalence(mechanism, mechanism, ROWS, margin=0.1, sequential=True)


def test_a_difference_fails_a_test_that_asks_for_it():
    def new_count(rows, size, rng):
        return len(rows) + np.abs(rng.laplace(size=size))

    options = {"alpha": 1e-5, "floating_point": "ignore"}
    same = check_equivalence(laplace(), laplace(), ROWS, runs=10_000, sequential=True, **options)
    assert same.raise_if_refuted() is same
    assert check_equivalence(coin(0.3), coin(0.3), ROWS, margin=0.05, runs=40_000, bins=8).raise_if_refuted().is_shown
    with pytest.raises(RefutedError, match=r"(?s)REFUTED.*x is the old version .*, y is the new version new_count"):
        check_equivalence(laplace(), new_count, ROWS, runs=4_000, **options).raise_if_refuted()
    with pytest.raises(InconclusiveError, match="Silence this check"):
        check_equivalence(stuck, stuck, ROWS, runs=10_000, **options).raise_if_refuted()


def test_versions_without_state_are_not_said_to_keep_any():
    """A version that counts its calls does; the parcel in which both travel to a worker is new each time."""
    calls = []

    def plain(value, rng):
        return value + rng.laplace()

    def counting(value, rng):
        calls.append(value)
        return value + rng.laplace()

    for old, keeps in ((plain, False), (counting, True)):
        result = check_equivalence(old, plain, 0, runs=400)
        assert any("keeps state" in note for note in result.notes) is keeps
