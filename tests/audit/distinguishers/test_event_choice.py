"""The chosen event is nearly the best one: its exact probabilities under known laws against the best possible.

What counts is the excess p − B(q) of an event over the claim's boundary, and what a run of the main phase can make of
it: the lower bound to be expected. The exact best is computed on a fine grid of the true likelihood ratio.
"""

import enum
import math

import numpy as np
import pytest
from scipy import stats

from dpaudit import ApproxDP, GaussianDP, PureDP
from dpaudit.audit.distinguishers.event_choice import choose_event
from dpaudit.audit.events.events import Intervals, Scored
from dpaudit.audit.events.outputs import Raised, as_outputs
from dpaudit.audit.families.pilot_split import PilotSplit
from dpaudit.mechanisms import RareLeakLaplace

HELD = 10_000
RUNS = 200_000
Z = stats.norm.isf(0.05)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def chosen(x, y, claim, alpha=0.05):
    return choose_event(PilotSplit.in_half(x, y), claim, RUNS, alpha)


def both_ways(draw_x, draw_y, claim):
    """The choice with x and y in either order; the likelier side changes its name and nothing else."""
    rng = np.random.default_rng(0)
    x, y = draw_x(rng), draw_y(rng)
    return chosen(x, y, claim), chosen(y, x, claim)


def expected_bound(p, q, claim=None):
    """The bound on epsilon to be expected of an event, by the delta method on the log ratio, on both lines."""
    delta = getattr(claim, "delta", 0.0)

    def line(a, b):
        if a <= delta or b <= 0:
            return -math.inf
        error = math.sqrt(a * (1 - a) / (a - delta) ** 2 / RUNS + (1 - b) / b / RUNS)
        return math.log((a - delta) / b) - Z * error

    return max(line(p, q), line(1 - q, 1 - p))


def interval_mass(event, law):
    """Exact probability of a union of intervals."""
    return sum(law.cdf(high) - law.cdf(low) for low, high in event.intervals)


@pytest.mark.parametrize(
    ("make", "claim", "share"),
    [
        (lambda shift: stats.laplace(shift, 1.0), PureDP(1.0), 0.97),
        (lambda shift: stats.laplace(shift, 0.8), PureDP(1.0), 0.97),
        (lambda shift: stats.norm(shift, 2.0), ApproxDP(0.5, 1e-3), 0.75),
        (lambda shift: stats.norm(shift, 1.0), ApproxDP(1.0, 1e-2), 0.85),
        (lambda shift: stats.logistic(shift, 1.0), PureDP(0.5), 0.85),
        (lambda shift: stats.expon(0, 1.0 + shift), PureDP(0.5), 0.5),  # the ratio grows beyond what the pilot sees
    ],
)
def test_half_lines_of_known_laws(make, claim, share):
    law_x, law_y = make(1.0), make(0.0)
    grid = np.linspace(-8, 12, 2_001)
    best = max(
        expected_bound(p, q, claim)
        for tail_p, tail_q in ((law_x.sf(grid), law_y.sf(grid)), (law_y.cdf(grid), law_x.cdf(grid)))
        for p, q in zip(tail_p, tail_q, strict=True)
    )
    draws = (lambda rng: law_x.rvs(HELD, random_state=rng)), (lambda rng: law_y.rvs(HELD, random_state=rng))
    forth, back = both_ways(*draws, claim)
    for choice, p_law, q_law in ((forth, law_x, law_y), (back, law_y, law_x)):
        assert isinstance(choice.event, Intervals)
        mass = [interval_mass(choice.event, law) for law in (p_law, q_law)]
        p, q = mass if choice.likelier_on == "x" else mass[::-1]
        assert expected_bound(p, q, claim) >= share * best
    assert forth.likelier_on != back.likelier_on


def table_mass(event, law):
    values = np.array(list(law), dtype=object)
    return float(np.array(list(law.values()))[event.contains(values)].sum())


LETTERS = {"a": 0.5, "b": 0.3, None: 0.2}
TABLES = [
    ({0: math.e / (1 + math.e), 1: 1 / (1 + math.e)}, {0: 1 / (1 + math.e), 1: math.e / (1 + math.e)}),
    ({0: 0.35, 1: 0.1, 2: 0.35, 3: 0.2}, {0: 0.15, 1: 0.3, 2: 0.15, 3: 0.4}),
    ({0.5: 0.4, math.nan: 0.6}, {0.5: 0.6, math.nan: 0.4}),
    (LETTERS, {"a": 0.5, "b": 0.1, None: 0.4}),
    ({(): 0.5, (1,): 0.3, (1, 2): 0.2}, {(): 0.5, (1,): 0.45, (1, 2): 0.05}),
    ({Colour.RED: 0.7, Colour.BLUE: 0.3}, {Colour.RED: 0.4, Colour.BLUE: 0.6}),
    ({1.0: 0.6, Raised("ValueError"): 0.4}, {1.0: 0.9, Raised("ValueError"): 0.1}),
    ({0: 0.5, 1: 0.5, 2: 0.0}, {0: 0.45, 1: 0.45, 2: 0.1}),  # a leak on one side only
    ({"a": 0.99, "leak": 0.01}, {"a": 1.0, "leak": 0.0}),
]


def draw_table(law):
    values = list(law)

    def draw(rng):
        return as_outputs([values[i] for i in rng.choice(len(values), HELD, p=list(law.values()))], HELD, "m")

    return draw


def merged(x, y):
    """One kind of array for both sides, as the pilot has them."""
    if x.dtype == object or y.dtype == object:
        return x.astype(object), y.astype(object)
    return x, y


@pytest.mark.parametrize(("law_x", "law_y"), TABLES, ids=str)
def test_tables_of_outcomes(law_x, law_y):
    """The likelihood ratio need not be monotone; every subset of the outcomes is compared."""
    subsets = [[v for i, v in enumerate(law_x) if m >> i & 1] for m in range(1, 2 ** len(law_x) - 1)]

    def value(p, q):
        if q == 0.0 or p == 1.0:  # never seen on the other side: what three expected hits there would give
            q, p = max(q, 3 / RUNS), min(p, 1 - 3 / RUNS)
        return expected_bound(p, q)

    best = max(
        value(sum(a[v] for v in s), sum(b[v] for v in s)) for s in subsets for a, b in ((law_x, law_y), (law_y, law_x))
    )
    rng = np.random.default_rng(0)
    x, y = merged(draw_table(law_x)(rng), draw_table(law_y)(rng))
    forth, back = chosen(x, y, PureDP(0.1)), chosen(y, x, PureDP(0.1))
    masses = [forth.pilot_hits_x + forth.pilot_hits_y, back.pilot_hits_x + back.pilot_hits_y]
    # An event of mean probability ½ and its complement are equally good in either direction.
    is_even = all(abs(mass - forth.pilot_runs) < 5 * math.sqrt(forth.pilot_runs) for mass in masses)
    assert forth.likelier_on != back.likelier_on or is_even
    for choice, a, b in ((forth, law_x, law_y), (back, law_y, law_x)):
        masses = table_mass(choice.event, a), table_mass(choice.event, b)
        p, q = masses if choice.likelier_on == "x" else masses[::-1]
        assert value(p, q) >= 0.97 * best


def test_scattered_outcomes_are_not_mixed():
    """With 0 and 2 likelier on x, 1 and 3 on y, an event is made of one kind; longer half-lines would mix them."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = rng.choice(4, HELD, p=[0.35, 0.15, 0.35, 0.15])
        y = rng.choice(4, HELD, p=[0.15, 0.35, 0.15, 0.35])
        choice = chosen(x, y, PureDP(0.5))
        members = set(np.flatnonzero(choice.event.contains(np.arange(4))).tolist())
        assert members <= ({0, 2} if choice.likelier_on == "x" else {1, 3})


def test_an_atom_inside_a_continuous_output():
    """A tenth of x's mass sits on 0.25; without it the laws are the same."""

    def draw(rng, share):
        return np.where(rng.random(HELD) < share, 0.25, rng.normal(size=HELD))

    choices = both_ways(lambda rng: draw(rng, 0.1), lambda rng: draw(rng, 0.01), PureDP(1.0))
    for choice, side in zip(choices, "xy", strict=True):
        assert choice.likelier_on == side
        assert bool(choice.event.contains(np.array([0.25]))[0])
        others = np.random.default_rng(9).normal(size=100_000)
        assert choice.event.contains(others).mean() < 0.02


def test_a_band_inside_the_range():
    """x is uniform; y has half that density from .4 to .6. No half-line has a ratio above 1.13, the band has 2."""
    best = expected_bound(0.2, 0.1)

    def hollow(rng):
        inside = rng.random(20_000) < 0.1
        edge = rng.uniform(0.0, 0.8, 20_000)
        return np.where(inside, rng.uniform(0.4, 0.6, 20_000), np.where(edge < 0.4, edge, edge + 0.2))

    forth, back = both_ways(lambda rng: rng.random(20_000), hollow, PureDP(0.2))
    assert (forth.likelier_on, back.likelier_on) == ("x", "y")
    for choice in (forth, back):
        p = interval_mass(choice.event, stats.uniform())
        q = 0.5 * sum(max(0.0, min(b, 0.6) - max(a, 0.4)) for a, b in choice.event.intervals)
        q += 1.125 * (p - 2 * q)
        assert expected_bound(p, q) >= 0.85 * best


@pytest.mark.parametrize("claim", [PureDP(0.5), ApproxDP(0.5, 1e-3)])
def test_correlated_coordinates(claim):
    """Two coordinates with common noise: their difference tells more than either; the projection has to find it."""
    covariance = [[1.0, 0.95], [0.95, 1.0]]
    shift = np.array([0.3, 0.0])
    direction = np.linalg.solve(covariance, shift)
    spread = math.sqrt(direction @ covariance @ direction)
    law_x, law_y = stats.norm(direction @ shift, spread), stats.norm(0, spread)
    grid = np.linspace(-3, 4, 71)
    best = max(expected_bound(law_x.sf(t), law_y.sf(t), claim) for t in grid)
    alone = max(expected_bound(stats.norm.sf(t - 0.3), stats.norm.sf(t), claim) for t in grid)

    def draw(mean):
        return lambda rng: rng.multivariate_normal(mean, covariance, 10_000)

    on_y = np.random.default_rng(9).multivariate_normal(0 * shift, covariance, 40_000)
    on_x = on_y + shift
    forth, back = both_ways(draw(shift), draw(0 * shift), claim)
    assert isinstance(forth.event, Scored)
    p, q = (np.mean(forth.event.contains(fresh)) for fresh in (on_x, on_y))
    p, q = (p, q) if forth.likelier_on == "x" else (q, p)
    assert expected_bound(p, q, claim) >= max(0.7 * best, 1.2 * alone)
    assert forth.likelier_on != back.likelier_on


@pytest.mark.parametrize(
    "constant",
    [
        np.zeros(100), np.full(100, math.nan), np.full(100, math.inf), np.zeros((100, 3)), np.zeros((100, 0)),
        np.full(100, None), np.ones(100, bool), np.full((100, 2), math.nan),
    ],
)  # fmt: skip
def test_constant_outputs_have_an_event_all_the_same(constant):
    choice = chosen(constant, constant, PureDP(1.0))
    assert choice.event.contains(constant).all() or not choice.event.contains(constant).any()
    assert str(choice.event)


@pytest.mark.parametrize("kind", [float, object, bool])
def test_two_constants_are_told_apart(kind):
    x, y = np.zeros(100).astype(kind), np.ones(100).astype(kind)
    choice = chosen(x, y, PureDP(1.0))
    on_x, on_y = bool(choice.event.contains(x).all()), bool(choice.event.contains(y).all())
    assert on_x != on_y
    assert (choice.likelier_on == "x") == on_x


def test_pilot_counts_are_those_of_the_event():
    """Half-lines are counted on the whole pilot, learned events on the half they were not learned on."""
    for seed in range(1):
        rng = np.random.default_rng(seed)
        draws = [
            (rng.laplace(1.0, size=HELD), rng.laplace(size=HELD)),
            (np.round(rng.laplace(1.0, size=HELD)), np.round(rng.laplace(size=HELD))),
            (rng.normal(size=HELD), rng.normal(size=HELD) * 2),
            (rng.normal(size=(HELD, 2)) + 0.2, rng.normal(size=(HELD, 2))),
            (np.where(rng.random(HELD) < 0.3, np.nan, rng.normal(size=HELD)), rng.normal(size=HELD)),
        ]
        for x, y in draws:
            choice = chosen(x, y, PureDP(0.5))
            part = slice(HELD - choice.pilot_runs, None)
            assert choice.pilot_runs in (HELD, HELD // 2)
            assert choice.event.count(x[part]) == choice.pilot_hits_x
            assert choice.event.count(y[part]) == choice.pilot_hits_y


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 1e-3), GaussianDP(1.0)], ids=str)
def test_equal_laws_are_compared_on_an_event_that_would_show_an_excess(claim):
    """After a long pilot: not on one that nearly always happens, which nothing could change."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        parts = rng.laplace(size=(4, 5_000))
        choice = choose_event(PilotSplit(*parts), claim, 190_000, 0.05, deep=True)
        for hits in (choice.pilot_hits_x, choice.pilot_hits_y):
            assert 0.05 <= hits / choice.pilot_runs <= 0.95


def test_a_deep_pilot_prefers_a_leak_to_a_lucky_union():
    """Laplace noise around 0 and 1, but once in a thousand runs 1000 and 1001: at epsilon 1 that is all the delta.

    Of the unions of common cells the luckiest looks better, unless caution is kept for what is not rare.
    """
    for seed in range(2):
        mechanism, rng = RareLeakLaplace(1.0, 1e-3), np.random.default_rng(seed)
        parts = [mechanism.sample(answer, 166_000, rng) for answer in (0.0, 1.0, 0.0, 1.0)]
        claim = ApproxDP(1.0, 2e-4, bound_on="delta")
        choice = choose_event(PilotSplit(*parts), claim, 666_000, 1e-5, deep=True)
        assert min(choice.pilot_hits_x, choice.pilot_hits_y) == 0 < max(choice.pilot_hits_x, choice.pilot_hits_y)
