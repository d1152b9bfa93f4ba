"""Simpler pairs stay neighbours in the domain, refute by themselves, keep to the runs, and cost no refutation."""

import math
from dataclasses import replace
from itertools import count, pairwise
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import dpaudit as dp
from dpaudit import AddRemove, PureDP, Replace, Rows, Tables, UserLevel, find_worst_pair
from dpaudit.audit.datasets.description import as_code
from dpaudit.audit.errors import MechanismError, StoreError
from dpaudit.audit.progress import Runs
from dpaudit.audit.sampling.sampler import as_sampler
from dpaudit.audit.search import candidates
from dpaudit.audit.search import find_worst_pair as module
from dpaudit.audit.search.candidates import Candidate, Pool, chunks, complexity
from dpaudit.audit.search.find_worst_pair import simplified
from dpaudit.audit.search.pairs_for_domain import pairs_of
from dpaudit.audit.search.successive_halving import Judge, Trial
from dpaudit.domains import CategoricalColumn, EdgeNeighbours, Graphs, NodeNeighbours, NumericColumn, Within

OPTIONS = {"claim": PureDP(1.0), "runs": 4_000, "jobs": 1, "floating_point": "ignore", "adjacency": AddRemove()}


def noisy(query, scale=0.3):
    return lambda rows, size, rng: query(rows) + rng.laplace(scale=scale, size=size)


noisy_length = noisy(len)


leaks_from_ten_rows = noisy(lambda rows: len(rows) * (3 if len(rows) >= 10 else 1), 1.0)


def test_rows_that_change_nothing_are_left_out_and_the_others_made_equal():
    x = [f"user {number}" for number in (1, *range(16))]
    found = find_worst_pair(leaks_from_ten_rows, [(x, x[:-1])], **OPTIONS)
    assert (found.x, found.y) == (x, x[:-1]), "the audit is that of the given pair"
    assert (len(found.simple.x), len(found.simple.y)) == (10, 9), "with fewer rows the claim holds"
    assert len({*found.simple.x, *found.simple.y}) == 1
    assert found.simple.audit.is_refuted
    x[0] = "user 16"
    found = find_worst_pair(leaks_from_ten_rows, [(x, x[:-1])], **OPTIONS)
    assert (len(found.simple.x), len(found.simple.y)) == (10, 9)
    assert len({*found.simple.x}) == 10, "distinct rows stay distinct"
    assert found.simple.audit.alpha == 0.025


def test_a_pair_as_simple_as_it_can_be_is_reached():
    found = find_worst_pair(noisy_length, [(list(range(12)), list(range(11)))], keep_datasets=True, **OPTIONS)
    assert (found.simple.x, found.simple.y) == ([11], [])
    assert "\n  simpler x = [11]\n          y = []\n          refuted on this simpler pair too, with 95%" in str(found)
    assert found.simple.audit.alpha == found.simple.alpha / 2, "but another pair was shown, had this one failed"


@pytest.mark.parametrize("domain", ["pairs", "generator", "listed rows", "made-up rows"])
@pytest.mark.parametrize("keep_datasets", [False, True])
def test_rows_are_printed_only_if_the_search_made_them_up_or_the_caller_asks(domain, keep_datasets):
    x = [0.5555, 0.6666, 0.5555, 0.6666]
    rows = {
        "pairs": [(x, x[:-1])],
        "generator": lambda _: (x, x[:-1]),
        "listed rows": Rows(values=(0.5555, 0.6666)),
        "made-up rows": Rows(low=0.5555, high=0.6666, finite=True),
    }
    seen = []
    options = OPTIONS | {"runs": 1_600, "keep_datasets": keep_datasets, "on_round": seen.append}
    found = find_worst_pair(noisy_length, rows[domain], **options)
    simpler = found.simple.lines if domain in ("pairs", "generator") else []
    printed = "\n".join([str(found), repr(found), *simpler, *map(repr, found.ranking), *map(repr, seen)])
    assert ("0.5555" in printed or "0.6666" in printed) is (keep_datasets or domain == "made-up rows")


def test_without_an_adjacency_only_the_callers_pairs_are_candidates():
    """Nothing says which other pairs are neighbours."""

    def pairs(rng):
        rows = rng.random(rng.integers(4, 20))
        return rows, rows[1:]

    found = find_worst_pair(noisy_length, pairs, **OPTIONS | {"adjacency": None})
    assert found.is_refuted
    assert len(found.simple.x) == len({*found.simple.x.tolist()}) == len(found.simple.y) + 1 < len(found.x)
    found = find_worst_pair(noisy_length, [([1, 2, 3], [1, 2])], **OPTIONS | {"adjacency": None})
    assert found.is_refuted
    assert found.simple is None
    assert "no simpler pair" not in str(found)


def test_where_rows_are_replaced_their_number_stays():
    x = np.array([7.5, 2.5, 1.0, 1.0])
    found = find_worst_pair(noisy(sum), [(x, np.array([9.5, *x[1:]]))], **OPTIONS | {"adjacency": Replace()})
    simple = found.simple
    assert sorted(map(len, map(set, (simple.x.tolist(), simple.y.tolist())))) == [1, 2]
    assert (len(simple.x), len(simple.y), simple.x.dtype) == (4, 4, x.dtype)


def test_rows_of_given_frames_and_of_listed_values_stay_as_they_are():
    x = pd.DataFrame({"a": [2, 3, 5, 7, 7], "b": list("uvwxx")})
    y = x.copy()
    y.loc[0] = (9, "z")
    found = find_worst_pair(noisy(lambda frame: frame["a"].sum()), [(x, y)], **OPTIONS | {"adjacency": Replace()})
    rows, simple = (
        {(*row,) for each in pair for row in each.itertuples(index=False)}
        for pair in ((x, y), (found.simple.x, found.simple.y))
    )
    assert len(simple) == 2
    assert simple <= rows
    assert (found.simple.x.dtypes == x.dtypes).all()


def test_another_bug_is_no_simplification_unless_exceptions_are_the_first_one():
    """A mechanism that fails on fewer than three rows differs there, too; this says nothing of the pair found."""

    def fails(rows, rng):
        if len(rows) < 3:
            raise ValueError
        return len(rows) + rng.laplace(scale=0.3)

    x = list("aabcdefg")
    found = find_worst_pair(fails, [(x, x[:-1])], **OPTIONS)
    assert (len(found.simple.x), len(found.simple.y)) == (4, 3)
    assert not found.simple.audit.counts.count_x == found.simple.audit.counts.count_y == 0
    found = find_worst_pair(fails, [(x[:3], x[:2])], **OPTIONS)
    assert (len(found.simple.x), len(found.simple.y)) == (3, 2)


def test_infinite_and_missing_numbers_become_finite_ones_where_these_refute():
    clamps = noisy(lambda rows: np.sum(np.clip(rows, 0.0, 9.0)), 1.0)  # NaN passes; so do 9 times the claim's numbers
    for number in (np.nan, np.inf):
        pairs = [([number, 1.0, 9.0], [number, 1.0])]
        found = find_worst_pair(clamps, pairs, **OPTIONS | {"seed": 3, "runs": 20_000})
        assert found.is_refuted is (number == np.inf)
        if found.is_refuted:
            assert (found.simple.x, found.simple.y) == ([9.0], [])


def test_pairs_are_looked_at_in_proportion_to_the_runs_however_many_rows_they_have(monkeypatch):
    """No row can be left out, so every pair that lacks one is refused; of 2,000 rows that would be 4,000 pairs."""
    looked_at = []

    def counted(x, y):
        looked_at.append(len(x) + len(y))
        return complexity(x, y)

    monkeypatch.setattr(candidates, "complexity", counted)
    rows = list(range(2_000))
    source = pairs_of([(rows, rows[:-1])], AddRemove(), 1, 0)
    assert (
        Pool(source, AddRemove(), 1, 0).simplest(next(source.patterns()), lambda _: None, lambda: True, 2_000) is None
    )
    assert 4_000 < sum(looked_at) <= 20 * 2_000 + 2 * 4_000


def test_ctrl_c_ends_a_simplification_where_it_looks_at_pairs(monkeypatch):
    class Stopped(Runs):
        def drawing(self):
            raise KeyboardInterrupt

    rows = list(range(16))
    source = pairs_of([(rows, rows[1:])], AddRemove(), 1, 0)
    judge = Judge(replace(as_sampler(leaks_from_ten_rows), watched=Stopped()), PureDP(1.0), **WIDE)
    search = module.Simplification(Pool(source, AddRemove(), 1, 3), judge, 30_000, count())
    monkeypatch.setattr(module.Simplification, "_shows", lambda *_: 100)  # as after a trial of the found pair
    with pytest.raises(KeyboardInterrupt):
        search.run(next(source.patterns()), [])


WIDE = {"runs": 60_000, "alpha": 0.05, "seed": 3, "jobs": 1}


def simplification(mechanism, candidate, source, adjacency, audit, *, most=60_000):
    """What `simplified` returns for a pair of a source, audited by a stub."""
    pool = Pool(source, adjacency, 1, 3)
    judge = Judge(as_sampler(mechanism), PureDP(1.0), **WIDE)
    return simplified(pool, judge, [Trial(candidate, 0)], most, audit)


def test_shares_of_alpha_halve_and_the_pair_in_the_middle_is_next():
    """All shares together are less than alpha, and the runs less than those that are allowed."""
    tried = []

    def never(pair, share, runs, number):
        tried.append((pair, share))
        return SimpleNamespace(is_refuted=False, runs=runs, pilot_runs=0)

    rows = list(range(16))
    source = pairs_of([(rows, rows[1:])], AddRemove(), 1, 0)
    candidate = next(source.patterns())
    found, spent, count = simplification(leaks_from_ten_rows, candidate, source, AddRemove(), never)
    assert count >= len(tried)
    assert found is None
    assert spent <= 60_000
    assert [share for _, share in tried] == [0.05 / 2**k for k in range(1, len(tried) + 1)]
    assert sum(share for _, share in tried) < 0.05
    sizes = [complexity(pair.x, pair.y) for pair, _ in tried]
    assert len(sizes) >= 2
    assert sizes == sorted(sizes), "simplest first"

    def second(pair, share, runs, number):
        return SimpleNamespace(is_refuted=number == 2, runs=runs, pilot_runs=0)

    found, *_ = simplification(leaks_from_ten_rows, candidate, source, AddRemove(), second)
    assert (found.x, found.y) == (tried[1][0].x, tried[1][0].y)


def test_an_audit_that_fails_shows_nothing():
    def fails(*_):
        raise MechanismError("no outputs")

    def full(*_):
        raise StoreError("the disk is full")

    source = pairs_of(Rows(most=6, high=3.0), AddRemove(), 1, 0)
    candidate = next(source.random(np.random.default_rng(0)))
    found, spent, _ = simplification(noisy_length, candidate, source, AddRemove(), fails)
    assert found is None
    assert spent <= 60_000
    with pytest.raises(StoreError, match="full"):
        simplification(noisy_length, candidate, source, AddRemove(), full)


def test_no_refutation_is_lost_and_no_run_made_of_a_claim_that_is_not_refuted(monkeypatch):
    options = OPTIONS | {"search_runs": 1_600}
    monkeypatch.setattr(module, "simplified", lambda *_: (None, 0, 0))
    plain = find_worst_pair(leaks_from_ten_rows, Rows(most=14), **options)
    monkeypatch.undo()
    found = find_worst_pair(leaks_from_ten_rows, Rows(most=14), **options)
    assert plain.is_refuted
    assert (found.audit.counts, found.audit.pvalue, found.runs) == (plain.audit.counts, plain.audit.pvalue, plain.runs)
    held = find_worst_pair(noisy_length, Rows(most=14), **options | {"claim": PureDP(9.0)})
    assert (held.is_refuted, held.simple, held.simplifying_runs) == (False, None, 0)


THIRTY = [(list(range(30)), list(range(1, 30)))]


def test_progress_counts_all_runs_which_are_at_most_half_of_the_audit_and_equal_for_any_number_of_workers():
    found = []
    for jobs in (1, 2):
        spent = []
        options = OPTIONS | {"progress": spent.append, "jobs": jobs, "runs": 20_000}
        result = find_worst_pair(leaks_from_ten_rows, THIRTY, **options)
        assert 0 < result.simplifying_runs <= 20_000
        assert sum(spent) == result.runs + 2 * 20_000 + result.simplifying_runs
        found.append((result.simple.x, result.simple.audit.counts, result.simplifying_runs))
    assert found[0] == found[1]


@pytest.mark.parametrize("limit", [{"sequential": True}, {"seconds": 30.0}])
def test_after_an_audit_that_ends_early_at_most_half_the_runs_so_far_follow_and_none_after_a_limit_of_time(limit):
    found = find_worst_pair(leaks_from_ten_rows, THIRTY, **OPTIONS | {"runs": 1_000_000, "search_runs": 3_000} | limit)
    assert found.is_refuted
    assert found.audit.runs < 800
    assert found.simplifying_runs <= (found.runs + 2 * found.audit.runs) / 2
    assert (found.simplifying_runs > 0) is ("seconds" not in limit)


def test_equal_rows_take_a_simple_value_together():
    def of_three(rows, size, rng):  # a third row counts with its value
        return len(rows) + (sum(rows) if len(rows) >= 3 else 0.0) + rng.laplace(size=size)

    found = find_worst_pair(of_three, Rows(high=1.0), **OPTIONS | {"runs": 12_000, "seed": 3})
    assert ({*found.simple.x, *found.simple.y}, len(found.simple.x), len(found.simple.y)) == ({1.0}, 2, 3)


TABLES = Tables({"sex": CategoricalColumn(("f", "m")), "age": NumericColumn(18, 90)}, most=6, form="tuples")
SIMPLEST = {
    "rows": (Rows(most=6, high=3.0), AddRemove(), ([0.0], [])),
    "rows of at least two": (Rows(most=6, least=2, low=1.0, high=3.0), AddRemove(), ([1.0] * 3, [1.0] * 2)),
    "rows of a public number": (Rows(size=3, integer=True, low=-5, high=5), Replace(), ([0, 0, 0], [0, 0, 1])),
    "values": (Rows(values=("a", "b", "c"), most=6), AddRemove(), (["a"], [])),
    "users": (Rows(low=(0, 0.0), high=(9, 50.0), most=9), UserLevel(0), ([(0, 0.0)], [])),
    "users with two rows each": (
        Rows(values=(("a", 1), ("a", 2), ("b", 1)), most=6, rows_per_user=2), UserLevel(0), ([("a", 1)], []),
    ),
    "columns": (Rows(low=(0.0, 2.0), high=(1.0, 3.0), most=6), AddRemove(), ([(0.0, 2.0)], [])),
    "tables": (TABLES, AddRemove(), ([("f", 18.0)], [])),
    "tables of replaced rows": (TABLES, Replace(), ([("f", 18.0)], [("m", 18.0)])),
    "answers": (dp.Answers(4, 0.0, 9.0), Within("linf"), ([0.0] * 4, [0.0] * 3 + [1.0])),
}  # fmt: skip


OPEN = ("users", "users with two rows each", "rows of a public number", "tables of replaced rows", "answers")


@pytest.mark.parametrize("name", SIMPLEST)
def test_the_simplest_pair_of_a_domain_is_reached_through_neighbours_of_ever_less_complexity(name):
    domain, adjacency, simplest = SIMPLEST[name]
    source = pairs_of(domain, adjacency, 1, 0)
    pool = Pool(source, adjacency, 1, 0)
    for seed in range(6):
        candidate = next(filter(pool.is_possible, source.random(np.random.default_rng(seed))))
        path = [candidate]

        def accept(simpler, path=path):
            path.append(simpler)
            return simpler

        pool.simplest(candidate, accept, lambda: True, math.inf)
        sizes = [complexity(one.x, one.y) for one in path]
        assert all(after < before for before, after in pairwise(sizes))
        assert all(pool.is_possible(one) for one in path)
        ends = [each.tolist() if isinstance(each, np.ndarray) else each for each in (path[-1].x, path[-1].y)]
        if name in OPEN:
            assert complexity(*ends)[:4] == complexity(*simplest)[:4], "which user, row or cell changes is open"
        else:
            assert sorted(ends) == sorted(simplest)


@pytest.mark.parametrize(
    ("adjacency", "smallest"), [(EdgeNeighbours(), [(2, 0), (2, 1)]), (NodeNeighbours(), [(0, 0), (1, 0)])]
)
def test_graphs_lose_nodes_and_edges(adjacency, smallest):
    source = pairs_of(Graphs(most=7, max_degree=3), adjacency, 1, 0)
    pool = Pool(source, adjacency, 1, 0)
    candidate = next(filter(pool.is_possible, source.random(np.random.default_rng(5))))
    found = pool.simplest(candidate, lambda one: one, lambda: True, math.inf)
    assert sorted((graph.number_of_nodes(), graph.number_of_edges()) for graph in (found.x, found.y)) == smallest
    assert {*found.x, *found.y} == set(range(max(len(found.x), len(found.y))))


def test_simplicity_is_ordered_by_rows_then_values_then_digits():
    pairs = [
        ([], ["a"]), (["a"], ["a", "a"]), ([0.0], [0.0, 3.0]), ([1.0], [1.0, 0.5]), ([0.0], [0.0, 0.123]),
        ([0.0], [0.0, float("nan")]), ([0.0], [1.0, 1.0]), ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]),
    ]  # fmt: skip
    sizes = [complexity(*pair) for pair in pairs]
    assert sizes == sorted(sizes)
    assert complexity([-3], []) == complexity([-3], [])
    assert complexity([10**400], []) > complexity([1], [])


def test_chunks_are_all_halves_quarters_and_single_items():
    parts = [(part.start, min(part.stop, 5)) for part in chunks(5)]
    assert parts == [(0, 5), (0, 2), (2, 4), (4, 5), (0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    assert [*chunks(0)] == []


@pytest.mark.parametrize(
    "value",
    [
        ["b"] * 12, ("a",) * 4 + ("b", "c"), [], (), (1,), [1, 2, 1, 2], [[0.0, 1.0]] * 5, {"a": [1] * 6, "b": (2,)},
        np.zeros((3, 2)), np.zeros((0, 2)), np.zeros(0), np.array([0.5, 1.0]), np.arange(3, dtype=np.int32),
        np.ones(4, dtype=np.float32), np.array(["a", "bb"]), np.array(["a"], dtype="<U9"),
        np.array([True, True]), np.array(3.0), np.array([[-0.0, 0.0]]),
        {1, 2}, set(), frozenset({3}), -0.0, b"text", None, [float("inf")] * 2,
    ],
    ids=repr,
)  # fmt: skip
def test_code_of_a_dataset_makes_the_same_dataset(value):
    made = eval(as_code(value), {"np": np})
    assert type(made) is type(value)
    assert repr(made) == repr(value)
    assert getattr(made, "dtype", None) == getattr(value, "dtype", None)


def test_code_of_frames_and_graphs_makes_the_same_contents_and_what_has_no_literal_has_no_code():
    frame = pd.DataFrame({"a": [1] * 5, "b": list("abcde")})
    assert eval(as_code(frame), {"pd": pd}).equals(frame)
    for graph in (nx.star_graph(3), nx.path_graph(1), nx.DiGraph([(1, 0), (0, 0)]), nx.Graph([(2, 2), (0, 1)])):
        assert nx.utils.graphs_equal(eval(as_code(graph), {"nx": nx}), graph)
    coloured = nx.Graph()
    coloured.add_node(0, colour="red")
    for value in (object(), [object()], 10**5_000, np.array([None]), nx.MultiGraph([(0, 1)]), coloured):
        assert as_code(value) is None
    assert Candidate("", [object()], []).summary.startswith("x = [<object object at")
