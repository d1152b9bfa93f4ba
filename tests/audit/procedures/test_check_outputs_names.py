"""Names of the columns of outputs drawn elsewhere: those of single columns say where the outputs were kept."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpaudit import LaplaceNoise, PureDP, Verdict, check_noise, check_outputs
from dpaudit.audit.errors import MechanismError, OptionError

pytestmark = pytest.mark.usefixtures("without_trees")

RNG = np.random.default_rng(1)
FRAME = pd.DataFrame({"on_x": RNG.laplace(size=1_000), "on_y": RNG.laplace(size=1_000)})
SHAPES = {
    "column": lambda name: FRAME[name],
    "frame": lambda name: FRAME[[name]],
    "array": lambda name: FRAME[name].to_numpy(),
    "list": lambda name: FRAME[name].tolist(),
    "dictionary": lambda name: {name: FRAME[name].to_numpy()},
    "structured": lambda name: FRAME[name].to_numpy().view([(name, "f8")]),
    "labels": lambda name: FRAME[name].set_axis(range(5, 1_005)),
}


def checked(xs, ys, **options):
    return check_outputs(xs, ys, claim=PureDP(0.5), bits=False, alpha=1e-6, **options)


@pytest.mark.parametrize("one", SHAPES)
@pytest.mark.parametrize("other", SHAPES)
def test_single_columns_are_compared_by_their_values(one, other):
    assert checked(SHAPES[one]("on_x"), SHAPES[other]("on_y")).verdict is not Verdict.REFUTED


def test_a_name_that_both_have_is_said():
    result = checked(FRAME["on_x"].rename("v"), FRAME["on_y"].rename("v") + 9.0)
    assert result.is_refuted
    assert result.event_in_words.startswith("v ")


def test_a_place_picks_a_single_column():
    assert checked(FRAME["on_x"], FRAME["on_y"], output=0).verdict is not Verdict.REFUTED


def test_rows_with_names_and_without():
    reversed_ = FRAME[::-1]
    for rows in (reversed_.to_numpy(), list(reversed_.itertuples(index=False, name=None))):
        assert checked(FRAME, rows).verdict is not Verdict.REFUTED
        assert checked(rows, FRAME + 9.0).is_refuted
    single = [{"on_x": value} for value in FRAME["on_y"]]
    assert checked(FRAME[["on_x"]], single).verdict is not Verdict.REFUTED


@pytest.mark.parametrize("other", [FRAME.rename(columns={"on_x": "u"}), FRAME[["on_y"]], {"on_y": FRAME["on_y"]}])
def test_several_columns_with_other_names_are_refused(other):
    with pytest.raises(MechanismError, match=r"have the columns \(on_x, on_y\) and .*give both the same columns"):
        checked(FRAME, other)


def test_a_function_is_given_all_outputs():
    with pytest.raises(MechanismError, match="it is given the outputs of all runs together"):
        checked(FRAME, FRAME, output=lambda output: output[0] + 1)


def test_missing_values_of_columns_without_a_name():
    missing = pd.Series(np.where(FRAME["on_x"] > 0.0, 1.5, None), dtype="Float64")
    assert checked(missing, np.where(FRAME["on_y"] > 0.0, 1.5, np.nan)).is_refuted
    assert checked([pd.NA, 1.0] * 500, [1.0, None] * 500).verdict is not Verdict.REFUTED


@pytest.mark.parametrize(("width", "shape"), [(1, "vectors of 1"), (2, "vectors of 2")])
def test_sides_of_different_shapes_are_noted(width, shape):
    values = FRAME["on_x"].to_numpy()
    note = f"outputs are {shape} on x and single numbers on y, which alone tells x from y"
    result = checked(values.reshape(-1, width), values)
    assert result.is_refuted
    assert any(each.startswith(note) for each in result.notes)
    same = checked(values.reshape(-1, width), values[::-1].reshape(-1, width))
    assert not any("which alone tells" in each for each in same.notes)


@pytest.mark.parametrize("name", [3, float("nan"), "a\nb\x1b[31m", " "])
@pytest.mark.parametrize(
    "call",
    [
        lambda name: check_outputs(range(40), range(40), claim=1.0, name=name),
        lambda name: check_noise(
            lambda x, rng: x + rng.laplace(), 0.0, noise=LaplaceNoise(scale=1.0), answer=abs, name=name
        ),
    ],
)
def test_a_name_is_a_line_of_text(call, name):
    with pytest.raises(OptionError, match="is not a name"):
        call(name)
