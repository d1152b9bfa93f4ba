"""Events for outputs of several parts come near the best there are: their probabilities against the exact optimum.

The optimum is that of the true likelihood ratio, from a large sample of it under change of measure.
"""

from __future__ import annotations

import enum
import math

import numpy as np
import pytest

from dpaudit import PureDP, Verdict, check
from dpaudit.audit.distinguishers.event_choice import choose_event
from dpaudit.audit.events.outputs import as_outputs
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


def test_losses_of_two_coordinates_add_up():
    """A histogram in which a row moved from one cell to another: neither cell alone shows more than half of it."""
    bound = bound_of_choice(noisy, [1.0, 0.0, 5.0, 5.0], [0.0, 1.0, 5.0, 5.0], PureDP(1.0), 50_000, fresh=200_000)
    assert 0.97 * 2.0 < bound < 2.0


def test_weak_signals_of_many_coordinates_add_up():
    """20 releases of one answer at epsilon .02 each: a model with a weight for each would drown them in noise."""
    x, y = [1.0] * 20, [0.0] * 20
    bound = bound_of_choice(lambda d, n, rng: noisy(d, n, rng, 50.0), x, y, PureDP(0.4), 50_000, fresh=50_000)
    assert bound > 0.75 * best_bound(laplace_loss(1.0, 50.0, 20))


def test_running_sums_are_taken_apart():
    """Prefix sums of noisy answers: the differences of neighbours are what is independent."""

    def sums(answers, size, rng):
        return noisy(answers, size, rng, 5.0).cumsum(axis=1)

    bound = bound_of_choice(sums, [1.0] * 10, [0.0] * 10, PureDP(1.0), 30_000)
    assert bound > 0.8 * best_bound(laplace_loss(1.0, 5.0, 10))


def test_two_coordinates_that_say_nothing_alone():
    """Signs that agree more often on x: each coordinate has the same law on both."""

    def signs(agree, size, rng):
        first = rng.normal(size=size)
        sign = np.where(rng.random(size) < agree, 1.0, -1.0) * np.sign(first)
        return np.column_stack([first, sign * np.abs(rng.normal(size=size))])

    exact = math.log(0.7 / 0.3)
    assert bound_of_choice(signs, 0.7, 0.3, PureDP(0.5), 50_000) > 0.9 * exact


def test_bits_of_a_randomised_response():
    """Twelve bits, four of which lean: more outcomes than a table can learn, and none of them tells much."""

    def bits(leans, size, rng):
        return (rng.random((size, 12)) < np.where(np.array(leans) > 0, 0.6, 0.4)).astype(np.int64)

    x, y = [1] * 4 + [0] * 8, [0] * 12
    loss = np.random.default_rng(7).binomial(4, 0.6, 100_000) * 2 - 4
    assert bound_of_choice(bits, x, y, PureDP(0.5), 25_000) > 0.93 * best_bound(loss * math.log(0.6 / 0.4))


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


@pytest.mark.parametrize("width", [2, 12])
def test_equal_laws_are_not_told_apart(width):
    def same(data, size, rng):
        return rng.laplace(size=(size, width))

    result = check(same, 0, 1, claim=PureDP(0.1), runs=6_000, alpha=1e-8, jobs=1)
    assert result.verdict is not Verdict.REFUTED


def test_a_long_vector_is_read_as_well():
    """200 coordinates, one of which moves."""

    def wide(answer, size, rng):
        values = rng.laplace(size=(size, 200))
        values[:, 150] += answer
        return values

    assert bound_of_choice(wide, 2.0, 0.0, PureDP(1.0), 6_000, fresh=6_000) > 0.7 * 2.0
