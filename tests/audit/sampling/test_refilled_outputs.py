"""Outputs are copied when they are returned, so that a mechanism may fill its lists, arrays and objects again."""

import contextlib
import io
import math
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import joblib
import numpy as np
import pandas as pd
import pytest

from dpaudit import check, check_outputs, find_worst_pair, replay
from dpaudit.audit.errors import MechanismError
from dpaudit.audit.events.events import ColumnCells, Intervals
from dpaudit.audit.events.scores import Number
from dpaudit.audit.sampling.block_plan import Plan
from dpaudit.audit.sampling.draw import count_events, draw_block, draw_pilot
from dpaudit.audit.sampling.sampler import as_sampler

RUNS = 12


class Cell:
    """An object that compares by value and can be changed."""

    def __init__(self, value=0):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, Cell) and self.value == other.value

    def __hash__(self):
        return hash(self.value)


@dataclass
class Record:
    value: int = 0
    parts: list = None


def _set(kept, key, value):
    kept[key] = value
    return kept


def _attribute(kept, value):
    kept.value = value
    return kept


REFILLED = {
    "list": ([0], lambda kept, value: _set(kept, 0, value)),
    "dictionary": ({}, lambda kept, value: _set(kept, "a", value)),
    "array": (np.zeros(3), lambda kept, value: _set(kept, 1, value)),
    "view": (np.zeros(3), lambda kept, value: _set(kept, 1, value)[1:]),
    "record": (np.zeros(1, dtype=[("a", int)]), lambda kept, value: _set(kept, 0, value)[0]),
    "objects": (np.array(["a", 0], dtype=object), lambda kept, value: _set(kept, 1, value)),
    "dataclass": (Record(), lambda kept, value: _attribute(kept, value)),
    "frame": (pd.DataFrame({"a": [0], "b": [0]}), lambda kept, value: _set(kept, "a", [value])),
    "object in a tuple": (Cell(), lambda kept, value: (1, _attribute(kept, value))),
}


@pytest.mark.parametrize("kind", REFILLED)
def test_an_output_that_is_filled_again_is_what_it_was_when_it_was_returned(kind):
    kept, fill = REFILLED[kind]

    def refilled(_, rng):
        return fill(kept, int(rng.integers(100)))

    rng = np.random.default_rng(0)
    values = [int(rng.integers(100)) for _ in range(RUNS)]
    fresh = [as_sampler(lambda _, value=value: fill(kept, value)).draw(None, 1, rng)[0] for value in values]
    found = as_sampler(refilled).draw(None, RUNS, np.random.default_rng(0))
    assert [str(each) for each in found] == [str(each) for each in fresh] or list(found) == fresh
    assert len({str(each) if isinstance(each, np.ndarray) else each for each in found}) > 1


BLOCK, MATRIX = np.zeros(1_000), np.zeros((1_000, 2))
COLUMNS, LISTED = {}, [[0] for _ in range(1_000)]


def in_array(dataset, size, rng):
    return np.add(rng.random(size), dataset, out=BLOCK[:size])


def in_columns(dataset, size, rng):
    MATRIX[:size, 1] = dataset + rng.random(size)
    return MATRIX[:size, 1:]


def in_dictionary(dataset, size, rng):
    COLUMNS["a"] = in_array(dataset, size, rng)
    return COLUMNS


def in_lists(dataset, size, rng):
    for kept, value in zip(LISTED, rng.random(size), strict=False):
        kept[0] = dataset + value
    return LISTED[:size]


@pytest.mark.parametrize("mechanism", [in_columns, in_dictionary, in_lists])
def test_a_block_that_is_filled_again_is_what_it_was_when_it_was_returned(mechanism):
    plan = Plan(as_sampler(mechanism), 0.0, 1.0, seed=1, block=100, jobs=1)
    blocks = draw_pilot(plan, 300)
    expected = [plan.generator("pilot", side, number).random(100) for side in "xy" for number in range(3)]
    found = [block.ravel() for side in blocks for block in side]
    assert np.allclose(found, [each + (place > 2) for place, each in enumerate(expected)])
    first, second = (draw_block(mechanism, 0.0, "pilot", "x", number, 50, seed=1) for number in range(2))
    assert not np.array_equal(first, second)


def test_blocks_that_are_filled_again_are_counted_as_they_were_when_they_were_returned():
    """Blocks are counted several together, after later calls."""
    event, cells = Intervals(((0.75, math.inf),)), ColumnCells((Number(),), ((0.25, 0.5, 1.5),))
    counted = [
        count_events(
            Plan(as_sampler(mechanism), 0.0, 1.0, seed=1, block=100, jobs=1), event, None, 950, partitions=(cells,)
        )
        for mechanism in (in_array, lambda dataset, size, rng: dataset + rng.random(size))
    ]
    for again, fresh in zip(*counted, strict=True):
        assert again.contents == fresh.contents
        assert again.stretches.tolist() == fresh.stretches.tolist()


KEPT = [0]


@pytest.mark.parametrize(
    ("mechanism", "is_shared"),
    [
        (in_array, True),
        (lambda _, rng: _set(KEPT, 0, rng.random()), True),
        (lambda _, size, rng: rng.random(size), False),
    ],
)
def test_threads_that_fill_one_array_are_refused(mechanism, is_shared):
    plan = Plan(as_sampler(mechanism), 0.0, 1.0, seed=1, block=200, jobs=2)
    refused = pytest.raises(MechanismError, match="in two threads") if is_shared else contextlib.nullcontext()
    with joblib.parallel_config("threading"), refused:
        count_events(plan, None, None, 40_000)


TABLE = [["a"], ["b"]]


class CaseInsensitive(Cell):
    def __eq__(self, other):
        return self.value.lower() == other.value.lower()

    def __hash__(self):
        return hash(self.value)


def cell(**methods):
    """A cell of a class with other methods."""
    return type("Odd", (Cell,), {"__hash__": lambda self: 1, **methods})(1)


def locked(self, memo):
    raise TypeError("locked")


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda answer, rng: CaseInsensitive(("ab", "AB")[answer][rng.integers(2)]), "CaseInsensitive with different"),
        (lambda answer, rng: {"a": CaseInsensitive(("a", "A")[answer])}, "CaseInsensitive with different hashes"),
        (lambda answer, rng: cell(__hash__=lambda self: id(self)), "Odd with different hashes"),
        (lambda answer, rng: cell(__eq__=lambda self, other: False), "Odd, which does not equal its own copy"),
        (lambda answer, rng: cell(__deepcopy__=locked), "Odd, which cannot be copied"),
        (lambda answer, rng: memoryview(bytearray(1)), "memoryview, which cannot be compared"),
        (lambda answer, rng: map(int, "1"), r"a map, not its values; return list\(…\)"),
    ],
)
def test_objects_that_cannot_be_counted_are_refused_by_their_class(made, words):
    with pytest.raises(MechanismError, match=words):
        check(made, 0, 1, claim=1.0, runs=200, jobs=1)


async def _awaited(d, rng):
    return d


async def _gathered(d, rng):
    yield d


def _future(d, rng):
    made = Future()
    made.set_result(d)
    return made


UNEVALUATED = [
    (lambda d, rng: (d for _ in range(2)), r"a generator, not its values; return list\(…\)\."),
    (lambda d, rng: {"a": [zip("a", "b", strict=True)]}, r"a zip, not its values; return list\(…\)\."),
    (lambda d, rng: {d: 1}.keys(), r"a dict_keys, not its values; return list\(…\)\."),
    (lambda d, rng: {d: 1}.values(), r"a dict_values, not its values; return list\(…\)\."),
    (lambda d, rng: enumerate("a"), r"an enumerate, not its values; return list\(…\)\."),
    (lambda d, rng: io.StringIO("a"), r"a StringIO, not its contents; return file\.read\(\)\."),
    (lambda d, rng: rng.laplace, "a (function|method), not its result; call it and return the result"),
    (lambda d, rng: partial(int, d), "a partial, not its result; call it and return the result"),
    (_awaited, r"a coroutine, not its value; await it and return its value, or return asyncio\.run\(…\)\."),
    (_gathered, r"an async_generator, not its values; collect them with asyncio\.run\(…\) and return a list"),
    (_future, r"a Future, not its result; return the result of its method result\(\)\."),
]


@pytest.mark.parametrize(("made", "words"), UNEVALUATED)
def test_what_is_not_a_value_yet_is_refused_with_one_sentence_in_every_form(made, words):
    forms, options = (made, SimpleNamespace(sample=lambda d, size, rng: made(d, rng))), {"claim": 1.0, "name": "form"}
    output, few = made(0, np.random.default_rng(0)), {"runs": 200, "jobs": 1}
    procedures = [
        lambda form: check(form, 0, 1, **few, **options),
        lambda form: find_worst_pair(form, [(0, 1)], search_runs=400, **few, **options),
    ]
    if not isinstance(output, dict):
        procedures.append(lambda form: replay(form, 0, 1, claim=1.0))
        with pytest.raises(MechanismError, match=f"outputs are {words.replace('return', 'pass')}"):
            check_outputs(output, [1.0] * 50, claim=1.0)
    for form in forms:
        for procedure in procedures:
            with pytest.raises(MechanismError, match=f"returned {words}"):
                procedure(form)
    with contextlib.suppress(AttributeError):
        output.close()


def test_a_vectorised_mechanism_without_a_return_is_refused():
    with pytest.raises(MechanismError, match="form returned None when asked for 1 output; is a return missing"):
        check(lambda d, size, rng: None, 0, 1, claim=1.0, runs=200, jobs=1, name="form")
    with pytest.raises(MechanismError, match="returned None when asked for 1 output; is a return missing"):
        replay(lambda d, size, rng: None, 0, 1, claim=1.0)


@pytest.mark.parametrize("kept", [[0], np.zeros(2), {"a": 0}])
def test_recorded_outputs_that_were_overwritten_are_refused(kept):
    views = [kept[:] for _ in range(50)] if isinstance(kept, np.ndarray) else [kept] * 50
    with pytest.raises(MechanismError, match="50 times, so each output is what the last run put there"):
        check_outputs(views, [[math.pi]] * 25 + [[1.0]] * 25, claim=1.0)
    assert not check_outputs([TABLE[i % 2] for i in range(50)], [["a"]] * 25 + [["b"]] * 25, claim=1.0).is_refuted
