"""Transformations of datasets: stable ones, planted unstable ones, and OpenDP's with their maps."""

import itertools
import math
import statistics

import numpy as np
import pandas as pd
import pytest

from dpaudit import AddRemove, Replace, Rows, UserLevel, Verdict, check_sensitivity, load, save
from dpaudit.audit.errors import MechanismError, OptionError
from dpaudit.domains import EdgeNeighbours, Graphs

WIDE = Rows(low=-5.0, high=5.0, finite=True)
LETTERS = Rows(values=tuple("abc"), most=4)
PAYMENTS = Rows(low=(0, 0), high=(5, 9), integer=True)
IN_ORDER, IN_PLACE, ROWS = AddRemove(ordered=True), Replace(ordered=True), AddRemove()
TABLES = {
    name: Rows(low=(0, 0), high=(3, 9), integer=True, columns=("key", value))
    for name, value in (("left", "a"), ("right", "b"))
}


def clamped(rows):
    return [min(max(row, 0.0), 1.0) for row in rows]


def positive(rows):
    return [row for row in rows if row > 0.0]


def largest_two(rows):
    return sorted(rows)[-2:]


def totals(rows):
    found = {}
    for key, paid in rows:
        found[key] = found.get(key, 0) + paid
    return list(found.items())


def two_of_each_user(rows):
    return [row for place, row in enumerate(rows) if sum(other[0] == row[0] for other in rows[:place]) < 2]


def joined(tables):
    return [{**a, **b} for a in tables["left"] for b in tables["right"] if a["key"] == b["key"]]


def joined_once(tables):
    by_key = {row["key"]: row for row in reversed(tables["right"])}
    return joined({"left": tables["left"], "right": list(by_key.values())})


# The largest distance of outputs is known by hand; infinite where the sizes of outputs may differ under "replace".
KNOWN = [
    (clamped, WIDE, ROWS, ROWS, 1), (clamped, WIDE, Replace(), Replace(), 1), (clamped, WIDE, IN_PLACE, IN_PLACE, 1),
    (positive, WIDE, ROWS, ROWS, 1), (positive, WIDE, Replace(), ROWS, 2),
    (positive, WIDE, Replace(), Replace(), math.inf),
    (sorted, WIDE, ROWS, IN_ORDER, 1), (list, WIDE, IN_ORDER, IN_ORDER, 1),
    (lambda rows: [b - a for a, b in itertools.pairwise(rows)], WIDE, IN_ORDER, IN_ORDER, 3),
    (lambda rows: rows[::2], LETTERS, Replace(ordered=True), Replace(), 1),
    (set, LETTERS, ROWS, ROWS, 1), (list, LETTERS, ROWS, Replace(), math.inf),
    (largest_two, WIDE, ROWS, ROWS, 2), (totals, PAYMENTS, ROWS, ROWS, 2),
    (lambda rows: pd.DataFrame({"v": [*rows, *rows]}), LETTERS, ROWS, ROWS, 2),
    (two_of_each_user, PAYMENTS, UserLevel(0), ROWS, 2), (two_of_each_user, PAYMENTS, UserLevel(0), UserLevel(0), 1),
    (lambda rows: [row - sum(rows) / len(rows) for row in rows], WIDE, ROWS, ROWS, 9),
    (lambda rows: [row for row in rows if row > statistics.median(rows)], WIDE, ROWS, ROWS, 2),
    (joined, TABLES, ROWS, ROWS, 5),
    (lambda rows: {name: [each for each in rows if each == name] for name in "abc"}, LETTERS, ROWS,
     AddRemove(tables=True), 1),
    (lambda graph: graph.subgraph(range(3)), Graphs(5), "edge", EdgeNeighbours(), 1),
]  # fmt: skip


@pytest.mark.parametrize(("transformation", "domain", "before", "after", "true"), KNOWN)
def test_known_stabilities(transformation, domain, before, after, true):
    options = {"adjacency": before, "output_adjacency": after, "evaluations": 90}
    if true < math.inf:
        found = check_sensitivity(transformation, domain, bound=true, **options)
        assert found.verdict is Verdict.NOT_REFUTED, found
        assert found.change == true
    wrong = check_sensitivity(transformation, domain, bound=true - 1 if true < math.inf else 100, **options)
    assert wrong.is_refuted
    assert wrong.change == true
    assert f"distance of outputs under {after}" in wrong.sentence
    relation = EdgeNeighbours() if before == "edge" else before
    assert relation.check(wrong.x, wrong.y, 1) == 1
    assert after.distance(transformation(wrong.x), transformation(wrong.y)) == true


def test_a_resampling_with_a_fixed_seed_and_deduplication_before_a_join_are_unstable():
    """A claim of 1 for the row of either table: a new first row of a key takes the place of another in every match."""

    def resampled(rows):
        return [rows[place] for place in np.random.default_rng(0).integers(len(rows), size=len(rows))] if rows else []

    for transformation, domain in ((joined_once, TABLES), (resampled, LETTERS)):
        options = {"adjacency": ROWS, "output_adjacency": ROWS, "bound": 1, "evaluations": 150}
        assert check_sensitivity(transformation, domain, **options).is_refuted


def test_rounding_of_floats_is_no_difference():
    """Vectorised code may round a row otherwise beside other rows."""

    def scaled(rows, noise):
        return [row * (1.0 + noise * len(rows)) for row in rows]

    options = {"adjacency": ROWS, "output_adjacency": ROWS, "bound": 1, "evaluations": 90}
    for domain in (WIDE, Rows(values=(2.0**-13 * (1.0 - 3e-15), 0.5))):  # between two numbers of nine digits
        assert not check_sensitivity(lambda rows: scaled(rows, 1e-15), domain, **options).is_refuted
    assert check_sensitivity(lambda rows: scaled(rows, 1e-6), WIDE, **options).is_refuted
    big = Rows(values=(2**60, 2**60 + 1))
    found = check_sensitivity(lambda rows: [row + len(rows) % 2 for row in rows], big, **options)
    assert found.is_refuted  # whole numbers are compared exactly


def test_a_result_says_what_it_compared(tmp_path):
    options = {"adjacency": "add-remove", "output_adjacency": "add-remove", "bound": 1, "evaluations": 90}
    found = check_sensitivity(largest_two, WIDE, **options)
    assert found.sentence.startswith(
        "REFUTED: the distance of outputs under add/remove one row is at least 2, stated 1;"
    )
    assert "answers [" in str(found)
    save([found], tmp_path / "results.json")
    (check,) = load(tmp_path / "results.json").checks
    assert "distance of outputs under add/remove one row 1" in check.claim
    assert "distance of outputs" in found.claimed
    assert str(found.output_adjacency) == "add/remove one row"


def test_what_cannot_be_compared_says_why():
    options = {"adjacency": "add-remove", "bound": 1, "evaluations": 90}
    for query, relation, error, message in (
        (lambda rows: 3, "add-remove", MechanismError, r"the query returned 3, which is not a dataset: .* has no rows"),
        (lambda rows: [{"v": 1}], UserLevel("who"), MechanismError, "user='who' is not in the row"),
        (lambda rows: None, "add-remove", MechanismError, "returned None, which is not a dataset"),
        (clamped, "local", OptionError, "puts any two outputs one step apart"),
        (clamped, "rows", OptionError, "is unknown; use one of"),
    ):
        with pytest.raises(error, match=message):
            check_sensitivity(query, WIDE, output_adjacency=relation, **options)
    rng = np.random.default_rng(0)
    drawn = check_sensitivity(lambda rows: list(rng.permutation(rows)[:1]), WIDE, output_adjacency=ROWS, **options)
    assert drawn.verdict is Verdict.INCONCLUSIVE
    assert "not deterministic" in drawn.sentence


def opendp_transformations():
    """Transformations of OpenDP with domains and adjacencies for their metrics."""
    dp = pytest.importorskip("opendp.prelude", reason="pip install 'dpaudit[opendp]'")
    dp.enable_features("contrib")
    numbers, whole = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.vector_domain(dp.atom_domain(T=int))
    return {
        "clamp": ((numbers, dp.symmetric_distance()) >> dp.t.then_clamp((0.0, 1.0)), WIDE, ROWS, ROWS),
        "clamp in order": (
            (numbers, dp.insert_delete_distance()) >> dp.t.then_clamp((0.0, 1.0)), WIDE, IN_ORDER, IN_ORDER,
        ),
        "ordered randomly": (dp.t.make_ordered_random(numbers, dp.symmetric_distance()), WIDE, ROWS, ROWS),
        "count by": (
            dp.t.make_count_by_categories(whole, dp.symmetric_distance(), categories=[0, 1, 2]),
            Rows(values=(0, 1, 2, 3)), ROWS, None,
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["clamp", "clamp in order", "ordered randomly", "count by"])
def test_the_stability_maps_of_opendp(name):
    transformation, domain, before, after = opendp_transformations()[name]
    for distance in (1, 2):
        options = {"adjacency": before, "output_adjacency": after, "evaluations": 50, "distance": distance}
        bound = transformation.map(distance)
        found = check_sensitivity(lambda rows: transformation(rows), domain, bound=bound, **options)
        assert found.verdict is Verdict.NOT_REFUTED, found
        assert found.change == bound == distance
    wrong = check_sensitivity(lambda rows: transformation([*rows, *rows]), domain, bound=bound, **options)
    assert wrong.is_refuted
