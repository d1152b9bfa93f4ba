"""An output is read alike in every block, else counts would cluster; arrays of other libraries are outputs.

Of other libraries none but numpy and pandas is installed here: objects with their protocols stand for them.
"""

from collections import namedtuple
from decimal import Decimal
from enum import Enum

import numpy as np
import pandas as pd
import pytest

from dpaudit import PureDP, check, check_outputs
from dpaudit.audit.errors import MechanismError
from dpaudit.audit.events.events import Intervals, Outcomes, Scored
from dpaudit.audit.events.features import Coordinates, Standardised
from dpaudit.audit.events.kinds import column_of, is_foreign_array, numpy_of
from dpaudit.audit.events.leaves import learn_leaves
from dpaudit.audit.events.named_parts import Dictionary, in_one_type
from dpaudit.audit.events.outputs import (
    Raised,
    as_outputs,
    n_different,
    outcome_words,
    tally,
    vector_width,
)
from dpaudit.audit.events.scores import Additive, Column, Coordinate, LowestBit, Number, Projection, Residue
from dpaudit.audit.records.json_codec import plain_data, read_data

from .. import stand_ins

Answer = namedtuple("Answer", "value spread")
BIG = 2**60
BLOCKS = {
    "numbers": [0.5, -1.0, 2.0, float("nan"), float("inf"), 5e-324], "whole": [0, 1, -3, 7, 2],
    "beyond doubles": [BIG + k for k in range(6)], "far beyond": [2**70, 2**70 + 1, 3], "booleans": [True, False, True],
    "mixed numbers": [True, 2, 0.5, 1.0], "vectors": [(0.5, 1.0), (2.0, -1.0), (float("nan"), 0.0)],
    "named": [Answer(0.5, 1.0), Answer(2.0, 3.0)], "whole vectors": [(1, 2), (3, 4), (1, 4)],
    "vectors beyond doubles": [(BIG + k, 0) for k in range(9)], "lists": [[1.0, 2.0], [3.0, 4.0]],
    "decimals": [("m", Decimal("0.125")), ("m", Decimal("2.5"))],
    "nested": [((1.0, "a"), 2), ((2.0, "b"), 3)], "strings": ["a", "b", "a"],
}  # fmt: skip


def events(outputs):
    values = outputs.tolist()
    known = [tuple(value) for value in values] if outputs.ndim == 2 else values
    leaves = learn_leaves(outputs, outputs)
    yield from (Outcomes(tuple(known[:1])), Outcomes(tuple(known[::2]), others=True), Outcomes(tuple(known)))
    yield Outcomes((BIG, float(BIG), (BIG, 0), (float(BIG), 0.0), 0.5, (1, 2), "a", float("nan")))
    yield Outcomes(tuple((BIG + k, 0) for k in range(6)))
    yield Outcomes((*(BIG + k for k in range(9)), float("nan")))
    halves = Intervals(((-1.0, 0.5), (2.0, 1e300))), Intervals(((0.0, float("inf")),), others=True)
    scores = [Number(), LowestBit(Number()), Residue(Number(), 0), Coordinate(0, 2)]
    scores += [Projection(Standardised((0.0, 1.0), (1.0, 2.0)), (3, -7), is_squared) for is_squared in (False, True)]
    scores += [Column(leaves, column) for column in range(len(leaves.names))]
    scores += [
        Additive(Coordinates(2, differences=True), ((0, 0.0, 1.0, 1.0), (1, 0.0, 2.0, -1.0)), ((1, 0.5),)),
        Additive(leaves, tuple((column, 0.5, 0.5, 1.0) for column in range(len(leaves.names)))),
    ]
    for half in halves:
        yield half
        yield from (Scored(score, half) for score in scores)


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_an_output_is_read_alike_in_any_company_and_not_changed(block):
    alone = as_outputs(block, len(block), "block")
    for other in (None, "text", Raised("ValueError"), 0.25, 2**80, (1.0, 2.0), (1.0, 2.0, 3.0)):
        mixed = as_outputs([*block, other], len(block) + 1, "mixed")
        for event in events(alone):
            assert event.contains(alone).tolist() == event.contains(mixed)[:-1].tolist(), (event, other)
    for order in ("C", "F"):
        outputs = np.array(alone, order=order)
        before = outputs.copy()
        for event in events(outputs):
            event.contains(outputs)
        assert before.tobytes() == outputs.tobytes() or outputs.dtype == object
    twice = as_outputs([*block, *block], 2 * len(block), "block")
    assert n_different(twice) == len(tally(twice)[0])


@pytest.mark.parametrize(("runs", "width"), [(500, 10), (7, 20_001)])
def test_weighted_sums_do_not_depend_on_the_block(runs, width):
    rows = np.random.default_rng(0).laplace(size=(runs, width))
    centres, spreads = np.random.default_rng(1).uniform(1.0, 2.0, size=(2, width))
    weights = np.random.default_rng(2).integers(-1_000, 1_000, size=width)
    score = Projection(Standardised(tuple(centres.tolist()), tuple(spreads.tolist())), tuple(weights.tolist()))
    whole = score.values(rows)
    assert whole.tolist() == [float(score.values(row[None])[0]) for row in rows]
    assert whole.tolist() == score.values(np.asfortranarray(rows)).tolist()
    assert whole == pytest.approx(np.clip((rows - centres) / spreads, -3.0, 3.0) @ weights / np.linalg.norm(weights))


class Same:
    """Equals only itself."""


def test_outputs_that_a_worker_would_return_as_others_are_refused():
    for output in (Same(), (1, Same())):
        with pytest.raises(MechanismError, match="equals nothing but itself"):
            as_outputs([output], 1, "same")
    yes = Enum("Named", "YES").YES
    assert len(as_outputs([yes, None, int, Ellipsis, frozenset((1,)), b"x"], 6, "others")) == 6


def test_vector_width():
    matrix = np.zeros((3, 4))
    objects = np.fromiter([(1.0, 2**80)], dtype=object, count=1)
    mixed = np.fromiter([(1.0, 2.0), None], dtype=object, count=2)
    assert vector_width(matrix, matrix) == 4
    assert vector_width(objects) == 2
    assert vector_width(mixed) is vector_width(matrix, objects) is vector_width(np.zeros(3)) is None


def test_vectors_of_no_coordinates():
    def per_row(rows, size, rng):
        return np.asarray(rows)[None, :] + rng.laplace(size=(size, len(rows)))

    assert check(per_row, [1.0], [], claim=PureDP(1.0), runs=400, jobs=1).is_refuted
    assert not check_outputs(np.zeros((500, 0)), np.zeros((500, 0)), claim=PureDP(1.0)).is_refuted


# Arrays of other libraries.


@pytest.mark.parametrize(
    "make", [stand_ins.OnlyDLPack, stand_ins.Tensor, lambda values: stand_ins.Tensor(values, dtype="bfloat16")]
)
@pytest.mark.parametrize("shape", [(4,), (4, 2)])
def test_blocks_and_single_outputs(make, shape):
    values = np.arange(float(np.prod(shape))).reshape(shape)
    assert is_foreign_array(make(values))
    np.testing.assert_array_equal(numpy_of(make(values)), values)
    np.testing.assert_array_equal(as_outputs(make(values), 4, "m"), values)
    np.testing.assert_array_equal(as_outputs([make(row) for row in values], 4, "m"), values)


def test_missing_values_of_a_column_are_none():
    assert column_of(stand_ins.Column([1.0, None, 2.0])).tolist() == [1.0, None, 2.0]
    assert column_of(stand_ins.Column([1.0, 2.0])).dtype == np.float64
    assert column_of(pd.Series([1, None], dtype="Int64")).tolist() == [1, None]
    assert column_of(pd.Series(["a", "b"], dtype="category")).tolist() == ["a", "b"]
    assert column_of(pd.Series(pd.to_datetime(["2026-01-01"]))).tolist() == [pd.Timestamp("2026-01-01")]


def test_one_type_holds_all_columns_without_loss():
    whole, real = np.array([2**53 + 1]), np.array([0.5])
    assert in_one_type([whole, whole]) == np.int64
    assert in_one_type([whole, real]) is None
    assert in_one_type([whole - 1, real]) == np.float64
    assert in_one_type([np.array([2**63], np.uint64), np.array([-1])]) is None
    assert in_one_type([np.array(["a"]), real]) is None
    assert in_one_type([]) is None
    assert in_one_type([np.array([True]), np.array([3], np.int8)]) == np.int64


def test_equal_dictionaries_are_equal_outputs():
    values = [{"a": 1, "b": [2, 3]}, {"b": (2, 3), "a": 1.0}, {"a": 1}, {2: 0, 1.0: 0}, {True: 0, 2.0: 0}]
    outputs = as_outputs(values, len(values), "m")
    counts, names = tally(outputs)
    assert sorted(counts.values()) == [1, 2, 2]
    assert {outcome_words(value) for value in names.values()} == {"{'a': 1, 'b': (2, 3)}", "{'a': 1}", "{1: 0, 2: 0}"}
    assert Outcomes((outputs[0],)).contains(outputs).tolist() == [True, True, False, False, False]
    value = Dictionary.of([("b", (1, None)), ("a", 0.5)])
    assert read_data(plain_data(value)) == value
