"""One column of the outputs, read alone or with all others; and what whole outputs have in common."""

from __future__ import annotations

import enum
import math

import numpy as np
import pytest

from dpaudit import PureDP, check
from dpaudit.audit.events.features import (
    Conditional,
    Coordinates,
    OrderStatistics,
    Parities,
    Products,
    Released,
    Statistics,
)
from dpaudit.audit.events.leaves import Summaries, learn_leaves
from dpaudit.audit.events.outputs import as_outputs


class Answer(enum.Enum):
    ABOVE = 1
    BELOW = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


OBJECTS = [
    (Answer.ABOVE, 2.5, ("a", -0.0)),
    (Answer.BELOW, float("nan"), ("b", 7)),
    (Answer.BELOW, 2**60, ("3.5", 7, 8)),
    (Answer.ABOVE,),
    (Level.LOW, "2.5", None),
    {"count": 2.0, "sum": {"total": 3}},
    {"count": "a"},
    1.5,
    "1.5",
    None,
    frozenset("ab"),
    (),
    ((1.0, 2.0), Answer.ABOVE),
]
NUMBERS = np.array([[1.0, -2.0, np.nan], [0.5, 2.0, np.inf], [-1.0, 3.0, 0.0]])


def objects():
    return as_outputs(OBJECTS, len(OBJECTS), "m")


def of_objects():
    leaves = learn_leaves(objects(), objects())
    return leaves, Conditional(leaves, ((1, 2.0, 3), (0, 1.0, 2))), Products(leaves, ((1, 0.5, 2, 0.0),))


@pytest.mark.parametrize(
    ("columns", "outputs"),
    [
        *((columns, objects()) for columns in (*of_objects(), Summaries())),
        (Coordinates(3), NUMBERS),
        (Coordinates(3, differences=True), NUMBERS),
        (OrderStatistics(3), NUMBERS),
        (Released(3), np.array([[1.0, -2.0, np.nan], [np.nan, 2.0, np.inf], [np.nan, np.nan, np.nan]])),
        (Parities(Coordinates(3), (((0, 0.0), (1, 0.0)), ((0, 0.0), (1, 1.0), (2, 0.0)))), NUMBERS),
        (Statistics(Coordinates(3), (0, 1, 2)), NUMBERS),
        (Statistics(of_objects()[0], (1, 3)), objects()),
        (Coordinates(3), objects()),
    ],
    ids=[
        "leaves",
        "conditional",
        "products",
        "summaries",
        "coordinates",
        "differences",
        "order",
        "released",
        "parities",
        "statistics",
        "statistics of objects",
        "others",
    ],
)
def test_a_column_alone_is_the_same(columns, outputs):
    matrix = columns.read(outputs)
    assert len(columns.names) == len(matrix)
    for column, values in enumerate(matrix):
        np.testing.assert_array_equal(columns.column(outputs, column), values, err_msg=columns.names[column])


def test_statistics():
    statistics = Statistics(Coordinates(4), (0, 1, 3))
    outputs = np.array([[1.0, -4.0, 9.0, 2.0], [0.0, 3.0, np.nan, np.inf], [1.0, np.nan, 0.0, 1.0]])
    np.testing.assert_array_equal(
        statistics.read(outputs),
        [
            [-1.0, np.inf, np.nan],
            [math.sqrt(21.0), np.inf, np.nan],
            [4.0, np.inf, np.nan],
            [-4.0, 0.0, np.nan],
            [2.0, np.inf, np.nan],
            [-5.0, 3.0, np.nan],
            [1.0, np.inf, 0.0],
            [6.0, np.inf, np.nan],
        ],
    )
    assert statistics.names[1] == "Euclidean norm of coordinate 0, coordinate 1, coordinate 3"
    assert statistics.names[-1] == "(coordinate 3 − coordinate 1)"


@pytest.mark.parametrize(("columns", "differences"), [(10, 45), (11, 10)])
def test_every_two_of_a_few_columns_have_a_difference(columns, differences):
    names = Statistics(Coordinates(columns), tuple(range(columns))).names
    assert names[0] == f"sum of {columns} columns"
    assert len(set(names)) == 5 + differences


def test_statistics_do_not_depend_on_the_number_of_runs():
    """Sums along an axis are rounded in another order for one run than for many."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(100, 20)) * 10.0 ** rng.integers(-8, 8, (100, 20))
    statistics = Statistics(Coordinates(20), tuple(range(20)))
    alone = np.concatenate([statistics.read(vectors[run : run + 1]) for run in range(100)], axis=1)
    np.testing.assert_array_equal(statistics.read(vectors), alone)


def test_summaries():
    found = Summaries().read(objects()).T.tolist()
    assert found[0] == [4.0, 2.0, 0.0, 2.5]
    assert found[5] == [2.0, 2.0, 2.0, 3.0]
    np.testing.assert_array_equal(found[3], [1.0, 0.0, np.nan, np.nan])
    assert Summaries().names[2] == "smallest number in output"


def test_a_number_that_is_released_anywhere():
    """A transcript that ends at a place by chance; where it is long, its smallest number tells the datasets apart."""

    def transcript(is_low, size, rng):
        places, lengths = rng.integers(0, 12, size), rng.integers(12, 20, size)
        numbers = rng.laplace(size=size) - 3.0 * is_low
        return [
            tuple(number if place == at else "below" for place in range(length))
            for at, number, length in zip(places.tolist(), numbers.tolist(), lengths.tolist(), strict=True)
        ]

    result = check(transcript, False, True, claim=PureDP(1.0), runs=3_000, bits=False, jobs=1)
    assert result.bound > 2.0
    assert "number in output" in str(result.event)
