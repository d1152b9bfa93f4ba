"""An output is read alike in every block, else hits would cluster by block; and arrays of other libraries are outputs.

Of other libraries none but numpy and pandas is installed here: objects with their protocols stand for them.
"""

import math
from collections import namedtuple
from decimal import Decimal
from enum import Enum

import numpy as np
import pandas as pd
import pytest

from dpaudit import PureDP, check, check_outputs
from dpaudit.audit.errors import MechanismError
from dpaudit.audit.events.events import Intervals, Outcomes, Scored
from dpaudit.audit.events.features import Coordinates
from dpaudit.audit.events.leaves import learn_leaves
from dpaudit.audit.events.named_parts import (
    Dictionary,
    column_of,
    in_one_type,
    is_foreign_array,
    numpy_of,
    outcome_text,
)
from dpaudit.audit.events.outputs import (
    Raised,
    as_outputs,
    n_different,
    outcome_key,
    outcome_words,
    tally,
    vector_width,
)
from dpaudit.audit.events.scores import Additive, Column, LowestBit, Number, Residue, Weighted
from dpaudit.audit.records.json_codec import plain_data, read_data

Answer = namedtuple("Answer", "value spread")
BIG = 2**60
BLOCKS = {
    "numbers": [0.5, -1.0, 2.0, float("nan"), float("inf"), 5e-324], "whole": [0, 1, -3, 7, 2],
    "beyond doubles": [BIG + k for k in range(6)], "far beyond": [2**70, 2**70 + 1, 3], "booleans": [True, False, True],
    "mixed numbers": [True, 2, 0.5, 1.0], "vectors": [(0.5, 1.0), (2.0, -1.0), (float("nan"), 0.0)],
    "named": [Answer(0.5, 1.0), Answer(2.0, 3.0)], "whole vectors": [(1, 2), (3, 4), (1, 4)],
    "vectors beyond doubles": [(BIG + k, 0) for k in range(9)], "lists": [[1.0, 2.0], [3.0, 4.0]],
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
    scores = [Number(), LowestBit(Number()), Residue(Number(), 0), Weighted((1.0, 0.0)), Weighted((0.3, -0.7))]
    scores += [Column(leaves, column) for column in range(len(leaves.names))]
    scores += [
        Additive(Coordinates(2, differences=True), ((0, 0.0, 1.0, 1.0), (1, 0.0, 2.0, -1.0)), ((1, 0.5),)),
        Additive(leaves, tuple((column, 0.5, 0.5, 1.0) for column in range(len(leaves.names)))),
    ]
    for half in halves:
        yield half
        yield from (Scored(score, half) for score in scores)


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_an_output_is_read_alike_in_any_company(block):
    alone = as_outputs(block, len(block), "block")
    for other in (None, "text", Raised("ValueError"), 0.25, 2**80, (1.0, 2.0), (1.0, 2.0, 3.0)):
        mixed = as_outputs([*block, other], len(block) + 1, "mixed")
        for event in events(alone):
            assert event.contains(alone).tolist() == event.contains(mixed)[:-1].tolist(), (event, other)


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_different_outcomes(block):
    twice = as_outputs([*block, *block], 2 * len(block), "block")
    assert n_different(twice) == len(tally(twice)[0])


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_looking_changes_nothing(block):
    for order in ("C", "F"):
        outputs = np.array(as_outputs(block, len(block), "block"), order=order)
        before = outputs.copy()
        for event in events(outputs):
            event.contains(outputs)
        assert before.tobytes() == outputs.tobytes() or outputs.dtype == object


def test_named_tuples_with_a_rare_none():
    """The dataset is ignored; before, a block without None was read as vectors and one with it as something else."""

    def rarely_nothing(rows, rng):
        return Answer(float(rng.random()), None if rng.random() < 1 / 1400 else float(rng.random()))

    for seed in range(2):
        assert not check(rarely_nothing, 0, 1, claim=PureDP(0.2), alpha=1e-6, runs=2_000, seed=seed, jobs=1).is_refuted


def test_weighted_sums_do_not_depend_on_the_block():
    rows = np.random.default_rng(0).integers(0, 2, (500, 10)).astype(float)
    score = Weighted(tuple(np.random.default_rng(1).normal(size=10).tolist()))
    whole = score.values(rows)
    assert whole.tolist() == [float(score.values(row[None])[0]) for row in rows]
    assert whole.tolist() == score.values(np.asfortranarray(rows)).tolist()


class Same:
    """Equals only itself."""


class Named(Enum):
    YES = 1


def test_outputs_that_a_worker_would_return_as_others_are_refused():
    for output in (Same(), (1, Same())):
        with pytest.raises(MechanismError, match="equals nothing but itself"):
            as_outputs([output], 1, "same")
    assert len(as_outputs([Named.YES, None, int, Ellipsis, frozenset((1,)), b"x"], 6, "others")) == 6


def test_vector_width():
    matrix = np.zeros((3, 4))
    objects = np.fromiter([(1.0, 2**80)], dtype=object, count=1)
    mixed = np.fromiter([(1.0, 2.0), None], dtype=object, count=2)
    assert vector_width(matrix, matrix) == 4
    assert vector_width(objects) == 2
    assert vector_width(mixed) is vector_width(matrix, objects) is vector_width(np.zeros(3)) is None


def lengths(rows, rng):
    return list(rng.laplace(size=max(0, round(len(rows) + rng.laplace(scale=0.4)))))


def test_the_length_of_an_output_is_seen_and_said():
    result = check(lengths, [1] * 3, [1] * 2, claim=PureDP(1.0), runs=2_500, jobs=1, bits=False)
    assert result.is_refuted  # the length alone has a privacy loss of 2.5
    assert "output is a tuple of " in result.event_in_words


def test_vectors_of_no_coordinates():
    def per_row(rows, size, rng):
        return np.asarray(rows)[None, :] + rng.laplace(size=(size, len(rows)))

    assert check(per_row, [1.0], [], claim=PureDP(1.0), runs=400, jobs=1).is_refuted
    assert not check_outputs(np.zeros((500, 0)), np.zeros((500, 0)), claim=PureDP(1.0)).is_refuted


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-300, 1e-163, 1e200])
def test_vectors_of_any_size(scale):
    def vector(x, size, rng):
        return (x + rng.laplace(size=(size, 2))) * scale

    assert check(vector, 3.0, 0.0, claim=PureDP(1.0), runs=2_000, jobs=1, bits=False).is_refuted


def test_decimals_are_numbers_in_the_pilot_and_in_the_main_runs():
    def rounded(answer, rng):
        return "mean", Decimal(repr(round(answer + rng.laplace(), 3)))

    result = check(rounded, 0.0, 3.0, claim=PureDP(1.0), runs=1_500, alpha=1e-6, seed=1, jobs=1)
    assert result.is_refuted
    assert result.findings == ()


# Arrays of other libraries.


class OnlyDLPack:
    def __init__(self, values):
        self.values = np.asarray(values)

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class Tensor:
    """Like a tensor of torch: numpy may read it only without its gradient and on the processor."""

    def __init__(self, values, *, grad=True, device="gpu", dtype=np.float64):
        self.values, self.grad, self.device, self.dtype = np.asarray(values), grad, device, dtype

    def detach(self):
        return Tensor(self.values, grad=False, device=self.device, dtype=self.dtype)

    def cpu(self):
        return Tensor(self.values, grad=self.grad, device="cpu", dtype=self.dtype)

    def double(self):
        return Tensor(self.values, grad=self.grad, device=self.device)

    def __array__(self, dtype=None, copy=None):
        if self.grad or self.device == "gpu":
            raise RuntimeError("can't call numpy() on a tensor that requires grad")
        if self.dtype == "bfloat16":
            raise TypeError("got unsupported ScalarType BFloat16")
        return self.values.astype(self.dtype)


class NullableColumn:
    """Like a column of polars: a missing number is not NaN, but numpy gets NaN."""

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return iter(self.values)

    def null_count(self):
        return sum(value is None for value in self.values)

    def to_numpy(self):
        return np.array(self.values, dtype=np.float64)

    def __array__(self, dtype=None, copy=None):
        return self.to_numpy()


@pytest.mark.parametrize("make", [OnlyDLPack, Tensor, lambda values: Tensor(values, dtype="bfloat16")])
@pytest.mark.parametrize("shape", [(4,), (4, 2)])
def test_blocks_and_single_outputs(make, shape):
    values = np.arange(float(np.prod(shape))).reshape(shape)
    assert is_foreign_array(make(values))
    np.testing.assert_array_equal(numpy_of(make(values)), values)
    np.testing.assert_array_equal(as_outputs(make(values), 4, "m"), values)
    np.testing.assert_array_equal(as_outputs([make(row) for row in values], 4, "m"), values)


def test_a_number_without_dimensions_is_a_number():
    assert as_outputs([np.array(1.5), Tensor(2.5), OnlyDLPack(3.5)], 3, "m").tolist() == [1.5, 2.5, 3.5]


def test_what_numpy_cannot_read_is_named():
    class Broken:
        def __array__(self, dtype=None, copy=None):
            raise ValueError("lies elsewhere")

    with pytest.raises(
        MechanismError, match=r"m returned a Broken that numpy cannot read \(ValueError: lies elsewhere\)"
    ):
        as_outputs(Broken(), 3, "m")


def test_types_are_no_arrays():
    assert not is_foreign_array(pd.Series)
    assert not is_foreign_array(np.float64(1.0))


def test_missing_values_of_a_column_are_none():
    assert column_of(NullableColumn([1.0, None, 2.0])).tolist() == [1.0, None, 2.0]
    assert column_of(NullableColumn([1.0, 2.0])).dtype == np.float64
    assert column_of(pd.Series([1, None], dtype="Int64")).tolist() == [1, None]
    assert column_of(pd.Series(["a", "b"], dtype="category")).tolist() == ["a", "b"]
    assert column_of(pd.Series(pd.to_datetime(["2026-01-01"]))).tolist() == [pd.Timestamp("2026-01-01")]


def test_one_type_holds_all_columns_without_loss():
    whole, real, flags = np.array([2**53 + 1]), np.array([0.5]), np.array([True])
    assert in_one_type([whole, whole]) == np.int64
    assert in_one_type([whole, real]) is None
    assert in_one_type([whole - 1, real]) == np.float64
    assert in_one_type([flags, flags]) == np.bool_
    assert in_one_type([flags, real]) == np.float64
    assert in_one_type([np.array([2**63], np.uint64), np.array([-1])]) is None
    assert in_one_type([np.array(["a"]), real]) is None
    assert in_one_type([]) is None


# Dictionaries.


def outputs_of(*values):
    return as_outputs(list(values), len(values), "m")


def test_equal_dictionaries_are_equal_outputs():
    outputs = outputs_of({"a": 1, "b": [2, 3]}, {"b": (2, 3), "a": 1.0}, {"a": 1}, {2: 0, 1.0: 0}, {True: 0, 2.0: 0})
    counts, names = tally(outputs)
    assert sorted(counts.values()) == [1, 2, 2]
    assert {outcome_words(value) for value in names.values()} == {"{'a': 1, 'b': (2, 3)}", "{'a': 1}", "{1: 0, 2: 0}"}
    assert Outcomes((outputs[0],)).contains(outputs).tolist() == [True, True, False, False, False]
    assert outcome_text(outputs[2]) == outcome_text(outputs_of({"a": 1})[0])
    first, second = outputs_of({"a": math.nan}, {"a": float("nan")})
    assert outcome_key(first) == outcome_key(second)
    value = Dictionary.of([("b", (1, None)), ("a", 0.5)])
    assert read_data(plain_data(value)) == value


def test_a_value_that_cannot_be_compared_is_refused_inside_too():
    with pytest.raises(MechanismError, match="cannot be compared"):
        outputs_of({"a": bytearray(b"a")})


def test_columns_are_the_values_of_keys_and_the_size():
    outputs = outputs_of({"a": 1.0, "b": "x"}, {"a": 2.0}, {"c": {"d": 3}, "a": 5.0}, (7, {"a": 1}), "none")
    leaves = learn_leaves(outputs, outputs)
    read = dict(zip(leaves.names, leaves.read(outputs), strict=True))
    np.testing.assert_array_equal(read["output['a']"], [1.0, 2.0, 5.0, np.nan, np.nan])
    np.testing.assert_array_equal(read["output['c']['d']"], [np.nan, np.nan, 3.0, np.nan, np.nan])
    np.testing.assert_array_equal(read["len(output)"], [2.0, 1.0, 2.0, np.nan, np.nan])
    np.testing.assert_array_equal(read["len(output[1])"], [np.nan, np.nan, np.nan, 1.0, np.nan])
    assert np.isfinite(read["output['b']"]).tolist() == [True, False, False, False, False]


@pytest.mark.parametrize(("dogs", "keeps_zeros"), [(0, False), (3, True)])
def test_a_key_that_is_left_out_or_moves_too_far_is_found(dogs, keeps_zeros):
    """A key without rows is left out, which its absence tells."""

    def counts(histogram, rng):
        return {key: count + rng.laplace() for key, count in histogram.items() if keeps_zeros or count > 0}

    x, y = ({"cats": 5, "dogs": number, "owls": 9} for number in (1, dogs))
    result = check(counts, x, y, claim=PureDP(1.0), runs=3_000, alpha=1e-6, jobs=1)
    assert result.is_refuted
    assert "dogs" in result.event_in_words or "len(output)" in result.event_in_words
