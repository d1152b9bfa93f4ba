"""Events for outputs of several parts come near the best there are: their probabilities against the exact optimum.

The optimum is that of the true likelihood ratio, from a large sample of it under change of measure.
"""

import enum
import math

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from dpaudit import PureDP
from dpaudit.audit.distinguishers.event_choice import choose_event
from dpaudit.audit.events.features import Coordinates
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.events.scores import Forest
from dpaudit.audit.families.learned_scores import forest
from dpaudit.audit.families.pilot_split import PilotSplit

RUNS = 1_000_000


class Answer(enum.Enum):
    ABOVE = 1
    BELOW = 2


def expected_bound(p, q):
    """The bound on epsilon that an event gives at RUNS runs a side, by the delta method."""
    return math.log(p / q) - 1.645 * math.sqrt((1 - p) / (p * RUNS) + (1 - q) / (q * RUNS))


def best_bound(loss):
    """Of all events {loss ≥ t}: `loss` is the log-likelihood ratio of many outputs on x."""
    loss = np.sort(loss)[::-1]
    p = np.arange(1, len(loss) + 1) / len(loss)
    q = np.exp(-loss).cumsum() / len(loss)
    ends = np.flatnonzero(np.diff(loss, append=-math.inf) < 0)  # a plateau is taken whole
    ends = ends[(p[ends] > 1e-3) & (p[ends] < 0.99)]
    return max(expected_bound(p[i], q[i]) for i in ends[:: max(1, len(ends) // 500)])


def bound_of_choice(draw, x, y, claim, pilot, seed=0, fresh=100_000):
    """The bound to be expected of the chosen event, with its probabilities from fresh outputs."""
    rng = np.random.default_rng(seed)
    parts = [draw(data, pilot // 2, rng) for data in (x, y, x, y)]
    choice = choose_event(PilotSplit(*parts), claim, RUNS, 0.05)
    rng = np.random.default_rng(seed + 1)
    on_x, on_y = (np.mean(choice.event.contains(draw(data, fresh, rng))) for data in (x, y))
    return expected_bound(on_x, on_y) if choice.likelier_on == "x" else expected_bound(on_y, on_x)


def noisy(answers, size, rng, scale=1.0):
    return np.asarray(answers) + rng.laplace(scale=scale, size=(size, len(answers)))


def laplace_loss(moved, scale=1.0, coordinates=1, size=100_000):
    noise = np.random.default_rng(7).laplace(scale=scale, size=(size, coordinates))
    return ((np.abs(noise + moved) - np.abs(noise)) / scale).sum(axis=1)


def sums(answers, size, rng):
    """Prefix sums, of which the differences of neighbours are independent."""
    return noisy(answers, size, rng, 5.0).cumsum(axis=1)


def signs(agree, size, rng):
    """Signs that agree more often on x: each coordinate has the same law on both."""
    first = rng.normal(size=size)
    sign = np.where(rng.random(size) < agree, 1.0, -1.0) * np.sign(first)
    return np.column_stack([first, sign * np.abs(rng.normal(size=size))])


def bits(leans, size, rng):
    """More outcomes than a table can learn, and none of them tells much."""
    return (rng.random((size, 12)) < np.where(np.array(leans) > 0, 0.6, 0.4)).astype(np.int64)


def wide(answer, size, rng):
    values = rng.laplace(size=(size, 200))
    values[:, 150] += answer
    return values


def weak(answers, size, rng):
    """Releases of one answer at epsilon .04 each: a model with a weight for each would drown them in noise."""
    return noisy(answers, size, rng, 25.0)


BIT_LOSSES = (np.random.default_rng(7).binomial(4, 0.6, 100_000) * 2 - 4) * math.log(0.6 / 0.4)


@pytest.mark.parametrize(
    ("draw", "x", "y", "epsilon", "pilot", "fresh", "best", "share"),
    [
        (noisy, [1.0, 0.0, 5.0, 5.0], [0.0, 1.0, 5.0, 5.0], 1.0, 50_000, 200_000, lambda: 2.0, 0.97),
        (weak, [1.0] * 20, [0.0] * 20, 0.8, 50_000, 50_000, lambda: best_bound(laplace_loss(1.0, 25.0, 20)), 0.75),
        (sums, [1.0] * 10, [0.0] * 10, 1.0, 10_000, 50_000, lambda: best_bound(laplace_loss(1.0, 5.0, 10)), 0.8),
        (signs, 0.7, 0.3, 0.5, 10_000, 100_000, lambda: math.log(0.7 / 0.3), 0.9),
        (bits, [1] * 4 + [0] * 8, [0] * 12, 0.5, 25_000, 100_000, lambda: best_bound(BIT_LOSSES), 0.93),
        (wide, 2.0, 0.0, 1.0, 6_000, 6_000, lambda: 2.0, 0.7),
    ],
)
def test_a_share_of_the_best_bound(draw, x, y, epsilon, pilot, fresh, best, share):
    """Of a moved row neither cell shows more than half of the loss, and the parts of the other laws add up too."""
    bound = bound_of_choice(draw, x, y, PureDP(epsilon), pilot, fresh=fresh)
    assert bound > share * best()
    assert draw is not noisy or bound < 2.0


def numbers_or_nothing(answers, size, rng):
    """The first noisy answer above its threshold, with its place, or only that there was none."""
    values = noisy(answers, size, rng, 2.0)
    above = values > 1.0
    first = np.where(above.any(axis=1), above.argmax(axis=1), -1)
    return as_outputs(
        [
            (Answer.BELOW,) * int(i) + (Answer.ABOVE, float(values[row, i])) if i >= 0 else Answer.BELOW
            for row, i in enumerate(first)
        ],
        size,
        "f",
    )


def test_outputs_of_unlike_kinds():
    """Lists of different lengths with Enums and a number: no feature was written by hand."""
    x, y = [1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]
    rng = np.random.default_rng(0)
    parts = [numbers_or_nothing(data, 3_000, rng) for data in (x, y, x, y)]
    choice = choose_event(PilotSplit(*parts), PureDP(0.5), RUNS, 0.05)
    p, q = (float(np.mean(choice.event.contains(numbers_or_nothing(d, 10_000, rng)))) for d in (x, y))
    p, q = (p, q) if choice.likelier_on == "x" else (q, p)
    # Nothing above on y is .5/…⁴ as likely: the chance that all four stay below 1.
    below_x, below_y = 0.5**4, (1 - 0.5 * math.exp(-0.5)) ** 4
    assert expected_bound(p, q) > 0.9 * math.log(below_y / below_x)


def test_trees_are_those_of_the_library():
    """The score of our trees is the library's decision function, up to its constant."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(0.3, 1.0, (4, 5_000)), rng.normal(size=(4, 5_000))
    x[2, :100] = np.nan
    trees = forest(Coordinates(4), x, y)
    assert isinstance(trees, Forest)
    assert len(trees.trees) == 20
    rows = np.nan_to_num(np.concatenate([x, y], axis=1).T, nan=1e30)
    model = HistGradientBoostingClassifier(
        max_iter=20, max_depth=3, max_bins=64, learning_rate=0.3, early_stopping=False, random_state=0
    ).fit(rows, np.repeat([1, 0], 5_000))
    difference = trees.add_up(rows.T) - model.decision_function(rows)
    assert np.ptp(difference) < 1e-9
