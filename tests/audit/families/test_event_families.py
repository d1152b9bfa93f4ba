"""Families of outputs with very many parts: what is tried for any number of them, and a note on the rest."""

import re

import numpy as np
import pytest

from dpaudit import PureDP, check
from dpaudit.audit.events.features import noting_left_out
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.families.event_families import event_families
from dpaudit.audit.families.number_families import OfScore
from dpaudit.audit.families.pilot_split import PilotSplit


@pytest.mark.parametrize("width", [64, 65, 200])
def test_a_norm_is_tried_for_any_number_of_coordinates(width):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(400, width)), rng.normal(scale=1.1, size=(400, width))
    with noting_left_out() as notes:
        families = list(event_families(PilotSplit.in_half(x, y), with_statistics=True))
    scores = {str(family.build.score) for family in families if family.for_intervals}
    assert {f"{word} of {width} columns" for word in ("sum", "Euclidean norm", "smallest", "largest")} <= scores
    assert "width" not in notes if width == 64 else f"of {width} coordinates" in notes["width"]


def test_single_coordinates_are_those_that_differ_most():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(400, 300)), rng.normal(size=(400, 300))
    x[:, 299] += 2.0
    families = event_families(PilotSplit.in_half(x, y), effort="quick")
    scores = [str(family.build.score) for family in families if isinstance(family.build, OfScore)]
    assert "coordinate 299" in scores


def _rows(rng, runs, last):
    """201 texts that hardly recur; the last tells the datasets apart."""
    return [
        (*(f"{number:x}" for number in rng.integers(16**8, size=200)), f"{last} {rng.random()}") for _ in range(runs)
    ]


def _notes(x, y, effort="quick"):
    with noting_left_out() as notes:
        list(event_families(PilotSplit.in_half(*(as_outputs(side, len(side), "m") for side in (x, y))), effort=effort))
    return notes


def test_what_is_left_out_of_outputs_of_many_parts_is_noted():
    """A note for each limit, with numbers, and none one below the limit."""
    rng = np.random.default_rng(0)
    for width, kinds in ((64, set()), (65, {"width"}), (1_026, {"width", "numbers"})):
        parts = [("a", *rng.normal(size=width - 1)) for _ in range(40)]
        assert _notes(parts, parts).keys() - {"curves", "steps"} == kinds
    assert "of 1,025 numbers of outputs, the 1,024 commonest were read" in _notes(parts, parts)["numbers"]
    texts = _notes(_rows(rng, 40, "a"), _rows(rng, 40, "b"))
    assert re.match(r"of the [\d,]+ numbers, words and characters in 201 texts of an output, 201 were", texts["texts"])
    for many in (256, 257):
        recurring = [(f"value {number % many}", 0.5) for number in range(4 * many)]
        assert ("codes" in _notes(recurring, recurring)) is (many > 256)
    for long in (2_000, 2_001):
        letters = ["".join(rng.choice(list("abc "), size=long)) for _ in range(40)]
        assert ("1,000 characters at each end" in _notes(letters, letters)["long texts"]) is (long > 2_000)


def test_what_is_left_out_of_keys_and_scores_is_noted():
    rng = np.random.default_rng(0)
    for numbers in (2_500, 2_501):
        histogram = [dict(enumerate(rng.normal(size=numbers))) for _ in range(4)]
        assert ("keys" in _notes(histogram, histogram)) is (numbers > 2_500)
    names = [[(f"{run % 3} {number}", 0.5) for number in range(1_400)] for run in range(6)]
    assert "the 4,000 commonest" in _notes(names, names)["keys"]
    rare = np.where(rng.random(20_000) < 0.9, rng.integers(100, size=20_000), rng.integers(10**6, size=20_000))
    keys = np.column_stack([rare, rng.random(20_000)])
    assert "coordinate 0 has more than 1,000 values" in _notes(keys, keys)["values of keys"]
    for width, kinds in ((18, set()), (24, {"parities"}), (25, {"parities", "curves"})):
        vectors = rng.normal(size=(80, width))
        assert _notes(vectors, vectors).keys() == kinds
    wide = rng.normal(size=(2_000, 74))  # with 7 cuts each, 518 steps
    assert "512 steps" in _notes(wide, wide, "sums")["steps"]


@pytest.mark.usefixtures("without_trees", "without_resolution")
def test_a_result_names_the_texts_that_were_not_examined():
    def leaky(rows, rng):
        return _rows(rng, 1, len(rows))[0]

    result = check(leaky, [1], [1, 2], claim=PureDP(1.0), runs=200, jobs=1)
    assert result.is_refuted or any("in 201 texts of an output" in note for note in result.notes)


@pytest.mark.usefixtures("without_trees")
def test_a_leak_in_the_last_of_several_texts_is_found():
    """Each text has its number among the columns, so the last is read as well as the first."""

    def texts(dataset, rng):
        return [f"item {place}: {dataset * (place == 11) + rng.laplace(scale=0.4):.3f}" for place in range(12)]

    assert check(texts, 1, 0, claim=PureDP(1.0), runs=2_000, jobs=1, bits=False, alpha=1e-6).is_refuted
