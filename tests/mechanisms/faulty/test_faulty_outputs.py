"""Outputs that leak outside their noise: exact statistics, keys, missing values and exceptions."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.audit.claims.claim import ApproxDP, PureDP
from dpaudit.audit.errors import ClaimError
from dpaudit.mechanisms import GeometricLaw, LaplaceMechanism, exact_epsilon
from dpaudit.mechanisms import faulty as f

ALARM, RUNS = 1e-8, 100_000


def rng():
    return np.random.default_rng(3)


def are_plausible(hits, runs, probability):
    limits = stats.binom(runs, probability)
    return limits.ppf(ALARM / 2) <= hits <= limits.isf(ALARM / 2)


def test_a_statistic_beside_the_output():
    mechanism = f.BesideExact(LaplaceMechanism(1.0, query=len), len)
    outputs = mechanism.sample([1, 2, 3], 100, rng())
    assert outputs.shape == (100, 2)
    assert set(outputs[:, 1]) == {3.0}
    assert len(set(outputs[:, 0])) == 100
    assert mechanism.claim == PureDP(1.0)


def test_reports_as_text():
    texts = f.JsonReport(1.0).sample([1, 0, 1], 50, rng())
    assert {json.loads(text)["rows"] for text in texts} == {3}
    assert len({json.loads(text)["count"] for text in texts}) > 1
    assert all(set(json.loads(text)) == {"count"} for text in f.JsonReport(1.0, has_rows=False).sample([1], 50, rng()))


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.01), (0.3, 1e-4), (3.0, 0.4)])
def test_a_key_that_occurs_once_appears_with_probability_at_most_delta(epsilon, delta):
    mechanism = f.KeyedCounts(epsilon, delta)
    noisy_one = GeometricLaw(1, math.exp(-epsilon))
    assert noisy_one.sf(mechanism.least - 1) <= delta
    assert mechanism.least == 2 or noisy_one.sf(mechanism.least - 2) > delta  # and with no smaller threshold


def test_keys_and_their_counts():
    rows = ["b"] * 6 + ["a"] * 5 + ["c"]
    noisy, exact, bare = (f.KeyedCounts(1.0, 0.01, kind) for kind in ("noisy", "exact", "none"))
    assert noisy.least == 6
    assert {tuple(key for key, _ in pairs) for pairs in bare.sample(rows, 500, rng())} == {("a", "b", "c")}
    assert {tuple(key for key, _ in pairs) for pairs in exact.sample(rows, 500, rng())} == {("b",)}
    kept = noisy.sample(rows, 20_000, rng())
    assert all(count >= 6 for pairs in kept for _, count in pairs)
    law = GeometricLaw(5, math.exp(-1.0))
    assert are_plausible(sum("a" in dict(pairs) for pairs in kept), 20_000, float(law.sf(5)))
    assert bare.sample([], 2, rng()) == [(), ()]
    assert noisy.claim == noisy.truth == ApproxDP(1.0, 0.01)
    assert exact.truth is bare.truth is None


def test_small_counts():
    assert f.SmallCount(1.0, 5).sample([1] * 4, 3, rng()) == [None] * 3
    assert f.SmallCount(1.0, 1, 0.0).sample([], 3, rng()) == [0.0] * 3
    assert all(isinstance(output, float) for output in f.SmallCount(1.0, 5).sample([1] * 5, 100, rng()))
    right = f.SmallCount(1.0, 5, is_noisy=True).sample([1] * 4, RUNS, rng())
    assert are_plausible(right.count(None), RUNS, 1 - math.exp(-1) / 2)
    assert min(output for output in right if output is not None) >= 5


def test_means_of_groups():
    rows = [("a", 1.0), ("a", 0.0), ("a", 9.0)]
    outputs = f.GroupMeans(1.0, ("a", "b")).sample(rows, RUNS, rng())
    assert np.isnan(outputs[:, 1]).all()
    assert are_plausible(np.count_nonzero(outputs[:, 0] > 2 / 3), RUNS, 0.5)
    assert np.isfinite(f.GroupMeans(1.0, ("a", "b"), is_filled=True).sample(rows, 100, rng())).all()


def test_counts_that_raise():
    assert isinstance(f.CheckedCount(1.0, "nothing")([], rng()), float)
    with pytest.raises(ZeroDivisionError):
        f.CheckedCount(1.0, "no rows")([], rng())
    with pytest.raises(ValueError, match="outside"):
        f.CheckedCount(1.0, "outliers")([0.5, 2.0], rng())
    assert isinstance(f.CheckedCount(1.0, "outliers")([0.5], rng()), float)


def test_coordinates_without_noise():
    answers = (2.0, 0.0, 3.0)
    for spared, bare in (("none", set()), ("zeros", {1}), ("last", {2})):
        mechanism = f.LaplaceOfScale(2.0, PureDP(0.5), spared=spared)
        outputs = mechanism.sample(answers, 100, rng())
        assert {j for j in range(3) if len(set(outputs[:, j])) == 1} == bare
        assert all(outputs[0, j] == answers[j] for j in bare)
    law_x, law_y = (f.LaplaceOfScale(2.0, PureDP(0.5)).law(dataset) for dataset in (answers, (2.0, 1.0, 4.0)))
    assert exact_epsilon(law_x, law_y) == pytest.approx(1.0)
    last = f.LaplaceOfScale(2.0, PureDP(0.5), spared="last")
    assert exact_epsilon(last.law(answers), last.law((2.0, 0.0, 4.0))) == math.inf
    with pytest.raises(ClaimError, match="spared='first' is unknown"):
        f.LaplaceOfScale(2.0, PureDP(0.5), spared="first")


def test_counts_that_add_up():
    outputs = f.ConsistentWithTheTotal(1.0).sample((2.0, 1.0, 0.0), RUNS, rng())
    assert np.all(outputs.sum(axis=1) == 3.0)
    assert are_plausible(np.count_nonzero(outputs[:, 0] > 2.0), RUNS, 0.5)


def test_doubles_off_the_grid():
    """The values are right, but off the grid of the sound mechanisms."""
    normal = f.NaiveGaussian(1.0, 0.01)
    for mechanism, tail in (
        (f.NaiveLaplace(1.0), stats.laplace.sf(1.0)),
        (normal, stats.norm.sf(1.0 / normal.on_grid.scale)),
    ):
        outputs = mechanism.sample(3.0, RUNS, rng())
        assert are_plausible(np.count_nonzero(outputs > 4.0), RUNS, tail)
        assert np.mean(np.mod(outputs, 2.0**-30) != 0) > 0.9
    assert np.all(np.mod(normal.on_grid.sample(3.0, 1000, rng()), 2.0**-30) == 0)


def test_single_precision_noise_keeps_the_answer_s_low_bits():
    outputs = f.SinglePrecisionNoise(1.0).sample(3.1, RUNS, rng())
    assert are_plausible(np.count_nonzero(outputs > 4.1), RUNS, stats.laplace.sf(1.0))
    noise = f.SinglePrecisionNoise(1.0).sample(0.0, 1000, rng())
    assert np.array_equal(noise, noise.astype(np.float32))
    assert not np.any(outputs == outputs.astype(np.float32))
