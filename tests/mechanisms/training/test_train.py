"""Many trainings at once against a plain loop over one, and the laws of the batches."""

import itertools

import numpy as np
import pytest
from scipy import stats

from dpaudit.audit.errors import ClaimError, DatasetError, OptionError
from dpaudit.mechanisms.noise_samplers import grid_step
from dpaudit.mechanisms.training import train as train_module
from dpaudit.mechanisms.training.batches import (
    BallsInBins,
    BatchesInOrder,
    FixedSizeBatches,
    FullBatch,
    PoissonBatches,
    ShuffledBatches,
)
from dpaudit.mechanisms.training.dp_sgd import DPSGD
from dpaudit.mechanisms.training.models import FixedGradients, LinearRegression, LogisticRegression, OneHiddenLayer
from dpaudit.mechanisms.training.observers import (
    LastLoss,
    LastProjection,
    LastWeights,
    LogLikelihoodRatio,
    NoisySums,
    OwnGradient,
)

NET = OneHiddenLayer(3, 2, 2)
CASES = [
    (LinearRegression(3), PoissonBatches(0.4), ()), (LogisticRegression(3), FullBatch(), (0.5, -1.0, 0.25)),
    (NET, PoissonBatches(0.7), NET.random_weights(0)), (FixedGradients((2, 2)), FixedSizeBatches(2, 5), ()),
]  # fmt: skip


def rows_of(n=5, seed=1):
    rng = np.random.default_rng(seed)
    return np.column_stack([3 * rng.standard_normal((n, 3)), rng.integers(0, 2, n)])


def slopes(model, weights, row):
    """Gradient of one record at one vector of weights, by central differences."""
    features, labels = model.split([row])
    found = np.empty(len(weights))
    for j in range(len(weights)):
        moved = np.tile(weights, (2, 1))
        moved[:, j] += [1e-6, -1e-6]
        up, down = model.losses(moved, features, labels)[:, 0]
        found[j] = (up - down) / 2e-6
    return found


@pytest.mark.parametrize(("model", "sampling", "initial"), CASES, ids=lambda case: type(case).__name__)
def test_many_runs_at_once_are_the_runs_one_by_one(model, sampling, initial):
    """The obvious loop, with the batches and the noise that the same seed gives to a group of runs."""
    rows, runs, steps = rows_of(), 4, 3
    mechanism = DPSGD(
        model=model, sampling=sampling, noise_multiplier=0.5, clip=0.8, steps=steps, learning_rate=0.3, batch_size=2.0,
        initial=initial, observer=LastWeights(),
    )  # fmt: skip
    found = mechanism.sample(rows, runs, np.random.default_rng(7))
    rng, p = np.random.default_rng(7), model.n_parameters
    draws = [(is_in.copy(), rng.standard_normal((runs, p))) for is_in in sampling.batches(runs, len(rows), steps, rng)]
    for run in range(runs):
        weights = np.array(initial or (0.0,) * p)
        for is_in, noise in draws:
            total = np.zeros(p)
            for row, is_member in zip(rows, is_in[run], strict=True):
                if is_member:
                    gradient = slopes(model, weights, row)
                    total += gradient * 0.8 / max(0.8, np.linalg.norm(gradient))
            weights = weights - 0.3 * (total + 0.4 * noise[run]) / 2.0
        assert np.allclose(found[run], weights, atol=1e-5)


def test_groups_of_runs_bound_the_memory(monkeypatch):
    mechanism = DPSGD(model=LinearRegression(3), sampling=FullBatch(), noise_multiplier=1.0, steps=2)
    mechanism = DPSGD(**{**fields(mechanism), "observer": NoisySums((1.0, 0.0, 0.0))})
    whole = mechanism.sample(rows_of(), 7, np.random.default_rng(0))
    monkeypatch.setattr(train_module, "_CELLS", 10)  # two runs of five records
    parts = mechanism.sample(rows_of(), 7, np.random.default_rng(0))
    assert whole.shape == parts.shape == (7, 2)
    assert whole[0, 0] == parts[0, 0]
    assert len(np.unique(parts)) == 14


def fields(mechanism):
    return {name: getattr(mechanism, name) for name in mechanism.__dataclass_fields__}


def test_noisy_sums_lie_on_the_grid_of_their_noise():
    mechanism = DPSGD(model=FixedGradients(), sampling=FullBatch(), noise_multiplier=0.7, steps=2)
    sums = mechanism.sample([[0.123456789]], 100, np.random.default_rng(0))
    assert (sums / grid_step(0.7) % 1 == 0).all()


@pytest.mark.parametrize(
    ("sampling", "sizes"),
    [
        (FullBatch(), {6}), (FixedSizeBatches(2, 6), {2}), (ShuffledBatches(2, 6), {2}),
        (ShuffledBatches(4, 6), {4, 2}), (ShuffledBatches(4, 6, drop_last=True), {4}), (BatchesInOrder(4, 6), {4, 2}),
    ],
    ids=str,
)  # fmt: skip
def test_sizes_of_batches(sampling, sizes):
    masks = list(sampling.batches(50, 6, 4, np.random.default_rng(0)))
    assert {int(size) for mask in masks for size in mask.sum(axis=1)} == sizes
    assert all(mask.shape == (50, 6) for mask in masks)


@pytest.mark.parametrize("sampling", [ShuffledBatches(2, 6), BatchesInOrder(2, 6), BallsInBins(3)], ids=str)
def test_each_record_is_in_one_batch_of_an_epoch(sampling):
    masks = np.array(list(sampling.batches(200, 6, 6, np.random.default_rng(0))), dtype=int)
    assert (masks[:3].sum(axis=0) == 1).all()
    assert (masks[3:].sum(axis=0) == 1).all()
    assert np.array_equal(masks[:3], masks[3:]) == isinstance(sampling, BatchesInOrder)


@pytest.mark.parametrize(
    ("sampling", "rate"),
    [
        (PoissonBatches(0.3), 0.3), (FixedSizeBatches(2, 6), 1 / 3), (ShuffledBatches(2, 6), 1 / 3),
        (BallsInBins(3), 1 / 3), (ShuffledBatches(4, 6, drop_last=True), 2 / 3),
    ],
    ids=str,
)  # fmt: skip
def test_records_are_drawn_at_the_rate(sampling, rate):
    """Random: each of six counts is outside its limits with probability 1e-8."""
    mask = next(sampling.batches(4000, 6, 1, np.random.default_rng(3)))
    limits = stats.binom(4000, rate)
    assert ((limits.ppf(5e-9) <= mask.sum(axis=0)) & (mask.sum(axis=0) <= limits.isf(5e-9))).all()


def test_poisson_batches_are_independent_and_fixed_ones_are_not():
    rng = np.random.default_rng(0)
    poisson = next(PoissonBatches(0.5).batches(4000, 2, 1, rng))
    fixed = next(FixedSizeBatches(1, 2).batches(4000, 2, 1, rng))
    both = poisson.all(axis=1).sum()
    assert stats.binom(4000, 0.25).ppf(5e-9) <= both <= stats.binom(4000, 0.25).isf(5e-9)
    assert not fixed.all(axis=1).any()


def test_what_observers_see():
    row = (1.0, 0.0, 2.0, 1.0)
    given = {"model": LinearRegression(3), "sampling": FullBatch(), "noise_multiplier": 1e-9, "steps": 2, "clip": 0.5}
    given["learning_rate"] = 0.1
    seen = {
        name: DPSGD(**given, observer=observer).sample([row], 3, np.random.default_rng(0))
        for name, observer in {
            "sums": NoisySums((1.0, 0.0, 2.0), clip=0.5), "own": OwnGradient(row, clip=0.5),
            "last": LastProjection((1.0, 0.0, 2.0)), "loss": LastLoss(row), "weights": LastWeights(),
        }.items()
    }  # fmt: skip
    assert np.allclose(seen["sums"], -1.0)  # the gradient points against the features while the score is below 1
    assert np.allclose(seen["own"], 1.0)
    assert np.allclose(seen["last"], 0.1)
    assert np.allclose(seen["loss"], (1 - 0.1 * np.sqrt(5)) ** 2 / 2)
    assert np.allclose(seen["weights"], 0.1 * np.array([1.0, 0.0, 2.0]) / np.sqrt(5))


def test_the_ratio_is_the_logarithm_of_two_densities():
    z = np.array([[-1.0], [0.3], [2.0]])
    ratio = LogLikelihoodRatio(0.3, 0.7).at_step(FixedGradients(), z, z)
    with_it = 0.3 * stats.norm.pdf(z, 1, 0.7) + 0.7 * stats.norm.pdf(z, 0, 0.7)
    assert np.allclose(ratio, np.log(with_it / stats.norm.pdf(z, 0, 0.7))[:, 0])
    certain = LogLikelihoodRatio(1.0, 0.7).at_step(FixedGradients(), z, z)
    assert np.allclose(certain, stats.norm.logpdf(z, 1, 0.7)[:, 0] - stats.norm.logpdf(z, 0, 0.7)[:, 0])


def test_errors():
    given = {"model": FixedGradients(), "sampling": FullBatch(), "noise_multiplier": 1.0, "steps": 1}
    for changes, message in [
        ({"noise_multiplier": 0}, "noise_multiplier=0 is not allowed"),
        ({"steps": 0}, "steps=0 is not a number of steps"),
        ({"clip": -1.0}, "clip=-1.0 is not allowed"),
        ({"initial": (1.0, 2.0)}, "initial has 2 weights, but the model has 1"),
    ]:
        with pytest.raises(ClaimError, match=message):
            DPSGD(**{**given, **changes})
    for rate in (0.0, 1.1):
        with pytest.raises(ClaimError, match=r"rate=.* is not allowed"):
            PoissonBatches(rate)
    with pytest.raises(DatasetError, match="has 2 records, but the sampling is for 3"):
        DPSGD(**{**given, "sampling": ShuffledBatches(1, 3)}).sample([[0.0], [1.0]], 1, np.random.default_rng(0))
    with pytest.raises(OptionError, match="a direction of 2 numbers"):
        DPSGD(**given, observer=NoisySums((1.0, 1.0))).sample([[0.0]], 1, np.random.default_rng(0))


def test_a_seed_fixes_the_outputs():
    mechanism = DPSGD(model=FixedGradients(), sampling=PoissonBatches(0.5), noise_multiplier=1.0, steps=2)
    first, second, third = (mechanism.sample([[1.0]], 5, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, third)
    assert len(set(itertools.chain.from_iterable(first.tolist()))) == 10
