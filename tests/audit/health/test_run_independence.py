"""Planted dependence between runs is found and honest mechanisms pass; distributions under independence are exact."""

import functools
import importlib
import itertools
import math
import os
import re
import sys
from collections import Counter
from dataclasses import replace

import joblib
import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from scipy import stats
from scipy.special import gammaln

from dpaudit import PureDP, Verdict, check, check_equivalence, check_noise, check_outputs
from dpaudit.audit.errors import OptionError
from dpaudit.audit.events.outputs import as_outputs, packed
from dpaudit.audit.health.findings import OF_RUNS, HealthCheck, checks_to_ignore
from dpaudit.audit.health.run_independence import (
    Spread,
    change,
    columns_of,
    common_numbers,
    equal_pairs,
    examine,
    examine_order,
    halves,
    serial_correlation,
    two_sided,
    unsteady_blocks,
    unsteady_on_both,
)
from dpaudit.audit.sampling.output_hashes import FINGERPRINTED, order_mark
from dpaudit.audit.sampling.tasks import BlockCounts, no_blocks
from dpaudit.noise import LaplaceNoise

REPEATED, UNSTEADY = HealthCheck.DUPLICATE_OUTPUTS, HealthCheck.NONSTATIONARY
SERIAL, SHARED = HealthCheck.SERIAL_DEPENDENCE, HealthCheck.SHARED_RANDOMNESS
PROMISED = 1e-6  # all checks of one audit, on both sides
NONE = frozenset()
P = 1.0 / (1.0 + math.exp(-1.0))


def audit(mechanism, runs=3_000, x=0, y=1, **settings):
    return check(
        mechanism, x, y, claim=PureDP(1.0), **{"runs": runs, "jobs": 1, "floating_point": "ignore", **settings}
    )


def checks(result):
    return {finding.check for finding in result.findings}


def fixed_seed(dataset, size, rng):
    """A fixed seed in calls of several runs; in all calls it would make each single run the same, and be refuted."""
    return dataset + (np.random.default_rng(1) if size > 1 else rng).laplace(size=size)


def few_streams(dataset, size, rng):
    return dataset + np.random.default_rng(int(rng.integers(2))).laplace(size=size)


def reused_noise(dataset, size, rng):
    return dataset + np.repeat(rng.laplace(size=size), 2)[:size]


def one_rate_a_call(dataset, size, rng, sure=4_000):
    """Randomised response of epsilon 1 whose probability is random and shared by the runs of a call."""
    rate = rng.beta(sure * P, sure * (1 - P))
    return (rng.random(size) < rate) ^ bool(dataset)


def one_scale_a_call(dataset, size, rng):
    return dataset + rng.gamma(50.0, 1 / 50.0) * rng.laplace(scale=2.0, size=size)


def balanced(dataset, size, rng):
    """A stratified sampler: one quantile for each part of the unit interval, in random order."""
    uniform = (rng.permutation(size) + rng.random(size)) / size
    return dataset - 2.0 * np.sign(uniform - 0.5) * np.log(1.0 - 2.0 * np.abs(uniform - 0.5))


def pool(dataset, size, rng):
    return dataset + rng.choice(rng.laplace(size=size), size)


def rounded_pool(dataset, size, rng):
    """Outputs that often repeat, but more often within a block."""
    return np.round(pool(dataset, size, rng), 3)


class Walk:
    """State kept from run to run."""

    noise = 0.0

    def __call__(self, dataset, rng):
        self.noise = 0.9 * self.noise + rng.normal()
        return dataset + self.noise


class ReusedUniform:
    """Every second run reuses the randomness of the previous run; the outputs are words."""

    kept = None

    def __call__(self, dataset, rng):
        uniform = rng.random() if self.kept is None else self.kept
        self.kept = uniform if self.kept is None else None
        return "yes" if uniform < 0.5 + 0.1 * dataset else "no"


class CachedNoise:
    """The i-th block on y repeats the noise of the i-th block on x."""

    def __init__(self):
        self.noise, self.calls = {}, Counter()

    def __call__(self, dataset, size, rng):
        self.calls[dataset, size] += 1
        place = self.calls[dataset, size], size
        if place not in self.noise:
            self.noise[place] = np.random.default_rng(place).laplace(size=size)
        return dataset + self.noise[place]


STREAMS = {
    "numbers": lambda d, size, rng: d + rng.laplace(size=size),
    "mirrored": lambda d, size, rng: d + (1 - 2 * d) * rng.laplace(size=size),
    "vectors": lambda d, size, rng: np.column_stack([np.zeros(size), d + rng.laplace(size=size)]),
    "integers": lambda d, size, rng: d + rng.geometric(0.6, size),
    "words": lambda d, size, rng: np.where(rng.random(size) < 0.5 + 0.1 * d, "yes", "no").tolist(),
    "lengths": lambda d, size, rng: [("a",) * int(n) for n in rng.integers(1, 7, size)],
}


def one_stream(name):
    """A generator for each dataset with the same seed: the same noise on x and y."""
    streams = {}
    return lambda d, size, rng: STREAMS[name](d, size, streams.setdefault(d, np.random.default_rng(0)))


EARLY, LATE = {"sequential": False}, {"sequential": True}


PLANTED = [
    (lambda: fixed_seed, 3_000, REPEATED, LATE), (lambda: one_scale_a_call, 200_000, UNSTEADY, EARLY),
    (CachedNoise, 3_000, SHARED, LATE), (ReusedUniform, 3_000, SERIAL, LATE),
    (lambda: few_streams, 20_000, REPEATED, EARLY), (lambda: one_rate_a_call, 1_000_000, UNSTEADY, EARLY),
    (lambda: balanced, 60_000, UNSTEADY, EARLY), (lambda: reused_noise, 20_000, SERIAL, EARLY),
    (Walk, 6_000, SERIAL, EARLY), (lambda: pool, 20_000, SERIAL, EARLY), (lambda: rounded_pool, 40_000, SERIAL, EARLY),
    # The first run on x, for the shape, advances its stream by one: pairs of runs then depend on earlier runs.
    (lambda: one_stream("words"), 3_000, SHARED, EARLY),
]  # fmt: skip


@pytest.mark.parametrize(("make", "runs", "expected", "options"), PLANTED)
def test_planted_dependence_is_found(make, runs, expected, options):
    result = audit(make(), runs, **options)
    assert result.verdict is Verdict.INCONCLUSIVE
    finding = next(finding for finding in result.findings if finding.check is expected)
    assert str(finding).endswith(f"Silence this check with ignore={expected.value!r}.")
    assert str(finding) in " ".join(result.remarks)
    if expected is SHARED:  # what couples the datasets is no dependence within them
        assert checks(result) == {SHARED}


@pytest.mark.parametrize(("make", "runs", "expected"), [planted[:3] for planted in PLANTED[:4]])
def test_ignoring_silences_exactly_one_check(make, runs, expected):
    assert expected not in checks(audit(make(), runs, **EARLY, ignore=expected.value))
    others = [other.value for other in HealthCheck if other is not expected]
    assert checks(audit(make(), runs, **EARLY, ignore=others)) == {expected}


class Budget:
    """Returns noisy answers until its budget of calls is spent, then a constant or an exception."""

    def __init__(self, calls, raises=False):
        self.left, self.raises = calls, raises

    def __call__(self, dataset, rng):
        self.left -= 1
        if self.left >= 0:
            return dataset + rng.laplace()
        if self.raises:
            raise RuntimeError
        return 0.0


@pytest.mark.parametrize(
    ("mechanism", "sequential"), [(Budget(10), False), (Budget(3_000, True), False), (Budget(600), True)]
)
def test_a_budget_that_is_spent_is_found(mechanism, sequential):
    result = audit(mechanism, 2_000 if sequential else 4_000, sequential=sequential)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert checks(result) & {UNSTEADY, REPEATED}


def test_a_stream_of_a_module_that_workers_share_is_found_in_later_audits_too(tmp_path, monkeypatch):
    """Each worker imports the module from disk, so each has a copy of the same generator.

    A worker that is far ahead waits for the other, so that a busy machine does not leave all runs to one of them.
    """
    (tmp_path / "stream_of_a_module.py").write_text("import numpy as np\nrng = np.random.default_rng(42)\n")
    (tmp_path / "uses_that_stream.py").write_text(
        f"""
import os, pathlib, time
import stream_of_a_module

folder, mine, runs = pathlib.Path({str(tmp_path)!r}), f"{{os.getpid()}}.worker", 0

def noisy(dataset):
    global runs
    runs += os.getpid() != {os.getpid()}
    if runs % 128 == 1:
        with open(folder / mine, "ab") as file:
            file.write(b".")
        until = time.monotonic() + (60 if runs == 1 else 0.5)
        while time.monotonic() < until:
            done = {{path.name: path.stat().st_size for path in folder.glob("*.worker")}}
            if len(done) == 2 and done[mine] <= min(done.values()) + 4:
                break
            time.sleep(0.01)
    return dataset + stream_of_a_module.rng.laplace()
"""
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    get_reusable_executor().shutdown()
    try:
        uses_that_stream = importlib.import_module("uses_that_stream")
        with joblib.parallel_config("loky", n_jobs=2):
            for seed in range(2):
                assert REPEATED in checks(audit(uses_that_stream.noisy, 8_000, jobs=2, seed=seed))
    finally:
        get_reusable_executor().shutdown()
        for name in ("uses_that_stream", "stream_of_a_module"):
            sys.modules.pop(name, None)


def test_names():
    assert checks_to_ignore(()) == NONE
    assert checks_to_ignore("serial-dependence") == {SERIAL}
    assert checks_to_ignore([c.value for c in HealthCheck]) == set(HealthCheck)
    with pytest.raises(OptionError, match="ignore='seed' is not a health check; use one of duplicate-outputs, "):
        checks_to_ignore(["duplicate-outputs", "seed"])


HONEST = {
    "laplace": lambda d, size, rng: d + rng.laplace(size=size),
    "vectors": lambda d, size, rng: rng.normal(size=(size, 3)),
    "rare": lambda d, size, rng: rng.random(size) < 1e-4,
    "integers": lambda d, size, rng: rng.geometric(0.5, size),
    "not numbers": lambda d, size, rng: [None if v < 0.3 else "a" for v in rng.random(size)],
    "a public count": lambda d, size, rng: np.c_[np.full(size, 7.0), rng.laplace(size=size), rng.random(size) < 0.5],
    "mostly nan": lambda d, size, rng: np.where(rng.random(size) < 0.9, np.nan, rng.random(size)),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_mechanisms_pass(name):
    result = audit(HONEST[name], 4_000 if name == "not numbers" else 20_000, y=0.1)
    assert checks(result) <= {HealthCheck.NO_POWER}, "the outputs of some hardly differ"


# Outputs made elsewhere, by their order.


@pytest.mark.parametrize("name", STREAMS)
def test_one_stream_for_both_datasets_is_shared_and_two_are_not(name):
    x, same, fresh = (
        as_outputs(STREAMS[name](d, 2_000, np.random.default_rng(seed)), 2_000, name)
        for d, seed in ((0, 0), (1, 0), (1, 1))
    )
    assert {finding.check for finding in examine_order(x, same, NONE)} == {SHARED}
    assert examine_order(x, fresh, NONE) == ()


def test_outputs_made_elsewhere_with_common_random_numbers():
    noise, other = np.random.default_rng(0).laplace(size=(2, 5_000))
    result = check_outputs(noise, noise + 1, claim=PureDP(1.0))
    assert checks(result) == {SHARED}
    assert "the i-th on x with the i-th on y" in " ".join(result.remarks)
    assert check_outputs(noise, noise + 1, claim=PureDP(1.0), ignore=SHARED.value).findings == ()
    assert examine_order(noise, other + 1, NONE) == ()
    assert examine_order(np.sort(noise), np.sort(other) + 1, NONE) == ()
    words = [np.array(side, dtype=object) for side in (["a"] * 700 + ["b"] * 800, ["a"] * 800 + ["b"] * 700)]
    assert examine_order(*words, NONE) == ()


@pytest.mark.parametrize("shape", [(4_000,), (4_000, 3)])
def test_sorted_outputs_are_known_by_their_columns_and_without_nan(shape):
    rng = np.random.default_rng(0)
    x, y = (np.sort(rng.laplace(size=shape), axis=0) for _ in range(2))
    if len(shape) == 1:
        x[-1] = np.nan
    assert examine_order(x, y, NONE) == ()


# Columns of vectors and of other structured outputs.


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
            "another scale later": other * (0.5 if self.runs > 1_000 else 1.5),
        }[self.kind]
        return dataset + np.column_stack([new, np.broadcast_to(second, size)])


KINDS = ["one draw for a block", "a fixed seed", "eight copies", "another scale later"]
BY_COLUMN = {
    "noise": lambda f: check_noise(f, 0.0, noise=LaplaceNoise(1.0), answer=np.zeros(2), runs=10_000, jobs=1),
    "equivalence": lambda f: check_equivalence(f, OneColumn(f.kind), 0.0, margin=0.05, runs=20_000, jobs=1),
    "check": lambda f: audit(f, 5_000),
}


@pytest.mark.parametrize(
    ("audited", "kind"), [("check", KINDS[1]), ("check", KINDS[2]), ("noise", KINDS[3]), ("equivalence", KINDS[0])]
)
def test_dependence_in_a_later_column_is_found(audited, kind):
    assert OF_RUNS & checks(BY_COLUMN[audited](OneColumn(kind)))


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


# False alarms of all checks together, and of single checks by their exact distributions.


def test_false_alarms_are_shared_by_the_columns():
    """Eighteen checks of 0.01 without a main phase, over all columns: Laplace noise, bits, integers and a constant."""
    rng = np.random.default_rng(1)

    def alarms():
        size = (2, 8, 128)
        columns = [rng.laplace(size=size), rng.random(size) < 0.5, rng.geometric(0.5, size), np.ones(size)]
        x, y = np.stack(columns, axis=-1).astype(np.float64)
        return bool(examine(([*x], [*y]), (no_blocks(), no_blocks()), NONE, alpha=0.01))

    assert sum(alarms() for _ in range(25)) <= stats.binom.isf(PROMISED, 25, 0.18)


def blocks(counts, size, fingerprints=None):
    marks = np.arange(len(counts)) if fingerprints is None else fingerprints
    return BlockCounts(np.array(counts), np.full(len(counts), size), np.array(marks, dtype=np.uint64))


def alarms(pilot, main, kind):
    """Whether a check fails on side x; side y is one short block that no check covers."""
    return kind in {f.check for f in examine((pilot, [np.zeros(8)]), (main, blocks([0], 8)), NONE)}


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

    alarmed = [alarms(pilot_with(h), repeated, REPEATED) for h in range(0, 512, 4)]
    least = 4 * alarmed.index(True) - 3  # at least: the first number after those without an alarm
    assert all(alarmed[alarmed.index(True) :])
    worst = 0.0
    for p in np.geomspace(1e-4, 0.5, 400):
        agreement = (1 - 2 * p * (1 - p)) ** FINGERPRINTED
        repeat = min(1.0, pairs * agreement)
        worst = max(worst, repeat * float(stats.binom.sf(2 * least - 1, 2 * size, p)))
    assert 2 * worst <= PROMISED  # two sides


def test_unsteady_counts_are_found_where_blocks_have_few_and_named_by_their_event():
    """One hit per block on average, but all in the first half of the blocks."""
    steady, unsteady = np.random.default_rng(3).poisson(1.0, 160).tolist(), [2] * 80 + [0] * 80
    assert alarms([np.zeros(4096)], blocks(unsteady, 1024), UNSTEADY)
    assert not alarms([np.zeros(4096)], blocks(steady, 1024), UNSTEADY)
    counted = replace(blocks(steady, 1024), others=np.array([unsteady]))
    found = examine(([np.zeros(4096)], [np.zeros(8)]), (counted, blocks([0], 8)), NONE)
    assert any("counts of the second event on x vary" in finding.message for finding in found)


def test_counts_that_are_less_unsteady_are_found_on_both_sides_together():
    alone, steady, other = (
        [Spread(what, "160 blocks", p, 2.0)] for what, p in (("counts", 1e-6), ("counts", 0.5), ("outputs", 1e-6))
    )
    assert unsteady_blocks("x", alone, 1e-8) == []
    (finding,) = unsteady_on_both(alone, alone, 1e-8)
    assert finding.check is UNSTEADY
    assert unsteady_on_both(alone, steady, 1e-8) == unsteady_on_both(alone, other, 1e-8) == []


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
    assert sum(a != b for a, b in itertools.pairwise(block)) == 2 * runs
    return alarms([block], blocks([0], 8), SERIAL)


@pytest.mark.parametrize(("n", "p"), [(64, 0.13), (64, 0.4)])
def test_false_alarms_of_serial_dependence(n, p):
    assert 2 * serial_tail(n, p) <= PROMISED


# Outputs that occur again: equal pairs, stretches of blocks, and blocks in one order.


def test_equal_pairs_are_one_for_each_output():
    assert equal_pairs([np.array([1.0, 2.0, 2.0, 5.0]), np.array([1.0, 3.0, 4.0, 4.0])]) == (2, 3, [4, 4])
    words = [np.array(["a", "b", "b"], dtype=object), np.array(["a", None, None], dtype=object)]
    assert equal_pairs(words) == (2, 3, [3, 3])
    assert equal_pairs([np.array([[1, 2], [1, 2]]), np.array([[2, 1], [3, 3]])]) == (1, 1, [2, 2])


def test_blocks_with_a_stretch_in_common_are_found_by_whatever_their_heads_are():
    rng = np.random.default_rng(7)
    stream = rng.laplace(size=200_000)
    independent, other = ([rng.laplace(size=1024) for _ in range(12)] for _ in range(2))
    none = no_blocks(), no_blocks()
    assert examine((independent, other), none, NONE) == ()
    shifted = [*independent, stream[5_000:6_024], stream[5_400:6_424]]
    (finding,) = examine((shifted, other), none, NONE)
    assert finding.check is REPEATED
    assert "2 of 14 chunks of runs on x contain a stretch of outputs of another chunk" in finding.message
    assert examine((shifted, other), none, frozenset({REPEATED})) == ()


def counts(blocks, number=4):
    """Return the counts of a main phase that begins with these blocks, followed by unrelated blocks."""
    rng = np.random.default_rng(1)
    orders = [order_mark(block) for block in blocks] + rng.integers(0, 2**63, number).tolist()
    marks = rng.integers(0, 2**63, len(orders)).astype(np.uint64)
    counts, sizes = np.full(len(orders), 512), np.full(len(orders), 1024)
    return BlockCounts(counts, sizes, marks, np.zeros(0, np.int64), np.array(orders, np.uint64))


@pytest.mark.parametrize("kind", [float, int, bool, str])
def test_blocks_in_the_same_order_on_x_and_y(kind):
    """Laplace noise shifted and scaled, integers with ties, coins, words."""

    def block(seed, shift):
        noise = np.random.default_rng(seed).laplace(size=1024)
        if kind is float:
            return shift + (1 + shift) * noise
        if kind is str:
            return np.array(["no" if v < 0 else "yes" for v in noise], dtype=object)
        return np.rint(noise).astype(np.int64) + shift if kind is int else noise > 0

    pilot = ([block(1, 0)], [block(2, 1)])
    shared = counts([block(3, 0)]), counts([block(4, 1), block(3, 1)])
    assert {f.check for f in examine(pilot, shared, NONE)} == {SHARED}
    assert examine(pilot, shared, frozenset({SHARED})) == ()
    fresh = counts([block(3, 0)], 0), counts([block(4, 1), block(5, 1)])
    assert examine(pilot, fresh, NONE) == ()
    same_pairs = counts([block(3, 0)], 0), counts([block(3, 1)])
    assert {f.check for f in examine(pilot, same_pairs, NONE)} == {SHARED}


# Statistics of dependence.


def slow_coupling(x, y):
    """Compute the most significant lag from scipy's distribution, lag by lag."""
    n, best = len(x), (math.inf, None)
    upper_x, upper_y = halves(x), halves(y)
    for lag in range(32 - n, n - 31):
        a = upper_x[: n - lag] if lag >= 0 else upper_x[-lag:]
        b = upper_y[lag:] if lag >= 0 else upper_y[: n + lag]
        distribution, both = stats.hypergeom(len(a), a.sum(), b.sum()), int((a & b).sum())
        chance = min(distribution.cdf(both), distribution.sf(both - 1))
        if chance < best[0]:
            best = chance, (lag, len(a), both, distribution.std())
    return best[1]


@pytest.mark.parametrize("shift", [-3, 40])
def test_couplings_are_those_that_a_slow_search_finds(shift):
    noise = np.random.default_rng(3).normal(size=300)
    x, y = noise[50:250], noise[50 - shift : 250 - shift]
    (finding,) = common_numbers([x], [y], 1e-8)
    lag, pairs, both, error = slow_coupling(x, y)
    assert lag == shift
    assert f"with the (i{lag:+})-th on y: in {both} of {pairs} such pairs" in finding.message
    assert f"± {error:.0f}." in finding.message


def test_common_numbers_prove_nothing_where_both_sides_show_an_order_of_their_own():
    rng = np.random.default_rng(4)
    walk = np.cumsum(rng.normal(size=4_000))
    x, y = walk, walk + 0.1 * rng.normal(size=4_000)
    assert common_numbers([x], [y], 1e-8)
    found = examine_order(x, y, NONE), examine(([x], [y]), (no_blocks(), no_blocks()), NONE)
    for findings in found:
        assert SERIAL in {finding.check for finding in findings}
        assert SHARED not in {finding.check for finding in findings}


def test_false_alarms_of_couplings():
    """The exact distribution at every lag and alpha .2, over several distributions; it fails with probability 1e-7."""
    rng, alarms = np.random.default_rng(8), 0
    draws = [rng.random, lambda n: rng.random(n) < 0.1, lambda n: rng.geometric(0.5, n), lambda n: rng.random((n, 2))]
    for i in range(400):
        draw = draws[i % 4]
        alarms += len(common_numbers([draw(100)], [draw(100)], 0.2))
    assert alarms <= stats.binom.isf(1e-7, 400, 0.2)


def test_false_alarms_of_changes():
    rng = np.random.default_rng(9)
    alarms = sum(len(change("x", [rng.random(300) < 0.3 * (1 + i % 3)], 0.2)) for i in range(1_000))
    assert alarms <= stats.binom.isf(1e-7, 1_000, 0.2)


@pytest.mark.parametrize("where", ["first", "last"])
def test_changes_are_described(where):
    outputs = np.random.default_rng(2).normal(size=4_000)
    part = slice(0, 250) if where == "first" else slice(3_750, 4_000)
    outputs[part] += 3.0
    (finding,) = change("x", [outputs[:1_000], outputs[1_000:]], 1e-8)
    found = re.search(r"of the (first|last) 250 runs checked, (\d+) lie .* give 125 ±", finding.message)
    assert found[1] == where
    assert int(found[2]) > 240


@pytest.mark.parametrize(("length", "upper"), [(500, 0.3), (800, 0.5)])
def test_the_normal_distribution_is_short_of_the_exact_one_by_less_than_a_factor_of_two(length, upper):
    """All orders of the upper and lower outputs, by the numbers of their stretches."""
    ones, zeros, share = round(upper * length), length - round(upper * length), round(upper * length) / length

    def score(of_ones, of_zeros):
        neighbours = np.array([ones - of_ones, zeros - of_zeros, of_ones + of_zeros - 1])
        products = neighbours @ [(1 - share) ** 2, share**2, -share * (1 - share)] / (share * (1 - share))
        return (products / (length - 1) + 1 / (length - 1)) * math.sqrt(length - 1)

    def log_ways(total, parts):
        return gammaln(total) - gammaln(parts) - gammaln(total - parts + 1)

    scores, logs = [], []
    for of_ones in range(1, ones + 1):
        for of_zeros in range(max(of_ones - 1, 1), min(of_ones + 1, zeros) + 1):
            scores.append(score(of_ones, of_zeros))
            first = math.log(2.0) if of_ones == of_zeros else 0.0
            logs.append(first + log_ways(ones, of_ones) + log_ways(zeros, of_zeros))
    distribution = np.exp(np.array(logs) + gammaln(ones + 1) + gammaln(zeros + 1) - gammaln(length + 1))
    assert distribution.sum() == pytest.approx(1.0)
    for errors in np.linspace(2.0, 7.2, 27):  # up to 6e-13: half the error of a check at interim analysis 50
        assert distribution[np.abs(scores) >= errors].sum() <= 2 * two_sided(errors)
    order = np.random.default_rng(0).permutation(np.repeat([1, 0], [ones, zeros]))
    stretches = [int((order[0] == kind) + ((order[1:] == kind) & (order[:-1] != kind)).sum()) for kind in (1, 0)]
    assert serial_correlation([order]) == pytest.approx(score(*stretches))


def test_serial_correlations_of_short_blocks_are_looked_at_together():
    """The statistic is standard normal in independent runs: 400 samples, false-alarm rate 1e-7."""
    rng = np.random.default_rng(4)
    scores = [serial_correlation([rng.normal(size=100) for _ in range(12)]) for _ in range(400)]
    assert abs(np.mean(scores)) < 5.4 / 20
    assert abs(np.var(scores) - 1) < 5.4 * math.sqrt(2 / 399)
    assert serial_correlation([np.repeat(rng.normal(size=50), 2) for _ in range(12)]) > 8
    assert serial_correlation([rng.normal(size=100)]) is None


@pytest.mark.parametrize(
    ("outputs", "share"),
    [
        (np.array([1, 1, 1, 2]), 0.25), (np.array([1, 2, 2, 2]), 0.75), (np.array([np.nan, np.nan, 1.0]), 1 / 3),
        (np.array(["a", "b", "c", "a"], dtype=object), 0.5), (np.array([None, None, None, "a"], dtype=object), 0.75),
        (np.array([[0, 1], [0, 2], [0, 3], [0, 4]]), 0.0), (np.array([2**70, 1, "x"], dtype=object), 1 / 3),
    ],
)  # fmt: skip
def test_halves_are_as_even_as_they_can_be(outputs, share):
    upper = halves(outputs)
    assert upper.shape == (len(outputs),)
    assert float(upper.mean()) == pytest.approx(share)
