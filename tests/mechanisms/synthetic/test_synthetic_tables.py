"""Generators of synthetic tables: the law of the marginals, the tables that they stand for, and the twins' true losses.

Random tests have fixed seeds and false-alarm probabilities of at most 1e-6 each.
"""

import math
import pickle

import numpy as np
import pytest
from scipy import stats

from dpaudit import AddRemove, CategoricalColumn, PureDP, check, table_features
from dpaudit.audit.errors import ClaimError, DatasetError
from dpaudit.mechanisms import NoisyBins, NoisyMarginals
from dpaudit.mechanisms.faulty import LearnedCategories, LearnedRange, MarginalsNotSplit, RowsOfTheData
from dpaudit.mechanisms.synthetic.noisy_marginals import _log_law, exact_loss, marginals

ALARM = 1e-6
ONE_COLUMN = NoisyMarginals(1.0, (2,), rows=3)
MECHANISMS = [ONE_COLUMN, NoisyMarginals(1.0, (2, 3)), NoisyMarginals(0.5, (4,), 5, 2)]


def by_slow_code(counts, ratio, rows, reach=25):
    """Law of the values of category 1: every pair of noises, by its geometric probabilities."""
    law = np.zeros(rows + 1)
    for a in range(-reach, reach + 1):
        for b in range(-reach, reach + 1):
            weight = ((1 - ratio) / (1 + ratio)) ** 2 * ratio ** (abs(a) + abs(b))
            zero, one = max(counts[0] + a, 0), max(counts[1] + b, 0)
            share = one / (zero + one) if zero + one else 0.5
            law += weight * stats.binom.pmf(np.arange(rows + 1), rows, share)
    return law


def test_the_law_of_a_column_is_that_of_slow_code():
    assert np.exp(_log_law(np.array([2, 1]), ONE_COLUMN)) == pytest.approx(by_slow_code((2, 1), math.exp(-1), 3))


def test_draws_follow_the_law():
    runs = 20_000
    drawn = ONE_COLUMN.sample([(0,), (0,), (1,)], runs, np.random.default_rng(1))["column 0: 1"]
    law = np.exp(_log_law(np.array([2, 1]), ONE_COLUMN))
    counts, each = np.bincount(drawn, minlength=4), ALARM / 8
    assert np.all(counts >= stats.binom.ppf(each, runs, law))
    assert np.all(counts <= stats.binom.isf(each, runs, law))


@pytest.mark.parametrize("sensitivity", [1, 2])
def test_the_loss_is_at_most_epsilon(sensitivity):
    """Over small pairs of neighbours, and epsilon is nearly reached."""
    mechanism = NoisyMarginals(2.0, (2, 2), 10, sensitivity)
    rows = [(0, 0), (1, 1), (None, 0)]
    losses = []
    for other in ([], [(0, 0)]):
        for row in rows:
            for change in [None] if sensitivity == 1 else rows:
                neighbour = other if change is None else [*other, change]
                losses.append(exact_loss(mechanism, [*other, row], neighbour))
    assert 1.6 < max(losses) <= 2.0 + 1e-9


def test_epsilon_not_split_is_lost_in_each_column():
    twin = MarginalsNotSplit(1.0, (2, 2), 50)
    assert exact_loss(twin.runs_as, [(0, 0), (1, 1)], [(0, 0)]) == pytest.approx(twin.truth.epsilon)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_a_table_has_the_marginals_that_are_its_output(mechanism):
    rows = [tuple(0 for _ in mechanism.categories)] * 2
    table = mechanism.table(rows, np.random.default_rng(3))
    drawn = mechanism.sample(rows, 1, np.random.default_rng(3))
    columns = {f"column {place}": CategoricalColumn(tuple(range(k))) for place, k in enumerate(mechanism.categories)}
    features = table_features(table, columns)
    assert {name: features[name] for name in drawn} == {name: float(count[0]) for name, count in drawn.items()}


def test_values_outside_the_domain_are_not_counted():
    counted = marginals([(0, 1), (7, 1), (None, -1), (1.5, 1)], (2, 2))
    assert [column.tolist() for column in counted] == [[1, 0], [0, 3]]
    with pytest.raises(DatasetError, match="is not a tuple of 2 categories"):
        marginals([(0,)], (2, 2))


def test_a_noisy_number_of_rows_varies_and_that_of_the_data_does_not():
    data, rng = [(0,)] * 5, np.random.default_rng(0)
    assert len(set(NoisyMarginals(1.0, (2,)).sample(data, 100, rng)["rows"].tolist())) > 3
    assert set(RowsOfTheData(1.0, (2,)).sample(data, 100, rng)["rows"].tolist()) == {5}


def test_learned_categories_give_no_other():
    rng = np.random.default_rng(0)
    instead = LearnedCategories(1.0, (3,), 20).sample([(0,), (2,)], 200, rng)
    assert instead["column 0: 1"].max() == 0 < instead["column 0: 2"].max()
    besides = LearnedCategories(1.0, (3,), 20, "added")
    assert besides.sample([(0,)], 200, rng)["column 0: 3"].max() == 0
    assert besides.sample([(0,), (9,)], 200, rng)["column 0: 3"].max() > 0


def test_numbers_lie_in_the_declared_range_or_in_that_of_the_data():
    data, rng = [10.0, None, 40.0, 1e9], np.random.default_rng(0)
    declared = NoisyBins(1.0, 0.0, 100.0).sample(data, 500, rng)
    assert 0.0 <= declared.min() < 25.0 < 75.0 < declared.max() < 100.0
    learned = LearnedRange(1.0).sample(data[:3], 500, rng)
    assert learned.min() >= 10.0
    assert learned.max() < 40.0


@pytest.mark.parametrize("mechanism", [*MECHANISMS, NoisyBins(1.0, 0.0, 1.0)], ids=str)
def test_a_mechanism_is_a_value(mechanism):
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert mechanism.claim == PureDP(mechanism.epsilon)
    assert not hasattr(mechanism, "__dict__")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, ()), r"categories=\(\) is a table without columns"),
        ((1.0, (1,)), "categories=1 is not a number of categories"), ((1.0, (2,), 0), "rows=0 is not a number of rows"),
        ((1.0, (2,), None, 2), "sensitivity=2 is not 1 for add/remove"), ((0.0, (2,)), "epsilon=0.0"),
    ],
)  # fmt: skip
def test_parameters_outside_their_range(arguments, message):
    with pytest.raises(ClaimError, match=message):
        NoisyMarginals(*arguments)


def test_a_range_of_bins_is_a_range():
    with pytest.raises(ClaimError, match="do not form a range"):
        NoisyBins(1.0, 1.0, 1.0)


def test_the_event_names_a_category():
    result = check(
        LearnedCategories(1.0, (3,), 20), [(0,), (2,)], [(0,)], claim=1.0, adjacency=AddRemove(), runs=500, alpha=1e-6,
        bits=False, jobs=1,
    )  # fmt: skip
    assert result.is_refuted
    assert "column 0: " in result.event_in_words
