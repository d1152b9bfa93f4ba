"""Pairs of columns that say nothing alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit import PureDP, Verdict, check
from dpaudit.audit.distinguishers.event_choice import choose_event
from dpaudit.audit.events.features import Coordinates, Products
from dpaudit.audit.events.scores import Forest
from dpaudit.audit.families.learned_scores import forest
from dpaudit.audit.families.pilot_split import PilotSplit
from dpaudit.audit.families.product_families import product_families
from dpaudit.audit.records.json_codec import plain_data, read_data


def signs(agree, size, rng):
    """Thirty normals, two of which have the same sign with probability `agree`."""
    values = rng.normal(size=(size, 30))
    sign = np.where(rng.random(size) < agree, 1.0, -1.0) * np.sign(values[:, 4])
    values[:, 23] = np.abs(values[:, 23]) * sign
    return values


@pytest.mark.usefixtures("without_trees")
@pytest.mark.parametrize(("agree", "runs"), [(0.6, 10_000), (0.53, 20_000)])
def test_the_sign_of_a_product_among_thirty_normals(agree, runs):
    """Trees reach a tenth of it at .6, and nothing at .53."""
    rng = np.random.default_rng(0)
    split = PilotSplit.in_half(signs(agree, runs, rng), signs(1 - agree, runs, rng))
    choice = choose_event(split, PureDP(0.05), 1_000_000, 0.05)
    assert "(coordinate 4 −" in str(choice.event)
    assert "·(coordinate 23 −" in str(choice.event)
    assert read_data(plain_data(choice.event)) == choice.event
    hits = [choice.event.count(signs(data, 200_000, rng)) for data in (agree, 1 - agree)]
    assert abs(math.log(hits[0] / hits[1])) > 0.9 * math.log(agree / (1 - agree))


def test_shifts_and_scales_are_no_products():
    """Sums over columns show these already, so nothing is tried."""
    rng = np.random.default_rng(1)
    columns = Coordinates(20)
    x, y = (rng.laplace(size=(20_000, 20)) + shift for shift in (0.5, 0.0))
    split = PilotSplit.in_half(x, y).map(columns.read)
    assert list(product_families(columns, split)) == []


def test_equal_laws_have_no_clear_pair():
    rng = np.random.default_rng(2)
    columns = Coordinates(64)
    kinds = (rng.standard_cauchy, rng.normal, lambda size: rng.integers(0, 2, size).astype(float))
    for kind in kinds * 2:
        split = PilotSplit.in_half(kind(size=(4_000, 64)), kind(size=(4_000, 64))).map(columns.read)
        assert list(product_families(columns, split)) == []

    def correlated(data, size, rng):
        return rng.multivariate_normal(np.zeros(3), 0.5 + 0.5 * np.eye(3), size)

    assert check(correlated, 0, 1, claim=PureDP(0.05), runs=20_000, alpha=1e-8, jobs=1).verdict is not Verdict.REFUTED


def test_columns_of_products():
    columns = Products(Coordinates(3), ((0, 1.0, 2, -1.0), (1, 0.0, 2, 0.0)))
    np.testing.assert_array_equal(
        columns.read(np.array([[2.0, 3.0, 4.0], [0.0, np.nan, 1.0]])), [[5, -2], [12, np.nan]]
    )
    assert columns.names == ("(coordinate 0 − 1)·(coordinate 2 − -1)", "(coordinate 1 − 0)·(coordinate 2 − 0)")


def test_trees_are_those_of_the_library():
    """The score of our trees is the library's decision function, up to its constant."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(0.3, 1.0, (4, 5_000)), rng.normal(size=(4, 5_000))
    x[2, :100] = np.nan
    trees = forest(Coordinates(4), x, y)
    assert isinstance(trees, Forest)
    assert len(trees.trees) == 20
    from sklearn.ensemble import HistGradientBoostingClassifier

    rows = np.nan_to_num(np.concatenate([x, y], axis=1).T, nan=1e30)
    model = HistGradientBoostingClassifier(
        max_iter=20, max_depth=3, max_bins=64, learning_rate=0.3, early_stopping=False, random_state=0
    ).fit(rows, np.repeat([1, 0], 5_000))
    difference = trees.add_up(rows.T) - model.decision_function(rows)
    assert np.ptp(difference) < 1e-9
