"""Faulty mechanisms whose outputs show the bug directly: their values, their grids and their noise."""

import itertools
import json
import math
from dataclasses import fields, replace

import numpy as np
import pytest

import dpaudit.mechanisms as m
from dpaudit.audit.claims.claim import ApproxDP, PureDP
from dpaudit.experiments.catalogue.entries import entries
from dpaudit.mechanisms import faulty
from dpaudit.mechanisms.faulty.noise import gap_at_the_median, median


def rng():
    return np.random.default_rng(3)


def values(mechanism, dataset, size=100):
    return set(np.asarray(mechanism.sample(dataset, size, rng())).tolist())


FRESH = m.NoisyThreshold(PureDP(1.0), 2.0, 3.0, threshold=-1e6, release_value=True, value_scale=1.5)


def test_noise_of_few_bits_has_few_values():
    here, there = (values(faulty.FewValuesLaplace(0.5, bits=5), answer, 5_000) for answer in (0.0, 1.0))
    assert len(here) == len(there) == 2**5
    assert not here & there
    assert sorted(m.LaplaceDistribution(0.0, 2.0).cdf(sorted(here))) == pytest.approx(
        (np.arange(32) + 0.5) / 32, abs=1e-6
    )


def test_the_loss_of_redrawing():
    z, distributions = np.linspace(0, 30, 301), [m.LaplaceDistribution(count, 2.0) for count in range(6)]
    densities = [distribution.log_density(z) - np.log(distribution.sf(0.0)) for distribution in distributions]
    losses = [np.abs(one - other).max() for one, other in itertools.pairwise(densities)]
    assert losses[0] == max(losses) == pytest.approx(faulty.RedrawnUntilNonnegative(0.5).truth.epsilon, rel=1e-12)


def test_truths_of_rounded_and_redrawn_noise():
    rounded = faulty.TowardsZeroLaplace(0.5)
    zero, one = -math.expm1(-0.5), -math.expm1(-0.5) * math.exp(-0.5) / 2
    assert rounded.truth.epsilon == pytest.approx(math.log(zero / one), rel=1e-12)
    assert faulty.MisprintedTableGeometric(0.5, 1.2, 2).truth == PureDP(0.5 + math.log(1.2))
    assert rounded.sample(7, 10, rng()).dtype == np.int64
    distribution = faulty.RangedCount(0.5, 3, is_redrawn=False).distribution([1, 0])
    free = {k: (1 - math.exp(-0.5)) / (1 + math.exp(-0.5)) * math.exp(-0.5 * abs(k - 1)) for k in range(-200, 200)}
    expected = [sum(free[k] for k in range(-200, 1)), free[1], free[2], sum(free[k] for k in range(3, 200))]
    assert distribution.probabilities.tolist() == pytest.approx(expected, rel=1e-12)
    assert faulty.RangedCount(0.5, None, is_redrawn=False).distribution([]).probabilities.tolist() == [1.0]


def test_a_seed_from_the_data_leaves_no_noise():
    mechanism = faulty.SeededByTheData(0.5)
    first = mechanism.sample([1, 2, 2], 50, rng())
    assert len(set(first)) == 1
    assert np.array_equal(first, mechanism.sample([2, 1, 2], 50, np.random.default_rng(4)))
    assert first[0] != mechanism.sample([1, 2], 1, rng())[0]


def test_noise_of_a_scale_from_the_data():
    mechanism = faulty.ScaleFromTheData(0.5, median, gap_at_the_median)
    assert mechanism.distribution([0, 0, 5, 6, 6]) == m.LaplaceDistribution(5.0, 10.0)
    assert values(mechanism, [0.0] * 5) == {0.0}
    assert "0x" not in str(mechanism)
    right = faulty.FlooredScaleMean(1.0, least_count=1.0)
    assert np.count_nonzero(right.sample([0.0], 10_000, rng()) == 0.0) < 10
    assert np.abs(right.sample([1.0] * 1000, 1000, rng()) - 1.0).max() < 0.1


@pytest.mark.parametrize(
    ("mechanism", "dataset", "step", "is_on_grid"),
    [
        (faulty.SignificantDigitsLaplace(0.5), [1] * 9, 10, False),
        (faulty.SignificantDigitsLaplace(0.5), [1] * 10, 10, True),
        (faulty.SignificantDigitsLaplace(0.5), [], 1, True),
        (faulty.NaiveLaplace(1.0), 3.0, 2.0**-30, False),
        (faulty.NaiveGaussian(1.0, 0.01), 3.0, 2.0**-30, False),
        (faulty.NaiveGaussian(1.0, 0.01).on_grid, 3.0, 2.0**-30, True),
        (faulty.SparseVectorReleasingValue(1.0, threshold=-1e6, cutoff=2), [0.5, 1.5], 2.0**-18, True),
        (FRESH, [0.5], 2.0**-20, True),
    ],
)
def test_grids_of_outputs(mechanism, dataset, step, is_on_grid):
    off = np.mod(mechanism.sample(dataset, 1000, rng()), step) != 0
    assert not off.any() if is_on_grid else off.mean() > 0.5


def test_single_precision_noise_keeps_the_answer_s_low_bits():
    outputs, pure = (faulty.SinglePrecisionNoise(1.0).sample(answer, 1000, rng()) for answer in (3.1, 0.0))
    assert np.array_equal(pure, pure.astype(np.float32))
    assert not np.any(outputs == outputs.astype(np.float32))


def test_statistics_and_reports_that_show_the_rows():
    beside = faulty.BesideExact(m.LaplaceMechanism(1.0, query=len), len)
    outputs = beside.sample([1, 2, 3], 100, rng())
    assert set(outputs[:, 1]) == {3.0}
    assert len(set(outputs[:, 0])) == 100
    assert beside.claim == PureDP(1.0)
    texts = [json.loads(text) for text in faulty.JsonReport(1.0).sample([1, 0, 1], 50, rng())]
    assert {text["rows"] for text in texts} == {3}
    assert len({text["count"] for text in texts}) > 1
    assert all(set(json.loads(t)) == {"count"} for t in faulty.JsonReport(1.0, has_rows=False).sample([1], 50, rng()))


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.01), (0.3, 1e-4), (3.0, 0.4)])
def test_a_key_that_occurs_once_appears_with_probability_at_most_delta(epsilon, delta):
    mechanism = faulty.KeyedCounts(epsilon, delta)
    noisy_one = m.GeometricDistribution(1, math.exp(-epsilon))
    assert noisy_one.sf(mechanism.least - 1) <= delta
    assert mechanism.least == 2 or noisy_one.sf(mechanism.least - 2) > delta  # and with no smaller threshold


def test_keys_missing_values_and_exceptions():
    rows = ["b"] * 6 + ["a"] * 5 + ["c"]
    noisy, exact, bare = (faulty.KeyedCounts(1.0, 0.01, kind) for kind in ("noisy", "exact", "none"))
    assert noisy.least == 6
    assert {tuple(key for key, _ in pairs) for pairs in bare.sample(rows, 500, rng())} == {("a", "b", "c")}
    assert {tuple(key for key, _ in pairs) for pairs in exact.sample(rows, 500, rng())} == {("b",)}
    assert bare.sample([], 2, rng()) == [(), ()]
    assert noisy.claim == noisy.truth == ApproxDP(1.0, 0.01)
    assert exact.truth is bare.truth is None
    assert faulty.SmallCount(1.0, 1, 0.0).sample([], 3, rng()) == [0.0] * 3
    assert all(isinstance(output, float) for output in faulty.SmallCount(1.0, 5).sample([1] * 5, 100, rng()))
    shown = [output for output in faulty.SmallCount(1.0, 5, is_noisy=True).sample([1] * 4, 1000, rng()) if output]
    assert min(shown) >= 5
    filled = faulty.GroupMeans(1.0, ("a", "b"), is_filled=True)
    assert np.isfinite(filled.sample([("a", 1.0), ("a", 9.0)], 100, rng())).all()
    for kind, rows in [("nothing", []), ("outliers", [0.5])]:
        assert isinstance(faulty.CheckedCount(1.0, kind)(rows, rng()), float)
    for kind, rows, error in [("no rows", [], ZeroDivisionError), ("outliers", [0.5, 2.0], ValueError)]:
        with pytest.raises(error):
            faulty.CheckedCount(1.0, kind)(rows, rng())


def test_coordinates_without_noise():
    answers = (2.0, 0.0, 3.0)
    for spared, bare in (("none", set()), ("zeros", {1}), ("last", {2})):
        outputs = faulty.LaplaceOfScale(2.0, PureDP(0.5), spared=spared).sample(answers, 100, rng())
        assert {j for j in range(3) if len(set(outputs[:, j])) == 1} == bare
        assert all(outputs[0, j] == answers[j] for j in bare)


def test_the_query_may_be_any_function_of_the_dataset():
    tried = set()
    for fault in entries():
        given = {each.name: getattr(fault.mechanism, each.name) for each in fields(fault.mechanism)}
        queries = {name: query for name, query in given.items() if callable(query)}
        if queries.keys() - {"statistic"} and type(fault.mechanism).__name__ in faulty.__all__:
            wrapped = {name: lambda dataset, of=query: of(dataset["rows"]) for name, query in queries.items()}
            found = replace(fault.mechanism, **wrapped).sample({"rows": fault.x}, 20, rng())
            np.testing.assert_array_equal(found, fault.mechanism.sample(fault.x, 20, rng()))
            tried.add(type(fault.mechanism))
    assert len(tried) == 29
    single, double = (faulty.MixedUniformsLaplace(size / 2, sensitivity=size) for size in (1.0, 2.0))
    np.testing.assert_array_equal(double.sample(3.0, 20, rng()), single.sample(3.0, 20, rng()))
