"""How good the event is that a pilot chooses: its frequencies in fresh outputs, and the bound to be expected of it."""

import math

import numpy as np

from dpaudit.audit.portfolio.choice import choose_event
from dpaudit.audit.portfolio.columns import cuts_of

RUNS = 1_000_000


def expected_bound(p, q, runs=RUNS):
    """The bound on epsilon that an event gives at so many runs a side, by the delta method."""
    return math.log(p / q) - 1.645 * math.sqrt((1 - p) / (p * runs) + (1 - q) / (q * runs))


def chosen(draw, x, y, claim, pilot, rng, runs=RUNS):
    """The event that is chosen on a pilot of outputs drawn on x and on y."""
    return choose_event(cuts_of(draw(x, pilot, rng), draw(y, pilot, rng)), claim, runs, 0.05)[0]


def frequencies(choice, draw, x, y, fresh, rng):
    """Those of a chosen event in fresh outputs, that on its more likely dataset first."""
    found = [float(np.mean(choice.event.contains(draw(data, fresh, rng)))) for data in (x, y)]
    return found if choice.more_likely_on == "x" else found[::-1]
