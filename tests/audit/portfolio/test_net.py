"""The net of plain events: its weights, its counts, and that the main runs change nothing of it."""

import functools
import math

import numpy as np
import pytest

from dpaudit import ApproxDP, GaussianDP, PureDP, RenyiDP
from dpaudit.audit.events.events import Scored
from dpaudit.audit.events.outputs import as_outputs, merge
from dpaudit.audit.events.scores import Coordinate, Number, Reading
from dpaudit.audit.inference.net_test import net_test
from dpaudit.audit.portfolio.cells import RECURS, Column, cut_columns
from dpaudit.audit.portfolio.columns import cuts_of
from dpaudit.audit.portfolio.net import Net, _Places
from dpaudit.audit.procedures.audit import longest_pilot
from dpaudit.audit.procedures.check_outputs import RecordedAudit
from dpaudit.audit.results.claim_pair_and_alpha import Pair, Settings

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
    "many integers": lambda rng, runs: rng.integers(0, 10**7, runs) * 10,
    "long integers": lambda rng, runs: 2**60 + rng.integers(0, 10**6, runs),
    "vectors": vectors,
    "wide vectors": lambda rng, runs: rng.normal(size=(runs, 66)),
    "dictionaries": dictionaries,
    "histograms": histograms,
    "texts": texts,
    "kinds": lambda rng, runs: objects([WORDS[place] for place in rng.integers(0, 6, runs)]),
}
CLAIMS = [PureDP(1.0), ApproxDP(0.5, 1e-3), RenyiDP(2.0, 0.1)]


@functools.cache
def pilot(name):
    """Outputs of 200 runs on each dataset, and their columns."""
    rng = np.random.default_rng(1)
    x, y = KINDS[name](rng, 200), KINDS[name](rng, 200)
    return x, y, cuts_of(x, y, bits=name in ("numbers", "vectors"))


@pytest.mark.parametrize("name", KINDS)
def test_counts_in_cells_are_those_of_every_event_by_scores_read_in_any_order(name):
    net, fresh = Net.of(pilot(name)[2], CLAIMS[0], 10_000), KINDS[name](np.random.default_rng(2), 100)
    scores, counted, reading = net.cells.scores, net.cells.count(fresh), Reading(fresh)
    read = [score.values(fresh) for score in scores]
    for score, values in [*zip(scores, read, strict=True)][::-1]:
        np.testing.assert_array_equal(reading.values(score), values, str(score))  # bit by bit
    parts = np.concatenate([scores[-1].values(part) for part in np.split(fresh, 4)])
    np.testing.assert_array_equal(parts, read[-1])
    assert {int(part.sum()) for part in np.split(counted, np.cumsum(net.cells.sizes)[:-1])} == {100}
    counts = net.counts(counted)
    for index, own in list(enumerate(counts.tolist()))[:: 1 if len(counts) < 1_000 else 7]:
        event = net.event(index)
        if isinstance(event, Scored) and index % 50:  # reading objects takes milliseconds
            assert event.score is scores[net.column[index]]
            assert event.event.count(read[net.column[index]]) == own
        else:
            assert event.count(fresh) == own


@pytest.mark.parametrize("name", KINDS)
def test_pilot_counts_are_those_of_the_events(name):
    """In all runs that a column was not learned or picked on; sums and tables learned crosswise have none."""
    x, y, cuts = pilot(name)
    for number, cut in enumerate(cuts):
        first = cut.column.first
        assert cut.count_x.sum() == cut.count_y.sum() == cut.runs == 200 - first
        if not cut.column.is_ratio or first > 0:
            cells = np.random.default_rng(number).random(len(cut.count_x)) < 0.5
            event = cut.event(cells)
            counts = event.count(x[first:]), event.count(y[first:])
            assert counts == (cut.count_x[cells].sum(), cut.count_y[cells].sum()), str(event)


@pytest.mark.parametrize("name", KINDS)
def test_weights_sum_to_one(name):
    for claim in CLAIMS:
        net = Net.of(pilot(name)[2], claim, 10_000)
        assert net.weights.shape == (2, net.n_events)
        assert net.weights.sum() == pytest.approx(1.0, abs=1e-12)
        assert (net.weights > 0.0).all()


@pytest.mark.parametrize(("outcomes", "third"), [((0.0, 1.0), 0.5), ((0.0, 1.0), math.nan), (("yes", "no"), None)])
def test_the_net_of_two_outcomes_is_what_the_pilot_did_not_show(outcomes, third):
    """Each of the two is the complement of the other; a third one on x is found at an alpha of 1e-6."""

    def coin(rng, runs, times=0):
        drawn = [outcomes[side] for side in rng.integers(0, 2, runs).tolist()]
        return as_outputs([*drawn[times:], *[third] * times], runs, "coin")

    rng = np.random.default_rng(0)
    cuts = cuts_of(coin(rng, 500), coin(rng, 500))
    net = Net.of(cuts, PureDP(1.0), 10_000)
    assert 0.0 < net.part < 0.5
    assert (net.counts(net.cells.count(coin(rng, 500))) == 0).all()
    on_x, on_y = (net.counts(net.cells.count(coin(rng, 10_000, times))) for times in (60, 0))
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
    net = Net.of(cut_columns([Column(Number(), x, y)] * 2), PureDP(0.5), 100_000)
    first = int(np.argmax(net.weights[0]))
    assert net.weights[0, first] > 0.1
    assert net.weights[0, first + net.n_events // 2] < 0.01, "the same set by another name has no rank"


def test_an_interval_narrower_than_any_cell_of_the_curve_is_found_unseen():
    """Where y has no outputs, with probability .003 on x; the pilot's outputs on both are those of x."""
    rng = np.random.default_rng(0)
    net = Net.of(cuts_of(*rng.laplace(size=(2, 5_000))), PureDP(1.0), 95_000)
    x, y = rng.laplace(size=95_000), rng.laplace(size=100_000)
    y = y[(y < 0.3) | (y > 0.3081)][:95_000]
    on_x, on_y = (net.counts(net.cells.count(side)) for side in (x, y))
    tested = net_test(on_x, on_y, 95_000, 95_000, PureDP(1.0), net.weights, alpha=0.01)
    assert tested.more_likely_on == "x"
    assert tested.bound > 1.0
    assert net.event(tested.index).contains(np.array([0.304, 0.29, 0.32])).tolist() == [True, False, False]


def test_a_stretch_of_odd_density_is_one_event_across_the_edges_in_it():
    rng = np.random.default_rng(0)
    x, y = rng.laplace(size=5_000), rng.laplace(size=5_000)
    x[:150] = rng.uniform(0.3, 0.301, 150)
    cut = cut_columns([Column(Number(), x, y, is_output=True, is_part=True)])[0]
    wide = [at for at in np.flatnonzero(cut.kind == RECURS).tolist() if cut.high[at] > cut.low[at] + 1]
    counts = [(cut.count_x[cut.places(at)].sum(), cut.count_y[cut.places(at)].sum()) for at in wide]
    assert max(on_x for on_x, _ in counts) >= 50
    assert max(on_y for _, on_y in counts) < 10


SETTINGS = Settings(
    claim=PureDP(1.0), claim_source="", pair=Pair(x="x", y="y", difference="", adjacency="", distance=1), alpha=0.05,
    detect=None, power=0.95, name="outputs", provenance=None, seed=0, floating_point="ignore",
)  # fmt: skip


@pytest.mark.parametrize("kind", [numbers, texts])
def test_the_main_runs_do_not_change_the_portfolio(kind):
    """Outputs whose first runs are the same have the same events and weights, whatever the other runs show."""
    rng, runs = np.random.default_rng(0), 2_000
    first = [kind(rng, longest_pilot(runs, width=3)) for _ in range(2)]
    rest = [kind(rng, runs - len(first[0])) for _ in range(2)]
    found = []
    for more_y in (rest[1], np.repeat(rest[1][:1], len(rest[1]), axis=0)):
        outputs = merge([first[0], rest[0]], [first[1], more_y])
        audit = RecordedAudit(SETTINGS, list(outputs), ())
        audit.shuffled = outputs  # in the order given
        audit.pilot()
        assert runs - audit.pilot_runs >= len(more_y)
        found.append(audit.portfolio)
    one, other = found
    assert one.choice == other.choice
    assert [str(score) for score in one.net.cells.scores] == [str(score) for score in other.net.cells.scores]
    assert one.net.cells.edges == other.net.cells.edges
    for name in ("low", "high", "column", "weights"):
        np.testing.assert_array_equal(getattr(one.net, name), getattr(other.net, name))


def test_columns_are_ranked_by_their_own_frequencies():
    """Of a column that picked itself only the second half of the pilot is counted."""
    rng = np.random.default_rng(0)
    whole = Column(Coordinate(0, 2), rng.normal(1.5, size=5_000), rng.normal(size=5_000))
    half = Column(Coordinate(1, 2), rng.normal(2.0, size=2_500), rng.normal(size=2_500), first=2_500)
    net = Net.of(cut_columns([whole, half]), GaussianDP(1.0), 100_000)
    leading = np.argsort(-net.weights.max(axis=0))[:4]  # two of the list by bound, two of that by standard errors
    assert net.column[leading].tolist() == [1, 1, 1, 1]


def test_ranks_go_to_events_that_do_not_overlap_as_one_by_one():
    """Oracle: the events by decreasing value, each left out that overlaps a kept one or has its counts."""
    rng = np.random.default_rng(0)
    for events in (1, 40, 3_000):
        column, low = rng.integers(3, size=events), rng.integers(60, size=events)
        high, (count_x, count_y) = low + rng.integers(1, 5, size=events), rng.integers(40, size=(2, events))
        places = _Places((), (), np.stack([column, low, high, high - low, count_x, count_y]))
        value = np.where(rng.random(2 * events) < 0.2, -np.inf, rng.integers(500, size=2 * events))
        kept = []
        for place in sorted(range(2 * events), key=lambda place: -value[place])[:2_000]:
            way, at = divmod(place, events)
            apart = all(
                way != other_way
                or not (
                    (count_x[at], count_y[at]) == (count_x[other], count_y[other])
                    or (column[at] == column[other] and low[at] < high[other] and low[other] < high[at])
                )
                for other_way, other in (divmod(each, events) for each in kept)
            )
            if value[place] > -np.inf and len(kept) < 32 and apart:
                kept.append(place)
        weights = np.zeros(2 * events)
        weights[kept] = 1.0 / np.arange(1, len(kept) + 1)
        np.testing.assert_allclose(places.by_rank(value), weights / max(weights.sum(), 1e-300))
