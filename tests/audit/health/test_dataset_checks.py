"""Equal datasets and mechanisms that change a dataset are detected; undecidable cases raise no alarm."""

import array
import copy
import enum
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial

import numpy as np
import pytest

from dpaudit import Local, PureDP, Verdict, check
from dpaudit.audit.health.findings import HealthCheck, take_snapshot

MUTATED, EQUAL = HealthCheck.DATASET_MUTATED, HealthCheck.EQUAL_DATASETS
NONE = frozenset()


def audit(mechanism, x, y, **settings):
    return check(mechanism, x, y, claim=PureDP(1.0), **{"runs": 200, "jobs": 1, **settings})


def checks(result):
    return {finding.check for finding in result.findings}


def noise(dataset, size, rng):
    return rng.laplace(size=size)


class Plain:
    """Holds rows and cached results."""

    def __init__(self, rows):
        self.rows = rows
        self._sum = None

    @cached_property
    def total(self):
        return sum(self.rows)


class Slotted:
    __slots__ = ("rows",)

    def __init__(self, rows):
        self.rows = rows


class Opaque:
    """Hides its contents."""

    __slots__ = ()


class Hostile(Opaque):
    """Raises on comparison too."""

    __slots__ = ()

    def __eq__(self, other):
        raise RuntimeError

    __hash__ = None


@dataclass
class Table:
    rows: list
    names: dict = field(default_factory=dict)


class Colour(enum.Enum):
    RED = 1


def of_itself():
    rows = [1, 2]
    rows.append(rows)
    return rows


# The first function makes equal datasets at each call, the second function changes one.
KINDS = {
    "array": (lambda: np.arange(5.0)[::-1].copy(), lambda d: d.sort()),
    "matrix": (lambda: np.eye(3), lambda d: d.__setitem__((0, 0), np.nan)),
    "array of objects": (lambda: np.array([[1], [2, 3]], dtype=object), lambda d: d[1].append(4)),
    "records": (lambda: np.array([(1, 2.0)], dtype="i4,f8"), lambda d: d.__setitem__(0, (2, 2.0))),
    "masked": (lambda: np.ma.array([1, 2], mask=[0, 1]), lambda d: d.mask.__setitem__(0, True)),
    "list of floats": (lambda: [1.0, float("nan")], lambda d: d.append(2.0)),
    "list of lists": (lambda: [[1, "a"], [2, None]], lambda d: d[0].append(3)),
    "list of kinds": (lambda: [1, True, 2.5, "a", None, Colour.RED, Fraction(1, 3)], lambda d: d.pop()),
    "one and true": (lambda: [1, 0], lambda d: d.__setitem__(0, True)),
    "tuple": (lambda: (1, [2]), lambda d: d[1].append(3)),
    "dict": (lambda: {"a": [1], "b": 2}, lambda d: d["a"].append(1)),
    "set": (lambda: {1, 2}, lambda d: d.add(3)),
    "machine values": (lambda: array.array("d", [1, 2]), lambda d: d.append(3)),
    "object in an object": (lambda: Plain(Plain([1, 2])), lambda d: d.rows.rows.append(3)),
    "slots": (lambda: Slotted([1, 2]), lambda d: d.rows.append(3)),
    "dataclass": (lambda: Table([1, 2]), lambda d: d.names.update(a=1)),
}


@pytest.mark.parametrize("name", KINDS)
def test_changes_and_equality_of_any_kind_are_seen(name):
    make, change = KINDS[name]
    first, second = make(), make()
    snapshot = take_snapshot(first, second)
    assert [finding.check for finding in snapshot.examine(NONE)] == [EQUAL]
    assert snapshot.examine(frozenset({EQUAL})) == ()
    change(second)
    after = snapshot.examine(NONE)
    assert [finding.check for finding in after] == [EQUAL, MUTATED]  # they were equal when the audit began
    assert "changed 1 of the 2 datasets" in str(after[1])
    different = take_snapshot(first, second)
    repr(first), copy.deepcopy(second), hash(str(first))
    assert different.examine(NONE) == ()
    change(first)
    if name not in ("matrix", "one and true"):  # the second change has no effect on these
        assert MUTATED in {finding.check for finding in different.examine(NONE)}


def test_frames_columns_and_graphs():
    pandas, networkx = pytest.importorskip("pandas"), pytest.importorskip("networkx")

    def frame():
        return pandas.DataFrame({"a": [1, 2], "b": ["x", None]})

    def graph():
        return networkx.path_graph(3)

    def extensions():
        days = pandas.date_range("2020-01-01", periods=2, tz="UTC")
        return frame().astype({"a": "Int64", "b": "category"}).assign(days=days)

    kinds = [
        (frame, lambda d: d.loc.__setitem__((0, "b"), "y"), lambda d: d["b"].isna().sum()),
        (frame, lambda d: setattr(d, "index", [0.0, 1.0]), lambda d: d.index.dtype),
        (extensions, lambda d: d.loc.__setitem__((0, "a"), None), lambda d: d["a"].sum()),
        (extensions, lambda d: d.loc.__setitem__((1, "days"), d["days"][0]), lambda d: d["days"].max()),
        (lambda: extensions()["b"], lambda d: d.iloc.__setitem__(1, "x"), lambda d: d.value_counts()),
        (graph, lambda d: d.add_edge(0, 2), lambda d: (d.adj, d.edges, d.degree)),  # cached by the graph
        (graph, lambda d: d.nodes[0].update(colour=1), lambda d: d.number_of_edges()),
    ]
    for make, change, use in kinds:
        first, second = make(), make()
        snapshot = take_snapshot(first, second)
        use(first)
        assert [finding.check for finding in snapshot.examine(NONE)] == [EQUAL]
        change(second)
        assert [finding.check for finding in snapshot.examine(NONE)] == [EQUAL, MUTATED]
        assert not take_snapshot(first, second).are_equal


DIFFERENT = [
    (0.0, 0), (0.0, -0.0), (1, True), (1, 1.0), ("1", b"1"), (None, ()), ([1], (1,)), ([1, 2], [2, 1]), ([1], [True]),
    ([1], np.array([1])), (np.zeros(2), np.zeros(2, int)), (np.zeros(2), np.zeros((2, 1))), (np.int64(1), np.int32(1)),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}), (Plain([1]), Slotted([1])), (Opaque(), Opaque()), (Hostile(), Hostile()),
    (object(), object()), (noise, audit), (partial(noise, 1), partial(noise, 1)), (float, int), ("old", "new"),
    (iter([1]), iter([1])), (of_itself(), of_itself()), (lambda: 1, lambda: 1), (range(3), range(4)),
    (np.random.default_rng(1), np.random.default_rng(1)), ((i for i in "a"), (i for i in "a")),
]  # fmt: skip


@pytest.mark.parametrize(("x", "y"), DIFFERENT, ids=lambda value: type(value).__name__)
def test_what_differs_or_cannot_be_compared_passes(x, y):
    assert take_snapshot(x, y).examine(NONE) == ()


def test_private_attributes_tell_datasets_apart_but_may_be_filled_in():
    """Private attributes may be caches, but may also distinguish two objects."""
    x, y = Plain([1, 2]), Plain([1, 2])
    y._sum = 3
    snapshot = take_snapshot(x, y)
    assert snapshot.examine(NONE) == ()
    x._sum, _ = 3, x.total
    assert snapshot.examine(NONE) == ()


def sorts(dataset, rng):
    dataset.sort()
    return dataset[0] + rng.laplace()


def test_a_changed_dataset_explains_all_other_findings():
    def grows(rows, size, rng):
        rows.append(1.0)
        return np.full(size, float(len(rows)))

    options = {"runs": 2_000, "floating_point": "ignore"}
    assert checks(audit(grows, [1.0], [], **options)) == {MUTATED}
    others = checks(audit(grows, [1.0], [], ignore="dataset-mutated", **options))
    assert others == {HealthCheck.NONSTATIONARY, HealthCheck.SERIAL_DEPENDENCE}


@pytest.mark.parametrize("options", [{"sequential": False}, {"sequential": True}])
def test_mechanisms_that_change_their_dataset(options):
    result = audit(sorts, [2.0, 1.0], [2.0, 1.0, 0.5], **options)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert MUTATED in checks(result)
    said = "changed 2 of the 2 datasets in place, x (same size as before) and y (same size as before)"
    for words in (said, "Silence this check with ignore='dataset-mutated'."):
        assert words in " ".join(result.remarks)
    on_a_copy = audit(lambda d, rng: sorts(copy.copy(d), rng), [2.0, 1.0], [2.0, 1.0, 0.5], **options)
    assert on_a_copy.findings == ()
    others = [other.value for other in HealthCheck if other is not MUTATED]
    assert checks(audit(sorts, [2.0, 1.0], [2.0, 1.5, 0.5], **options, ignore=others)) == {MUTATED}


@pytest.mark.parametrize("options", [{"sequential": True}, {"adjacency": Local()}])
def test_equal_datasets(options):
    """Also under relations that allow them."""
    result = audit(noise, 3.0, 3.0, **options)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert checks(result) == {EQUAL}
    assert str(result.findings[0]).endswith("Silence this check with ignore='equal-datasets'.")
    assert audit(noise, 3.0, 3.0, **options, ignore=EQUAL.value).findings == ()
    rows = [1, 2]
    same, equal = (str(take_snapshot(rows, other).examine(NONE)[0]) for other in (rows, [1, 2]))
    assert "x and y are the same object (list of 2)" in same
    assert "x and y have equal contents (list of 2)" in equal


def test_changes_in_worker_processes_and_those_that_end_as_it_was_are_seen():
    """Workers have copies, but this process draws the first run on x. Every second shuffle restores two rows."""

    def first(rows, rng):
        rng.shuffle(rows)
        return rows[0] + rng.laplace(scale=0.05)

    x, y = [2.0, 1.0], [2.0, 1.5]
    assert checks(audit(sorts, x, y, jobs=2)) == {MUTATED}
    assert x == [1.0, 2.0]
    assert checks(audit(first, [0.0, 1.0], [0.0], runs=400, seed=1, floating_point="ignore")) == {MUTATED}
