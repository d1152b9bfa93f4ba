"""Families of events by several columns: each finds a leak that no column shows, and equal laws have none."""

import itertools
import math
from functools import partial
from operator import itemgetter

import numpy as np
import pytest
from scipy import stats

from dpaudit import PureDP
from dpaudit.audit.distinguishers.event_choice import choose_among, choose_event
from dpaudit.audit.events.events import Scored
from dpaudit.audit.events.features import Conditional, Coordinates, OrderStatistics, Parities, Products, Released
from dpaudit.audit.events.leaves import learn_leaves, name_words
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.families.column_screen import screened
from dpaudit.audit.families.key_families import key_families
from dpaudit.audit.families.keyed_value_families import clear_keys, keyed_value_families
from dpaudit.audit.families.order_families import order_families
from dpaudit.audit.families.parity_families import _centre, _of_all_sets, _of_triples, parity_families
from dpaudit.audit.families.pilot_split import PilotSplit
from dpaudit.audit.families.product_families import product_families
from dpaudit.audit.families.released_families import released_families
from dpaudit.audit.records.json_codec import plain_data, read_data


def parity(even, size, rng, width, chosen):
    """Normals, of which the product of the chosen ones is positive with probability `even`."""
    values = rng.normal(size=(size, width))
    sign = np.where(rng.random(size) < even, 1.0, -1.0) * np.sign(values[:, chosen]).prod(axis=1)
    values[:, chosen[-1]] *= sign
    return values


def signs(agree, size, rng):
    """Thirty normals, two of which have the same sign with probability `agree`."""
    values = rng.normal(size=(size, 30))
    sign = np.where(rng.random(size) < agree, 1.0, -1.0) * np.sign(values[:, 4])
    values[:, 23] = np.abs(values[:, 23]) * sign
    return values


NONE = np.zeros(200)
ONE = np.where(np.arange(200) == 117, 4.0, 0.0)


def pairs(answers, size, rng, *, key=None):
    """A key drawn evenly, or this one, and its answer with Laplace noise."""
    key = rng.integers(0, len(answers), size) if key is None else np.full(size, key)
    return np.column_stack([key, np.round(answers[key] + rng.laplace(size=size), 6)])


def named_pairs(answers, size, rng, **options):
    drawn = pairs(answers, size, rng, **options).tolist()
    return as_outputs([(f"key{key:.0f}", value) for key, value in drawn], size, "m")


def last_gap(rate, size, rng):
    """Shuffled exponentials, of which the gap between the two largest has this rate."""
    values = np.sort(rng.exponential(size=(size, 8)), axis=1)
    values[:, 7] = values[:, 6] + rng.exponential(1 / rate, size)
    return rng.permuted(values, axis=1)


def middle_gap(least, size, rng):
    """Shuffled numbers with a common offset, whose middle gap has a smallest value."""
    values = np.sort(rng.exponential(size=(size, 6)), axis=1)
    values[:, 3:] += least
    return rng.permuted(values + rng.normal(scale=5.0, size=(size, 1)), axis=1)


def one_number_anywhere(shift, size, rng):
    """Vectors of twelve with a single number, at a place by chance; the number is what tells the datasets apart."""
    found = np.full((size, 12), np.nan)
    found[np.arange(size), rng.integers(0, 12, size)] = shift + rng.laplace(size=size)
    return found


RISING = np.repeat([0.5, -0.5], 5)


def even_bits(even, size, rng):
    """Eight fair bits whose sum is even with this probability."""
    bits = rng.integers(0, 2, (size, 8))
    bits[:, 7] = (bits[:, :7].sum(axis=1) + (rng.random(size) >= even)) % 2
    return bits


def parity_of(*chosen, width):
    return lambda even, size, rng: parity(even, size, rng, width, chosen)


@pytest.mark.usefixtures("without_trees")
@pytest.mark.parametrize(
    ("draw", "x", "y", "epsilon", "pilot", "words", "least"),
    [
        (parity_of(0, 4, 9, width=10), 0.65, 0.35, 0.05, 16_000, "parity of [coordinate", 0.8 * math.log(13 / 7)),
        (parity_of(1, 2, 5, 7, 11, 12, 15, width=16), 0.65, 0.35, 0.05, 16_000, "parity of [c", 0.8 * math.log(13 / 7)),
        (parity_of(3, 14, 29, width=30), 0.65, 0.35, 0.05, 16_000, "parity of [coordinate", 0.8 * math.log(13 / 7)),
        (parity_of(*range(24), width=24), 0.65, 0.35, 0.05, 16_000, "parity of [coordinate", 0.8 * math.log(13 / 7)),
        (even_bits, 0.7, 0.3, 0.5, 10_000, "coordinate", 0.9 * math.log(7 / 3)),
        (signs, 0.6, 0.4, 0.05, 10_000, "·(coordinate 23 −", 0.9 * math.log(0.6 / 0.4)),  # trees reach a tenth of it
        (signs, 0.53, 0.47, 0.05, 20_000, "(coordinate 4 −", 0.9 * math.log(0.53 / 0.47)),  # and here nothing
        (pairs, RISING, -RISING, 0.5, 10_000, "coordinate", 0.75),  # without keys, 0.03
        (last_gap, 1.0, 2.0, 0.5, 10_000, "sorted coordinate", 3.0),  # by coordinates and differences, 2.7
        (middle_gap, 0.0, 0.2, 0.5, 10_000, "sorted coordinate", math.inf),  # by coordinates and differences, 0.8
        (pairs, NONE, ONE, 1.0, 25_000, "where coordinate 0 = 117)", 3.0),  # 4 below 0; by the value itself, 0.2
        (named_pairs, NONE, ONE, 1.0, 25_000, "where output[0] = 'key117')", 3.0),
    ],
)
def test_a_leak_that_no_column_shows(draw, x, y, epsilon, pilot, words, least):
    """Products of signs, keys that leak or move in opposite directions, and gaps between neighbours in order."""
    rng = np.random.default_rng(0)
    split = PilotSplit.in_half(draw(x, pilot, rng), draw(y, pilot, rng))
    choice = choose_event(split, PureDP(epsilon), 1_000_000, 0.05)
    assert words in str(choice.event)
    assert read_data(plain_data(choice.event)) == choice.event
    fresh = partial(draw, key=117) if y is ONE else draw
    hits = [choice.event.count(fresh(data, 5_000 if y is ONE else 100_000, rng)) for data in (x, y)]
    more, fewer = hits if choice.likelier_on == "x" else hits[::-1]
    assert math.log(more / max(fewer, 1)) >= least if least < math.inf else fewer == 0 < more
    if y is ONE:
        assert more > 1_250
        assert choice.event.count(draw(ONE, 1_000, rng, key=116)) == 0


def test_keys_together_are_named_by_their_number():
    rng = np.random.default_rng(0)
    split = PilotSplit.in_half(pairs(RISING, 10_000, rng), pairs(-RISING, 10_000, rng)).map(Coordinates(2).read)
    names = [str(family.build(0, True)) for family in key_families(Coordinates(2), split) if family.is_learned]
    assert "… 10 in all" in names[-1]


def by_columns(families, width):
    """The families of vectors, by their coordinates."""
    columns = Coordinates(width)
    return lambda x, y: list(families(columns, PilotSplit.in_half(x, y).map(columns.read)))


def in_order(x, y):
    return list(order_families(PilotSplit.in_half(x, y), x.shape[1], together=True))


def released(x, y):
    return list(released_families(PilotSplit.in_half(x, y), x.shape[1], together=True))


def test_what_fewer_columns_show_is_not_tried_again():
    """Shifted columns and bits that lean, of which single columns and sums tell everything."""
    rng = np.random.default_rng(1)
    for width in (8, 20):
        x, y = (rng.laplace(size=(20_000, width)) + shift for shift in (0.5, 0.0))
        bits = [(rng.random((20_000, width)) < p).astype(float) for p in (0.3, 0.5)]
        assert by_columns(parity_families, width)(x, y) == by_columns(parity_families, width)(*bits) == []
    assert by_columns(product_families, 20)(x, y) == []
    noise = rng.laplace(size=(20_000, 10))
    for other in (rng.laplace(size=(20_000, 10)) + 1.0, noise + np.eye(10)[0], rng.laplace(size=(20_000, 10))):
        assert in_order(other, noise) == []
    for x in (rng.laplace(size=(4_000, 3)), rng.integers(-1, 2, (4_000, 3)), np.full((4_000, 3), np.nan)):
        assert released(x, x) == []


def test_equal_laws_show_nothing():
    rng = np.random.default_rng(2)
    kinds = (rng.standard_cauchy, rng.normal, lambda size: rng.integers(0, 2, size).astype(float))
    for kind, width in itertools.product(kinds, (3, 14, 40)):
        assert by_columns(parity_families, width)(kind(size=(4_000, width)), kind(size=(4_000, width))) == []
    for kind in kinds * 2:
        assert by_columns(product_families, 64)(kind(size=(4_000, 64)), kind(size=(4_000, 64))) == []
    found = (by_columns(key_families, 2)(pairs(NONE, 20_000, rng), pairs(NONE, 20_000, rng)) for _ in range(20))
    assert sum(map(bool, found)) <= 6  # the largest of 6,000 distances exceeds 4 errors in a sixth of the pilots
    for width, runs in itertools.product((3, 20), (1, 2, 5)):
        values = rng.normal(size=(runs, width))
        assert by_columns(parity_families, width)(values, values) == []


def test_moments_of_all_sets_are_those_of_the_definition():
    bits = np.random.default_rng(3).random((5, 40)) < np.linspace(0.2, 0.8, 5)[:, None]
    signs = np.where(bits, 1.0, -1.0)
    signs -= signs.mean(axis=1, keepdims=True)
    means, squares = _of_all_sets(bits)
    triples, _ = _of_triples(bits)
    for members in itertools.chain.from_iterable(itertools.combinations(range(5), size) for size in range(1, 6)):
        product = signs[list(members)].prod(axis=0)
        place = sum(1 << column for column in members)
        assert means[place] == pytest.approx(product.mean(), abs=1e-12)
        assert squares[place] == pytest.approx((product**2).mean(), abs=1e-12)
        if len(members) == 3:
            assert triples[members] == pytest.approx(product.mean(), abs=1e-6)


@pytest.mark.parametrize(
    ("values", "centre"),
    [
        ([0.0] * 60 + [1.0] * 40, 0.4), ([0.0] * 30 + [1.0] * 70, 1.0), ([2.0, 2.0], math.nan),
        ([math.nan, math.inf], math.nan),
    ],
    ids=["few ones", "many ones", "constant", "no numbers"],
)  # fmt: skip
def test_centres(values, centre):
    assert _centre(np.array(values)) == pytest.approx(centre, nan_ok=True)


def test_columns_are_those_of_the_definition():
    parities = Parities(Coordinates(3), (((0, 0.0), (1, 0.0), (2, 1.0)), ((0, 0.0), (2, 0.5))))
    outputs = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [1.0, np.nan, 0.0]])
    np.testing.assert_array_equal(parities.read(outputs), [[1, 0, np.nan], [0, 0, 1]])
    many = Parities(Coordinates(9), (tuple((place, 0.0) for place in range(9)),))
    assert many.names[0].endswith("[coordinate 5 ≥ 0] + … 9 in all")
    products = Products(Coordinates(3), ((0, 1.0, 2, -1.0), (1, 0.0, 2, 0.0)))
    np.testing.assert_array_equal(
        products.read(np.array([[2.0, 3.0, 4.0], [0.0, np.nan, 1.0]])), [[5, -2], [12, np.nan]]
    )
    assert products.names == ("(coordinate 0 − 1)·(coordinate 2 − -1)", "(coordinate 1 − 0)·(coordinate 2 − 0)")
    ordered, outputs = OrderStatistics(3), np.array([[3.0, 1.0, 2.0], [5.0, np.nan, 1.0]])
    np.testing.assert_array_equal(ordered.read(outputs), [[1, 1], [2, 5], [3, np.nan], [1, 4], [1, np.nan]])
    assert len(ordered.names) == 5
    long = OrderStatistics(100, (0, 50, 99))
    outputs = np.random.default_rng(0).permuted(np.tile(np.arange(100.0) ** 2, (3, 1)), axis=1)
    assert long.read(outputs)[:, 0].tolist() == [0.0, 2500.0, 9801.0, 99.0, 197.0]
    assert long.names[-1] == "(sorted coordinate 99 − sorted coordinate 98)"


def test_columns_where_another_has_a_value():
    leaves = learn_leaves(*[as_outputs([("a", 1.0), ("b", 2.0), ("a", 3.0)], 3, "m")] * 2)
    read, key = 1, leaves.names.index("output[0]")
    columns = Conditional(leaves, ((key, float(leaves.coded[0][1].index("b")), read), (key, -1.0, read)))
    assert columns.names == ("(output[1] where output[0] = 'b')", "(output[1] where output[0] = anything else)")
    outputs = as_outputs([("b", 5.0), ("a", 6.0), ("c", 7.0), "b"], 4, "m")
    np.testing.assert_array_equal(columns.read(outputs), [[5.0, np.nan, np.nan, np.nan], [np.nan, np.nan, 7.0, np.nan]])


def test_the_distance_is_that_of_kolmogorov_and_smirnov():
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.3, 1.0, (3, 4_000)), rng.normal(size=(3, 4_000))
    x[2] = y[2][::-1]
    exact = [stats.ks_2samp(*pair).statistic * math.sqrt(2_000) for pair in zip(x, y, strict=True)]
    found = screened(x, y)
    assert np.all(found <= np.array(exact) + 1e-9)
    assert found[:2] == pytest.approx(exact[:2], rel=0.12)  # at 15 quantiles only
    assert found[2] == 0.0


def test_the_distance_of_equal_laws_is_small():
    rng = np.random.default_rng(1)
    for kind in (rng.normal, lambda size: rng.integers(0, 3, size).astype(float)):
        assert screened(kind(size=(200, 2_000)), kind(size=(200, 2_000))).max() < 2.6


def best_of(x, y, claim, runs):
    """The best event of these families alone."""
    split = PilotSplit.in_half(x, y)
    families = list(released_families(split, x.shape[1], together=True))
    choice = choose_among(families, claim, runs, 0.05)[0]
    assert isinstance(choice.event, Scored)
    assert choice.event.score.columns == Released(x.shape[1])
    return choice


def test_a_number_that_stands_anywhere():
    rng = np.random.default_rng(0)
    choice = best_of(one_number_anywhere(0.5, 6_000, rng), one_number_anywhere(0.0, 6_000, rng), PureDP(0.3), 200_000)
    p, q = (np.mean(choice.event.contains(one_number_anywhere(shift, 100_000, rng))) for shift in (0.5, 0.0))
    assert max(p, q) > 0.15  # a coordinate has a twelfth of the runs
    assert abs(np.log(p / q)) > 0.45


def test_the_place_of_a_number():
    """One of five places; from x to y they move by one."""

    def draw(first, size, rng):
        found = np.full((size, 6), np.nan)
        found[np.arange(size), rng.integers(first, 5 + first, size)] = rng.laplace(size=size)
        return found

    rng = np.random.default_rng(0)
    choice = best_of(draw(0, 2_000, rng), draw(1, 2_000, rng), PureDP(1.0), 100_000)
    p, q = (np.mean(choice.event.contains(draw(first, 20_000, rng))) for first in (0, 1))
    assert min(p, q) == 0.0
    assert max(p, q) > 0.15


# Keys that leak in outputs whose rows come in any order and number.

KEYS, LEAKING = 300, 117


def keyed(leak, size, rng, *, key=None):
    """Eight keys, keyed evenly, with noisy answers; the answer of one key is moved by the leak."""
    keys = rng.integers(0, KEYS, (size, 8))
    if key is not None:
        keys[:, rng.integers(8)] = key
    answers = np.round(rng.laplace(size=(size, 8)) + leak * (keys == LEAKING), 6)
    return [
        [(f"key{k}", a) for k, a in zip(*row, strict=True)] for row in zip(keys.tolist(), answers.tolist(), strict=True)
    ]


FORMS = {
    "pairs": lambda rows: rows,
    "dictionaries": lambda rows: [{"key": key, "count": count} for key, count in rows],
    "side by side": lambda rows: {"keys": [key for key, _ in rows], "counts": [count for _, count in rows]},
    "one dictionary": dict,
    "selected": lambda rows: [key for key, count in rows if count > 2.0],
}


@pytest.mark.parametrize("form", FORMS)
def test_the_leaking_key_differs_most(form):
    rng = np.random.default_rng(0)
    x, y = (as_outputs([FORMS[form](rows) for rows in keyed(leak, 2_000, rng)], 2_000, "m") for leak in (0.0, 4.0))
    first, *others = map(name_words, clear_keys(x, y))
    assert f"'key{LEAKING}'" in first
    assert len(others) <= 1


def test_events_of_that_key():
    rng = np.random.default_rng(0)

    def outputs(leak, size, **options):
        return as_outputs(keyed(leak, size, rng, **options), size, "m")

    families = keyed_value_families(PilotSplit.in_half(outputs(0.0, 3_000), outputs(4.0, 3_000)))
    ratio, event = max(
        (
            (float(ratios.max()), family.build(int(np.argmax(ratios)), True))
            for family in families
            for ratios in [np.where(family.hits_y >= 15, (family.hits_y + 1) / (family.hits_x + 1), 0.0)]
        ),
        key=itemgetter(0),
    )
    assert ratio > 10.0
    assert f"(output[…][1] where output[…][0] = 'key{LEAKING}')" in str(event)
    assert read_data(plain_data(event)) == event
    # The loss of this key is 4; no place of the output tells more than e^0.1.
    fewer, more = (event.count(outputs(leak, 2_000, key=LEAKING)) for leak in (0.0, 4.0))
    assert math.log(more / max(fewer, 1)) > 2.0
    assert event.count(outputs(4.0, 1_000, key=LEAKING - 1)) < 0.1 * 1_000


def test_equal_datasets_have_hardly_any_such_keys():
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(4):
        x, y = (as_outputs(keyed(0.0, 1_000, rng), 1_000, "m") for _ in range(2))
        found += len(clear_keys(x, y))
    assert found <= 2  # of 1,200 keys


def test_outputs_with_too_many_numbers_are_not_read_by_key():
    outputs = as_outputs([[(key, float(value)) for key in range(3_000)] for value in range(4)], 4, "m")
    assert clear_keys(outputs[:2], outputs[2:]) == []


def test_outputs_without_keys_are_left_to_other_families():
    outputs = as_outputs([(0.5, None), (1.5, None)] * 50, 100, "m")
    assert list(keyed_value_families(PilotSplit.in_half(outputs, outputs))) == []
