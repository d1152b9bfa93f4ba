"""Gradients of the models against finite differences, and blocks against the gradients that they stand for."""

import numpy as np
import pytest

from dpaudit.audit.errors import ClaimError, DatasetError
from dpaudit.mechanisms.faulty.training import BatchNormalised
from dpaudit.mechanisms.training.models import (
    Batch,
    FixedGradients,
    LinearRegression,
    LogisticRegression,
    OneHiddenLayer,
    all_gradients,
    breast_cancer_records,
    clipped_to,
    digits_records,
    zeroed,
)
from dpaudit.mechanisms.training.train import SumOfClipped

MODELS = [FixedGradients((2, 3)), LinearRegression(4), LogisticRegression(4), OneHiddenLayer(4, 3, 2)]
RUNS, N = 3, 6


def data(model, seed=0):
    """Random weights of three runs, and six records with labels 0 and 1."""
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.standard_normal((N, 4)), rng.integers(0, 2, N)])
    return rng.standard_normal((RUNS, model.n_parameters)), *model.split(rows), rng.random((RUNS, N)) < 0.5


def gradients_of(model, weights, features, labels):
    return all_gradients(model.blocks(weights, Batch(features, labels, np.ones((RUNS, N), dtype=bool))), N)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_gradients_are_the_slopes_of_the_losses(model):
    weights, features, labels, _ = data(model)
    found = np.broadcast_to(gradients_of(model, weights, features, labels), (N, RUNS, model.n_parameters))
    step = 1e-6
    for j in range(model.n_parameters):
        up, down = weights.copy(), weights.copy()
        up[:, j] += step
        down[:, j] -= step
        slopes = (model.losses(up, features, labels) - model.losses(down, features, labels)) / (2 * step)
        assert np.allclose(found[:, :, j].T, slopes, rtol=1e-6, atol=1e-8)


def test_a_wrong_gradient_is_told():
    """The wrong twin of the comparison above: half the slope of a square."""
    model = LinearRegression(4)
    weights, features, labels, _ = data(model)
    other = gradients_of(model, weights / 2, features, labels / 2)
    assert not np.allclose(other, gradients_of(model, weights, features, labels))


@pytest.mark.parametrize("model", [*MODELS, BatchNormalised(LogisticRegression(4))], ids=lambda m: type(m).__name__)
def test_blocks_have_the_norms_and_sums_of_their_gradients(model):
    weights, features, labels, is_in = data(model)
    blocks = model.blocks(weights, Batch(features, labels, is_in))
    each = np.broadcast_to(all_gradients(blocks, N), (N, RUNS, model.n_parameters))
    assert sum(block.size for block in blocks) == model.n_parameters
    squared = sum(block.squared_norms() for block in blocks)
    assert np.allclose(np.broadcast_to(squared, (RUNS, N)), (each**2).sum(axis=2).T)
    scaled = each * np.minimum(1.0, 0.7 / np.linalg.norm(each, axis=2))[:, :, None]
    expected = (scaled * is_in.T[:, :, None]).sum(axis=0)
    assert np.allclose(SumOfClipped(0.7)(blocks, is_in), expected)


def test_factors_clip_to_the_norm_and_leave_short_vectors_alone():
    assert clipped_to(np.array([0.0, 0.25, 1.0, 16.0]), 1.0).tolist() == [1.0, 1.0, 1.0, 0.25]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_record_of_zeros_has_gradient_zero(model):
    weights, features, labels, _ = data(model)
    features = zeroed(features, 2)
    assert not gradients_of(model, weights, features, labels)[2].any()
    assert gradients_of(model, weights, features, labels)[1].any()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_no_records_have_no_gradient(model):
    features, labels = model.split([])
    batch = Batch(features, labels, np.ones((RUNS, 0), dtype=bool))
    total = SumOfClipped(1.0)(model.blocks(np.ones((RUNS, model.n_parameters)), batch), batch.is_in)
    assert total.tolist() == np.zeros((RUNS, model.n_parameters)).tolist()


@pytest.mark.parametrize(("rows", "shape"), [(breast_cancer_records(), (569, 32)), (digits_records(), (1797, 66))])
def test_records_are_scaled_by_constants(rows, shape):
    assert rows.shape == shape
    assert np.abs(rows[:, :-1]).max() <= 1.0
    assert (rows[:, -2] == 1.0).all()
    assert rows[:, 0:5].std() > 0.2
    assert set(np.unique(rows[:, -1])) <= set(range(10))


def test_errors():
    with pytest.raises(DatasetError, match=r"shape \(2, 3\), but the model takes records of 5 finite numbers"):
        LinearRegression(4).split(np.zeros((2, 3)))
    with pytest.raises(DatasetError, match="finite"):
        LinearRegression(1).split([[np.nan, 0.0]])
    with pytest.raises(DatasetError, match="the labels are not classes 0 to 1"):
        OneHiddenLayer(1, 2).split([[0.0, 2.0]])
    with pytest.raises(ClaimError, match="width=0"):
        OneHiddenLayer(1, 0)
