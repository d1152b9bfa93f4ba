"""Datasets with a public query: neighbours have the same one, and a search tries each."""

import pickle
from itertools import islice

import numpy as np
import pytest

from dpaudit import AddRemove, Answers, Replace, Rows, UserLevel, Verdict, check_sensitivity, find_worst_pair
from dpaudit.audit.errors import AdjacencyError, DatasetError
from dpaudit.audit.search.candidates import Pool
from dpaudit.audit.search.pairs_for_domain import pairs_of
from dpaudit.domains import Queries, SameQuery, Within
from dpaudit.experiments.library_suites.run_plan import example_of

VISITS = Rows(values=tuple((user, town) for user in range(4) for town in "ab"), most=4, rows_per_user=2)
DOMAIN = Queries(("count", "maximum", "sum"), VISITS)


def test_the_distance_is_that_of_the_data_of_one_query():
    relation = SameQuery(UserLevel(0))
    x, y = [(1, "a"), (1, "b")], [(1, "a"), (1, "b"), (2, "a")]
    assert relation.distance(("sum", x), ("sum", y)) == 1.0
    assert relation.distance(("sum", x), ("count", y)) == np.inf
    with pytest.raises(AdjacencyError, match="the queries are 'sum' and 'count'"):
        relation.check(("sum", x), ("count", y), 1.0)
    with pytest.raises(AdjacencyError, match=r"not both \(query, data\)"):
        relation.distance(x, y)
    assert str(relation) == "add/remove all rows of one user (0), of the data of one query"
    assert relation.unit == "all rows of one user"
    assert SameQuery("l2").holds(0.5, 1.0)
    assert SameQuery("add-remove") == SameQuery(AddRemove()) == pickle.loads(pickle.dumps(SameQuery("add-remove")))


@pytest.mark.parametrize("adjacency", [AddRemove(), Replace(), UserLevel(0)])
def test_pairs_are_those_of_the_data_with_every_query(adjacency):
    source, alone = pairs_of(DOMAIN, SameQuery(adjacency), 1.0, 0), pairs_of(VISITS, adjacency, 1.0, 0)
    pool = Pool(source, SameQuery(adjacency), 1.0, 0)
    patterns = list(pool.patterns(30))
    moved = [moved for pattern in patterns[:3] for moved in pool.moves(pattern, 10)]
    for pairs in (patterns, moved, list(pool.drawn(30))):
        assert {pair.x[0] for pair in pairs} == {*DOMAIN.queries}
        assert all(pair.x[0] == pair.y[0] and adjacency.distance(pair.x[1], pair.y[1]) == 1 for pair in pairs)
    expected = [(query, pair.x, pair.y) for pair in islice(alone.patterns(), 4) for query in DOMAIN.queries]
    assert [(pair.x[0], pair.x[1], pair.y[1]) for pair in islice(source.patterns(), 12)] == expected


def test_lines_and_simpler_pairs_keep_the_query():
    source = pairs_of(Queries(("a", "b"), Rows(low=0.0, high=9.0)), SameQuery("add-remove"), 1.0, 0)
    candidate = next(pair for pair in source.patterns() if pair.x[0] == "b" and len(pair.x[1]) + len(pair.y[1]) > 2)
    lines, simpler = [line.at(4.5) for line in source.lines_near(candidate)], list(source.simpler(candidate))
    assert {pair.x[0] for pair in islice((line.at(4.5) for line in source.lines()), 2)} == {"a", "b"}
    assert {pair.x[0] for pair in lines} == {pair.x[0] for pair in simpler} == {"b"}


def test_refused():
    for queries, data in (((), VISITS), (("a",), [1, 2]), ("a", VISITS)):
        with pytest.raises(DatasetError, match="queries="):
            Queries(queries, data)
    with pytest.raises(AdjacencyError, match=r"Queries: SameQuery\(…\), with a relation of their data"):
        pairs_of(DOMAIN, UserLevel(0), 1.0, 0)
    with pytest.raises(AdjacencyError, match="Rows have no neighbours by"):
        pairs_of(DOMAIN, SameQuery(Within("l1")), 1.0, 0)
    assert example_of(DOMAIN) == ("count", example_of(VISITS))


def answered(dataset, size, rng):
    query, rows = dataset
    largest = {"count": 1.0, "maximum": 2.0, "sum": 1.0}[query]  # the noise is for 1
    return largest * len(rows) + rng.laplace(size=size)


def test_a_search_finds_the_query_whose_noise_is_too_small():
    rows = Answers(n_answers=1, low=0.0, high=1.0)  # of another domain, to be refused below
    domain = Queries(DOMAIN.queries, Rows(values=("a", "b"), most=2))
    options = {"claim": 1.0, "adjacency": SameQuery("add-remove"), "runs": 4_000, "floating_point": "ignore"}
    found = find_worst_pair(answered, domain, alpha=1e-4, **options)
    assert (found.verdict, found.x[0], found.y[0]) == (Verdict.REFUTED, "maximum", "maximum")
    correct = Queries(("count", "sum"), domain.data)
    assert find_worst_pair(answered, correct, alpha=1e-4, **options).verdict is Verdict.NOT_REFUTED
    with pytest.raises(AdjacencyError, match="Answers have no neighbours by"):
        find_worst_pair(answered, Queries(("sum",), rows), **options)


def test_a_query_that_is_wrong_in_a_window_is_found():
    queries = {"sum": sum, "of some": lambda rows: sum(5.0 if 0.40 < row < 0.41 else row for row in rows)}
    domain = Queries(tuple(queries), Rows(finite=True))
    options = {"adjacency": SameQuery("add-remove"), "bound": 1.0, "evaluations": 1_000}
    found = check_sensitivity(lambda dataset: queries[dataset[0]](dataset[1]), domain, **options)
    assert (found.x[0], found.change) == ("of some", 5.0)


def test_queries_of_several_tables():
    users, orders = (Rows(low=(0, 0), high=(4, 9), columns=("id", what), integer=True) for what in ("age", "paid"))
    domain = Queries(("users", "orders"), {"users": users, "orders": orders})
    for relation, largest in ((AddRemove(), 1), (UserLevel("id"), 5)):
        options = {"adjacency": SameQuery(relation), "evaluations": 100}
        found = check_sensitivity(lambda asked: len(asked[1][asked[0]]), domain, bound=largest - 0.5, **options)
        assert found.is_refuted
        assert found.change == largest


@pytest.mark.parametrize("form", ["queries", "tables", "both"])
def test_listed_rows_are_in_no_label_of_a_search(form):
    rows = Rows(values=("secret a", "secret b"), most=2)
    domain, relation = ({"t": rows}, AddRemove(tables=True)) if form != "queries" else (rows, AddRemove())
    domain, relation = (domain, relation) if form == "tables" else (Queries(("q",), domain), SameQuery(relation))

    def released(dataset, size, rng):
        return rng.laplace(size=size)

    options = {"claim": 1.0, "adjacency": relation, "runs": 1_000, "floating_point": "ignore"}
    found = find_worst_pair(released, domain, **options)
    assert "secret" not in str(found) + repr(found.ranking)
    assert "secret" in str(find_worst_pair(released, domain, keep_datasets=True, **options).ranking)
