"""An output is read alike in every block; otherwise hits would cluster by block and not be binomial."""

from collections import namedtuple
from decimal import Decimal
from enum import Enum

import numpy as np
import pytest

from dpaudit import PureDP, check, check_outputs
from dpaudit.audit.errors import MechanismError
from dpaudit.audit.events.events import Intervals, Outcomes, Scored
from dpaudit.audit.events.features import Coordinates
from dpaudit.audit.events.leaves import learn_leaves
from dpaudit.audit.events.outputs import Raised, as_outputs, vector_width
from dpaudit.audit.events.scores import Additive, Column, LowestBit, Number, Residue, Weighted

Answer = namedtuple("Answer", "value spread")
BIG = 2**60

BLOCKS = {
    "numbers": [0.5, -1.0, 2.0, float("nan"), float("inf"), 5e-324],
    "whole": [0, 1, -3, 7, 2],
    "beyond doubles": [BIG + k for k in range(6)],
    "far beyond": [2**70, 2**70 + 1, 3],
    "booleans": [True, False, True],
    "mixed numbers": [True, 2, 0.5, 1.0],
    "vectors": [(0.5, 1.0), (2.0, -1.0), (float("nan"), 0.0)],
    "named": [Answer(0.5, 1.0), Answer(2.0, 3.0)],
    "whole vectors": [(1, 2), (3, 4), (1, 4)],
    "vectors beyond doubles": [(BIG + k, 0) for k in range(9)],
    "lists": [[1.0, 2.0], [3.0, 4.0]],
    "nested": [((1.0, "a"), 2), ((2.0, "b"), 3)],
    "strings": ["a", "b", "a"],
}


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
def test_looking_changes_nothing(block):
    for order in ("C", "F"):
        outputs = np.array(as_outputs(block, len(block), "block"), order=order)
        before = outputs.copy()
        for event in events(outputs):
            event.contains(outputs)
        assert before.tobytes() == outputs.tobytes() or outputs.dtype == object


def rarely_nothing(rows, rng):
    return Answer(float(rng.random()), None if rng.random() < 1 / 1400 else float(rng.random()))


@pytest.mark.usefixtures("without_resolution")
def test_named_tuples_with_a_rare_none():
    """The dataset is ignored; before, a block without None was read as vectors and one with it as something else."""
    for seed in range(3):
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
    with pytest.raises(MechanismError, match="equals nothing but itself"):
        as_outputs([Same()], 1, "same")
    with pytest.raises(MechanismError, match="equals nothing but itself"):
        as_outputs([(1, Same())], 1, "same")
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


@pytest.mark.usefixtures("without_resolution")
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
@pytest.mark.usefixtures("without_resolution")
@pytest.mark.parametrize("scale", [1e-300, 1e-163, 1e200])
def test_vectors_of_any_size(scale):
    def vector(x, size, rng):
        return (x + rng.laplace(size=(size, 2))) * scale

    assert check(vector, 3.0, 0.0, claim=PureDP(1.0), runs=2_000, jobs=1, bits=False).is_refuted


@pytest.mark.usefixtures("without_resolution")
@pytest.mark.parametrize("within", [lambda number: number, lambda number: ("mean", number)])
def test_decimals_are_numbers_in_the_pilot_and_in_the_main_runs(within):
    def rounded(answer, rng):
        return within(Decimal(repr(round(answer + rng.laplace(), 3))))

    result = check(rounded, 0.0, 3.0, claim=PureDP(1.0), runs=1_500, alpha=1e-6, seed=1, jobs=1)
    assert result.is_refuted
    assert result.findings == ()
