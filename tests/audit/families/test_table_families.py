"""Sets of outcomes: their order by shrunken log ratios, and the events that come of it, by exact laws."""

import math

import numpy as np
import pytest
from scipy import integrate
from scipy.special import expit

from dpaudit import PureDP
from dpaudit.audit.distinguishers.event_choice import choose_event
from dpaudit.audit.events.events import ExceptFor, Outcomes
from dpaudit.audit.events.outputs import as_outputs, tally
from dpaudit.audit.families.event_families import event_families
from dpaudit.audit.families.outcome_counts import count_outcomes
from dpaudit.audit.families.pilot_split import PilotSplit
from dpaudit.audit.families.shrunken_ratios import calibrated, shrunken_log_ratios
from dpaudit.audit.families.table_families import table_families
from dpaudit.audit.records.json_codec import plain_data, read_data


def expected_bound(p, q, runs):
    return math.log(p / q) - 1.645 * math.sqrt((1 - p) / (p * runs) + (1 - q) / (q * runs))


def best_bound(law_x, law_y, runs):
    """Of all events {ratio ≥ t} with probability above 1e-3, in either direction."""
    found = []
    for p, q in ((law_x, law_y), (law_y, law_x)):
        order = np.argsort(-p / q)
        sums = zip(p[order].cumsum()[:-1], q[order].cumsum()[:-1], strict=True)
        found += [expected_bound(a, b, runs) for a, b in sums if a > 1e-3]
    return max(found)


def draw(values, law, size, rng):
    return values[np.searchsorted(law.cumsum()[:-1], rng.random(size), side="right")]


def share_of_best(values, law_x, law_y, claim, runs, pilot, seed):
    """The chosen event's bound as a share of the best one, and the event."""
    rng = np.random.default_rng(seed)
    split = PilotSplit.in_half(draw(values, law_x, pilot, rng), draw(values, law_y, pilot, rng))
    choice = choose_event(split, claim, runs - pilot, 0.05)
    inside = choice.event.contains(values)
    p, q = law_x[inside].sum(), law_y[inside].sum()
    p, q = (p, q) if choice.likelier_on == "x" else (q, p)
    return expected_bound(p, q, runs) / best_bound(law_x, law_y, runs), choice.event


def tilted(log_ratios):
    """Two laws with these log-likelihood ratios, up to a constant."""
    up, down = np.exp(log_ratios / 2), np.exp(-log_ratios / 2)
    return up / up.sum(), down / down.sum()


CODES = np.array([[place >> bit & 1 for bit in range(13)] for place in range(2**13)])


@pytest.mark.parametrize("deviation", [0.3, 1.0])
def test_one_deviation_is_the_posterior_mean(deviation):
    """If nearly all outcomes deviate alike, the estimate is the posterior mean under a normal prior."""
    rng = np.random.default_rng(0)
    own = rng.normal(0, deviation, 20_000)
    hits = rng.integers(20, 200, len(own))
    on_x = rng.binomial(hits, expit(0.3 + own)).astype(float)
    found = shrunken_log_ratios(np.full(len(own), 0.3), on_x, hits - on_x)
    for place in range(3):

        def weight(u, a=on_x[place], n=hits[place]):
            share = expit(0.3 + u)
            return math.exp(a * math.log(share) + (n - a) * math.log1p(-share) + n / 2) * math.exp(
                -((u / deviation) ** 2) / 2
            )

        total = integrate.quad(weight, -5, 5, epsabs=0)[0]
        mean = integrate.quad(lambda u, weight=weight: u * weight(u), -5, 5, epsabs=0)[0] / total
        assert found[place] == pytest.approx(0.3 + mean, abs=0.2 * deviation)
    assert np.mean((found - 0.3 - own) ** 2) < 0.9 * np.mean(
        (np.log((on_x + 0.5) / (hits - on_x + 0.5)) - 0.3 - own) ** 2
    )


def test_estimates_are_between_model_and_counts_and_turn_with_the_sides():
    rng = np.random.default_rng(1)
    on_x, on_y = rng.integers(0, 50, (2, 300)).astype(float)
    model = rng.normal(size=300)
    found = shrunken_log_ratios(model, on_x, on_y)
    raw = np.log(np.maximum(on_x, 1e-9) / np.maximum(on_y, 1e-9))
    assert np.all((found - model) * (raw - model) >= -1e-9)
    assert np.all(np.abs(found - model) <= np.abs(raw - model) + 1e-9)
    assert shrunken_log_ratios(-model, on_y, on_x) == pytest.approx(-found, abs=1e-6)


def test_one_odd_outcome_keeps_its_ratio_and_the_rest_are_equal():
    hits = np.full(300, 400.0)
    on_x = np.random.default_rng(2).binomial(hits.astype(int), 0.5).astype(float)
    on_x[7] = 330.0
    found = shrunken_log_ratios(np.zeros(300), on_x, hits - on_x)
    assert found[7] > 0.95 * math.log(330 / 70)
    assert np.std(np.delete(found, 7)) < 0.4 * np.std(np.log(on_x / (hits - on_x)))


def test_a_score_is_calibrated():
    scores = np.linspace(-3, 3, 50)
    ratios = 0.2 + 0.7 * scores
    assert calibrated(scores, 1e4 * expit(ratios), 1e4 * expit(-ratios)) == pytest.approx((0.2, 0.7), abs=1e-6)
    assert calibrated(np.ones(5), np.ones(5), np.ones(5)) == (0.0, 0.0)


KINDS = [
    np.array([3, 1, 3, 2, 3, 2, 9, 1]),
    np.array([0.5, np.nan, 0.5, np.nan, -0.0, 0.0, 7.0, 0.5]),
    np.array([[1, 2], [1, 2], [0, 2], [1, 2], [0, 2], [5, 5], [1, 2], [5, 5]]),
    as_outputs(["a", None, ("a", 1), ("a", 1), "a", float("nan"), "b", float("nan")], 8, "m"),
]


@pytest.mark.parametrize("outputs", KINDS, ids=lambda kind: str(kind.dtype))
def test_counts_are_those_of_each_part(outputs):
    split = PilotSplit(outputs[:3], outputs[3:5], outputs[5:], outputs[:0])
    counted = count_outcomes(split)
    for part, row in zip(split, counted.counts, strict=True):
        times, _ = tally(part)
        held = np.repeat(counted.values, row, axis=0)
        assert tally(held)[0] == times
        assert int(row.sum()) == len(part)


def test_a_misprinted_outcome_of_a_discrete_sampler():
    """One number in sixty has the wrong frequency: no half-line shows it, and a raw table follows the noise."""
    values = np.arange(-60, 61)
    law_x, law_y = (np.exp(-0.5 * np.abs(values - moved)) for moved in (0, 1))
    law_x[63] /= 0.6
    law_x, law_y = law_x / law_x.sum(), law_y / law_y.sum()
    found = [share_of_best(values, law_x, law_y, PureDP(0.5), 100_000, 5_000, seed)[0] for seed in range(9)]
    assert np.median(found) > 0.93  # 0.87 with raw log ratios


@pytest.mark.usefixtures("without_trees")
def test_eight_thousand_outcomes_without_order():
    """Each vector of bits has its own ratio, so no coordinate and no sum says anything."""
    law_x, law_y = tilted(0.4 * np.random.default_rng(3).choice([-1, 1], len(CODES)))
    share, event = share_of_best(CODES, law_x, law_y, PureDP(0.1), 1_000_000, 50_000, seed=100)
    assert share > 0.68  # 0.6 with the 512 commonest outcomes
    assert len(str(event)) < 250


@pytest.mark.usefixtures("without_trees")
def test_a_sum_with_exceptions():
    """Coordinates that lean, and outcomes that deviate from their sum: too many to be listed one by one."""
    rng = np.random.default_rng(3)
    law_x, law_y = tilted(CODES @ rng.normal(0, 0.1, 13) + 0.4 * rng.choice([-1, 1], len(CODES)))
    share, event = share_of_best(CODES, law_x, law_y, PureDP(0.1), 4_000_000, 200_000, seed=100)
    assert share > 0.73  # 0.67 with the 512 commonest outcomes
    assert isinstance(event, ExceptFor)
    assert len(event.exceptions.values) * 13 <= 16_384
    assert len(str(event)) < 300
    assert read_data(plain_data(event)) == event


@pytest.mark.parametrize(("labels", "pilot", "strings"), [(20_000, 200_000, False), (4_000, 40_000, True)])
def test_thousands_of_labels(labels, pilot, strings):
    """The list of thousands of labels is stored as it is, and its text names a few."""
    values = np.arange(labels)
    law_x, law_y = tilted(np.random.default_rng(5).choice([-0.5, 0.5], len(values)))
    if strings:
        values = np.array([f"w{value}" for value in values], dtype=object)
    share, event = share_of_best(values, law_x, law_y, PureDP(0.5), 4_000_000, pilot, seed=1)
    assert share > 0.97
    assert isinstance(event, Outcomes)
    assert len(event.values) <= 16_384
    assert len(str(event)) < 120


def test_the_best_set_of_equal_laws_does_not_look_better_than_it_is():
    """The order of 40 outcomes follows the noise; their observed hits would show a difference of six errors."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, y = rng.integers(0, 40, (2, 40_000))
        (family,) = table_families(split := PilotSplit.in_half(x, y), split)
        spread = np.abs(family.hits_x - family.hits_y) / np.sqrt(np.maximum(family.hits_x + family.hits_y, 1.0))
        assert spread.max() < 1.5
        assert (family.hits_x[-1], family.hits_y[-1]) == (family.runs, family.runs)


def test_a_score_that_some_outcomes_lack_is_left_out():
    """A word beside numbers has no number, so sums over the numbers are NaN for it."""
    rng = np.random.default_rng(0)

    def words(share, size):
        odd = rng.random(size) < share
        pairs = rng.integers(0, 12, (size, 2)).tolist()
        return as_outputs(["none" if o else tuple(pair) for o, pair in zip(odd, pairs, strict=True)], size, "m")

    split = PilotSplit(words(0.3, 4_000), words(0.1, 4_000), words(0.3, 4_000), words(0.1, 4_000))
    event = choose_event(split, PureDP(0.5), 100_000, 0.05).event
    assert event.contains(as_outputs(["none"], 1, "m"))[0] != event.contains(as_outputs([(3, 4)], 1, "m"))[0]


def test_a_single_value_that_recurs_among_continuous_ones_is_an_event():
    rng = np.random.default_rng(0)
    x, y = (np.where(rng.random(3_000) < share, 0.25, rng.normal(size=3_000)) for share in (0.3, 0.2))
    families = event_families(PilotSplit.in_half(x, y))
    (own,) = (each for each in families if each.build(0, True) == Outcomes((0.25,)))
    assert (own.hits_x.tolist(), own.hits_y.tolist()) == ([np.sum(x == 0.25)], [np.sum(y == 0.25)])
