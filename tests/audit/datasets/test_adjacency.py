"""Distances between datasets: known values, the axioms of a metric, and refusal of unstated distances."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import AddRemove, Local, Replace, UserLevel, Within
from dpaudit.audit.errors import AdjacencyError, AuditError

NAN = math.nan
ROWS = [(1, "a"), (2, "b"), (2, "b")]

FORMS = {
    "list": list,
    "tuple": tuple,
    "dicts": lambda rows: [{"n": n, "s": s} for n, s in rows],
    "lists": lambda rows: [list(row) for row in rows],
    "frame": lambda rows: pd.DataFrame(rows, columns=["n", "s"]),
    "array": lambda rows: np.array([(n, ord(s)) for n, s in rows]).reshape(-1, 2),
    "objects": lambda rows: np.array(rows, dtype=object).reshape(-1, 2),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(
    ("other", "added_or_removed", "replaced"),
    [
        (ROWS, 0, 0),
        (ROWS[::-1], 0, 0),
        (ROWS[:2], 1, math.inf),  # each of two equal rows counts
        ([*ROWS, (9, "z")], 1, math.inf),
        (ROWS[1:], 1, math.inf),
        ([(1, "a"), (2, "b"), (3, "b")], 2, 1),
        ([(1, "a"), (1, "a"), (2, "b")], 2, 1),
        ([], 3, math.inf),
    ],
)
def test_rows_added_removed_and_replaced(form, other, added_or_removed, replaced):
    x, y = form(ROWS), form(other)
    assert AddRemove().distance(x, y) == AddRemove().distance(y, x) == added_or_removed
    assert Replace().distance(x, y) == Replace().distance(y, x) == replaced


def test_scalar_rows_nan_and_sets():
    assert AddRemove().distance([1, NAN], [float("nan"), 1]) == 0
    assert AddRemove().distance(np.array([NAN, 2.0]), np.array([2.0])) == 1
    assert Replace().distance([(1, NAN)], [(1, 2.0)]) == 1
    assert AddRemove().distance({1, 2}, frozenset({2, 3})) == 2
    assert AddRemove().distance(pd.DataFrame({"a": [NAN, 1]}), pd.DataFrame({"a": [1, NAN]})) == 0


USERS = [("ann", 1), ("ann", 2), ("bob", 3)]


@pytest.mark.parametrize(
    ("user", "form"),
    [
        (0, list),
        (0, lambda rows: [list(r) for r in rows]),
        ("who", lambda rows: [{"who": w, "v": v} for w, v in rows]),
        ("who", lambda rows: pd.DataFrame(rows, columns=["who", "v"])),
        (0, lambda rows: np.array([(len(w) + ord(w[0]), v) for w, v in rows]).reshape(-1, 2)),
    ],
)
def test_users_added_and_removed_with_all_their_rows(user, form):
    def distance(other):
        forth, back = (
            UserLevel(user).distance(*pair) for pair in ((form(USERS), form(other)), (form(other), form(USERS)))
        )
        assert forth == back
        return forth

    assert distance(USERS[::-1]) == 0
    assert distance(USERS[2:]) == 1
    assert distance([*USERS, ("cyd", 1), ("cyd", 2)]) == 1
    assert distance([("cyd", 1)]) == 3
    assert distance([]) == 2


def test_changing_the_rows_of_a_user_takes_two_steps():
    """Users are added or removed with all their rows, so changing a user means removing and adding the user.

    If this were one step, a pair at distance 2 would be tested against the claim at distance 1, and a correct mechanism
    refuted.
    """
    assert UserLevel(0).distance([("ann", 1)], [("ann", 2)]) == 2
    assert UserLevel(0).distance([("ann", 1), ("ann", 2)], [("ann", 1)]) == 2


def test_columns_of_frames_are_known_by_name():
    frame = pd.DataFrame({"u": [1, 2, 2], "v": [5, 6, 7]})
    users = UserLevel("u")
    assert users.distance(frame, frame.iloc[:1]) == users.distance(frame, frame.iloc[:1][["v", "u"]]) == 1
    assert users.distance(frame, frame[["v", "u"]]) == 0
    assert users.distance(frame, frame.rename(columns={"v": "w"})) == 4


def test_an_unknown_user_is_one_user():
    frame = pd.DataFrame({"who": [NAN, NAN, 1.0], "v": [1, 2, 3]})
    assert UserLevel("who").distance(frame, frame.copy()) == 0
    array = np.array([[NAN, 1.0], [2.0, 3.0]])
    assert UserLevel(0).distance(array, array.copy()) == 0


@pytest.mark.parametrize(
    ("user", "dataset"),
    [("who", [{"name": 1}]), (5, [(1, 2)]), ("who", [(1, 2)]), (0, [3]), (0, pd.DataFrame({"a": [1]}))],
)
def test_a_user_that_is_not_in_the_rows_is_refused(user, dataset):
    with pytest.raises(AdjacencyError, match=rf"user={user!r} is not in the row .*; name the column or position"):
        UserLevel(user).distance(dataset, dataset)


@pytest.mark.parametrize("dataset", [3, None, 2.5])
def test_a_dataset_without_rows_has_no_users(dataset):
    with pytest.raises(AuditError):
        UserLevel(0).distance(dataset, dataset)


def test_a_user_that_cannot_be_compared_is_refused():
    with pytest.raises(AuditError):
        UserLevel(0).distance([([1], 2)], [([1], 2)])


@pytest.mark.parametrize(("x", "y"), [(1, 2), ("a", "b"), (0.5, 0.5), ([1], [2, 3])])
def test_any_two_values_are_local_neighbours(x, y):
    assert Local().check(x, y, 1) == 1
    with pytest.raises(AdjacencyError, match="at distance 1 under any two values"):
        Local().check(x, y, 2)


@pytest.mark.parametrize(("norm", "moved"), [("l1", 7.0), ("l2", 5.0), ("linf", 4.0)])
def test_answers_move_by_a_norm(norm, moved):
    adjacency = Within(norm, radius=2.0)
    assert adjacency.distance([0, 3.0], [4, 0.0]) == moved / 2
    assert adjacency.distance(np.zeros((2, 1)), np.array([[3.0], [4.0]])) == moved / 2
    assert adjacency.distance(1, 3.0) == 1
    assert adjacency.distance([], []) == 0
    assert adjacency.distance([1.0], [1.0, 2.0]) == math.inf
    assert adjacency.check([0, 3.0], [4, 0.0], 4) == moved / 2  # nearer than stated is allowed
    with pytest.raises(AdjacencyError, match=f"at distance {moved / 2:g} under answers within 2 in L"):
        adjacency.check([0, 3.0], [4, 0.0], 1)
    with pytest.raises(AdjacencyError, match="at no finite distance"):
        adjacency.check([1.0], [1.0, 2.0], 1)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("dataset", [[NAN, 1.0], [math.inf, 1.0], "text", [[1], [2, 3]], {"a": 1}])
def test_answers_that_are_not_numbers_are_refused(norm, dataset):
    with pytest.raises(AdjacencyError):
        Within(norm).distance(dataset, dataset)


@pytest.mark.parametrize("arguments", [("l3",), ("l1", 0.0), ("l1", -1.0), ("l2", NAN), ("linf", math.inf)])
def test_norms_and_radii_out_of_range(arguments):
    with pytest.raises(AdjacencyError, match=r"(norm|radius)=.*; use"):
        Within(*arguments)


@pytest.mark.parametrize(
    ("adjacency", "x", "y", "distance", "found"),
    [
        (AddRemove(), [1, 2], [1], 2, "at distance 1 under add/remove one row, not at 2: 1 row only in x, 0 only in y"),
        (AddRemove(), [1], [2], 1, "at distance 2 under add/remove one row, not at 1: 1 row only in x, 1 only in y"),
        (AddRemove(), [1], [1], 1, "at distance 0"),
        (Replace(), [1], [1, 2], 1, "at no finite distance under replace one row, not at 1: 0 rows only in x"),
        (Replace(), [1, 2], [3, 4], 1, "at distance 2"),
        (UserLevel(0), USERS, USERS[:0], 1, r"at distance 2 under add/remove all rows of one user \(0\)"),
        (AddRemove(), [1], [2], NAN, "at distance 2 under add/remove one row, not at nan"),
    ],
)
def test_another_distance_than_stated_is_refused_with_the_difference(adjacency, x, y, distance, found):
    with pytest.raises(AdjacencyError, match=f"the pair is {found}.*pass another pair") as caught:
        adjacency.check(x, y, distance)
    measured = adjacency.distance(x, y)
    assert caught.value.facts["measured"] == measured
    assert ("distance= to audit" in str(caught.value)) == (0 < measured < math.inf)  # only where the remedy applies


ROW = st.tuples(st.sampled_from(["ann", "bob", "cyd"]), st.sampled_from([0, 1, NAN]))
DATASET = st.lists(ROW, max_size=5)
VECTOR = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2)
METRICS = [
    (AddRemove(), DATASET),
    (Replace(), DATASET),
    (UserLevel(0), DATASET),
    *((Within(norm, 0.5), VECTOR) for norm in ("l1", "l2", "linf")),
]


@pytest.mark.parametrize(("adjacency", "datasets"), METRICS, ids=lambda m: str(m) if hasattr(m, "distance") else "")
@given(data=st.data())
@settings(derandomize=True, deadline=None, max_examples=75)
def test_distances_are_metrics(adjacency, datasets, data):
    x, y, z = (data.draw(datasets) for _ in range(3))
    d = adjacency.distance
    assert d(x, y) == d(y, x) >= 0
    assert d(x, x) == 0
    assert d(x, z) <= d(x, y) + d(y, z) + 1e-6
    if isinstance(adjacency, Within):
        assert (d(x, y) == 0) == (x == y) or math.dist(x, y) < 1e-150
    else:
        assert d(x, data.draw(st.permutations(x))) == 0


@given(st.lists(ROW, max_size=6), st.data())
@settings(derandomize=True, deadline=None, max_examples=100)
def test_a_step_is_a_step(rows, data):
    """An additional row is one step for rows, and a missing user is one step for users."""
    row = data.draw(ROW)
    assert AddRemove().distance(rows, [*rows, row]) == 1
    assert UserLevel(0).distance(rows, [r for r in rows if r[0] != row[0]]) == (row[0] in {r[0] for r in rows})


@pytest.mark.parametrize(
    ("x", "y", "distance"),
    [
        (2**60, 2**60 + 100, 100.0),
        ([2**60, 7], [2**60 + 1, 9], 3.0),
        (np.array([2**62]), np.array([2**62 - 1]), 1.0),
        (2.0**60, 2.0**60 + 256, 256.0),
        (10**30, 10**30 + 1, 1.0),
    ],
)
def test_whole_numbers_beyond_doubles_are_measured_exactly(x, y, distance):
    """The wrong twin is a pair that doubles cannot distinguish, which would be accepted at any distance."""
    assert Within("l1").distance(x, y) == distance
    with pytest.raises(AdjacencyError, match=r"not at 0\.5"):
        Within("l1").check(x, y, 0.5)
