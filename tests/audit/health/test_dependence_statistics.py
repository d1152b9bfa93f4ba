"""Noise shared by x and y and state kept between runs are detected; the laws under independence are exact."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from dpaudit import PureDP, Verdict, check, check_outputs
from dpaudit.audit.health import run_independence
from dpaudit.audit.health.findings import HealthCheck
from dpaudit.audit.health.run_independence import change, coupling, examine, halves, serial_correlation, two_sided
from dpaudit.audit.inference.two_sample_test import hypergeometric_tail
from dpaudit.audit.sampling.output_hashes import FINGERPRINTED, order_mark
from dpaudit.audit.sampling.tasks import BlockCounts

SHARED, UNSTEADY = HealthCheck.SHARED_RANDOMNESS, HealthCheck.UNSTEADY_HITS
SERIAL, REPEATED = HealthCheck.SERIAL_DEPENDENCE, HealthCheck.REPEATED_BLOCKS
NONE = frozenset()


def audit(mechanism, runs=3_000, **settings):
    return check(mechanism, 0, 1, claim=PureDP(1.0), **{"runs": runs, "jobs": 1, "bits": False, **settings})


def checks(result):
    return {finding.check for finding in result.findings}


def found_and_silenced(make, expected, **settings):
    """Assert that only the expected check fails and that it can be silenced; return the result."""
    result = audit(make(), **settings)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert checks(result) == {expected}
    assert f"Silence this check with ignore={expected.value!r}." in " ".join(result.remarks)
    assert expected not in checks(audit(make(), **settings, ignore=expected.value))
    others = [other.value for other in HealthCheck if other is not expected]
    assert checks(audit(make(), **settings, ignore=others)) == {expected}
    return result


def own_stream(draw):
    """A generator for each dataset with the same seed: the same noise on x and y."""

    def make():
        streams = {}
        return lambda d, size, rng: draw(d, size, streams.setdefault(d, np.random.default_rng(0)))

    return make


STREAMS = {
    "numbers": lambda d, size, rng: d + rng.laplace(size=size),
    "mirrored": lambda d, size, rng: d + (1 - 2 * d) * rng.laplace(size=size),
    "vectors": lambda d, size, rng: np.column_stack([np.zeros(size), d + rng.laplace(size=size)]),
    "integers": lambda d, size, rng: d + rng.geometric(0.6, size),
    "words": lambda d, size, rng: np.where(rng.random(size) < 0.5 + 0.1 * d, "yes", "no").tolist(),
    "lengths": lambda d, size, rng: [("a",) * int(n) for n in rng.integers(1, 7, size)],
}


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize("name", STREAMS)
def test_one_stream_for_both_datasets(name, sequential):
    """The first run on x, for the shape, advances its stream by one: pairs of runs then depend on earlier runs."""
    result = audit(own_stream(STREAMS[name])(), sequential=sequential, alpha=1e-6)  # no early stop by chance
    assert checks(result) == {SHARED}
    if name == "words" and not sequential:
        found_and_silenced(own_stream(STREAMS[name]), SHARED)


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_for_each_is_none_shared(name):
    streams = {d: np.random.default_rng(d) for d in (0, 1)}
    own = audit(lambda d, size, rng: STREAMS[name](d, size, streams[d]), sequential=name == "numbers")
    assert own.findings == ()
    assert not own.is_replayable
    assert own.why_not_replayable == "the mechanism has its own randomness"
    assert audit(STREAMS[name], sequential=name != "vectors").findings == ()


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


@pytest.mark.parametrize("sequential", [False, True])
def test_the_same_noise_on_x_and_y_is_found(sequential):
    found_and_silenced(CachedNoise, SHARED, sequential=sequential)


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


class BlockBudget(Budget):
    def __call__(self, dataset, size, rng):
        self.left -= 1
        return dataset + rng.laplace(size=size) if self.left >= 0 else np.zeros(size)


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("calls", [10, 1_000, 3_000, 6_000])
def test_a_budget_of_runs(calls, raises):
    result = audit(Budget(calls, raises), 4_000, sequential=raises == (calls == 1_000))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert checks(result) & {UNSTEADY, REPEATED}


@pytest.mark.parametrize("calls", [3, 40, 60, 120])
def test_a_budget_of_blocks(calls):
    """After the first run and the pilot's 63 blocks per side, or within the pilot, the outputs are constant."""
    result = audit(BlockBudget(calls))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert checks(result) & {UNSTEADY, REPEATED}


class ReusedUniform:
    """Every second run reuses the randomness of the previous run; the outputs are words."""

    def __init__(self):
        self.kept = None

    def __call__(self, dataset, rng):
        uniform = rng.random() if self.kept is None else self.kept
        self.kept = uniform if self.kept is None else None
        return "yes" if uniform < 0.5 + 0.1 * dataset else "no"


@pytest.mark.parametrize("sequential", [False, True])
def test_reused_randomness_of_words(sequential):
    found_and_silenced(ReusedUniform, SERIAL, sequential=sequential)


class OwnGenerator:
    """Has state that is copied to every worker process."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __call__(self, dataset):
        return dataset + self.rng.laplace()


def test_copies_of_one_generator_in_worker_processes(monkeypatch):
    """The state is invisible, like that of a library in another language."""
    monkeypatch.setattr("dpaudit.audit.sampling.draw.identity_of_mechanism", lambda function: ())
    assert audit(OwnGenerator(), jobs=1).findings == ()
    shared = audit(OwnGenerator(), 8_000, jobs=2)
    assert shared.verdict is Verdict.INCONCLUSIVE
    assert checks(shared) & {REPEATED, SHARED}


def test_outputs_made_elsewhere_with_common_random_numbers():
    rng = np.random.default_rng(0)
    noise, other = rng.laplace(size=(2, 5_000))
    result = check_outputs(noise, noise + 1, claim=PureDP(1.0))
    assert checks(result) == {SHARED}
    assert "the i-th on x with the i-th on y" in " ".join(result.remarks)
    assert check_outputs(noise, noise + 1, claim=PureDP(1.0), ignore=SHARED.value).findings == ()
    assert check_outputs(noise, other + 1, claim=PureDP(1.0)).findings == ()
    assert check_outputs(np.sort(noise), np.sort(other) + 1, claim=PureDP(1.0)).findings == ()
    words = [["a"] * 700 + ["b"] * 800, ["a"] * 800 + ["b"] * 700]
    assert check_outputs(*words, claim=PureDP(1.0)).findings == ()


def counts(blocks, number=4):
    """Return the counts of a main phase that begins with these blocks, followed by unrelated blocks."""
    rng = np.random.default_rng(1)
    orders = [order_mark(block) for block in blocks] + rng.integers(0, 2**63, number).tolist()
    marks = rng.integers(0, 2**63, len(orders)).astype(np.uint64)
    hits, sizes = np.full(len(orders), 512), np.full(len(orders), 1024)
    return BlockCounts(hits, sizes, marks, np.zeros(0, np.int64), np.array(orders, np.uint64))


@pytest.mark.parametrize("kind", [float, int, bool, str])
def test_blocks_in_the_same_order_on_x_and_y(kind):
    """Laplace noise shifted and scaled, integers with ties, coins, words."""

    def blocks(seed, shift):
        noise = np.random.default_rng(seed).laplace(size=1024)
        if kind is float:
            return shift + (1 + shift) * noise
        if kind is str:
            return np.array(["no" if v < 0 else "yes" for v in noise], dtype=object)
        return np.rint(noise).astype(np.int64) + shift if kind is int else noise > 0

    pilot = ([blocks(1, 0)], [blocks(2, 1)])
    shared = counts([blocks(3, 0)]), counts([blocks(4, 1), blocks(3, 1)])
    assert {f.check for f in examine(pilot, shared, NONE)} == {SHARED}
    assert examine(pilot, shared, frozenset({SHARED})) == ()
    fresh = counts([blocks(3, 0)], 0), counts([blocks(4, 1), blocks(5, 1)])
    assert examine(pilot, fresh, NONE) == ()
    same_pairs = counts([blocks(3, 0)], 0), counts([blocks(3, 1)])
    assert {f.check for f in examine(pilot, same_pairs, NONE)} == {SHARED}


def test_blocks_that_never_vary_have_no_order():
    pilot = ([np.random.default_rng(1).random(300)], [np.random.default_rng(2).random(300)])
    constant = counts([np.zeros(1024)], 0), counts([np.ones(1024)], 0)
    assert examine(pilot, constant, NONE) == ()


def test_marks_tell_orders_apart():
    noise = np.random.default_rng(0).normal(size=(1024, 2))
    assert order_mark(noise) == order_mark(3 * noise + 1) == order_mark(noise[:, 0]) == order_mark(noise[:300])
    assert len({order_mark(noise), order_mark(-noise), order_mark(noise[:, 1]), order_mark(noise[1:])}) == 4
    assert order_mark(np.zeros(FINGERPRINTED)) == order_mark(np.arange(1024)) == order_mark(np.full(300, np.nan))


@pytest.mark.parametrize(("pairs", "hits_x", "hits_y"), [(40, 20, 20), (100, 31, 64), (4096, 2048, 1300), (50, 50, 9)])
def test_tails_are_those_of_the_hypergeometric_law(pairs, hits_x, hits_y):
    law = stats.hypergeom(pairs, hits_x, hits_y)
    for both in {max(0, hits_x + hits_y - pairs), min(hits_x, hits_y), *(int(law.ppf(q)) for q in (1e-9, 0.1, 0.9))}:
        lower = both * pairs < hits_x * hits_y
        expected = law.cdf(both) if lower else law.sf(both - 1)
        assert hypergeometric_tail(both, hits_x, hits_y, pairs) == pytest.approx(expected, rel=1e-8)


def slow_coupling(x, y):
    """Compute the most significant lag from scipy's law, lag by lag."""
    n, best = len(x), (math.inf, None)
    upper_x, upper_y = halves(x), halves(y)
    for lag in range(32 - n, n - 31):
        a = upper_x[: n - lag] if lag >= 0 else upper_x[-lag:]
        b = upper_y[lag:] if lag >= 0 else upper_y[: n + lag]
        law, both = stats.hypergeom(len(a), a.sum(), b.sum()), int((a & b).sum())
        chance = min(law.cdf(both), law.sf(both - 1))
        if chance < best[0]:
            best = chance, (lag, len(a), both)
    return best[1]


@pytest.mark.parametrize("shift", [0, -3, 40])
def test_couplings_are_those_that_a_slow_search_finds(shift):
    noise = np.random.default_rng(3).normal(size=400)
    x, y = noise[50:350], noise[50 - shift : 350 - shift]
    found = coupling([x], [y], alpha=1e-8)
    assert (found.lag, found.pairs, found.both) == slow_coupling(x, y)
    assert found.lag == shift


def test_false_alarms_of_couplings(monkeypatch):
    """The exact law at every lag and alpha .2, over several laws; the test fails with probability 1e-7."""
    monkeypatch.setattr(run_independence, "_SUSPECT", 0.0)
    rng, alarms = np.random.default_rng(8), 0
    draws = [rng.random, lambda n: rng.random(n) < 0.1, lambda n: rng.geometric(0.5, n), lambda n: rng.random((n, 2))]
    for i in range(400):
        draw = draws[i % 4]
        alarms += coupling([draw(100)], [draw(100)], alpha=0.2) is not None
    assert alarms <= stats.binom.isf(1e-7, 400, 0.2)


def test_false_alarms_of_changes(monkeypatch):
    monkeypatch.setattr(run_independence, "_SUSPICIOUS", 0.0)
    rng = np.random.default_rng(9)
    alarms = sum(change([rng.random(300) < 0.3 * (1 + i % 3)], alpha=0.2) is not None for i in range(1_000))
    assert alarms <= stats.binom.isf(1e-7, 1_000, 0.2)


@pytest.mark.parametrize("where", ["first", "last"])
def test_changes_are_described(where):
    outputs = np.random.default_rng(2).normal(size=4_000)
    part = slice(0, 250) if where == "first" else slice(3_750, 4_000)
    outputs[part] += 3.0
    found = change([outputs[:1_000], outputs[1_000:]], alpha=1e-8)
    assert found.is_first == (where == "first")
    assert found.runs == 250
    assert found.upper > 240
    assert found.expected == 125


@pytest.mark.parametrize("length", [500, 800])
@pytest.mark.parametrize("upper", [0.3, 0.4, 0.5])
def test_the_normal_law_is_short_of_the_exact_one_by_less_than_a_factor_of_two(length, upper):
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
    law = np.exp(np.array(logs) + gammaln(ones + 1) + gammaln(zeros + 1) - gammaln(length + 1))
    assert law.sum() == pytest.approx(1.0)
    for errors in np.linspace(2.0, 7.2, 27):  # two_sided(7.2) is 6e-13: half the error of a check at look 50
        assert law[np.abs(scores) >= errors].sum() <= 2 * two_sided(errors)
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
        (np.array([1, 1, 1, 2]), 0.25), (np.array([1, 2, 2, 2]), 0.75), (np.array([True, False]), 0.5),
        (np.array([np.nan, np.nan, 1.0]), 1 / 3), (np.array([np.nan, np.nan]), 0.0),
        (np.array(["a", "b", "c", "a"], dtype=object), 0.5), (np.array([None, None, None, "a"], dtype=object), 0.75),
        (np.array([("a",), ("b", 1), (), 2.0], dtype=object), 0.5), (np.zeros((4, 0)), 0.0),
        (np.array([[0, 1], [0, 2], [0, 3], [0, 4]]), 0.0), (np.array([2**70, 1, "x"], dtype=object), 1 / 3),
    ],
)  # fmt: skip
def test_halves_are_as_even_as_they_can_be(outputs, share):
    upper = halves(outputs)
    assert upper.shape == (len(outputs),)
    assert float(upper.mean()) == pytest.approx(share)
