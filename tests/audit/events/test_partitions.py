"""Every output is in exactly one cell, and the statements about cells hold."""

import math

import numpy as np
import pytest

from dpaudit import PureDP, check
from dpaudit.audit.errors import OptionError
from dpaudit.audit.events.events import NumberCells, OutcomeCells
from dpaudit.audit.portfolio.partitions import learn_cells

RNG = np.random.default_rng(5)
ALPHA = 1e-8  # probability that a statement below is false


def objects(*values):
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


OUTPUTS = {
    "continuous": (RNG.laplace(size=5000), RNG.laplace(1, size=5000)),
    "with-nan": (np.where(RNG.random(3000) < 0.1, np.nan, RNG.normal(size=3000)), RNG.normal(size=3000)),
    "integers": (RNG.integers(0, 5, 2000), RNG.integers(1, 6, 2000)),
    "clamped": (np.clip(RNG.normal(size=4000), -1, 1), np.clip(RNG.normal(1, size=4000), -1, 1)),
    "vectors": (RNG.normal(size=(3000, 3)), RNG.normal((1, 0, 0), size=(3000, 3))),
    "words": (objects("a", "b", None, math.nan).repeat(50), objects("a", "b", (1, 2), True).repeat(50)),
}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_every_output_lies_in_one_cell(kind):
    x, y = OUTPUTS[kind]
    partition = learn_cells(x, y, 16)
    for side in (x, y):
        counts = partition.count(side)
        assert counts.shape == (len(partition.names),)
        assert counts.min() >= 0
        assert counts.sum() == len(side)


def test_edges_belong_to_the_cell_below():
    partition = NumberCells((0.0, 1.0), (1, 0, 1))
    alone = [partition.count(np.array([value])).tolist() for value in (-1.0, 0.0, 0.5, 1.0, 2.0, np.nan)]
    assert alone == np.eye(3, dtype=int)[[1, 1, 0, 0, 1, 2]].tolist()
    assert partition.names == ("output in (0, 1]", "output in (-inf, 0] ∪ (1, inf]", "output is NaN or non-numeric")


def coin(answer, size, rng):
    """Randomised response with log ratio ln 3."""
    return (rng.random(size) < 0.25) ^ answer


def laplace(value, size, rng):
    return rng.laplace(value, size=size)


def test_the_largest_ratio_of_a_finite_mechanism():
    counts = check(coin, False, True, claim=2.0, bins=32, runs=200_000, alpha=10 * ALPHA).bins
    assert counts.n_known == 2
    assert "nothing is known about other outcomes" in counts.scope
    for direction in ("x", "y", "both"):
        interval = counts.maximum(direction)
        assert interval.lower < math.log(3) < interval.upper
        assert interval.upper - interval.lower < 0.1
    ratios = counts.ratios()
    assert np.all(ratios.lower[:2] < [math.log(3), -math.log(3)])
    assert np.all(ratios.upper[:2] > [math.log(3), -math.log(3)])


def test_an_audit_can_count_cells_and_splits_alpha():
    plain, result = (check(laplace, 0.0, 1.0, claim=PureDP(1.0), runs=20_000, bins=bins) for bins in (0, 16))
    assert result.counts == plain.counts
    with_cells, without = (dict(each.test_shares)["event test"] for each in (result, plain))
    assert with_cells == pytest.approx(without - 0.1 * plain.alpha)  # coins decide which of the bounds is larger
    assert result.bins.alpha == pytest.approx(0.1 * plain.alpha)
    assert result.bins.runs_x == plain.counts.runs_x
    assert plain.bins is None


def test_counting_agrees_with_events():
    rng = np.random.default_rng(2)
    words = np.array(["a", "b", "c", "d"], dtype=object)
    for outputs, values in (
        (rng.integers(-3, 9, 500), (0, 5, -3)),
        (rng.integers(2**63, 2**63 + 5, 500, dtype=np.uint64), (2**63, 2**63 + 4)),
        (np.where(rng.random(500) < 0.1, math.nan, 1.0), (1.0, math.nan)),
        (words[rng.integers(0, 4, 500)], ("a", "d")),
        (rng.random(500) < 0.3, (True,)),
    ):
        cells = OutcomeCells(values, 9)
        counted = cells.count(outputs)
        assert counted.sum() == 500
        assert counted.tolist() == [cells.event(cell).count(outputs) for cell in range(cells.n_cells)]


@pytest.mark.parametrize("options", [{"bins": 1}, {"bins": 8, "sequential": True}])
def test_impossible_numbers_of_cells(options):
    """Sequential audits have none."""
    with pytest.raises(OptionError, match="sequential=False" if "sequential" in options else "bins"):
        check(coin, False, True, claim=PureDP(2.0), runs=10_000, **options)
