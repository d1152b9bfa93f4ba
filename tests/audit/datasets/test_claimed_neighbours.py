"""Neighbours that claims name: a null record, rows in order, several tables, and a user whose rows change."""

import itertools
import math
from itertools import islice

import numpy as np
import pandas as pd
import pytest

from dpaudit import AddRemove, Replace, Rows, Tables, UserLevel, ZeroOut, check_sensitivity
from dpaudit.audit.datasets.adjacency import as_adjacency
from dpaudit.audit.errors import AdjacencyError, AuditError, DatasetError, OptionError
from dpaudit.audit.search.pairs_for_domain import every_pair, neighbours_of, pairs_of
from dpaudit.domains import CategoricalColumn, NumericColumn
from dpaudit.mechanisms import query_sensitivity

NAN, INF = math.nan, math.inf
FEATURES, LABELS = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 0])
ZEROED = np.array([[0.0, 0.0], [3.0, 4.0]])


def by_steps(relation, steps_of, datasets):
    """Compare a distance with the shortest paths of single steps, on all pairs."""
    datasets = list(datasets)
    for start in datasets:
        reached, frontier = {start: 0}, [start]
        while frontier:
            frontier = [
                reached.setdefault(after, reached[before] + 1) and after
                for before in frontier for after in steps_of(before) if after not in reached
            ]  # fmt: skip
        for other in datasets:
            assert relation.distance(list(start), list(other)) == reached.get(other, INF), (start, other)


def changed(rows, new):
    return {(*rows[:place], row, *rows[place + 1 :]) for place in range(len(rows)) for row in new}


def test_zero_out_is_the_length_of_a_shortest_path():
    """By definition, a step puts the null record in the place of a row, or a row in its place, in any order of rows."""

    def steps(rows):
        nulled = changed(rows, [0])
        filled = {
            other for other in changed(rows, [1, 2]) if any(a == 0 != b for a, b in zip(rows, other, strict=True))
        }
        return {*nulled, *filled}

    rows = [each for size in (1, 2, 3) for each in itertools.product((0, 1, 2), repeat=size)]
    by_steps(ZeroOut(ordered=True), steps, rows)
    by_steps(
        ZeroOut(), lambda rows: {tuple(sorted(each)) for each in steps(rows)}, {tuple(sorted(each)) for each in rows}
    )


@pytest.mark.parametrize(
    ("null", "x", "y", "distance"),
    [
        (0, [1, 2], [0, 2], 1),
        (0, [1, 2], [3, 2], 2),  # a claim for null records says half as much about replaced ones
        (0, [1, 2], [2], INF),
        (0, [(1, 2)], [(0, 2)], 2),  # a part of a row is not the row
        (NAN, [1.0, 2.0], [NAN, 2.0], 1),
        (None, [{"a": 1}], [{"a": None}], 1),
        (None, pd.DataFrame({"a": [1.0], "s": ["x"]}), pd.DataFrame({"a": [NAN], "s": [None]}), 1),
        (pd.NA, pd.DataFrame({"a": pd.array([1], "Int64")}), pd.DataFrame({"a": pd.array([None], "Int64")}), 1),
        (0, pd.DataFrame({"a": pd.array([1], "Int64")}), pd.DataFrame({"a": pd.array([None], "Int64")}), 2),
        ((0, ""), pd.DataFrame({"a": [1], "s": ["x"]}), pd.DataFrame({"a": [0], "s": [""]}), 1),
        ({"a": 1, "b": 0}, pd.DataFrame({"b": [5], "a": [5]}), pd.DataFrame({"b": [0], "a": [1]}), 1),
        ({"a": 1, "b": 0}, pd.DataFrame({"b": [5], "a": [5]}), pd.DataFrame({"b": [1], "a": [0]}), 2),
        ({"a": 1, "b": 0}, [{"b": 5, "a": 5}], [{"b": 0, "a": 1}], 1),
        ((1, 0), [{"b": 5, "a": 5}], [{"b": 1, "a": 0}], 1),  # in the order of the names, not of the alphabet
        ((1, 0), {"b": [5, 5], "a": [5, 5]}, {"b": [1, 5], "a": [0, 5]}, 1),
        ((1, 0), [], [{"b": 1, "a": 0}], INF),
        (tuple(range(12)), tuple(np.full(1, 20) for _ in range(12)), tuple(np.array([i]) for i in range(12)), 1),
        (np.zeros(2), FEATURES, ZEROED, 1),
        (0, (FEATURES, LABELS), (ZEROED, np.array([0, 0])), 1),
        (0, (FEATURES, LABELS), (ZEROED, LABELS), 2),  # the label stays
        (((0.0, 0.0), 1), (FEATURES, LABELS), (ZEROED, LABELS), 1),
        (0, np.ones((2, 3, 3)), np.stack([np.zeros((3, 3)), np.ones((3, 3))]), 1),
    ],
)  # fmt: skip
def test_a_null_record_is_a_whole_row_or_a_value_of_all_entries(null, x, y, distance):
    assert ZeroOut(null).distance(x, y) == ZeroOut(null).distance(y, x) == distance
    assert Replace().distance(x, y) == (1 if distance < INF else INF)


def test_rows_in_order():
    rows = [each for size in range(4) for each in itertools.product((0, 1), repeat=size)]
    by_steps(Replace(ordered=True), lambda each: changed(each, (0, 1)), rows)
    frames = [pd.DataFrame({"n": list(each)}) for each in ((1, 2, 3), (3, 1, 2))]
    assert AddRemove(ordered=True).distance(*frames) == 2
    assert Replace(ordered=True).distance(*frames) == 3
    assert AddRemove(ordered=True).distance([NAN, 1], [NAN]) == 1
    within = {each: {part for n in range(4) for part in itertools.combinations(each, n)} for each in rows}
    for x, y in itertools.product(rows, repeat=2):
        common = max(map(len, within[x] & within[y]))
        assert AddRemove(ordered=True).distance(list(x), list(y)) == len(x) + len(y) - 2 * common
    shuffled = np.random.default_rng(0).permutation(5_000)  # a pair by mistake does not take minutes
    assert AddRemove(ordered=True).distance(np.arange(5_000), shuffled) == 9_722


USERS, ORDERS = [{"id": 1}, {"id": 2}], [{"user": 1, "paid": 3}, {"user": 2, "paid": 4}, {"user": 2, "paid": 5}]
FORMS = {"dicts": lambda rows, _: rows, "frames": lambda rows, names: pd.DataFrame(rows, columns=names)}
COLUMNS = {"users": ["id"], "orders": ["user", "paid"], "prices": ["item"]}


def shop(form, users=USERS, orders=ORDERS, prices=({"item": 7},)):
    tables = {"users": users, "orders": orders, "prices": list(prices)}
    return {name: FORMS[form](rows, COLUMNS[name]) for name, rows in tables.items()}


OWNERS = {"users": "id", "orders": "user"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("relation", "other", "distance"),
    [
        (AddRemove(), {"orders": ORDERS[:2]}, 1),
        (AddRemove(), {"orders": ORDERS[:2], "users": USERS[:1]}, 2),
        (Replace(), {"orders": [*ORDERS[:2], {"user": 1, "paid": 9}]}, 1),
        (Replace(), {"orders": ORDERS[:2], "users": [*USERS, {"id": 3}]}, INF),
        (ZeroOut(), {"users": [USERS[0], {"id": 0}]}, 1),
        (UserLevel(OWNERS), {"orders": ORDERS[:1], "users": USERS[:1]}, 1),
        (UserLevel(OWNERS), {"orders": ORDERS[:1]}, 2),  # user 2 is still among the users
        (UserLevel(OWNERS), {"orders": ORDERS[:1], "users": USERS[:1], "prices": ()}, INF),  # nobody's rows
        (UserLevel(OWNERS, changed_rows="any"), {"orders": ORDERS[:1]}, 1),
        (UserLevel(OWNERS, changed_rows="any"), {"orders": ORDERS[:1], "users": USERS[:1]}, INF),
        (UserLevel(OWNERS, changed_rows=1), {"orders": ORDERS[:1]}, 2),
        (UserLevel(OWNERS, changed_rows=1), {"orders": ORDERS[:2], "users": USERS[:1]}, 2),
    ],
)
def test_several_tables(form, relation, other, distance):
    x, y = shop(form), shop(form, **other)
    assert relation.distance(x, y) == relation.distance(y, x) == distance
    with pytest.raises(AdjacencyError, match=r"(users|orders): \d rows? only in x"):
        relation.check(x, y, 7)


def test_columns_are_not_several_tables_unless_declared():
    x, y = {"a": [1, 2], "b": [5, 6]}, {"a": [1, 3], "b": [5, 7]}
    assert AddRemove().distance(x, y) == Replace().distance(x, y) * 2 == 2
    assert AddRemove(tables=True).distance(x, y) == 4
    by_frames = [{name: pd.DataFrame({"v": column}) for name, column in each.items()} for each in (x, y)]
    assert AddRemove().distance(*by_frames) == 4
    assert AddRemove(tables=False).distance(*by_frames) == 2
    assert UserLevel("id").distance(*({name: USERS[:n] for name, n in (("a", 2), ("b", n))} for n in (1, 2))) == 2


@pytest.mark.parametrize(("k", "distance"), [("any", 2), (1, 4), (2, 3), (3, 2)])
def test_changed_rows_of_users_who_stay(k, distance):
    """Ann has one other row, Bob has two others and one more."""
    x = [("ann", 1), ("ann", 2), ("bob", 1), ("bob", 2)]
    y = [("ann", 1), ("ann", 3), ("bob", 5), ("bob", 6), ("bob", 7)]
    relation = UserLevel(0, changed_rows=k)
    assert relation.distance(x, y) == relation.distance(y, x) == distance
    assert relation.distance(x, y[2:]) == INF
    assert UserLevel(0).distance(x, y) == 4


@pytest.mark.parametrize("k", [1, 2])
def test_changed_rows_are_the_length_of_a_shortest_path(k):
    """By definition, a step replaces, adds or removes at most k rows of one user, who keeps at least one."""
    rows = [("a", 0), ("a", 1), ("b", 0), ("b", 1)]

    def edited(own, user):
        mine = [(user, value) for value in (0, 1)]
        shorter = {own[:place] + own[place + 1 :] for place in range(len(own))}
        return {own, *shorter, *changed(own, mine), *((*own, row) for row in mine)}

    def steps(dataset):
        for user in {user for user, _ in dataset}:
            rest = tuple(row for row in dataset if row[0] != user)
            reach = {tuple(row for row in dataset if row[0] == user)}
            for _ in range(k):
                reach = {other for own in reach for other in edited(own, user)}
            yield from (tuple(sorted((*rest, *own))) for own in reach if 0 < len(own) <= 4)

    datasets = {tuple(sorted(each)) for size in range(4) for each in itertools.product(rows, repeat=size)}
    by_steps(UserLevel(0, changed_rows=k), steps, datasets)


def test_rows_without_a_user_belong_together():
    ids = [[None, NAN], pd.array([None, pd.NA], "Int64"), [NAN, NAN]]
    tables = {f"table {place}": pd.DataFrame({"id": each, "v": [1, 2]}) for place, each in enumerate(ids)}
    assert UserLevel("id").distance(tables, {name: table[:0] for name, table in tables.items()}) == 1
    assert UserLevel("id").distance([{"id": None}, {"id": NAN}, {"id": 1}, {"id": 1.0}], []) == 2


def test_users_of_tables_with_other_ranges_are_those_of_both():
    tables = {name: Rows(low=(low, 0), high=(low + 900, 5), integer=True) for name, low in (("a", 0), ("b", 800))}
    options = {"adjacency": UserLevel({"a": 0, "b": 0}), "evaluations": 60}
    found = check_sensitivity(lambda both: len(both["a"]), tables, bound=1, **options)
    assert found.is_refuted
    assert {row[0] for row in (*found.x["a"], *found.y["a"])} <= {*range(800, 901)}


def test_relations_are_written_as_they_are_made_and_the_unit_is_no_more_than_what_a_claim_protects():
    units = [UserLevel(0, changed_rows=k).unit for k in (None, "any", 1, 3)]
    assert units == ["all rows of one user", "all rows of one user", "1 row of one user", "3 rows of one user"]
    for relation in (
        AddRemove(), ZeroOut(None, ordered=True), UserLevel("a", changed_rows=2), Replace(tables=True),
        ZeroOut((0, "")), UserLevel({"a": "id"}),
    ):  # fmt: skip
        assert eval(repr(relation)) == relation
    assert as_adjacency("zero-out") == ZeroOut()
    assert str(UserLevel(OWNERS, changed_rows=1)) == "change at most 1 row of one user (users.id, orders.user)"


ID, PAID = (
    Rows(low=(0, 0), high=(9, 1), columns=("id", "w"), integer=True, most=3),
    Rows(low=(0, 0), high=(9, 10), columns=("user", "paid"), integer=True, most=4, rows_per_user=2),
)
VISITS = Rows(low=(0, 0), high=(9, 9), columns=("who", "v"), integer=True)
PEOPLE = Tables({"who": CategoricalColumn(("ann", "bob", "cyd")), "v": NumericColumn(0, 10)}, form="rows", outside=())


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (lambda: ZeroOut(type("Blank", (), {"__hash__": None})()), AdjacencyError, "is not a record"),
        (lambda: ZeroOut(()), AdjacencyError, "it has no entries; pass null=0"),
        (lambda: ZeroOut({}), AdjacencyError, "it has no entries; pass null=0"),
        (lambda: AddRemove().distance(None, None), DatasetError, "is x or y missing?"),
        (lambda: AddRemove(tables=3), AdjacencyError, "tables=3 has the wrong type; use a bool"),
        (lambda: UserLevel({}), AdjacencyError, "is not a column; use its name, its position in a row, or"),
        (lambda: UserLevel(1, changed_rows=0), AdjacencyError, 'is not a number of rows; use "any", or a whole number'),
        (lambda: UserLevel({"a": 0}).distance({"b": []}, {"b": []}), AdjacencyError, r"names the table 'a'; .*\['b'\]"),
        (lambda: AddRemove(tables=True).distance([1], [2]), DatasetError, "has no tables by name; use a dictionary"),
        (lambda: AddRemove().check({"a": [1, 2], "b": [3]}, {"a": [1], "b": [3]}, 1), DatasetError, "tables=True"),
        (
            lambda: AddRemove().check({"a": USERS}, {"b": USERS}, 1), AdjacencyError,
            "no finite distance .*: x has the tables a; y has b",
        ),
        (lambda: as_adjacency("replace_special"), OptionError, r"write adjacency=ZeroOut\(\)"),
        *(
            (lambda rows=rows: check_sensitivity(len, rows, adjacency="zero-out", bound=1), OptionError, "null=0 can")
            for rows in (Rows(values=("a", "b")), Rows(values=(("a", 1), ("b", 2))), PEOPLE, {"p": PEOPLE, "i": ID})
        ),
        (
            lambda: check_sensitivity(len, {"a": Rows(), "b": [1]}, adjacency="replace", bound=1), DatasetError,
            "the domain of table 'b' is",
        ),
        (
            lambda: check_sensitivity(len, {"a": Rows(), "b": Rows()}, adjacency="local", bound=1), AdjacencyError,
            "have no neighbours by any two values",
        ),
        (
            lambda: check_sensitivity(joined, {"users": ID, "orders": PAID}, adjacency=UserLevel("user"), bound=1),
            AuditError, "user='user' is not in rows",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(made, error, message):
    with pytest.raises(error, match=message):
        made()


# Searches: the pairs are neighbours of the relation, in the domain, and lead to the largest change.


def joined(tables):
    return sum(a["id"] == b["user"] for a in tables["users"] for b in tables["orders"])


def values(rows):
    return sum(row["v"] for row in rows)


SHOP, NUMBERS = {"users": ID, "orders": PAID}, Rows(low=-2.0, high=5.0, finite=True)
LARGEST = {
    "zero-out": (sum, NUMBERS, ZeroOut(), 5.0),
    "another null record": (sum, NUMBERS, ZeroOut(9.0), 11.0),
    "a missing record": (
        lambda rows: sum(row[1] or 0 for row in rows), Rows(low=(0, 0), high=(1, 3), finite=True), ZeroOut(None), 3,
    ),
    "of a table": (values, PEOPLE, ZeroOut({"v": -1.0, "who": ""}), 11.0),
    "of a table, in order": (values, PEOPLE, ZeroOut(("", -1.0)), 11.0),
    "of rows with names, in order": (values, VISITS, ZeroOut((-1, 2)), 7.0),
    "null records that are left out": (
        lambda rows: np.mean([row for row in rows if row is not None] or [0.0]),
        Rows(low=0.0, high=10.0, size=5, finite=True), ZeroOut(None), 10.0,
    ),
    "join, a row more": (joined, SHOP, AddRemove(), 4),
    "join, a null record": (joined, SHOP, ZeroOut(), 4),
    "join, a user more": (joined, SHOP, UserLevel(OWNERS), 6),
    "join, any": (joined, SHOP, UserLevel(OWNERS, changed_rows="any"), 6),
    "join, one row": (joined, SHOP, UserLevel(OWNERS, changed_rows=1), 3),
    "two rows of a user": (
        lambda rows: sum(min(paid, 5) for _, paid in rows), Rows(low=(0, 0), high=(9, 10), most=4),
        UserLevel(0, changed_rows=2), 10,
    ),
    "typed columns": (values, PEOPLE, UserLevel("who"), 50.0),
    "tables of numbers": (
        lambda tables: len(tables["a"]) * sum(tables["b"]), {"a": Rows(most=3), "b": Rows(values=(1, 2), most=2)},
        AddRemove(), 6,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("query", "domain", "relation", "true"), LARGEST.values(), ids=LARGEST)
def test_searches_reach_the_largest_change(query, domain, relation, true):
    found = check_sensitivity(query, domain, adjacency=relation, bound=true * 0.9, evaluations=120)
    assert found.is_refuted
    assert found.change == true
    relation = AddRemove(tables=True) if relation == AddRemove() else relation
    assert relation.check(found.x, found.y, 1) == 1


def test_pairs_of_several_tables_stay_in_their_domains():
    """A user with more rows than the domain has would refute a claim about fewer."""
    seen, sides = [], set()
    look = lambda tables: seen.append(tables) or joined(tables)  # noqa: E731
    check_sensitivity(look, SHOP, adjacency=UserLevel(OWNERS), bound=9, evaluations=200)
    assert len(seen) > 150
    for pair in islice(pairs_of(SHOP, UserLevel(OWNERS), 1, 0).random(np.random.default_rng(0)), 20):
        alone = [(bool(split.only_x), bool(split.only_y)) for split in pair.parts.values()]
        assert sum(map(any, zip(*alone, strict=True))) <= 1, "one user differs, who is in x or in y"
        sides |= {*alone}
    assert {(True, False), (False, True)} <= sides
    assert max(len(tables["users"]) for tables in seen) == 3
    for tables in seen:
        owners = [row["user"] for row in tables["orders"]]
        assert len(owners) <= 4 >= len(tables["orders"])
        assert all(owners.count(owner) <= 2 for owner in owners)


def test_exact_pairs_and_sensitivities_know_the_null_record():
    pairs = {frozenset(map(tuple, pair)) for pair in every_pair(Rows(values=(1, 2), size=1), ZeroOut(), 1)}
    assert pairs == {frozenset({(1,), (0,)}), frozenset({(2,), (0,)})}
    assert query_sensitivity(sum, (-2, 3), 3, ZeroOut()) == 3
    assert query_sensitivity(sum, (-2, 3), 3, Replace()) == 5
    rng = np.random.default_rng(0)
    first, *_ = neighbours_of([3.0, 4.0], [5.0, 6.0], ZeroOut(), 1, rng)
    assert ZeroOut().distance([3.0, 4.0], first) == 1
