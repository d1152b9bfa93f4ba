"""Accepted callables, their outputs and exceptions, and parts of outputs."""

import enum
import functools
import pickle
import signal
from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dpaudit.audit import errors
from dpaudit.audit.errors import AuditError, MechanismError, OptionError
from dpaudit.audit.events.named_parts import Part
from dpaudit.audit.events.outputs import Raised, as_outputs
from dpaudit.audit.sampling.sampler import as_sampler, check_choice, pick_from_block, pick_from_run


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Adder:
    def sample(self, dataset, size, rng):
        return dataset + rng.random(size)


class CallableOnly:
    def __call__(self, dataset, rng):
        return dataset + rng.random()


def scaled(dataset, scale, size, rng):
    return dataset + scale * rng.random(size)


def draw(function, size=5, dataset=1.0, seed=3):
    return as_sampler(function).draw(dataset, size, np.random.default_rng(seed))


BLOCK_SAMPLERS = [
    lambda d, size, rng: d + rng.random(size), lambda d, size, generator: d + generator.random(size),
    lambda d, *, rng, size: d + rng.random(size), lambda d, rng, size: d + rng.random(size),
    lambda d, scale=1.0, *, size, rng=None: d + scale * rng.random(size),
    Adder(), Adder().sample, functools.partial(scaled, scale=1.0),
]  # fmt: skip
OF_ONE_RUN = [
    lambda d, rng: d + rng.random(), lambda d, random_state: d + random_state.random(),
    lambda d, *, rng: d + rng.random(), lambda d, scale=1.0, rng=None, **options: d + scale * rng.random(),
    CallableOnly(), functools.partial(lambda d, rng: d + rng.random()),
]  # fmt: skip


@pytest.mark.parametrize("function", [*BLOCK_SAMPLERS, *OF_ONE_RUN])
def test_block_samplers_get_all_three_and_single_runs_are_looped_with_one_generator(function):
    assert as_sampler(function).is_block == (function in BLOCK_SAMPLERS)
    np.testing.assert_array_equal(draw(function), 1.0 + np.random.default_rng(3).random(5))


@pytest.mark.parametrize(
    ("function", "dataset", "output"),
    [
        (len, [1, 2], 2), (max, [4, 2], 4), (abs, -3.0, 3.0), (lambda *data: data[0], 7, 7),
        (lambda d, **options: len(options), 1, 0), (lambda d, size: np.full(size, d), 1.0, 1.0),
    ],
)  # fmt: skip
def test_builtins_and_others_get_what_they_take_alone(function, dataset, output):
    assert draw(function, 3, dataset).tolist() == [output] * 3


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (3, r"mechanism=3 cannot be run; use a function f\(dataset, rng\)"), (None, "mechanism=None cannot be run"),
        (lambda rows, seed: 1, r"partial; for a seed: lambda rows, rng: .*\(rows, seed=rng.integers\(2\*\*63\)\)\.$"),
        (Adder, "cannot be run"), (str, "cannot be run"), (lambda: 1, r"takes \(\); use the parameters"),
        (lambda size, rng: 1, r"takes \(size, rng\)"), (lambda d, scale, rng: 1, r"takes \(d, scale, rng\)"),
        (lambda d, scale, size, rng: 1, r"takes \(d, scale, size, rng\)"),
        (lambda *, dataset, rng: 1, r"takes \(dataset, rng\)"), (lambda d, a, b: 1, r"takes \(d, a, b\)"),
        (lambda d, size, rng, /: 1, r"takes \(d, size, rng\)"),
    ],
)  # fmt: skip
def test_what_cannot_be_called_is_refused(function, message):
    with pytest.raises(MechanismError, match=message) as caught:
        as_sampler(function)
    assert "mechanism" in caught.value.facts


@pytest.mark.parametrize(
    ("raw", "dtype", "shape"),
    [
        (np.zeros(3), "f", (3,)), (np.zeros((3, 2)), "f", (3, 2)), (np.zeros(3, np.float32), "f", (3,)),
        ((1, 2.5, np.float32(3)), "f", (3,)), ([np.int8(1), np.bool_(True), False], "i", (3,)),
        ([[1, 2], [3, 4], np.array([5, 6])], "i", (3, 2)), (range(3), "i", (3,)),
        ([Level.LOW, Level.HIGH, Level.LOW], "i", (3,)), (np.array(["a", "bb", "c"]), "O", (3,)),
        (np.array([b"a", b"b", b"c"]), "O", (3,)), (np.array([["a", "b"], ["c", "d"], ["a", "b"]]), "O", (3,)),
        ([(1,), (1, 2), ()], "O", (3,)), ([(1, (2, 3)), (1, (2, 3)), (1, (4,))], "O", (3,)),
        ([(1, "a"), (2, "b"), (3, "c")], "O", (3,)), ([2**70, -(2**70), 0], "O", (3,)),
        ([Raised("E"), 1, 2], "O", (3,)), ([(), (), ()], "O", (3,)),
    ],
)  # fmt: skip
def test_outputs_are_numbers_vectors_or_objects(raw, dtype, shape):
    outputs = as_outputs(raw, 3, "m")
    assert (outputs.dtype.kind, outputs.shape) == (dtype, shape)
    values = [tuple(v) if isinstance(v, list) else v for v in outputs.tolist()]
    assert len({hash(v) for v in values}) >= 1  # every output is hashable
    for kept, given in zip(values, raw, strict=True):
        plain = given.tolist() if isinstance(given, np.ndarray) else given
        plain = tuple(plain) if isinstance(plain, list) else plain
        assert kept == plain or (kept != kept and plain != plain)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (np.zeros(2), r"m returned an array of shape \(2,\) when asked for 3 outputs"),
        (np.float64(1.0), "m returned float64 when asked for 3 outputs"),
        ([1, 2], "m returned 2 outputs when asked for 3"), ("abc", "m returned str"), ({1, 2, 3}, "m returned set"),
        (np.zeros(3, complex), "m returned outputs of dtype complex128"),
        (np.zeros(3, "datetime64[s]"), r"dtype datetime64\[s\]"), ([1, 2, 1j], "m returned the complex number 1j"),
        ([memoryview(bytearray(b"a")), 1, 2], "m returned an output of type memoryview, which cannot be compared"),
    ],
)  # fmt: skip
def test_other_outputs_are_refused_by_name(raw, message):
    with pytest.raises(MechanismError, match=message) as caught:
        as_outputs(raw, 3, "m")
    assert caught.value.facts["mechanism"] == "m"


def test_an_exception_in_a_single_run_is_its_output_and_one_in_a_block_an_error_with_its_cause():
    def fails_at_times(dataset, rng):
        if rng.random() < 0.5:
            raise KeyError("no")
        return dataset

    assert set(draw(fails_at_times, 40).tolist()) == {1.0, Raised("KeyError")}
    assert str(Raised("KeyError")) == "raises KeyError"

    def broken(dataset, size, rng):
        raise ZeroDivisionError("oops")

    said = "broken raised ZeroDivisionError: oops while drawing a chunk of 5 runs"
    with pytest.raises(MechanismError, match=said) as e:
        draw(broken)
    assert isinstance(e.value.__cause__, ZeroDivisionError)
    assert e.value.facts == {"mechanism": "broken", "size": 5}


def closed():
    raise GeneratorExit


def out_of_memory():
    raise MemoryError


@pytest.mark.parametrize("is_block", [False, True])
@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda: signal.raise_signal(signal.SIGINT), KeyboardInterrupt, "^$"),  # Ctrl-C
        (closed, MechanismError, "stopped raised GeneratorExit and would end the audit"),
        (out_of_memory, MechanismError, "stopped ran out of memory, which is a fault of the machine"),
    ],
)
@pytest.mark.usefixtures("interruptible")
def test_a_key_is_not_an_output_and_nothing_else_ends_the_audit_without_a_word(is_block, act, error, words):
    sampler = as_sampler((lambda d, size, rng: act()) if is_block else (lambda d, rng: act()), "stopped")
    with pytest.raises(error, match=words):
        sampler.draw(0, 3, np.random.default_rng(1))


@pytest.mark.parametrize(
    "kind", [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, AuditError)]
)
def test_errors_survive_pickling_with_their_facts(kind):
    again = pickle.loads(pickle.dumps(kind("epsilon=-1 is wrong", epsilon=-1, shape=(2, 3))))
    assert type(again) is kind
    assert str(again) == "epsilon=-1 is wrong"
    assert again.facts == {"epsilon": -1, "shape": (2, 3)}


@dataclass
class Stats:
    mean: float
    weights: list[float]


Pair = namedtuple("Pair", "mean n")
STATS, FRAME = Stats(1.5, [2.5, 3.5]), pd.DataFrame({"mean": [1.5], "n": [2]})


@pytest.mark.parametrize(
    ("output", "choice", "name", "value"),
    [
        (STATS, "mean", "mean", 1.5), (STATS, 0, "mean", 1.5), (STATS, "weights.1", "weights.1", 3.5),
        (Pair(1.5, 2), -1, "n", 2), ({"a": {"b.c": 1.5}}, "a.b.c", "a.b.c", 1.5),
        ({"a.b": 1.5, "a": {"b": 0}}, "a.b", "a.b", 1.5), ({5: 1.5}, 5, "5", 1.5),
        ({"w": np.array([1.5, 2.5]), "t": "x"}, "w[1]", "w[1]", 2.5),
        ({"w": np.array([1.5, 2.5])}, "output['w'][1]", "output['w'][1]", 2.5),
        ({"w[1]": 0.5, "w": np.array([1.5, 2.5])}, "w[1]", "w[1]", 0.5),
        (pd.DataFrame({"v": [1.5, 2.5]}, index=["k", "l"]), "v[l]", "v[l]", 2.5),
        (np.array([(1.5, "u")], dtype=[("a", "f8"), ("b", "U1")])[0], "b", "b", "u"),
        (SimpleNamespace(fit=STATS), "fit.mean", "fit.mean", 1.5), (pd.Series({"mean": 1.5, "n": 2.0}), "n", "n", 2.0),
        (FRAME, 0, "mean", 1.5), (np.array((1.5, 2), dtype=[("mean", "f8"), ("n", "i8")]), "mean", "mean", 1.5),
    ],
)  # fmt: skip
def test_parts_of_one_run(output, choice, name, value):
    assert pick_from_run(output, choice, "m") == Part(name, value)


COLUMNS, MATRIX = {"mean": np.array([1.5, 2.5]), "n": np.array([1, 2])}, np.array([[1, 2], [3, 4]])
STRUCTURED = np.array([(1.5, 1), (2.5, 2)], dtype=[("mean", "f8"), ("n", "i8")])


@pytest.mark.parametrize(
    ("block", "choice", "name", "values"),
    [
        (COLUMNS, "mean", "mean", [1.5, 2.5]), (pd.DataFrame(COLUMNS), "mean", "mean", [1.5, 2.5]),
        (STRUCTURED, "mean", "mean", [1.5, 2.5]), (pd.DataFrame(COLUMNS), 1, "n", [1, 2]), (STRUCTURED, 1, "n", [1, 2]),
        (pd.Series([1.5, 2.5], name="v"), 0, "v", [1.5, 2.5]), ({"w": MATRIX}, "w[1]", "w[1]", [2, 4]),
        ({"w": MATRIX}, "w.0", "w.0", [1, 3]), (MATRIX, 1, "output[1]", [2, 4]),
    ],
)  # fmt: skip
def test_parts_of_a_block(block, choice, name, values):
    part = pick_from_block(block, choice, "m")
    assert (part.name, list(part.value)) == (name, values)


@pytest.mark.parametrize(
    ("output", "choice", "said"),
    [
        ({"mean": 1.5, "n": 2}, "median", "'median' is not a part of an output of m with the parts mean, n; name"),
        (STATS, "median", "with the parts mean, weights"),
        (1.5, "mean", "of type float, which has no parts; leave out output="),
        ((1.5,), 1, "which has 1 coordinate; use output=0, or pass a function"),
        (np.zeros(5), "mean", "which has 5 coordinates; name a place from 0 to 4, such as output=4, or pass"),
        ([0.5] * 5, 5, "output=5 is not a part of an output of m, which has 5 coordinates; name a place from 0 to 4"),
        ({"x": 1, "y": 2}, 1, "with the parts x, y; name a key, as keys have no order"),
        ({"w": np.array([1.5])}, "w[1]", "is not a part"),
    ],
)
def test_absent_parts_are_named(output, choice, said):
    with pytest.raises(MechanismError, match=said):
        pick_from_run(output, choice, "m")


def test_a_function_that_raises_is_an_error_and_no_outcome():
    with pytest.raises(MechanismError, match=r"the function given as output= raised ZeroDivisionError"):
        pick_from_run(1.0, lambda output: 1 / 0, "m")
    with pytest.raises(MechanismError, match=r"KeyError: 5 for an output of m \(it is given the outputs of all runs"):
        pick_from_block({"a": np.zeros(2)}, lambda output: output[5], "m")


@pytest.mark.parametrize("choice", [1, "1", "[1]", "output[1]", "coordinate 1"])
@pytest.mark.parametrize("vector", [(0.5, 1.5), [0.5, 1.5], np.array([0.5, 1.5]), pd.Series([0.5, 1.5])], ids=str)
def test_a_coordinate_has_every_name_that_events_print(vector, choice):
    """Events name it as "coordinate 1", and where it is picked, or outputs are not numbers alone, as "output[1]"."""
    assert pick_from_run(vector, choice, "m") == Part("output[1]", 1.5)
    part = pick_from_block(np.array([vector, vector]), choice, "m")
    assert (part.name, part.value.tolist()) == ("output[1]", [1.5, 1.5])
    assert pick_from_run(dict.fromkeys([1, "1", "[1]", "output[1]", "coordinate 1"], 2.5), choice, "m").value == 2.5


@pytest.mark.parametrize("choice", ["", 1.5, True, ["mean"]])
def test_other_choices_are_refused(choice):
    with pytest.raises(OptionError, match=r"output=.* picks no part of an output; use a name"):
        check_choice(choice)
