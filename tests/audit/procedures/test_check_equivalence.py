"""Two versions of a mechanism: found to differ, shown to be within a margin, or neither."""

import dataclasses
import enum
import functools
import itertools
import math
import threading

import numpy as np
import pytest
from scipy import stats

from dpaudit import PureDP, Verdict, check
from dpaudit.audit.errors import MechanismError, OptionError
from dpaudit.audit.inference.total_variation import total_variation_upper
from dpaudit.audit.procedures.check_equivalence import (
    assert_same_distribution,
    check_equivalence,
    check_same_distribution,
)
from dpaudit.audit.results.equivalence_result import Equivalence

ROWS = [1, 1, 1]
RARE = 1e-6  # alpha where versions that are the same have to pass


def laplace(scale=1.0):
    return lambda rows, size, rng: len(rows) + rng.laplace(scale=scale, size=size)


def coin(p):
    return lambda rows, size, rng: rng.random(size) < p


class Colour(enum.Enum):
    """Outputs of a type that worker processes do not find under its name."""

    RED = 1
    BLUE = 2


def colours(p, rows, rng):
    if rng.random() < 0.1:
        raise KeyError
    return Colour.RED if rng.random() < p else Colour.BLUE


def compositions(total, parts):
    """Every tuple of `parts` counts that sum to `total`."""
    if parts == 1:
        return [(total,)]
    return [(first, *rest) for first in range(total + 1) for rest in compositions(total - first, parts - 1)]


def laws(cells, steps):
    """Probabilities on a grid that holds the corners, and some next to them."""
    found = [tuple(count / steps for count in law) for law in compositions(steps, cells)]
    return [*found, *(tuple(0.999 * p + 0.001 / cells for p in law) for law in found)]


def failure_rates(cells, runs, steps, upper):
    """For every pair of laws, the probability that an upper limit lies below their total variation distance."""
    outcomes = np.array(compositions(runs, cells))
    at = laws(cells, steps)
    chances = np.array([stats.multinomial.pmf(outcomes, runs, law) for law in at])
    limit = np.array([[upper(x, y) for y in outcomes.tolist()] for x in outcomes.tolist()])
    for (i, p), (j, q) in itertools.product(enumerate(at), repeat=2):
        distance = 0.5 * sum(abs(a - b) for a, b in zip(p, q, strict=True))
        yield float(chances[i] @ (limit < distance - 1e-9) @ chances[j])


@pytest.mark.parametrize(("cells", "runs", "steps"), [(2, 1, 20), (2, 3, 20), (2, 14, 20), (3, 5, 5), (4, 3, 3)])
@pytest.mark.parametrize("alpha", [0.025, 0.25, 0.9])
def test_the_upper_limit_fails_with_probability_alpha_at_most(cells, runs, steps, alpha):
    @functools.cache
    def limit(excess):
        return total_variation_upper((excess, runs - excess), (0, runs), alpha=alpha)

    def upper(x, y):
        return limit(sum(max(a - b, 0) for a, b in zip(x, y, strict=True)))

    worst = max(failure_rates(cells, runs, steps, upper))
    assert worst <= alpha + 1e-12
    assert worst > (0.4 * min(alpha, 0.25) if (cells, runs) == (2, 14) else -1)  # nor is it idle


def test_a_limit_for_one_event_alone_fails():
    def upper(x, y):  # the first cell, as if its excess were the distance
        return total_variation_upper((x[0], 14 - x[0]), (min(x[0], y[0]), 14 - min(x[0], y[0])), alpha=0.025)

    assert max(failure_rates(2, 14, 10, upper)) > 0.2


@pytest.mark.parametrize("runs", [2, 4])
def test_counted_in_full_what_has_no_cell_is_covered_too(runs):
    def upper(x, y):  # four outcomes, two of which share the last cell
        return total_variation_upper(
            (*x[:2], x[2] + x[3]), (*y[:2], y[2] + y[3]), alpha=0.1, counts_unlisted=counts_unlisted
        )

    counts_unlisted = True
    assert max(failure_rates(4, runs, 3, upper)) <= 0.1 + 1e-12
    counts_unlisted = False
    assert max(failure_rates(4, runs, 3, upper)) > 0.5


def pairs_of_counts(seed, many=40):
    rng = np.random.default_rng(seed)
    for _ in range(many):
        law = rng.dirichlet(np.ones(rng.integers(2, 7)))
        runs = int(rng.integers(1, 10 ** rng.integers(1, 7)))
        yield rng.multinomial(runs, law).tolist(), rng.multinomial(runs, law).tolist(), runs


def test_the_upper_limit_is_the_largest_over_all_sets_of_cells():
    for x, y, runs in pairs_of_counts(0):
        sets = itertools.product((0, 1), repeat=len(x))
        sums = np.array([runs + np.dot(s, x) - np.dot(s, y) for s in sets])
        ends = np.where(sums >= 2 * runs - 1, 1.0, 2 * stats.beta.isf(0.03, sums + 1, 2 * runs - sums) - 1)
        assert total_variation_upper(x, y, alpha=0.03) == pytest.approx(ends.max(), rel=1e-6, abs=1e-7)


def test_laws_of_the_upper_limit():
    for x, y, runs in pairs_of_counts(1):
        limit = total_variation_upper(x, y, alpha=0.05)
        observed = 0.5 * sum(abs(a - b) for a, b in zip(x, y, strict=True)) / runs
        assert observed < limit <= 1.0
        assert limit <= observed + math.sqrt(math.log(1 / 0.05) / runs) + 1e-8 or limit == 1.0  # McDiarmid's
        assert total_variation_upper(y, x, alpha=0.05) == limit
        assert total_variation_upper(x, y, alpha=0.01) >= limit
        full = [total_variation_upper(*pair, alpha=0.05, counts_unlisted=True) for pair in ((x, y), (y, x))]
        assert full[0] == full[1] >= limit
        merged = ([sum(x[:2]), *x[2:], 0], [sum(y[:2]), *y[2:], 0])
        assert total_variation_upper(*merged, alpha=0.05) <= limit


@pytest.mark.parametrize(
    ("x", "y", "alpha"), [((3, 4), (3, 5), 0.1), ((3, 4), (7,), 0.1), ((0, 0), (0, 0), 0.1), ((8, -1), (3, 4), 0.1),
                          ((3, 4), (3, 4), 0.0), ((3, 4), (3, 4), math.nan)],
)  # fmt: skip
def test_impossible_counts_are_refused(x, y, alpha):
    with pytest.raises(OptionError):
        total_variation_upper(x, y, alpha=alpha)


def strings(p):
    return lambda rows, size, rng: np.array(["yes", "no", "neither"])[rng.choice(3, p=[p, 0.7 - p, 0.3], size=size)]


def vectors(shift):
    return lambda rows, size, rng: rng.normal(size=(size, 2)) + np.array([0.0, shift])


def mixed(p):
    """One run at a time: a tuple, None, or an exception."""

    def run(rows, rng):
        kind = rng.random()
        if kind < 0.3:
            raise ValueError
        return None if kind < 0.3 + p else ("left", rng.integers(3))

    return run


VERSIONS = [
    (laplace(), laplace(), laplace(2.5)),
    (coin(0.3), lambda rows, size, rng: rng.integers(10, size=size) < 3, coin(0.5)),
    (strings(0.3), strings(0.3), strings(0.55)),
    (vectors(0), vectors(0), vectors(0.8)),
    (mixed(0.3), mixed(0.3), mixed(0.6)),
    (lambda rows, rng: rng.normal(), lambda rows, size, rng: rng.normal(size=size), lambda rows: 3),
]


@pytest.mark.parametrize(("place", "sequential"), [*((place, False) for place in range(6)), (0, True)])
def test_twins_pass_and_others_do_not(place, sequential):
    """Numbers, booleans, strings, vectors, outputs of all kinds, and single runs against blocks."""
    old, twin, other = VERSIONS[place]
    options = {"runs": 2_000, "jobs": 1, "sequential": sequential, "bits": False}
    assert check_same_distribution(old, twin, ROWS, alpha=RARE, **options).verdict is Verdict.NOT_REFUTED
    assert check_same_distribution(old, other, ROWS, alpha=RARE, **options).is_refuted


def test_it_is_the_audit_of_a_hand_made_combination():
    def combined(scale, size, rng):
        return len(ROWS) + rng.laplace(scale=scale, size=size)

    by_hand = check(combined, 1.0, 1.2, claim=PureDP(0.0), runs=1_000, name="a name")
    found = check_same_distribution(laplace(1.0), laplace(1.2), ROWS, runs=1_000, name="a name")
    assert found.counts == by_hand.counts
    assert (found.event, found.bound, found.p_value) == (by_hand.event, by_hand.bound, by_hand.p_value)
    assert found.mechanism == "a name"


def test_the_versions_are_named():
    def first(rows, size, rng):
        return rng.laplace(size=size)

    found = check_same_distribution(first, functools.partial(first), ROWS, runs=400, bits=False)
    assert found.mechanism == "first, old and new"
    assert (found.pair.x, found.pair.y) == ("the old version first, on list of 3", "the new version first, on the same")
    assert "x is the old version first, y is the new version first" in str(found)
    assert check_same_distribution(first, laplace(), ROWS, runs=400, bits=False).mechanism == "first and <lambda>"


def test_exceptions_are_outputs():
    def fails(rows, rng):
        if rng.random() < 0.5:
            raise ValueError
        return 1

    def fails_otherwise(rows, size, rng):  # as a block it would be refused
        if rng.random() < 0.5:
            raise KeyError
        return np.ones(size, dtype=int)

    found = check_same_distribution(fails, fails_otherwise, ROWS, runs=400, jobs=1)
    assert found.is_refuted
    assert any("ValueError was raised" in note for note in found.notes)
    assert any("KeyError was raised" in note for note in found.notes)


def test_outputs_that_never_vary_are_the_same_or_are_not():
    assert not check_same_distribution(lambda rows: 1, lambda rows: 1, ROWS, runs=400, jobs=1).is_refuted
    assert check_same_distribution(lambda rows: 1, lambda rows: 2, ROWS, runs=400, jobs=1).is_refuted
    assert not check_same_distribution(lambda rows: math.nan, lambda rows: math.nan, [], runs=400, jobs=1).is_refuted
    assert check_same_distribution(lambda rows: math.nan, lambda rows: None, None, runs=400, jobs=1).is_refuted


def test_workers_get_closures_and_types_that_they_cannot_import():
    old, new = functools.partial(colours, 0.5), functools.partial(colours, 0.7)
    found = [check_same_distribution(old, new, ROWS, runs=1_500, jobs=jobs) for jobs in (1, 2)]
    assert found[0] == found[1]
    assert found[0].is_refuted
    shift = 0.4
    found = [
        check_equivalence(lambda rows, rng: rng.normal(), lambda rows, rng: shift, 0, margin=0.1, runs=400, jobs=jobs)
        for jobs in (1, 2)
    ]
    assert found[0] == found[1]


def test_what_cannot_be_run_is_named():
    lock = threading.Lock()

    def guarded(rows, rng):
        with lock:
            return 1

    def broken(rows, size, rng):
        return 1 / 0

    def two_outputs(rows, size, rng):
        return [1, 2]

    with pytest.raises(MechanismError, match=r"broken raised ZeroDivisionError: .* on y, seed 0"):
        check_same_distribution(laplace(), broken, ROWS, runs=400, jobs=1)
    with pytest.raises(MechanismError, match=r"two_outputs returned 2 outputs when asked for 1;"):
        check_same_distribution(lambda rows: 1, two_outputs, ROWS, runs=400, jobs=1)
    with pytest.raises(MechanismError, match=r"cannot be sent to a worker process \(TypeError: .*use jobs=1"):
        check_same_distribution(guarded, guarded, ROWS, runs=400, jobs=2)
    with pytest.raises(MechanismError, match="cannot be run"):
        check_same_distribution(laplace(), 3, ROWS)


def test_false_alarms():
    """At a rate of alpha this fails once in ten million runs of the suite."""
    found = [check_same_distribution(coin(0.3), coin(0.3), ROWS, runs=2_000, seed=s, bits=False) for s in range(12)]
    assert sum(result.is_refuted for result in found) <= stats.binom.isf(1e-7, 12, 0.05)


def compare(old, new, margin=0.05, **options):
    return check_equivalence(old, new, ROWS, **{"margin": margin, "runs": 40_000, "jobs": 1, "alpha": RARE, **options})


def test_equivalence_is_shown_refuted_or_open():
    shown, different, unclear = (compare(coin(0.5), coin(p)) for p in (0.5, 0.6, 0.55))
    assert shown.verdict is Equivalence.SHOWN
    assert str(shown).startswith("EQUIVALENT: total variation distance at most 0.0")
    assert different.verdict is Equivalence.DIFFERENT
    assert different.lower > 0.05
    assert str(different).startswith(f"DIFFERENT: total variation distance at least {different.lower:.4g}"[:-1])
    assert "runs of the old version <lambda>" in str(different)
    assert unclear.verdict is Equivalence.INCONCLUSIVE
    assert "equal versions would have been shown" in str(unclear)
    few = compare(coin(0.5), coin(0.5), margin=0.005)
    assert few.verdict is Equivalence.INCONCLUSIVE
    assert f"about {few.runs_needed:,} needed" in str(few)
    for result in (shown, different, unclear, few):
        assert 0 <= result.lower <= result.estimate <= result.upper <= 1
        assert "99.9999% confidence" in str(result)
        assert result.verdict.value in repr(result)


def test_the_limits_hold_together_with_the_stated_probability():
    """Each of 15 pairs of limits misses with probability .2 at most; more misses come once in 10 million times."""
    found = [compare(coin(0.3), coin(0.33), alpha=0.2, runs=2_000, seed=seed) for seed in range(15)]
    missed = sum(not result.lower <= 0.03 + 1e-12 <= result.upper for result in found)
    assert missed <= stats.binom.isf(1e-7, 15, 0.2)
    assert all(result.lower <= result.estimate <= result.upper for result in found)


def test_what_was_planned_is_shown():
    first = compare(coin(0.3), coin(0.3), margin=0.02, runs=4_000, alpha=0.05)
    assert not first.is_shown
    shown = [compare(coin(0.3), coin(0.3), 0.02, runs=first.runs_needed, alpha=0.05, seed=s) for s in range(5)]
    assert any(result.is_shown for result in shown)  # each with probability .95
    assert shown[0].smallest_margin == pytest.approx(0.02, rel=0.02)


def test_the_scope_is_said_with_every_upper_limit():
    numbers = compare(laplace(), laplace(), margin=0.1, runs=5_000)
    assert numbers.scope == "for these 32 cells only; other events may differ by more"
    assert numbers.scope in str(numbers)
    assert numbers.scope in str(compare(laplace(), laplace(), margin=0.001, runs=5_000))
    few = compare(strings(0.3), strings(0.3), margin=0.1)
    assert few.scope == "for every event, outcomes that were never seen included"
    assert few.counts_unlisted
    words = [f"word {i}" for i in range(200)]
    many = compare(*[lambda rows, size, rng: [words[i] for i in rng.integers(200, size=size)]] * 2, margin=0.2)
    assert not many.counts_unlisted
    assert "outcomes observed in the pilot, and all others together; other events may differ by more" in many.scope


def test_outcomes_that_the_pilot_missed_count_as_different():
    """A version that turns to new outcomes once in a while: the runs outside all cells are in the upper limit."""
    rare = 2e-3

    def leaking(rows, size, rng):
        return np.where(rng.random(size) < rare, rng.integers(10, 10**9, size=size), rng.integers(2, size=size))

    found = compare(lambda rows, size, rng: rng.integers(2, size=size), leaking, margin=0.1)
    assert found.counts_unlisted
    assert found.cells.hits_y[-1] > 20
    assert found.upper >= total_variation_upper(found.cells.hits_x, found.cells.hits_y, alpha=RARE / 2)
    observed = sum(max(b - a, 0) for a, b in zip(found.cells.hits_x, found.cells.hits_y, strict=True))
    assert found.upper > observed / found.cells.runs_x > rare / 2


@pytest.mark.parametrize("rest", [lambda rng, n: rng.integers(500, size=n), lambda rng, n: np.full(n, np.inf)])
def test_numbers_with_atoms_are_cut_into_cells_too(rest):
    def version(p):
        return lambda rows, size, rng: np.where(rng.random(size) < p, rng.integers(2, size=size), rest(rng, size) * 1.0)

    assert compare(version(0.9), version(0.9), margin=0.1).is_shown
    other = compare(version(0.9), version(0.7), margin=0.1)
    assert other.verdict is Equivalence.DIFFERENT
    assert other.upper > 0.19


def test_a_single_cell_shows_nothing():
    found = compare(laplace(), laplace(), margin=0.5)
    blind = {"names": ("a", "rest"), "hits_x": (9, 0), "hits_y": (9, 0), "n_known": 1}
    found = dataclasses.replace(found, cells=dataclasses.replace(found.cells, **blind), margin=0.999)
    assert found.upper <= 0.999
    assert found.verdict is Equivalence.INCONCLUSIVE
    assert "a single cell shows nothing" in str(found)


def stuck(rows, size, rng):
    """Runs that repeat the one before them, half of the time."""
    return np.repeat(rng.normal(size=size), 2)[:size]


def test_runs_that_are_not_independent_are_inconclusive():
    found = compare(laplace(), stuck, margin=0.5)
    assert found.verdict is Equivalence.INCONCLUSIVE
    assert "Silence this check" in str(found)
    assert compare(stuck, stuck, margin=0.5, ignore=["serial-dependence", "unsteady-hits"]).is_shown


BAD = [
    *({"margin": m} for m in (0, 1, -0.1, math.nan, True, "0.1", None)), *({"cells": c} for c in (0, 1, 2.5, 10**6)),
    *({"alpha": a} for a in (0, 1, 1.5, math.nan, 1e-9)), *({"runs": r} for r in (39, 1.5, math.nan)),
    {"seed": -1}, {"jobs": 0}, {"ignore": "x"},
]  # fmt: skip


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_dataset_that_a_version_changes_is_found_in_every_process(jobs):
    def changing(rows, rng):
        rows.append(0)
        return int(rng.integers(2))

    for result in (
        check_equivalence(changing, lambda rows, rng: 0, [1], margin=0.5, runs=400, jobs=jobs),
        check_same_distribution(changing, lambda rows, rng: 0, [1], runs=400, jobs=jobs),
    ):
        assert result.verdict.name == "INCONCLUSIVE"
        assert [finding.check.value for finding in result.findings] == ["dataset-mutated"]
        assert "the mechanism changed the dataset in place" in str(result)


@pytest.mark.parametrize("changes", BAD, ids=str)
def test_bad_settings_are_refused_before_anything_is_drawn(changes):
    def mechanism(rows, size, rng):
        raise AssertionError

    with pytest.raises(OptionError, match=next(iter(changes))):
        check_equivalence(mechanism, mechanism, ROWS, **{"margin": 0.1, **changes})


def test_a_result_that_is_impossible_is_refused():
    found = compare(coin(0.5), coin(0.5), runs=2_000)
    for name, value, way_out in (
        ("lower", math.nan, "audit again"),
        ("margin", 0.0, "audit again"),
        ("alpha", 1.0, "use"),
    ):
        with pytest.raises(OptionError, match=rf"^{name}={value} is .*; {way_out}"):
            dataclasses.replace(found, **{name: value})
    assert "[0.01234, " in repr(dataclasses.replace(found, lower=0.0123456789))


def test_the_assertion_passes_for_twins():
    result = assert_same_distribution(laplace(), laplace(), ROWS, runs=60_000, bits=False)
    assert result.verdict is Verdict.NOT_REFUTED
    assert 0 < result.resolution < 0.1
    assert assert_same_distribution(
        coin(0.3), coin(0.3), ROWS, margin=0.05, runs=40_000, cells=8, seed=3, sequential=False
    ).is_shown
    # the event last bet on is any: that alone leaves nothing open
    assert_same_distribution(laplace(), laplace(), ROWS, runs=3_000, bits=False)


def test_the_assertion_says_what_differs():
    def old_count(rows, size, rng):
        return len(rows) + rng.laplace(size=size)

    def new_count(rows, size, rng):
        return len(rows) + np.abs(rng.laplace(size=size))

    with pytest.raises(AssertionError) as caught:
        assert_same_distribution(old_count, new_count, ROWS, seed=5)
    text = str(caught.value)
    assert text.startswith("the old version old_count and the new version new_count differ: output ")
    for part in ("runs of the old version old_count, ", "99.999% confidence", "seed=5 repeats these runs", "ratio of"):
        assert part in text

    state = np.random.default_rng(0)
    with pytest.raises(AssertionError, match=r"does not repeat these runs: a version has randomness"):
        assert_same_distribution(old_count, lambda rows: state.normal(), ROWS, jobs=1)


def test_the_assertion_raises_where_nothing_is_decided():
    with pytest.raises(AssertionError, match=r"(?s)cannot decide whether .*INCONCLUSIVE.*Silence this check.*seed=0"):
        assert_same_distribution(stuck, stuck, ROWS, runs=10_000, sequential=False, bits=False)
    with pytest.raises(AssertionError, match=r"(?s)cannot decide whether .*requested: 0\.001"):
        assert_same_distribution(laplace(), laplace(), ROWS, resolution=0.001, runs=400, bits=False)
    with pytest.raises(AssertionError, match=r"(?s)are not shown to be within margin=0\.001: .*needed"):
        assert_same_distribution(laplace(), laplace(), ROWS, margin=0.001, runs=10_000, sequential=False, bits=False)
    with pytest.raises(OptionError, match="margin"):
        assert_same_distribution(laplace(), laplace(), ROWS, margin=math.nan)
    with pytest.raises(OptionError, match="cells= counts outputs for a margin"):
        assert_same_distribution(laplace(), laplace(), ROWS, cells=8)
