"""Vectors of many coordinates: what distinguishes the datasets is in sums of them, whatever their number."""

from functools import partial

import numpy as np
import pytest
from scipy.special import ndtri

from dpaudit import GaussianDP, check
from dpaudit.audit.events.features import Standardised
from dpaudit.audit.events.scores import Projection
from dpaudit.audit.portfolio.columns import columns_of, standardised, weights

from .chosen_events import chosen, frequencies

WIDTH, MU = 520, 2.0
PLACES = np.arange(WIDTH)
NOISE = np.where(PLACES < 100, 1e-3, 10.0)  # two tensors of different scales
SHIFTS = {
    "spread": np.ones(WIDTH),
    "alternating": (-1.0) ** PLACES,
    "any signs": np.random.default_rng(0).normal(size=WIDTH),
    "block": (PLACES > 300) & (PLACES < 340),
    "sparse": np.isin(PLACES, np.random.default_rng(1).integers(WIDTH, size=10)),
    "one": PLACES == 500,
    "tensor": PLACES < 100,
}


def shifted(x, size, rng, kind):
    return (rng.normal(size=(size, WIDTH)) + x * MU * SHIFTS[kind] / np.linalg.norm(SHIFTS[kind])) * NOISE


FORMS = {
    "single precision": np.float32,
    "integers": lambda rows: np.rint(rows / NOISE * 100).astype(np.int64),
    "missing numbers": lambda rows: np.where(PLACES % 100 == 7, np.nan, rows),
    "a constant": lambda rows: np.where(PLACES == 7, 3.0, rows),
    "list of arrays": lambda rows: [[row[:100].reshape(10, 10), row[100:]] for row in rows],
    "dictionary": lambda rows: {"bias": rows[:, :100], "weights": rows[:, 100:]},
}


def parameter(draw):
    """The parameter that the event chosen on a pilot shows in other runs."""
    rng = np.random.default_rng(0)
    choice = chosen(draw, 1.0, 0.0, GaussianDP(0.5), 1_000, rng, 10_000)
    p, q = frequencies(choice, draw, 1.0, 0.0, 4_000, rng)
    return ndtri(p) - ndtri(q)


@pytest.mark.parametrize("kind", SHIFTS)
def test_a_shift_is_found_wherever_it_is(kind):
    assert parameter(partial(shifted, kind=kind)) == pytest.approx(MU, rel=0.3)


@pytest.mark.parametrize("kind", ["scale", "common noise"])
def test_a_difference_of_variances_is_found(kind):
    def draw(x, size, rng):
        rows = rng.normal(size=(size, WIDTH))
        if kind == "scale":
            rows[:, :100] *= 1.0 + 0.2 * x
        else:
            rows += 0.3 * x * rng.normal(size=(size, 1)) * (-1.0) ** PLACES
        return rows * NOISE

    assert parameter(draw) > 1.0


@pytest.mark.parametrize("form", FORMS)
def test_a_shift_is_found_in_outputs_of_every_form(form):
    def step(x, size, rng):
        return FORMS[form](shifted(x, size, rng, "tensor"))

    found = check(step, 1.0, 0.0, claim=GaussianDP(0.5), runs=1_000, floating_point="ignore", jobs=1)
    assert found.is_refuted
    assert 0.5 < found.bound < MU


def test_sums_are_in_the_pilot_as_in_other_runs():
    """With more coordinates than runs, a learned sum is far larger in the runs that taught it."""
    rng = np.random.default_rng(0)
    (x, y), fresh = (rng.normal(size=(2, 200, 3_000)) + np.array([0.05, 0.0])[:, None, None] for _ in range(2))
    columns = [column for column in columns_of(x, y) if isinstance(column.score, Projection)]
    assert {column.score.is_of_squares for column in columns} == {False, True}
    assert len(columns) > 2
    for column in columns:
        for side, others in ((column.x, fresh[0]), (column.y, fresh[1])):
            values = column.score.values(others)
            error = np.sqrt(side.var() / len(side) + values.var() / len(values))
            assert abs(side.mean() - values.mean()) < 5.0 * error
            assert 0.7 < side.std() / values.std() < 1.4, "five standard errors of a ratio"


def test_weights_have_the_best_estimated_ratio():
    """Oracle: all thresholds, one by one."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 50, 30))
    x[:, :4] += 1.0
    error = np.sqrt((x.var(axis=0, ddof=1) + y.var(axis=0, ddof=1)) / 50)
    t = (x.mean(axis=0) - y.mean(axis=0)) / error
    ratios = {}
    for threshold in (0.0, *np.abs(t)):
        found = np.sign(t) * np.maximum(np.abs(t) - threshold, 0.0)
        if found.any():
            ratios[threshold] = (found @ t - np.count_nonzero(found)) / np.linalg.norm(found)
    best = max(ratios, key=ratios.get)
    expected = np.sign(t) * np.maximum(np.abs(t) - best, 0.0) / error
    assert weights(x, y) == pytest.approx(expected, rel=1e-6)
    assert set(np.flatnonzero(expected)) >= set(range(4))
    assert weights(x, x) is None


def test_centres_and_spreads():
    rng = np.random.default_rng(0)
    columns = [rng.normal(5.0, 2.0, 4_000), np.full(4_000, 3.0), np.full(4_000, np.nan), rng.random(4_000) < 0.1]
    x, y = np.split(np.stack(columns, axis=1), 2)
    found = standardised(x, y)
    assert found.centres == pytest.approx((5.0, 3.0, 0.0, 0.0), abs=0.1)
    assert found.spreads == pytest.approx((2.0, 0.0, 0.0, 0.1), rel=0.1)
    rows = np.array([[5.0, 3.0, 1.0, 0.0], [np.nan, 9.0, np.inf, 1.0], [np.nan] * 4])
    read = Standardised((4.0, 3.0, 0.0, 0.0), (2.0, 0.0, 1.0, 0.5)).read(rows)
    np.testing.assert_array_equal(read.T, [[0.5, 0.0, 1.0, 0.0], [0.0, 0.0, 3.0, 2.0], [np.nan] * 4])
