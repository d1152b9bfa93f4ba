"""Each health check detects a planted violation and is silent otherwise; its false-alarm rate is computed."""

import functools
import math
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from dpaudit import LaplaceNoise, PureDP, Verdict, check, check_equivalence, check_noise, count_cells
from dpaudit.audit.errors import OptionError
from dpaudit.audit.events.outputs import packed
from dpaudit.audit.health.findings import OF_RUNS, HealthCheck, checks_to_ignore
from dpaudit.audit.health.run_independence import columns_of, examine, examine_order
from dpaudit.audit.sampling.output_hashes import FINGERPRINTED
from dpaudit.audit.sampling.tasks import BlockCounts, no_blocks

PROMISED = 1e-6  # all checks of one audit, on both sides
NONE = frozenset()


def audit(mechanism, runs=200_000, **settings):
    return check(mechanism, 0.0, 0.1, claim=PureDP(1.0), runs=runs, jobs=1, bits=False, **settings)


def fixed_seed(dataset, size, rng):
    return dataset + np.random.default_rng(1).laplace(size=size)


def reused_noise(dataset, size, rng):
    return dataset + np.repeat(rng.laplace(size=size), 2)[:size]


def one_draw_for_a_block(dataset, size, rng):
    return rng.random(size) < rng.uniform(0.3, 0.7)


def few_streams(dataset, size, rng):
    return dataset + np.random.default_rng(int(rng.integers(2))).laplace(size=size)


class Walk:
    """State kept from run to run."""

    def __init__(self):
        self.noise = 0.0

    def __call__(self, dataset, rng):
        self.noise = 0.9 * self.noise + rng.normal()
        return dataset + self.noise


VIOLATIONS = [
    (fixed_seed, 20_000, HealthCheck.REPEATED_BLOCKS), (few_streams, 20_000, HealthCheck.REPEATED_BLOCKS),
    (one_draw_for_a_block, 400_000, HealthCheck.UNSTEADY_HITS), (reused_noise, 60_000, HealthCheck.SERIAL_DEPENDENCE),
    (Walk(), 12_000, HealthCheck.SERIAL_DEPENDENCE),
]  # fmt: skip


@functools.cache
def found_in(mechanism, runs):
    """One audit for all tests of a violation, since a seed makes it the same each time."""
    return audit(mechanism, runs)


@pytest.mark.parametrize(("mechanism", "runs", "expected"), VIOLATIONS)
def test_planted_violations_are_found(mechanism, runs, expected):
    result = found_in(mechanism, runs)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not result.is_refuted
    assert expected in {finding.check for finding in result.findings}
    finding = next(f for f in result.findings if f.check is expected)
    assert str(finding).endswith(f"Silence this check with ignore={expected.value!r}.")
    assert str(finding) in " ".join(result.remarks)


@pytest.mark.parametrize(("mechanism", "runs", "expected"), VIOLATIONS)
def test_ignoring_silences_exactly_one_check(mechanism, runs, expected):
    before = {f.check for f in found_in(mechanism, runs).findings} if not isinstance(mechanism, Walk) else {expected}
    after = {f.check for f in audit(mechanism, runs, ignore=expected.value).findings}
    assert expected not in after
    assert before - {expected} <= after
    others = [c.value for c in HealthCheck if c is not expected]
    assert expected in {f.check for f in audit(mechanism, runs, ignore=others).findings}


def test_a_repeated_stream_does_not_refute_by_one_lucky_block():
    """With a fixed seed all runs repeat one block, so their counts prove nothing."""
    result = found_in(fixed_seed, 20_000)
    assert "blocks of runs on x begin with the same outputs" in " ".join(result.remarks)


def test_names():
    assert checks_to_ignore(()) == NONE
    assert checks_to_ignore("serial-dependence") == {HealthCheck.SERIAL_DEPENDENCE}
    assert checks_to_ignore([c.value for c in HealthCheck]) == set(HealthCheck)
    with pytest.raises(
        OptionError, match="ignore='seed' is not a health check; use one of repeated-blocks, unsteady-hits"
    ):
        checks_to_ignore(["repeated-blocks", "seed"])
    with pytest.raises(OptionError):
        audit(fixed_seed, ignore="REPEATED_BLOCKS")


def bernoulli(rate):
    return lambda dataset, size, rng: rng.random(size) < rate


HONEST = {
    "laplace": lambda d, size, rng: d + rng.laplace(size=size),
    "vectors": lambda d, size, rng: rng.normal(size=(size, 3)),
    "constant": lambda d, size, rng: np.zeros(size),
    "rare": bernoulli(1e-4),
    "uncommon": bernoulli(0.005),
    "tenth": bernoulli(0.11),
    "half": bernoulli(0.5),
    "integers": lambda d, size, rng: rng.geometric(0.5, size),
    "not numbers": lambda d, size, rng: [None if v < 0.3 else "a" for v in rng.random(size)],
    "a public count": lambda d, size, rng: np.c_[np.full(size, 7.0), rng.laplace(size=size), rng.random(size) < 0.5],
    "mostly nan": lambda d, size, rng: np.where(rng.random(size) < 0.9, np.nan, rng.random(size)),
}


# Correct mechanisms without evidence: a single output, or hits too rare to choose an event.
SILENT = {"constant": HealthCheck.CONSTANT_OUTPUT, "rare": HealthCheck.IDLE_EVENT}


@pytest.mark.usefixtures("without_trees")
@pytest.mark.parametrize("name", HONEST)
def test_honest_mechanisms_pass(name):
    result = audit(HONEST[name], 60_000 if name != "not numbers" else 15_000)
    assert {finding.check for finding in result.findings} <= {SILENT.get(name)}


@pytest.mark.usefixtures("without_trees")
def test_rare_exceptions_among_vectors_do_not_disturb_the_others():
    """Equal laws on x and y with vectors and one exception in 500 runs: no refutation and no unsteady hits."""

    def mechanism(dataset, rng):
        if rng.random() < 0.002:
            raise ValueError
        return dataset + rng.normal(), rng.normal()

    result = check(mechanism, 0.0, 0.0, claim=PureDP(0.0), runs=3_000, jobs=1, bits=False, ignore="equal-datasets")
    assert result.findings == ()
    leaking = check(mechanism, 0.0, 3.0, claim=PureDP(1.0), runs=2_000, jobs=1, bits=False)
    assert leaking.is_refuted  # the vectors are still checked


def blocks(hits, size, fingerprints=None):
    marks = np.arange(len(hits)) if fingerprints is None else fingerprints
    return BlockCounts(np.array(hits), np.full(len(hits), size), np.array(marks, dtype=np.uint64))


def alarms(pilot, main, kind):
    """Whether a check fails on side x; side y is one short block that no check covers."""
    quiet = ([np.zeros(8)], blocks([0], 8))
    return kind in {f.check for f in examine((pilot, quiet[0]), (main, quiet[1]), NONE)}


def test_false_alarms_of_repeated_blocks():
    """Coins of probability p: two blocks agree by chance, and the limit of this probability may be too low.

    Looped runs in blocks of 1,024, a pilot of two blocks. The alarm needs at least h₀ successes in each half of the
    pilot, independently of a repeat among the other blocks.
    """
    size, n_blocks = 1024, 40
    pairs = math.comb(n_blocks, 2)
    repeated = blocks([0] * n_blocks, size, [1, 1, *range(2, n_blocks)])

    def pilot_with(successes):
        block = np.zeros(size)
        block[:successes] = 1.0
        return [block, block.copy()[::-1]]

    alarmed = [alarms(pilot_with(h), repeated, HealthCheck.REPEATED_BLOCKS) for h in range(0, 512, 4)]
    least = 4 * alarmed.index(True) - 3  # at least: the first number after those without an alarm
    assert all(alarmed[alarmed.index(True) :])
    worst = 0.0
    for p in np.geomspace(1e-4, 0.5, 400):
        agreement = (1 - 2 * p * (1 - p)) ** FINGERPRINTED
        repeat = min(1.0, pairs * agreement)
        worst = max(worst, repeat * float(stats.binom.sf(2 * least - 1, 2 * size, p)))
    assert 2 * worst <= PROMISED  # two sides


def test_unsteady_hits_are_found_where_blocks_have_few():
    """One hit per block on average, but all in the first half of the blocks."""
    hits = [2] * 80 + [0] * 80
    assert alarms([np.zeros(4096)], blocks(hits, 1024), HealthCheck.UNSTEADY_HITS)
    assert not alarms(
        [np.zeros(4096)], blocks(np.random.default_rng(3).poisson(1.0, 160), 1024), HealthCheck.UNSTEADY_HITS
    )


def test_unsteady_hits_of_another_event_are_found_and_named():
    steady, unsteady = np.random.default_rng(3).poisson(1.0, 160).tolist(), [2] * 80 + [0] * 80
    for name, others in (("second", [unsteady, steady]), ("third", [steady, unsteady])):
        counted = replace(blocks(steady, 1024), others=np.array(others))
        found = examine(([np.zeros(4096)], [np.zeros(8)]), (counted, blocks([0], 8)), NONE)
        assert any(f"hits of the {name} event on x vary" in finding.message for finding in found)


def serial_tail(n, p):
    """Return the exact probability of an alarm for n coins of probability p < ½, by successes and their runs."""
    successes = np.arange(1, n // 2)
    found = 0.0
    for k in successes:
        probability = float(stats.binom.pmf(k, n, p))
        if probability < 1e-12:
            continue
        for runs in range(1, k + 1):
            ways = _log_choose(k - 1, runs - 1) + _log_choose(n - k + 1, runs) - _log_choose(n, k)
            if ways > -35 and _serial_alarm(n, k, runs):
                found += probability * math.exp(ways)
    return found


def _log_choose(n, k):
    return -math.inf if k < 0 or k > n else float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


@functools.cache
def _serial_alarm(n, k, runs):
    """Apply the check to a block with k successes in `runs` runs, away from the ends."""
    block = np.zeros(n)
    lengths = [k - runs + 1] + [1] * (runs - 1)
    at = 1
    for length in lengths:
        if at + length > n - 1:
            return False
        block[at : at + length] = 1.0
        at += length + 1
    assert sum(a != b for a, b in pairwise(block)) == 2 * runs
    return alarms([block], blocks([0], 8), HealthCheck.SERIAL_DEPENDENCE)


@pytest.mark.parametrize("n", [64, 100])
@pytest.mark.parametrize("p", [0.1, 0.13, 0.2, 0.4])
def test_false_alarms_of_serial_dependence(n, p):
    assert 2 * serial_tail(n, p) <= PROMISED


@dataclass(frozen=True)
class Hidden:
    """Compares by a value that its repr omits."""

    name: str
    value: int = field(repr=False)


@pytest.mark.parametrize("values", [6, 10**6])
def test_objects_that_print_alike_are_not_accused(values):
    def draw(dataset, rng):
        return Hidden("a", int(rng.integers(values)))

    seen = {finding.check for finding in audit(draw, runs=1_000).findings}
    assert seen <= {HealthCheck.IDLE_EVENT}


@pytest.mark.parametrize("shape", [(4_000,), (4_000, 3)])
def test_sorted_outputs_are_known_by_their_columns_and_without_nan(shape):
    rng = np.random.default_rng(0)
    x, y = (np.sort(rng.laplace(size=shape), axis=0) for _ in range(2))
    if len(shape) == 1:
        x[-1] = np.nan
    assert examine_order(x, y, NONE) == ()


def test_blocks_with_and_without_an_exception_are_compared_alike():
    """Blocks without exceptions hold numbers, the others objects: the likeliest output is the same."""

    def raising(answer, rng):
        if rng.random() < (0.3 if answer else 0.02):
            raise ValueError("too small")
        return 1.0

    for seed in range(2):
        assert check(raising, 1.0, 0.0, claim=PureDP(1.0), runs=10_000, seed=seed, jobs=1).findings == ()


def test_noise_that_a_call_draws_once_is_noticed_in_a_hundred_runs():
    """The first batch has two calls on each dataset, of 16 runs."""

    def noise_of_a_call(dataset, size, rng):
        return dataset + rng.laplace() + np.zeros(size)

    for seed in range(3):
        result = check(noise_of_a_call, 0, 1, claim=PureDP(1.0), runs=100, seed=seed, sequential=True, jobs=1)
        assert result.findings


class OneColumn:
    """Vectors with new noise in the first column; the second has noise of this kind."""

    def __init__(self, kind):
        self.kind, self.runs = kind, 0

    def __call__(self, dataset, size, rng):
        new, other = rng.laplace(size=size), rng.laplace(size=size)
        self.runs += size
        second = {
            "one draw for a block": other[:1],
            "a fixed seed": np.random.default_rng(5).laplace(size=size),
            "eight copies": np.resize(other[: max(1, size // 8)], size),
            "pairs of copies": np.repeat(other, 2)[:size],
            "another scale later": other * (0.5 if self.runs > 1_000 else 1.5),
        }[self.kind]
        return dataset + np.column_stack([new, np.broadcast_to(second, size)])


BY_COLUMN = {
    "cells": lambda f: count_cells(f, 0.0, 0.0, cells=4, runs=20_000, jobs=1),
    "noise": lambda f: check_noise(f, 0.0, noise=LaplaceNoise(1.0), answer=np.zeros(2), runs=10_000, jobs=1),
    "equivalence": lambda f: check_equivalence(f, OneColumn(f.kind), 0.0, margin=0.05, runs=20_000, jobs=1),
    "check": lambda f: audit(f, 20_000),
}


@pytest.mark.usefixtures("without_trees")
@pytest.mark.parametrize("audited", BY_COLUMN)
@pytest.mark.parametrize(
    "kind", ["one draw for a block", "a fixed seed", "eight copies", "pairs of copies", "another scale later"]
)
def test_dependence_in_a_later_column_is_found(audited, kind):
    found = BY_COLUMN[audited](OneColumn(kind)).findings
    assert OF_RUNS & {finding.check for finding in found}


def test_dependence_in_a_later_column_of_outputs_made_elsewhere_is_found():
    rng = np.random.default_rng(0)
    x, y = rng.laplace(size=(2, 4_000, 3))
    assert examine_order(x, y, NONE) == ()
    for bad in (np.repeat(x[:2_000, 2], 2), np.tile(x[:2_000, 2], 2), y[:, 2]):
        (first, *_) = examine_order(np.column_stack([x[:, :2], bad]), y, NONE, ("a", "b", "c"))
        assert first.message.startswith("c: ")
    by_second = x[np.argsort(x[:, 1])]  # sorted rows, in which correlated columns have an order too
    assert examine_order(np.column_stack([by_second, by_second[:, 1] + by_second[:, 2]]), y, NONE) == ()


def test_columns_are_the_numbers_of_structured_outputs():
    rows = packed([(1.5, "a", (2, None)), (2.5, "b", (3, 4.0))])
    columns = dict(columns_of(([rows], [rows[:1]]), ("n", "text", "pair")))
    assert {name: [each.tolist() for each in x] for name, (x, _) in columns.items() if name != "pair[1]"} == {
        "n": [[1.5, 2.5]], "pair[0]": [[2.0, 3.0]],
    }  # fmt: skip
    assert np.array_equal(columns["pair[1]"][0][0], [np.nan, 4.0], equal_nan=True)
    assert columns_of(([np.zeros(3)], [np.zeros(2)]), ()) == []


def test_false_alarms_are_shared_by_the_columns():
    """Eighteen checks of 0.01 without a main phase, over all columns: Laplace noise, bits, integers and a constant."""
    rng = np.random.default_rng(1)

    def alarms():
        size = (2, 8, 128)
        columns = [rng.laplace(size=size), rng.random(size) < 0.5, rng.geometric(0.5, size), np.ones(size)]
        x, y = np.stack(columns, axis=-1).astype(np.float64)
        return bool(examine(([*x], [*y]), (no_blocks(), no_blocks()), NONE, alpha=0.01))

    assert sum(alarms() for _ in range(100)) <= stats.binom.isf(PROMISED, 100, 0.18)
