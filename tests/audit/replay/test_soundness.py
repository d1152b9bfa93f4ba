"""What must never be called bounded: names, shared objects, values that decide something, distributions that change."""

import dataclasses
import math
import random
from array import array
from collections import Counter, defaultdict, deque
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from functools import partial

import networkx as nx
import numpy as np
import pytest
from scipy import stats

from dpaudit import ApproxDP, GaussianDP, PureDP, TradeOffCurve, noise_primitive, replay
from dpaudit.audit.datasets.contents import NotCopied, kept, same_form, same_output
from dpaudit.audit.replay.distributions import Distribution, is_within
from dpaudit.audit.results.verdict import ReplayVerdict

from ..stand_ins import Tensor

BOUNDED, EXCESS, UNDETERMINED = ReplayVerdict.BOUNDED, ReplayVerdict.EXCESS, ReplayVerdict.UNDETERMINED
X, Y = [1, 2, 9], [1, 2]


def run(mechanism, x=X, y=Y, claim=1.0, **options):
    return replay(mechanism, x, y, claim=claim, **options)


# What an output is.


Answer = dataclasses.make_dataclass("Answer", [("value", float)])
Marked = type("Marked", (float,), {})
MarkedArray = type("MarkedArray", (np.ndarray,), {})
Slotted = type("Slotted", (list,), {"__slots__": ("mark",)})


class Lenient:
    def __init__(self, mark):
        self.mark = mark

    def __eq__(self, other):
        return True

    __hash__ = None


def with_mark(held, mark):
    held.mark = mark
    return held


def named_columns(mark):
    frame = pytest.importorskip("pandas").DataFrame({"a": [1.0]})
    frame.columns.name = mark
    return frame


def categories(mark):
    pandas = pytest.importorskip("pandas")
    return pandas.Series(pandas.Categorical(["u"], categories=["u", "v"] if mark == "a" else ["v", "u"]))


def noon(mark):
    zone = UTC if mark == "a" else timezone(timedelta(hours=1))
    return datetime(2020, 1, 1, 12 if mark == "a" else 13, tzinfo=zone)


@pytest.mark.parametrize(
    "make",
    [
        lambda mark: -0.0 if mark == "a" else 0.0,
        lambda mark: np.array([-0.0 if mark == "a" else 0.0]),
        lambda mark: np.array([0x7FF8 << 48 | ord(mark)], dtype=np.uint64).view(np.float64),  # bits of NaN
        lambda mark: range(0, 0, ord(mark)),
        lambda mark: array("f" if mark == "a" else "d", [1.0]),
        lambda mark: {-0.0 if mark == "a" else 0.0},
        lambda mark: np.float64(5.0) if mark == "a" else 5.0,
        lambda mark: np.float32(5.0) if mark == "a" else np.float64(5.0),
        lambda mark: np.int64(5) if mark == "a" else 5,
        lambda mark: Decimal("1.0") if mark == "a" else Decimal("1.00"),
        noon,
        lambda mark: np.ma.masked_array([1.0, ord(mark)], mask=[False, True]),
        lambda mark: with_mark(Answer(1.0), mark),
        lambda mark: with_mark(Marked(1.0), mark),
        lambda mark: with_mark(np.ones(1).view(MarkedArray), mark),
        lambda mark: with_mark(Slotted([1.0]), mark),
        lambda mark: Lenient(mark),
        lambda mark: with_mark(Tensor([1.0]), mark),
        lambda mark: defaultdict(int if mark == "a" else float),
        lambda mark: deque([1.0], maxlen=ord(mark)),
        named_columns,
        categories,
    ],
)
def test_what_an_output_holds_beside_its_numbers(make):
    assert same_output(make("a"), make("b")) is False
    assert same_output(make("a"), make("a")) is True
    again = kept(make("a"))
    assert isinstance(again, NotCopied) or same_output(make("a"), again)


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ({"a": 1.0}, {"a": 1.0}, True),
        ({"a": 1.0}, {"b": 1.0}, False),
        ([1.0, math.nan], [1.0, math.nan], True),
        ((1.0,), [1.0], False),
        (2, 2.0, False),
        (2**60, 2**60 + 1, False),
        (np.zeros(2), np.zeros((1, 2)), False),
        (np.array([1], dtype=object), np.array([1], dtype=object), True),
        ({1, 2}, {2, 1}, True),
        (None, None, True),
        (print, print, None),
        (object(), object(), None),
        (nx.path_graph(2), nx.path_graph(2), None),
    ],
)
def test_outputs_are_compared_in_form_and_numbers(first, second, is_same):
    assert same_output(first, second) is is_same
    assert same_output(kept(first), first) is (None if is_same is None else True)
    assert same_form([first, 1.0], [first, 2.0]) is (is_same is not None)


def series(rows, rng):
    pandas = pytest.importorskip("pandas")
    found = pandas.Series(rows).value_counts().sort_index()
    return pandas.Series(rng.laplace(found.to_numpy(), 2.0), index=found.index)


def frame(rows, rng):
    return pytest.importorskip("pandas").DataFrame([[rng.laplace(len(rows), 2.0)]], columns=[f"max {max(rows)}"])


def shared_buffer():
    buffer = np.zeros(1)
    return lambda rows: np.copyto(buffer, sum(rows)) or buffer


def fitted_again():
    model = Lenient(None)
    return lambda rows: with_mark(model, float(np.mean(rows)))


def filled_later():
    @noise_primitive("laplace", location="value", scale=1.0)
    def released(value):
        return {"count": value + np.random.default_rng().laplace()}

    return lambda rows: (found := released(5.0), found.update(max=max(rows)))[0]


def test_a_dataset_that_is_changed_in_place():
    def in_place(rows, rng):
        rows += rng.laplace(size=rows.shape, scale=4.0)
        return rows

    x, y = np.array([1.0, 2.0]), np.array([1.0, 3.0])
    result = run(in_place, x, y)
    assert result.verdict is BOUNDED
    assert "note: the mechanism changes its dataset" in str(result)
    assert x.tolist() == [1.0, 2.0]

    class Uncopied(list):
        def __deepcopy__(self, memo):
            raise TypeError

    def sorts(rows, rng):
        rows.sort()
        return rng.laplace(len(rows))

    result = run(sorts, Uncopied([3.0, 1.0]), Uncopied([3.0]))
    assert (result.verdict, result.runs) == (UNDETERMINED, 1)
    assert "cannot be copied" in str(result)
    assert run(lambda rows, rng: rng.laplace(sum(rows)), (row for row in [1]), (row for row in [])).runs == 1


# Values that decide something.


@noise_primitive("laplace", location="value", scale=1.0, sensitivity=1.0)
def declared(value):
    return value + np.random.default_rng().laplace()


@noise_primitive(lambda value: Distribution("own", {"location": value}), sensitivity=1.0, epsilon=1.0)
def own_noise(value):
    return value + np.random.laplace()  # noqa: NPY002


def seldom_third(rows, rng):
    weights = np.array([0.9, 0.1, 1e-9 * len(rows)])
    place = rng.choice(3, p=weights / weights.sum())
    return int(place), max(rows) if place == 2 else 0


def seldom_large(rows, rng):
    count = rng.binomial(10, 0.1 + 0.01 * len(rows))
    return int(count), max(rows) if count == 10 else 0


def in_a_window(low, high):
    return lambda rows, rng: (v := rng.laplace(np.full(6, len(rows) / 6.0)), max(rows) if low < v[3] < high else 0)


def ranked(values):
    odds = np.exp(-0.01 * np.abs(np.arange(len(values)) - len(values) / 2) + 1e-5 * (np.mean(values) - values))
    return odds / odds.sum()


def steps(rows, rng):
    return float(np.sort(rows)[int(np.clip(round(rng.laplace(len(rows) / 2 + 1e-4 * sum(rows), 30.0)), 0, 149))])


MANY = np.arange(150.0)
OTHER = np.where(MANY == 137.0, 137.5, MANY)


@pytest.mark.parametrize(
    ("mechanism", "verdict"),
    [
        (lambda rows, rng: float(np.sort(rows)[rng.choice(150, p=ranked(np.sort(rows)))]), UNDETERMINED),
        (lambda rows: float(random.choices(np.sort(rows).tolist(), weights=ranked(np.sort(rows)))[0]), UNDETERMINED),
        (lambda rows, rng: float(np.sort(rows)[rng.choice(150, size=2, p=ranked(np.sort(rows))).max()]), UNDETERMINED),
        (steps, UNDETERMINED),
        (lambda rows, rng: float(MANY[rng.choice(150, p=ranked(np.sort(rows)))]), BOUNDED),
        (lambda rows, rng: round(rng.laplace(len(rows) / 150.0, 3.0)), BOUNDED),
    ],
)
def test_candidates_from_the_data_are_all_tried(mechanism, verdict):
    assert run(mechanism, MANY, OTHER, seed=3).verdict is verdict


def asks_again(rows, rng, draw="laplace", most=6.0):
    first = getattr(rng, draw)(len(rows))
    return first, getattr(rng, draw)(sum(rows) if first > most else 0.0)


def exact_again(rows, rng):
    first = rng.laplace(len(rows))
    return first, len(rows) * 0.5 + rng.laplace(scale=1.0 if first < 7.0 else 1e-6)


@pytest.mark.parametrize(
    ("mechanism", "claim"),
    [(asks_again, 2.0), (partial(asks_again, draw="normal", most=8.0), GaussianDP(1.5)), (exact_again, 2.0)],
)
def test_calls_that_lose_more_at_other_values(mechanism, claim):
    result = run(mechanism, claim=claim)
    assert result.verdict is UNDETERMINED
    assert "at other values of the draws" in str(result)


def test_a_later_question_within_the_claim_stays_bounded():
    def descent(rows, rng):
        found = [0.0]
        for _ in range(3):
            found.append(found[-1] - 0.1 * rng.normal(np.clip(found[-1] - np.array(rows), -1.0, 1.0).sum(), 2.0))
        return found

    assert run(descent, [1.0, 0.0], [1.0, 2.0], GaussianDP(math.sqrt(3.0))).verdict is BOUNDED


# Inputs, and values that are not of the distribution stated.


def test_inputs_that_change_later_are_copied():
    def sums_in_one_buffer(rows):
        held, found = np.zeros(2), []
        for low in (0, 10):
            held[:] = 0.0
            for row in rows:
                held += [1.0, row] if low <= row < low + 10 else [0.0, 0.0]
            found.append(stats.laplace.rvs(held, 1.0))
        return found

    assert run(sums_in_one_buffer, [1, 9, 13], [1, 13]).loss.worst == 10.0

    def in_a_buffer(rows):
        held = np.array([float(len(rows))])
        found = np.random.default_rng().laplace(held)
        held[0] *= 100.0
        return found

    (call,) = run(in_a_buffer).calls
    assert abs(float(call.draw_on_x()[0]) - len(X)) < 30.0  # Laplace noise of scale 1: wrong with 1e-13


def test_a_loss_that_a_primitive_states_is_a_promise():
    state = np.random.get_state()[1].tolist(), np.random.get_state()[2]  # noqa: NPY002
    result = run(lambda rows: own_noise(len(rows)))
    assert (result.verdict, result.loss.epsilon) == (UNDETERMINED, 1.0)
    assert "is the one that it states for itself" in str(result)
    assert (np.random.get_state()[1].tolist(), np.random.get_state()[2]) == state  # noqa: NPY002


@pytest.mark.parametrize(("move", "step"), [(0.5, 1), (1, 10**7)])
def test_whole_noise_on_a_move_that_is_none(move, step):
    """No output is possible on both."""
    result = run(lambda rows: move * sum(rows) + step * int(stats.dlaplace.rvs(1.0)), [1, 2], [1, 1])
    assert (result.verdict, result.loss.worst) == (EXCESS, math.inf)
    cut_off = run(lambda rows: stats.dlaplace.rvs(1.0, loc=sum(rows) / 2), [1, 2], [1, 1])
    assert cut_off.verdict is UNDETERMINED  # scipy cuts the fraction off, so that the distribution is another one


def test_arguments_that_the_distribution_does_not_contain():
    @noise_primitive("laplace", location="value", scale=1.0)
    def clipped(value, high, rng=None):
        return min(value + np.random.default_rng().laplace(), high)

    assert run(lambda rows, rng: clipped(2.0, max(rows), rng), [1, 3], [1, 4]).verdict is UNDETERMINED
    assert run(lambda rows, rng: clipped(len(rows), 9.0, rng), [1, 3], [1]).verdict is BOUNDED


def primitive(distribution, draw, **parameters):
    return noise_primitive(distribution, **parameters)(draw)


def fresh():
    return np.random.default_rng()


folded = primitive(
    lambda: Distribution("laplace", {"location": 0.0, "scale": 1.0}, after="folded"), lambda: abs(fresh().laplace())
)
AT = {"location": "value", "scale": 1.0}
thrice = primitive("laplace", lambda value: value + fresh().laplace(size=3), **AT)
from_one = primitive("discrete", lambda p: 1 + fresh().choice(len(p), p=p), probabilities="p")
named = primitive("discrete", lambda p: "ab"[fresh().choice(2, p=p)], probabilities="p")
fractions = primitive("two-sided geometric", lambda value: value + fresh().laplace(), **AT)
not_a_number = primitive("laplace", lambda value: math.nan, **AT)
geometric = primitive("two-sided geometric", lambda value: value + int(stats.dlaplace.rvs(1.0)), **AT)


def rows_of_noise(distribution, rule, *sizes):
    """Return a mechanism with a call of each size; `rule` returns its noise, given that of the calls before it."""

    def mechanism(rows):
        held = []

        @noise_primitive(distribution, location="value", scale=1.0 if distribution != "two-sided geometric" else 5.0)
        def add(value):
            held.append(rule(held, np.shape(value)))
            return value + held[-1]

        return [add(np.eye(size)[0] * len(rows) if size else len(rows)) for size in sizes]

    return mechanism


def laplace(size=None):
    return fresh().laplace(size=size)


def normal(size=None):
    return fresh().normal(size=size)


def whole():
    return int(stats.dlaplace.rvs(0.2, random_state=fresh()))


def reflected(noise):
    return math.copysign(-math.log(-math.expm1(-abs(noise))), noise)


def of_the_next_run(held, _):
    KEPT[:] = [laplace()] if held else KEPT
    return KEPT[0]


POOL, KEPT = [-0.3, 1.2, 0.4, -1.7], [0.3]


@pytest.mark.parametrize(
    ("distribution", "rule", "sizes", "why"),
    [
        ("laplace", lambda held, _: -held[0] if held else laplace(), (0, 0), "are the same in all of 17 runs"),
        ("two-sided geometric", lambda held, _: -held[0] if held else whole(), (0, 0), "are the same in all of"),
        ("laplace", lambda held, _: reflected(held[0]) if held else laplace(), (0, 0), "have the same order"),
        ("normal", lambda held, _: held[0] + 1e-3 * normal() if held else normal(), (0, 0), "have the same order"),
        ("gumbel", lambda held, _: 0.5 - 2.0 * held[0] if held else fresh().gumbel(), (0, 0), "have the same order"),
        ("laplace", lambda held, _: laplace() * np.array([1.0, -1.0]), (2,), "the sum of the noise"),
        ("normal", lambda *_: (noise := normal(20)) / np.linalg.norm(noise), (20,), "the sum of the squares of the"),
        (
            "normal",
            lambda held, _: -(held[0] + held[1]) if held[1:] else normal(),
            (0, 0, 0),
            "a linear equation binds",
        ),
        ("laplace", lambda held, _: POOL[fresh().integers(4)], (0,), "takes only 4 values in 17 runs"),
        ("laplace", lambda held, _: 1.23456789 * fresh().choice([-1, 1]), (0,), "takes only 2 values in 17 runs"),
        ("laplace", lambda held, _: fresh().permutation(held[0]) if held else laplace(6), (6, 6), "repeat others"),
        ("laplace", lambda held, _: held[0].max() if held else laplace(6), (6, 0), "repeat others"),
        ("laplace", of_the_next_run, (0, 0), "repeat others"),
    ],
)
def test_noise_that_depends_on_other_noise(distribution, rule, sizes, why):
    result = run(rows_of_noise(distribution, rule, *sizes), claim=GaussianDP(30.0))
    assert result.verdict is UNDETERMINED
    assert why in str(result)


@pytest.mark.parametrize(
    ("distribution", "rule", "sizes"),
    [
        ("laplace", lambda held, shape: laplace(shape), (30, 0)),
        ("laplace", lambda held, shape: laplace(shape).astype(np.float32), (100,)),
        ("laplace", lambda held, shape: np.round(laplace(shape), 1), (10, 0)),
        ("laplace", lambda held, shape: 0.125 * np.round(laplace(shape) / 0.125), (10, 0)),
        ("two-sided geometric", lambda held, _: whole(), (0,) * 5),
    ],
)
def test_independent_noise_is_not_accused(distribution, rule, sizes):
    """The probability that a test accuses it is 1e-6."""
    assert run(rows_of_noise(distribution, rule, *sizes), claim=GaussianDP(30.0)).verdict is BOUNDED


def test_whole_numbers_beyond_the_doubles():
    assert run(lambda rows: geometric(sum(rows)), [2**60, 1], [2**60], claim=0.1).loss.epsilon == 1.0


# Noise that is added, and rounding.


def used_twice(size):
    def mechanism(rows, rng):
        noise = rng.laplace(size=size, scale=10.0)
        noise[-1] = noise[0]
        return noise + np.eye(size)[-1] * len(rows)

    return mechanism


def flagged(rows, rng):
    total, noise = float(sum(rows)), rng.laplace(scale=1e6)
    return {"total": total + noise, "reliable": float(abs(noise) < 0.001 * total)}


def product(rows, rng):
    one, other = rng.laplace(scale=10.0), rng.laplace(scale=10.0)
    return [len(rows) + one, one * other]


NOT_BOUNDED = {
    "names, shapes, signs and attributes are released too": (
        [1, 1, 3], [1, 1, 4], {}, [
            lambda rows, rng: {name: count + rng.laplace(scale=2.0) for name, count in Counter(rows).items()},
            series,
            frame,
            lambda rows, rng: np.ma.masked_array([rng.laplace(len(rows)), 7.0], mask=[False, max(rows) > 3]),
            lambda rows, rng: {("old" if max(rows) > 3 else "young"): len(rows) + rng.laplace()},
            lambda rows, rng: [5 + rng.laplace()] if max(rows) > 3 else 5 + rng.laplace(),
            lambda rows, rng: np.zeros((1, 2) if max(rows) > 3 else 2) + rng.laplace(size=2),
            lambda rows, rng: (rng.laplace(len(rows)), f"max {max(rows)}"),
            lambda rows, rng: [rng.laplace(len(rows)), -0.0 if 4 in rows else 0.0],
            lambda rows, rng: [len(rows) + rng.laplace(), -0.0 if 4 in rows else 0.0],
            lambda rows, rng: with_mark(Marked(rng.laplace(len(rows))), max(rows)),
        ],
    ),
    "an object that is returned again is not the same output": (
        [1, 50], [1], {}, [shared_buffer(), fitted_again(), filled_later()],
    ),
    "values that are given the same may decide something": (
        [9.0, 1.0, 2.0, 3.0], [70.0, 1.0, 2.0, 3.0], {"seed": 4}, [
            lambda rows, rng: {"a row": rows[rng.integers(len(rows))], "count": len(rows) + rng.laplace()},
            lambda rows, rng: (float(np.array(rows)[rng.random(len(rows)) < 0.5].sum()), len(rows) + rng.laplace()),
            lambda rows, rng: rows[0] if rng.choice([True, False], p=[0.9, 0.1]) else 9.0,
            lambda rows, rng: rows[0] if rng.choice(2, p=[0.5, 0.5]) == 0 else 0,
            lambda rows: rows[0] if random.choices(["t", "f"], weights=[1, 9])[0] == "t" else 0,
            lambda rows, rng: sum(rows) > rng.laplace(100.0, 1.0),
            lambda rows: sum(rows) + declared(0.0) > 65.0,
            lambda rows, rng: rows[0] if rng.laplace(len(rows)) > 30.0 else 0,
            lambda rows, rng: rows[0] if rng.exponential() > 20.0 else 0,
            lambda rows, rng: (value := rng.laplace(len(rows)), (10.0 < value < 12.0) * rows[0]),
            lambda rows, rng: rows[0] if rng.permutation(3)[0] == 0 else 0,
        ],
    ),
    "rare values of a distribution that moves": (
        X, Y, {}, [
            seldom_third,
            seldom_large,
            in_a_window(12.5, 19.5),
            in_a_window(45.0, 95.0),
            lambda rows, rng: (v := rng.laplace(len(rows)), max(rows) if v > 500.0 else 0),
            lambda rows: (value := own_noise(len(rows)), max(rows) if value > 12 else 0),
        ],
    ),
    "values that are not of the distribution stated": (
        [1, 1], [1], {"claim": 2.0}, [
            lambda rows: sum(rows) + folded(),
            lambda rows: thrice(len(rows)),
            lambda rows: from_one([0.5, 0.5] if len(rows) > 1 else [0.4, 0.6]),
            lambda rows: named([0.5, 0.5] if len(rows) > 1 else [0.4, 0.6]),
            lambda rows: fractions(len(rows)),
            lambda rows: not_a_number(len(rows)),
        ],
    ),
    "noise that is used twice": ([1.0] * 3, [1.0] * 2, {}, [used_twice(size) for size in (2, 12, 14)]),
    "noise that is compared with a large number": ([5e6, 5e6], [5e6], {}, [flagged]),
    "rounding hides no difference": (
        X, Y, {}, [
            product,
            lambda rows, rng: float(round(sum(rows) + rng.laplace(scale=1e6))) + 0.25 * (9 in rows),
            lambda rows, rng: sum(rows) * 0.1 + round(rng.laplace(scale=1e6)),
            lambda rows, rng: [1e12 + (z := rng.laplace(scale=10.0)), 1e12 + z + 1.5 * (9 in rows)],
        ],
    ),
    "whole numbers beyond the doubles": (
        [2**60, 1], [2**60], {"claim": 0.1},
        [lambda rows: geometric(sum(rows)), lambda rows: sum(rows) + int(stats.dlaplace.rvs(1.0))],
    ),
}  # fmt: skip
ALWAYS_OPEN = {"rare values of a distribution that moves", "values that are not of the distribution stated"}


@pytest.mark.parametrize(
    ("name", "mechanism"), [(name, each) for name, (*_, mechanisms) in NOT_BOUNDED.items() for each in mechanisms]
)
def test_what_is_never_bounded(name, mechanism):
    x, y, options, _ = NOT_BOUNDED[name]
    verdict = run(mechanism, x, y, **options).verdict
    assert verdict is UNDETERMINED if name in ALWAYS_OPEN else verdict is not BOUNDED


def test_every_move_counts_however_small():
    scaled = run(lambda rows, rng: [1e7, max(rows)] * rng.laplace(size=2) + [sum(rows), 2.0], [1.0, 2.0], [1.0, 1.0])
    assert scaled.verdict is EXCESS

    def tiny(rows, rng):
        return np.full(100, 0.9e-5 * len(rows)) + rng.laplace(size=100)

    result = run(tiny, [1.0] * 3, [1.0] * 2, claim=0.0005)
    assert result.loss.worst == pytest.approx(100 * 0.9e-5, rel=1e-6)
    assert result.verdict is EXCESS
    result = run(lambda rows, rng: [np.full(501, len(rows)), *rng.laplace(scale=9e9, size=501)], [1, 2], [1])
    assert "more than 500 numbers" in str(result)
    result = run(lambda rows, rng: np.float32(len(rows)) + np.float32(rng.laplace()))
    assert result.verdict is BOUNDED
    assert result.loss.worst == pytest.approx(1.0, rel=1e-5)


# What claims allow.


@pytest.mark.parametrize("epsilon", [0.01, 0.0675, 0.5, 1.0, 3.0, 8.0])
def test_the_corner_of_a_pure_loss_counts(epsilon):
    """Randomised response of this ε needs μ = −2 Φ⁻¹(1 / (1 + e^ε))."""
    needed = -2.0 * stats.norm.ppf(1.0 / (1.0 + math.exp(epsilon)))
    assert is_within(GaussianDP(needed * (1.0 + 1e-9)), epsilon, 0.0)
    assert not is_within(GaussianDP(needed * (1.0 - 1e-6)), epsilon, 0.0)
    delta = (math.exp(epsilon) - math.exp(epsilon / 2.0)) / (1.0 + math.exp(epsilon))
    assert is_within(ApproxDP(epsilon / 2.0, delta * (1.0 + 1e-8)), epsilon, 0.0)
    assert not is_within(ApproxDP(epsilon / 2.0, delta * (1.0 - 1e-6)), epsilon, 0.0)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.001, 1e-12), (1.0, 1e-9), (1.0, 1e-15), (1.0, 1e-30)])
def test_small_deltas_are_exact(epsilon, delta):
    def excess(mu):
        log = stats.norm.logcdf(mu / 2 - epsilon / mu)
        return -math.exp(log) * math.expm1(epsilon + stats.norm.logcdf(-mu / 2 - epsilon / mu) - log) - delta

    low, high = 1e-6, 5.0
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if excess(middle) < 0.0 else (low, middle)
    assert is_within(ApproxDP(epsilon, delta), 0.0, low * (1.0 - 1e-6))
    assert not is_within(ApproxDP(epsilon, delta), 0.0, low * (1.0 + 1e-6))


def test_losses_of_both_kinds_and_claims_of_corners():
    z = np.linspace(-9.0, 3.0, 100_001)
    q, own = math.exp(-0.5) * stats.norm.cdf(z), stats.norm.cdf(z + 1.0)
    is_upper = own <= 1.0 - q
    needed = np.max(stats.norm.ppf(own[is_upper]) - stats.norm.ppf(q[is_upper]))
    assert is_within(GaussianDP(needed * 1.0001), 0.5, 1.0)
    assert not is_within(GaussianDP(needed * 0.9999), 0.5, 1.0)
    rate = 1.0 / (1.0 + math.e)
    assert is_within(TradeOffCurve((0.0, rate, 1.0), (1.0, rate, 0.0)), 1.0 - 1e-9, 0.0)
    assert not is_within(TradeOffCurve((0.0, rate, 1.0), (1.0, rate * 1.001, 0.0)), 1.0, 0.0)
    assert not is_within(PureDP(0.0), 5e-13, 0.0)
