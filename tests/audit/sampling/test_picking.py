"""Parts of outputs: by name, path, place or function, of one run and of a block."""

from __future__ import annotations

from collections import Counter, namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dpaudit.audit.errors import MechanismError, OptionError
from dpaudit.audit.events.named_parts import Part
from dpaudit.audit.sampling.sampler import check_choice, pick_from_block, pick_from_run


@dataclass
class Stats:
    mean: float
    weights: list[float]


Pair = namedtuple("Pair", "mean n")
STATS, FRAME = Stats(1.5, [2.5, 3.5]), pd.DataFrame({"mean": [1.5], "n": [2]})


@pytest.mark.parametrize(
    ("output", "choice", "name", "value"),
    [
        (STATS, "mean", "mean", 1.5),
        (STATS, 0, "mean", 1.5),
        (STATS, "weights.1", "weights.1", 3.5),
        (STATS, 1, "weights", [2.5, 3.5]),
        (Pair(1.5, 2), "n", "n", 2),
        (Pair(1.5, 2), -1, "n", 2),
        ({"a": {"b.c": 1.5}}, "a.b.c", "a.b.c", 1.5),
        ({"a.b": 1.5, "a": {"b": 0}}, "a.b", "a.b", 1.5),
        ({5: 1.5}, 5, "5", 1.5),
        ({5: 1.5}, "5", "5", 1.5),
        ({"w": np.array([1.5, 2.5]), "t": "x"}, "w[1]", "w[1]", 2.5),
        ({"w": np.array([1.5, 2.5])}, "w.1", "w.1", 2.5),
        ({"w[1]": 0.5, "w": np.array([1.5, 2.5])}, "w[1]", "w[1]", 0.5),
        ({"w": [1.5, {"a b": 2.5}]}, "output['w'][1]['a b']", "output['w'][1]['a b']", 2.5),
        (pd.DataFrame({"v": [1.5, 2.5]}, index=["k", "l"]), "v[l]", "v[l]", 2.5),
        (np.array([(1.5, "u")], dtype=[("a", "f8"), ("b", "U1")])[0], 0, "a", 1.5),
        (np.array([(1.5, "u")], dtype=[("a", "f8"), ("b", "U1")])[0], "b", "b", "u"),
        (SimpleNamespace(fit=STATS), "fit.mean", "fit.mean", 1.5),
        ((1.5, 2.5), 1, "output[1]", 2.5),
        (np.array([1.5, 2.5]), 1, "output[1]", 2.5),
        (pd.Series({"mean": 1.5, "n": 2.0}), "n", "n", 2.0),
        (pd.Series([1.5, 2.5]), 1, "output[1]", 2.5),
        (FRAME, "n", "n", 2),
        (FRAME, 0, "mean", 1.5),
        (np.array((1.5, 2), dtype=[("mean", "f8"), ("n", "i8")]), "mean", "mean", 1.5),
    ],
)
def test_parts_of_one_run(output, choice, name, value):
    assert pick_from_run(output, choice, "m") == Part(name, value)


BLOCK = {"mean": np.array([1.5, 2.5]), "n": np.array([1, 2])}


@pytest.mark.parametrize(
    "block",
    [BLOCK, pd.DataFrame(BLOCK), np.array([(1.5, 1), (2.5, 2)], dtype=[("mean", "f8"), ("n", "i8")])],
    ids=["dictionary", "frame", "array"],
)
def test_parts_of_a_block(block):
    part = pick_from_block(block, "mean", "m")
    assert (part.name, list(part.value)) == ("mean", [1.5, 2.5])


def test_places_in_a_block():
    assert pick_from_block(pd.DataFrame(BLOCK), 1, "m").name == "n"
    structured = np.array([(1.5, 1), (2.5, 2)], dtype=[("mean", "f8"), ("n", "i8")])
    assert pick_from_block(structured, 1, "m").name == "n"
    assert pick_from_block(pd.Series([1.5, 2.5], name="v"), 0, "m").name == "v"
    assert pick_from_block({"w": np.array([[1, 2], [3, 4]])}, "w[1]", "m").value.tolist() == [2, 4]
    assert pick_from_block({"w": np.array([[1, 2], [3, 4]])}, "w.0", "m").value.tolist() == [1, 3]
    with pytest.raises(MechanismError, match=r"'w\[2\]' is not a part"):
        pick_from_block({"w": np.array([[1, 2], [3, 4]])}, "w[2]", "m")
    assert pick_from_block(np.array([[1, 2], [3, 4]]), 1, "m").value.tolist() == [2, 4]
    assert pick_from_block([(1, 2), (3, 4)], 1, "m") == [Part("output[1]", 2), Part("output[1]", 4)]
    assert pick_from_block([{"a": 1}, {"a": 2}], "a", "m") == [Part("a", 1), Part("a", 2)]


def test_functions_see_what_the_mechanism_returns():
    assert pick_from_run((1.5, 2.5), max, "m") == 2.5
    assert pick_from_block(np.array([[1, 2], [3, 4]]), lambda block: block.sum(axis=1), "m").tolist() == [3, 7]


@pytest.mark.parametrize(
    ("output", "choice", "said"),
    [
        (
            {"mean": 1.5, "n": 2},
            "median",
            "'median' is not a part of an output of m with the parts mean, n; name",
        ),
        (FRAME, "median", "with the parts mean, n"),
        (STATS, "median", "with the parts mean, weights"),
        (STATS, 2, "output=2 is not a part"),
        (1.5, "mean", "of type float, which has no parts; leave out output="),
        ((1.5,), 1, "which has 1 coordinate; use output=0, or pass a function"),
        (np.zeros(5), "mean", "which has 5 coordinates; name a place from 0 to 4, such as output=4, or pass"),
        ([0.5] * 5, 5, "output=5 is not a part of an output of m, which has 5 coordinates; name a place from 0 to 4"),
        ([0.5] * 5, "coordinate 5", "which has 5 coordinates; name a place from 0 to 4"),
        ({"x": 1, "y": 2}, 1, "with the parts x, y; name a key, as keys have no order"),
        (Counter(count=1), "coutn", "'coutn' is not a part"),
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
    with pytest.raises(MechanismError, match="output='mean' is not a part of an output of m, which has 2 coordinates"):
        pick_from_block(np.zeros((9, 2)), "mean", "m")
    with pytest.raises(MechanismError, match="not a part of an output of m, which has no parts; leave out output="):
        pick_from_block(np.zeros(9), "output[0]", "m")


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
