"""The net of plain events: its weights, its counts, and that the main runs change nothing of it."""

import math

import numpy as np
import pytest

from dpaudit import ApproxDP, GaussianDP, PureDP, RenyiDP
from dpaudit.audit.events.events import Scored
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.events.scores import Number, Reading, Weighted
from dpaudit.audit.inference.net_test import net_test
from dpaudit.audit.portfolio.cells import RECURS, Column, cut_columns
from dpaudit.audit.portfolio.columns import cuts_of
from dpaudit.audit.portfolio.net import Net
from dpaudit.audit.procedures.pilot import longest_pilot, split_pilot

WORDS = ("a", None, 1.5, ("a", 2.0), ("b", 3.0), True, ValueError)


def numbers(rng, runs):
    """Noise with an atom, a grid, infinities and NaN."""
    found = np.where(rng.random(runs) < 0.1, 0.25, rng.laplace(size=runs))
    odd = rng.random(runs)
    found = np.where(odd < 0.1, np.round(found, 1), found)
    return np.where(odd > 0.97, rng.choice([math.inf, -math.inf, math.nan, -0.0, 0.0], runs), found)


def vectors(rng, runs):
    found = np.round(rng.normal(size=(runs, 3)), 1)
    found[rng.random(runs) < 0.1, 1] = np.nan
    return found


def objects(made):
    return as_outputs(made, len(made), "m")


def dictionaries(rng, runs):
    rows = zip(rng.integers(0, 30, runs).tolist(), rng.laplace(size=runs).tolist(), strict=True)
    return objects([{"key": f"k{key}", "n": value, "on": key > 12} for key, value in rows])


def histograms(rng, runs):
    keys = rng.integers(0, 90, (runs, 4)).tolist()
    return objects([{f"k{key}": float(key % 4) + rng.random() for key in row} for row in keys])


def texts(rng, runs):
    return objects([f"mean {v:.3f} of {int(9 * v)} {'people' if v < 0.7 else 'rows'}" for v in rng.random(runs)])


KINDS = {
    "numbers": numbers,
    "integers": lambda rng, runs: rng.geometric(0.2, runs) - rng.geometric(0.2, runs),
    "many integers": lambda rng, runs: rng.integers(0, 10**7, runs) * 10,
    "long integers": lambda rng, runs: 2**60 + rng.integers(0, 10**6, runs),
    "vectors": vectors,
    "wide vectors": lambda rng, runs: rng.normal(size=(runs, 66)),
    "bits": lambda rng, runs: rng.integers(0, 2, (runs, 5)),
    "dictionaries": dictionaries,
    "histograms": histograms,
    "texts": texts,
    "kinds": lambda rng, runs: objects([WORDS[place] for place in rng.integers(0, 6, runs)]),
}
CLAIMS = [PureDP(0.0), PureDP(1.0), ApproxDP(0.5, 1e-3), GaussianDP(1.0), RenyiDP(2.0, 0.1)]


def net_of(kind, claim=CLAIMS[0], *, runs=200, with_bits=False):
    rng = np.random.default_rng(1)
    return Net.of(cuts_of(kind(rng, runs), kind(rng, runs), bits=with_bits), claim, 10_000)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_counts_in_cells_are_those_of_every_event(kind):
    net, fresh = net_of(kind), kind(np.random.default_rng(2), 300)
    counted = net.cells.count(fresh)
    assert {int(part.sum()) for part in np.split(counted, np.cumsum(net.cells.sizes)[:-1])} == {300}
    hits, read = net.hits(counted), [score.values(fresh) for score in net.cells.scores]
    for index, own in enumerate(hits.tolist()):
        event = net.event(index)
        if isinstance(event, Scored) and index % 50:  # reading objects takes milliseconds
            assert event.score is net.cells.scores[net.column[index]]
            assert event.event.count(read[net.column[index]]) == own
        else:
            assert event.count(fresh) == own


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_pilot_hits_are_those_of_the_events(kind):
    """In all runs that a column was not learned or picked on; sums and tables learned crosswise have none."""
    rng = np.random.default_rng(1)
    x, y = kind(rng, 300), kind(rng, 300)
    for number, cut in enumerate(cuts_of(x, y)):
        first = cut.column.first
        assert cut.hits_x.sum() == cut.hits_y.sum() == cut.runs == 300 - first
        if not cut.column.is_ratio or first > 0:
            cells = np.random.default_rng(number).random(len(cut.hits_x)) < 0.5
            event = cut.event(cells)
            hits = event.count(x[first:]), event.count(y[first:])
            assert hits == (cut.hits_x[cells].sum(), cut.hits_y[cells].sum()), str(event)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_weights_sum_to_one(kind):
    rng = np.random.default_rng(1)
    cuts = cuts_of(kind(rng, 200), kind(rng, 200))
    for claim in CLAIMS:
        net = Net.of(cuts, claim, 10_000)
        assert net.weights.shape == (2, net.n_events)
        assert net.weights.sum() == pytest.approx(1.0, abs=1e-12)
        assert (net.weights > 0.0).all()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_values_read_together_are_those_of_each_score(kind):
    """Bit by bit, for every score of a net, and whatever the order in which they are read."""
    net, fresh = net_of(kind, with_bits=True), kind(np.random.default_rng(3), 60)
    for scores in (net.cells.scores, net.cells.scores[::-1]):
        reading = Reading(fresh)
        for score in scores:
            np.testing.assert_array_equal(reading.values(score), score.values(fresh), str(score))
    parts = np.concatenate([net.cells.scores[-1].values(part) for part in np.split(fresh, 4)])
    np.testing.assert_array_equal(parts, net.cells.scores[-1].values(fresh))


def test_outputs_that_are_not_numbers_are_in_no_interval():
    x = np.random.default_rng(0).normal(size=2_000)
    y = x.copy()
    y[:200] = math.nan
    net = Net.of(cuts_of(x, y), PureDP(0.0), 10_000)
    odd = np.array([math.nan, *"ab"], dtype=object)
    held = [net.event(index).contains(odd).all() for index in range(net.n_events)]
    assert any(held)
    assert not all(held)


def test_outcomes_of_whole_numbers_are_events():
    x, y = (np.random.default_rng(seed).integers(0, 40, 3_000) for seed in (1, 2))
    net = Net.of(cuts_of(x, y), PureDP(0.0), 10_000)
    words = {str(net.event(index)) for index in range(net.n_events)}
    assert {f"output = {number}" for number in range(1, 39)} <= words


@pytest.mark.parametrize(
    ("outcomes", "third"), [((0, 1), 2), ((0.0, 1.0), 0.5), ((0.0, 1.0), math.nan), (("yes", "no"), None)]
)
def test_the_net_of_two_outcomes_is_what_the_pilot_did_not_show(outcomes, third):
    """Each of the two is the complement of the other; a third one on x is found at an alpha of 1e-6."""

    def coin(rng, runs, times=0):
        drawn = [outcomes[side] for side in rng.integers(0, 2, runs).tolist()]
        return as_outputs([*drawn[times:], *[third] * times], runs, "coin")

    rng = np.random.default_rng(0)
    cuts = cuts_of(coin(rng, 500), coin(rng, 500))
    net = Net.of(cuts, PureDP(1.0), 10_000)
    assert 0.0 < net.part < 0.5
    assert (net.hits(net.cells.count(coin(rng, 500))) == 0).all()
    on_x, on_y = (net.hits(net.cells.count(coin(rng, 10_000, times))) for times in (60, 0))
    tested = net_test(on_x, on_y, 10_000, 10_000, PureDP(1.0), net.weights, alpha=1e-6)
    assert tested.bound > 1.0
    assert net.event(tested.index).contains(coin(rng, 100, 50)).sum() == 50
    assert Net.of(cuts_of(*(as_outputs(["yes", "no", "perhaps"] * 50, 150, "m"),) * 2), PureDP(1.0), 10_000).part == 1.0


def test_leading_events_have_the_largest_weights():
    """A value that recurs is the only event that differs: it leads in its direction, and no overlapping event does."""
    rng = np.random.default_rng(0)
    x, y = (np.where(rng.random(5_000) < share, 7.0, rng.normal(size=5_000)) for share in (0.05, 0.01))
    net = Net.of(cuts_of(x, y), PureDP(0.5), 100_000)
    way, first = np.unravel_index(np.argmax(net.weights), net.weights.shape)
    assert way == 0
    assert net.event(int(first)).contains(np.array([7.0, 0.0])).tolist() == [True, False]
    assert net.weights[0, first] > 0.1


def found_by_net(draw_x, draw_y, claim, *, pilot=5_000, main=95_000, alpha=0.01):
    """Net of a pilot, tested on fresh outputs."""
    rng = np.random.default_rng(0)
    net = Net.of(cuts_of(draw_x(rng, pilot), draw_y(rng, pilot)), claim, main)
    on_x, on_y = (net.hits(net.cells.count(draw(rng, main))) for draw in (draw_x, draw_y))
    tested = net_test(on_x, on_y, main, main, claim, net.weights, alpha=alpha)
    return None if tested is None else (tested, net.event(tested.index))


@pytest.mark.parametrize("kind", [KINDS[name] for name in ("numbers", "integers", "bits")])
def test_equal_laws_are_not_refuted(kind):
    """Each by chance with probability 1e-6."""
    found = found_by_net(kind, kind, PureDP(0.0), alpha=1e-6, main=20_000)
    assert found is None or found[0].bound == 0.0 or found[0].p_value > 1e-6


def test_one_wrong_outcome_that_the_pilot_cannot_see_is_found():
    """By ten standard errors of the main runs, and by two of the pilot."""

    def wrong(rng, runs):
        drawn = rng.integers(0, 100, runs)
        return np.where((drawn == 37) & (rng.random(runs) < 0.35), 38, drawn)

    tested, event = found_by_net(wrong, lambda rng, runs: rng.integers(0, 100, runs), PureDP(0.0), alpha=1e-5)
    assert tested.bound > 0.05
    assert tested.p_value < 1e-5
    assert event.contains(np.array([37, 38])).tolist().count(True) == 1
    assert event.contains(np.arange(100)).sum() == 1


def test_an_interval_narrower_than_any_cell_of_the_curve_is_found_unseen():
    """Where y has no outputs, with probability .003 on x; the pilot's outputs on both are those of x."""

    def with_a_gap(rng, runs):
        drawn = rng.laplace(size=2 * runs)
        return (drawn if runs < 95_000 else drawn[(drawn < 0.3) | (drawn > 0.3081)])[:runs]

    tested, event = found_by_net(lambda rng, runs: rng.laplace(size=runs), with_a_gap, PureDP(1.0))
    assert tested.likelier_on == "x"
    assert tested.bound > 1.0
    assert event.contains(np.array([0.304, 0.29, 0.32])).tolist() == [True, False, False]


def test_fine_cells_take_no_rank_from_a_value_that_recurs():
    """A value seen 7 times on x and twice on y amid the noise is among the first of those that recur."""
    rng = np.random.default_rng(1)
    x, y = rng.laplace(1.0, size=10_000), rng.laplace(size=10_000)
    x[:7], y[:2] = 0.777, 0.777
    cuts = cuts_of(x, y)
    net = Net.of(cuts, PureDP(1.0), 190_000)
    hits = [net.hits(net.cells.count(side)) for side in (x, y)]
    atom = np.flatnonzero((hits[0] == 7) & (hits[1] == 2) & (net.column == 0)).tolist()
    assert max(net.weights[0, place] for place in atom if net.event(place).contains(np.array([0.777]))[0]) > 0.2


def test_a_stretch_of_odd_density_is_one_event_across_the_edges_in_it():
    rng = np.random.default_rng(0)
    x, y = rng.laplace(size=5_000), rng.laplace(size=5_000)
    x[:150] = rng.uniform(0.3, 0.301, 150)
    cut = cut_columns([Column(Number(), x, y, is_output=True, is_part=True)])[0]
    wide = [at for at in np.flatnonzero(cut.width == RECURS).tolist() if cut.high[at] > cut.low[at] + 1]
    hits = [(cut.hits_x[cut.places(at)].sum(), cut.hits_y[cut.places(at)].sum()) for at in wide]
    assert max(on_x for on_x, _ in hits) >= 50
    assert max(on_y for _, on_y in hits) < 10


@pytest.mark.parametrize("kind", [numbers, vectors, texts])
def test_the_main_runs_do_not_change_the_portfolio(kind):
    """Outputs whose first runs are the same have the same events and weights, whatever the other runs show."""
    rng, runs = np.random.default_rng(0), 4_000
    first = [kind(rng, longest_pilot(runs, 3)) for _ in range(2)]
    rest = [kind(rng, runs - len(first[0])) for _ in range(2)]
    alike = [np.concatenate([side, more]) for side, more in zip(first, rest, strict=True)]
    apart = [
        np.concatenate([first[0], rest[0]]),
        np.concatenate([first[1], np.repeat(rest[1][:1], len(rest[1]), axis=0)]),
    ]
    (one, *_), (other, _, main_y) = (split_pilot(*sides, PureDP(1.0), runs, 0.05) for sides in (alike, apart))
    assert len(main_y) >= len(rest[1])
    assert one.choice == other.choice
    assert [str(score) for score in one.net.cells.scores] == [str(score) for score in other.net.cells.scores]
    assert one.net.cells.edges == other.net.cells.edges
    for name in ("low", "high", "column", "weights"):
        np.testing.assert_array_equal(getattr(one.net, name), getattr(other.net, name))


def test_columns_are_ranked_by_their_own_frequencies():
    """Of a column that picked itself only the second half of the pilot is counted."""
    rng = np.random.default_rng(0)
    whole = Column(Weighted((1.0, 0.0)), rng.normal(1.5, size=5_000), rng.normal(size=5_000))
    half = Column(Weighted((0.0, 1.0)), rng.normal(2.0, size=2_500), rng.normal(size=2_500), first=2_500)
    net = Net.of(cut_columns([whole, half]), GaussianDP(1.0), 100_000)
    leading = np.argsort(-net.weights.max(axis=0))[:4]  # two of the list by bound, two of that by standard errors
    assert net.column[leading].tolist() == [1, 1, 1, 1]
