"""Counts of an event, marks of its outputs and decisions on single outputs agree; the text describes the event."""

import enum
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.audit.events.events import Intervals, Outcomes, Scored, counts_in_cells, with_names
from dpaudit.audit.events.features import Coordinates, Parities, Standardised
from dpaudit.audit.events.leaves import KeyedValues, learn_leaves
from dpaudit.audit.events.outputs import Raised, as_outputs
from dpaudit.audit.events.scores import Additive, Column, Coordinate, LastDigits, LowestBit, Number, Projection, Reading
from dpaudit.audit.events.text_columns import TextColumn, TextColumns
from dpaudit.audit.records.json_codec import plain_data, read_data
from dpaudit.audit.sampling.tasks import counts_of

INF, NAN = math.inf, math.nan


class Colour(enum.Enum):
    RED = 1


def same(a, b):
    """Equality by value, with NaN equal to itself at any depth."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b) or (isinstance(a, float) and isinstance(b, float) and a != a and b != b)


def is_in(event, output):
    """The definition of each event for one output, in plain Python."""
    if isinstance(event, Outcomes):
        return any(same(output, value) for value in event.values) != event.others
    if isinstance(event, Scored):
        numbers = isinstance(output, tuple) and all(isinstance(v, (int, float)) for v in output)
        if not numbers or len(output) != 3:
            return event.event.others
        if isinstance(event.score, Coordinate):
            return is_in(event.event, output[event.score.place])
        centres, spreads, power = (
            event.score.columns.centres,
            event.score.columns.spreads,
            1 + event.score.is_of_squares,
        )
        scaled = [min(max((v - c) / s, -3.0), 3.0) for v, c, s in zip(output, centres, spreads, strict=True)]
        total = float(sum(w * v**power for w, v in zip(event.score.weights, scaled, strict=True)))
        return is_in(event.event, total / math.hypot(*event.score.weights))
    if not isinstance(output, (int, float, Fraction)) or output != output:
        return event.others
    return any(low <= output <= high for low, high in event.intervals)


def assert_agree(event, outputs):
    values = [tuple(v) if isinstance(v, list) else v for v in outputs.tolist()]
    naive = [is_in(event, value) for value in values]
    assert event.contains(outputs).tolist() == naive
    assert event.count(outputs) == sum(naive)


EDGES = st.sampled_from([-INF, -3.0, -1.0, -0.5, 0.0, 1.0, 2.0, 2.5, 7.0, INF])
PIECES = st.lists(EDGES, min_size=2, max_size=8, unique=True).map(sorted)
INTERVALS = st.builds(
    lambda edges, others: Intervals(tuple(zip(edges[::2], edges[1::2], strict=False)), others), PIECES, st.booleans()
)
NUMBER = st.sampled_from([-INF, -3.0, -2.5, -1.0, -0.5, -0.0, 0.0, 0.25, 1.0, 2.0, 3.0, 7.0, INF, NAN])
ANY = st.one_of(
    NUMBER,
    st.integers(-3, 8),
    st.sampled_from([None, "a", "b", True, Colour.RED, Raised("E"), Fraction(1, 2), 2**70, -(2**70), b"x"]),
    st.tuples(st.integers(-1, 2)),
    st.tuples(NUMBER, NUMBER),
    st.tuples(st.tuples(NUMBER), st.text("ab", max_size=1)),
)
VALUES = st.lists(ANY, max_size=12).map(tuple)
VECTORS = st.lists(st.tuples(NUMBER, NUMBER, NUMBER), min_size=1, max_size=8)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.uint8, np.bool_, object])
@given(data=st.data())
@settings(derandomize=True, deadline=None, max_examples=60)
def test_scalars_of_every_kind(kind, data):
    if kind is object:
        outputs = _objects(data.draw(st.lists(ANY, min_size=1, max_size=9)))
    elif np.issubdtype(kind, np.floating):
        outputs = np.array(data.draw(st.lists(NUMBER, min_size=1, max_size=9)), dtype=kind)
    else:
        low = -3 if np.issubdtype(kind, np.signedinteger) else 0
        outputs = np.array(data.draw(st.lists(st.integers(low, 8), min_size=1, max_size=9)), dtype=kind)
    assert_agree(data.draw(INTERVALS), outputs)
    values = data.draw(VALUES)
    if kind is np.bool_:  # an array of booleans never holds 2**70
        values = tuple(v for v in values if not isinstance(v, int) or abs(v) < 2**62)
    assert_agree(Outcomes(values, data.draw(st.booleans())), outputs)


def _objects(values):
    return np.fromiter(values, dtype=object, count=len(values))


SCALED = Standardised((0.0, 1.0, -0.5), (1.0, 0.5, 4.0))
OF_VECTORS = [Coordinate(1, 3), Projection(SCALED, (2, 3, -6)), Projection(SCALED, (3, 0, -4), is_of_squares=True)]


@given(VECTORS, INTERVALS, VALUES, st.booleans(), st.sampled_from(OF_VECTORS))
@settings(derandomize=True, deadline=None, max_examples=150)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_vectors(rows, intervals, values, others, score):
    outputs = np.array(rows)
    assert_agree(Outcomes((*values, rows[0]), others), outputs)
    assert_agree(intervals, outputs)
    finite = np.nan_to_num(outputs, posinf=9.0, neginf=-9.0)
    assert_agree(Scored(score, intervals), finite)


def test_values_that_a_file_does_not_hold_or_that_are_no_outputs():
    """A file of results may hold any value in a list of outcomes."""
    assert str(Outcomes((Colour.RED,))) == "output = Colour.RED"
    assert Outcomes(({"a": 1}, 2.0)).contains(np.array([1.0, 2.0])).tolist() == [False, True]
    assert Outcomes(({"a": 1}, (1, 2))).contains(np.array([[1, 2], [2, 1]])).tolist() == [True, False]


@pytest.mark.parametrize("kind", [np.float64, np.int64, np.uint64, np.int16, np.bool_])
def test_a_long_list_of_vectors_or_numbers(kind):
    """Lists of many values are looked up by keys: the result is that of the plain definition."""
    rng = np.random.default_rng(0)
    outputs = rng.integers(0, 2 if kind is np.bool_ else 40, (200, 2)).astype(kind)
    values = rng.integers(0, 40, (300, 2)).tolist()
    rows = (*map(tuple, values), (NAN, 1.0), (1, 2**80), (0.5, 1), "a")
    for others in (False, True):
        assert_agree(Outcomes(rows, others), outputs)
        for few in (3, 20):
            numbers = (*(row[0] for row in values[:few]), NAN, 2**80, -0.0, 0.5, "a", None)
            assert_agree(Outcomes(numbers, others), outputs[:, 0])


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_the_cells_around_an_atom_do_not_count_it(kind):
    """The edge next to an atom is the adjacent double, which in single precision is the atom itself."""
    outputs = np.array([-1.0, 0.0, 0.0, 1.0, 1.0], dtype=kind)
    around = Intervals(((-INF, math.nextafter(0.0, -INF)), (math.nextafter(0.0, INF), INF)))
    assert around.count(outputs) == int(around.contains(outputs).sum()) == 3
    beside = Intervals(((-INF, math.nextafter(1.0, -INF)), (math.nextafter(1.0, INF), INF)))
    assert beside.count(outputs) == int(beside.contains(outputs).sum()) == 3


# Names of columns in the texts of events, scores and partitions; what they contain does not depend on names.

TWO, ONE = ("count", "mean"), ("mean",)
HALF = Intervals(((1.5, math.inf),))
TEXTS = as_outputs([("a", 1.0), ("b", 2.0), None], 3, "m")
LEAVES = learn_leaves(TEXTS, TEXTS)
EVENTS = [
    (Intervals(((-INF, math.nextafter(2.0, -INF)),)), (), "output < 2"),
    (Intervals(((math.nextafter(3.0, INF), INF),)), (), "output > 3"),
    (Intervals(((math.nextafter(1.5, INF), math.nextafter(2.5, -INF)),)), (), "1.5 < output < 2.5"),
    (Intervals(((0.99912463, 1.00026151),)), (), "0.999124 ≤ output ≤ 1.00027"),
    (Intervals(((-1.00026151, -0.99912463),)), (), "-1.00027 ≤ output ≤ -0.999124"),
    (Intervals(((2.0, 2.0),)), (), "output = 2"),
    (Intervals(((-INF, INF),)), (), "output is a number"),
    (Intervals(((-INF, -1.0), (4.0, 4.0))), (), "output ≤ -1 or output = 4"),
    (Intervals(((-INF, 0.0),), others=True), (), "output ≤ 0 or output is NaN or non-numeric"),
    (Outcomes(("a",), others=True), (), "output ≠ 'a'"),
    (Outcomes((1, None, "b")), (), "output in {1, None, 'b'}"),
    (Outcomes(tuple(range(9))), (), "output in {0, 1, 2, 3, 4, 5, … (9 values)}"),
    (Outcomes(tuple(range(3_412))), (), "output among 3,412 outcomes such as 0, 1, 2"),
    (Outcomes((Raised("KeyError"),), others=True), (), "output other than the exception KeyError"),
    (Scored(Coordinate(1, 2), Intervals(((2.0, INF),))), (), "coordinate 1 ≥ 2"),
    (Intervals(((1.0, 1.0),), others=True), ONE, "mean = 1 or mean is NaN or non-numeric"),
    (Outcomes(((1.0, 2.0),), others=True), TWO, "(count, mean) ≠ (1.0, 2.0)"),
    (Outcomes(((1.0, 2.0),)), tuple("abcdefghijklmnopqrstuvwxyz"), "output = (1.0, 2.0)"),
    (Scored(Projection(Standardised((0.0, 0.0), (1.0, 1.0)), (5, -10)), HALF), TWO,
     "weighted sum of 2 coordinates (mean, count) ≥ 1.5"),
    (Scored(LowestBit(Number()), HALF), ONE, "exponent of the lowest set bit of mean ≥ 1.5"),
    (Scored(LastDigits(1), HALF), TWO, "mean (last digits) ≥ 1.5"),
    (Scored(Additive(Coordinates(2), ((1, 0.0, 1.0, 2.0),)), HALF), TWO, "score(mean) ≥ 1.5"),
    (Scored(Column(Parities(Coordinates(2), (((0, 0.0), (1, 2.0)),)), 0), HALF), TWO,
     "parity of [count ≥ 0] + [mean ≥ 2] ≥ 1.5"),
    (Scored(Column(LEAVES, LEAVES.names.index("output[0]")), Intervals(((0.0, 0.0),))), TWO, "count is 'a'"),
    (Scored(Column(KeyedValues((((0,), "a", (1,)),)), 0), HALF), TWO, "(mean where count = 'a') ≥ 1.5"),
    (Scored(Column(TextColumns((TextColumn((0,), "length"),)), 0), HALF), TWO, "length of count ≥ 1.5"),
]  # fmt: skip


@pytest.mark.parametrize(("event", "names", "text"), EVENTS, ids=[text for _, _, text in EVENTS])
def test_texts_have_the_names_and_files_keep_them(event, names, text):
    named = with_names(event, names)
    assert str(named) == text
    assert read_data(plain_data(named)) == named
    assert with_names(event, ()) is event
    outputs = as_outputs([1.0, 1.5, 2.0] if names == ONE else [(1.0, 2.0), (2.0, 1.0), (3.0, 3.0)], 3, "m")
    np.testing.assert_array_equal(named.contains(outputs), event.contains(outputs))


def test_events_that_share_a_score_are_counted_as_each_alone():
    rows = np.random.default_rng(1).normal(size=(1_000, 3))
    rows[:5, 1] = NAN
    second, total = Coordinate(1, 3), Projection(Standardised((0.0,) * 3, (1.0,) * 3), (1, 0, 1))
    low, high = Intervals(((-INF, -0.5),)), Intervals(((0.5, INF),))
    some = Intervals(((-0.1, 0.1), (0.3, 0.3), (2.0, 3.0)), others=True)
    for scores in ((second, second, second), (second, second, total), (second, total, second)):
        events = [Scored(score, event) for score, event in zip(scores, (low, high, some), strict=True)]
        expected = [int(np.count_nonzero(event.contains(rows))) for event in events]
        assert counts_of(events, Reading(rows)) == [event.count(rows) for event in events] == expected
        assert min(expected) > 0


@pytest.mark.parametrize(
    "edges",
    [
        np.linspace(-1.0, 1.0, 200),
        np.sort(np.random.default_rng(1).standard_cauchy(300)) ** 3,
        np.array([-1.7e308, -1.0, 1.0, 1.7e308, math.inf]),
        np.sort(np.append(np.arange(40.0), np.nextafter(np.arange(40.0), math.inf))),
    ],
)
def test_numbers_are_counted_in_the_cells_of_single_ones(edges):
    rng = np.random.default_rng(0)
    at = rng.choice(edges, 3_000)
    ends = [math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1.7e308, -1.7e308]
    values = np.concatenate(
        [at, np.nextafter(at, -math.inf), np.nextafter(at, math.inf), rng.standard_cauchy(3_000), ends]
    )
    single = [len(edges) + 1 if math.isnan(value) else int((edges <= value).sum()) for value in values.tolist()]
    for some in (len(values), len(edges), len(edges) - 1, 0):
        counts = Counter(single[:some])
        assert counts_in_cells(values[:some], edges).tolist() == [counts[cell] for cell in range(len(edges) + 2)]
