"""Sets of columns of which only a parity tells the datasets apart."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpaudit import PureDP, check
from dpaudit.audit.distinguishers.event_choice import choose_event
from dpaudit.audit.events.features import Coordinates, Parities
from dpaudit.audit.families.parity_families import _centre, _of_all_sets, _of_triples, parity_families
from dpaudit.audit.families.pilot_split import PilotSplit
from dpaudit.audit.records.json_codec import plain_data, read_data


def parity(even, size, rng, width, chosen):
    """Normals, of which the product of the chosen ones is positive with probability `even`."""
    values = rng.normal(size=(size, width))
    sign = np.where(rng.random(size) < even, 1.0, -1.0) * np.sign(values[:, chosen]).prod(axis=1)
    values[:, chosen[-1]] *= sign
    return values


@pytest.mark.usefixtures("without_trees")
@pytest.mark.parametrize(
    ("width", "chosen"), [(10, (0, 4, 9)), (16, (1, 2, 5, 7, 11, 12, 15)), (30, (3, 14, 29)), (24, tuple(range(24)))]
)
def test_the_sign_of_a_product_of_many(width, chosen):
    rng = np.random.default_rng(0)
    x, y = (parity(even, 16_000, rng, width, chosen) for even in (0.65, 0.35))
    choice = choose_event(PilotSplit.in_half(x, y), PureDP(0.05), 1_000_000, 0.05)
    assert "parity of [coordinate" in str(choice.event)
    assert read_data(plain_data(choice.event)) == choice.event
    hits = [choice.event.count(parity(even, 100_000, rng, width, chosen)) for even in (0.65, 0.35)]
    assert abs(math.log(hits[0] / hits[1])) > 0.8 * math.log(0.65 / 0.35)


def test_the_exclusive_or_of_bits_is_found_by_an_audit():
    def leak(is_secret, size, rng):
        """Eight fair bits whose sum is even more often on one dataset."""
        bits = rng.integers(0, 2, (size, 8))
        bits[:, 7] = (bits[:, :7].sum(axis=1) + (rng.random(size) < (0.7 if is_secret else 0.3))) % 2
        return bits

    result = check(leak, False, True, claim=PureDP(0.5), runs=20_000, jobs=1)
    assert result.is_refuted
    assert result.bound > 0.75


def test_smaller_sets_explain_nothing_here():
    """Shifted and correlated columns, of which single columns and pairs tell everything."""
    rng = np.random.default_rng(1)
    for width in (8, 20):
        columns = Coordinates(width)
        x, y = (rng.laplace(size=(20_000, width)) + shift for shift in (0.5, 0.0))
        assert list(parity_families(columns, PilotSplit.in_half(x, y).map(columns.read))) == []
        bits = [(rng.random((20_000, width)) < p).astype(float) for p in (0.3, 0.5)]
        assert list(parity_families(columns, PilotSplit.in_half(*bits).map(columns.read))) == []


def test_equal_laws_have_no_clear_set():
    rng = np.random.default_rng(2)
    kinds = (rng.standard_cauchy, rng.normal, lambda size: rng.integers(0, 2, size).astype(float))
    for kind, width in itertools.product(kinds, (3, 14, 40)):
        columns = Coordinates(width)
        split = PilotSplit.in_half(kind(size=(4_000, width)), kind(size=(4_000, width))).map(columns.read)
        assert list(parity_families(columns, split)) == []


@pytest.mark.parametrize("width", [3, 20])
@pytest.mark.parametrize("runs", [1, 2, 5])
def test_hardly_any_runs(width, runs):
    columns, values = Coordinates(width), np.random.default_rng(4).normal(size=(runs, width))
    assert list(parity_families(columns, PilotSplit.in_half(values, values).map(columns.read))) == []


def test_moments_of_all_sets_are_those_of_the_definition():
    bits = np.random.default_rng(3).random((5, 40)) < np.linspace(0.2, 0.8, 5)[:, None]
    signs = np.where(bits, 1.0, -1.0)
    signs -= signs.mean(axis=1, keepdims=True)
    means, squares = _of_all_sets(bits)
    triples, _ = _of_triples(bits)
    for members in itertools.chain.from_iterable(itertools.combinations(range(5), size) for size in range(1, 6)):
        product = signs[list(members)].prod(axis=0)
        place = sum(1 << column for column in members)
        assert means[place] == pytest.approx(product.mean(), abs=1e-12)
        assert squares[place] == pytest.approx((product**2).mean(), abs=1e-12)
        if len(members) == 3:
            assert triples[members] == pytest.approx(product.mean(), abs=1e-6)


def test_columns_of_parities():
    columns = Parities(Coordinates(3), (((0, 0.0), (1, 0.0), (2, 1.0)), ((0, 0.0), (2, 0.5))))
    outputs = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [1.0, np.nan, 0.0]])
    np.testing.assert_array_equal(columns.read(outputs), [[1, 0, np.nan], [0, 0, 1]])
    many = Parities(Coordinates(9), (tuple((place, 0.0) for place in range(9)),))
    assert many.names[0].endswith("[coordinate 5 ≥ 0] + … 9 in all")


@pytest.mark.parametrize(
    ("values", "centre"),
    [
        ([0.0] * 60 + [1.0] * 40, 0.4),
        ([0.0] * 30 + [1.0] * 70, 1.0),
        ([2.0, 2.0], math.nan),
        ([math.nan, math.inf], math.nan),
    ],
    ids=["few ones", "many ones", "constant", "no numbers"],
)
def test_centres(values, centre):
    assert _centre(np.array(values)) == pytest.approx(centre, nan_ok=True)
