"""The search finds a pair that leaks nearly as much as the worst, and spends alpha on fresh runs only.

Exact losses come from the mechanisms' distributions, and the worst loss from all pairs of a grid. The search's last
runs on the chosen pair begin the pilot of its audit, and no test counts them.
"""

import math
from itertools import product

import networkx as nx
import numpy as np
import pytest
from hypothesis import strategies as st

import dpaudit as dp
from dpaudit import AddRemove, PureDP, Rows, check, find_worst_pair
from dpaudit.audit.errors import AdjacencyError, DatasetError, MechanismError, OptionError, StoreError
from dpaudit.audit.events.events import Intervals
from dpaudit.audit.health.findings import HealthCheck
from dpaudit.audit.portfolio.choice import Choice
from dpaudit.audit.procedures.fixed_size import EarlierDraws, FixedSizeAudit
from dpaudit.audit.results.claim_pair_and_alpha import Pair, Settings
from dpaudit.audit.sampling.block_plan import Plan
from dpaudit.audit.sampling.draw import plan_blocks
from dpaudit.audit.sampling.pilot_and_batch_sizes import pilot_runs
from dpaudit.audit.sampling.sampler import as_sampler
from dpaudit.audit.search.candidates import Pool
from dpaudit.audit.search.pairs_for_domain import pairs_of
from dpaudit.mechanisms import (
    DegreeHistogramMechanism,
    EdgeCountMechanism,
    ExponentialMechanism,
    LaplaceMechanism,
    RandomisedResponse,
    ReportNoisyMax,
    exact_epsilon,
)

LINF = dp.domains.Within("linf")
RARE = 1e-8  # alpha of audits that must not refute: the false-alarm probability of each


def worst_on_grid(mechanism, levels, n):
    """Return the largest exact loss over vectors of these levels whose answers move by −1, 0 or 1."""
    distributions = {x: mechanism.distribution(list(x)) for x in product(levels, repeat=n)}
    return max(
        exact_epsilon(distribution, distributions[y])
        for x, distribution in distributions.items()
        for step in product((-1.0, 0.0, 1.0), repeat=n)
        if (y := tuple(a + b for a, b in zip(x, step, strict=True))) in distributions
    )


FEW = {"runs": 5_000, "search_runs": 10_000}
PAIRS = [  # mechanism, domain, adjacency, options, the exact loss of the worst pair
    (
        ReportNoisyMax(1.0, monotone=True, noise="exponential"), dp.Answers(3, 0.0, 2.0), LINF, {"runs": 30_000},
        (0.0, 1.0, 2.0),
    ),
    (LaplaceMechanism(1.0, query=sum), dp.Rows(high=3.0), dp.AddRemove(), FEW, 3.0),
    (  # three rows at the bound, each with a claim
        LaplaceMechanism(0.5, query=sum), dp.Rows(high=2.0), dp.AddRemove(), {"runs": 6_000, "distance": 3}, 3.0,
    ),
    (
        RandomisedResponse(1.0 + math.log(3), 4), dp.Values(range(4)), dp.Local(), FEW | {"claim": 1.0},
        1.0 + math.log(3),
    ),
    (EdgeCountMechanism(0.5), dp.domains.Graphs(5, max_degree=3), dp.domains.NodeNeighbours(), FEW, 1.5),
    (
        DegreeHistogramMechanism(2.0, max_degree=1), dp.domains.Graphs(3), dp.domains.EdgeNeighbours(),
        FEW | {"search_runs": 1_000, "claim": 1.0}, 2.0,
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", PAIRS, ids=lambda case: type(case[0]).__name__)
def test_the_worst_pair_is_nearly_found(case):
    mechanism, domain, adjacency, options, worst = case
    options = {"jobs": 1, "claim": mechanism.claim} | options
    found = dp.find_worst_pair(mechanism, domain, adjacency=adjacency, **options)
    assert found.is_refuted
    worst = worst_on_grid(mechanism, worst, 3) if isinstance(worst, tuple) else worst
    assert exact_epsilon(mechanism.distribution(found.x), mechanism.distribution(found.y)) >= 0.95 * worst
    adjacency.check(found.x, found.y, options.get("distance", 1))
    assert found.audit.pair.distance == options.get("distance", 1)


def test_a_leak_of_twelve_in_a_thousand():
    """The first pilots have three counts against none, which only the optimistic estimate ranks."""

    def leaks_at_the_top(answer, size, rng):
        return np.where((rng.random(size) < 0.012) & (answer >= 10.0), 1e6, answer + rng.laplace(size=size))

    options = {"claim": dp.PureDP(1.0), "adjacency": dp.domains.Within("l1"), "runs": 100_000, "jobs": 1}
    found = dp.find_worst_pair(leaks_at_the_top, dp.Answers(None, 0.0, 10.0), **options)
    assert found.is_refuted
    assert max(found.x, found.y) == 10.0


def test_a_block_sampler_that_raises_puts_pairs_aside():
    def block_mean(rows, size, rng):
        return sum(rows) / len(rows) + rng.laplace(scale=2.0, size=size)

    options = {"claim": dp.PureDP(1.0), "adjacency": dp.AddRemove(), "runs": 8_000, "jobs": 1, "alpha": RARE}
    found = dp.find_worst_pair(block_mean, dp.Rows(most=3), **options)
    aside = [pair for pair in found.ranking if pair.error is not None]
    assert found.verdict is dp.Verdict.NOT_REFUTED
    assert aside
    assert all("[]" in pair.summary and "ZeroDivisionError" in pair.error for pair in aside)
    assert found.ranking[-len(aside) :] == tuple(aside)
    (note,) = (note for note in found.audit.notes if "failed on" in note)  # a reader of the audit sees no pairs
    assert f"failed on {len(aside)} of the {len(found.ranking)} pairs" in note
    assert "ZeroDivisionError" in note
    with pytest.raises(MechanismError, match=r"block_mean failed on all of .* ZeroDivisionError"):
        dp.find_worst_pair(block_mean, dp.Rows(most=1), **options)


CORRECT = [  # each refuted with probability at most 1e-8
    (ExponentialMechanism(1.0), dp.Answers(4, -3.0, 3.0), LINF),
    (LaplaceMechanism(0.5, query=sum), dp.Rows(), dp.Replace()),
    (RandomisedResponse(1.0, 3), dp.Values((0, 1, 2)), dp.Local()),
]


@pytest.mark.parametrize(("mechanism", "domain", "adjacency"), CORRECT, ids=lambda value: type(value).__name__)
def test_correct_mechanisms_are_not_refuted(mechanism, domain, adjacency):
    options = {"runs": 6_000, "search_runs": 2_000, "alpha": RARE, "jobs": 1, "floating_point": "ignore"}
    found = dp.find_worst_pair(mechanism, domain, claim=mechanism.claim, adjacency=adjacency, **options)
    assert found.verdict is dp.Verdict.NOT_REFUTED
    assert "other pairs may be worse" in str(found)


def noisy_length(rows, size, rng):
    return len(rows) + rng.laplace(size=size)


def one_length(rows, rng):
    return len(rows) + rng.laplace()


def one_length_or_error(rows, rng):
    if rng.random() < 0.05:
        raise ValueError("at times")
    return one_length(rows, rng)


OPTIONS = {
    "claim": PureDP(0.5), "adjacency": AddRemove(), "runs": 20_000, "seed": 5, "jobs": 1, "floating_point": "ignore",
}  # fmt: skip


@pytest.mark.parametrize(
    ("mechanism", "more"), [(one_length_or_error, {"sequential": True}), (one_length, {"guide": "replay", "jobs": 1})]
)
def test_a_seed_fixes_everything_whatever_the_workers_and_stores(mechanism, more, tmp_path):
    options = OPTIONS | {"runs": 200, "search_runs": 800, "seed": 3}
    first, second, third = (
        dp.find_worst_pair(mechanism, dp.Rows(most=2), **options | changed | more)
        for changed in ({}, {"jobs": 2, "store": tmp_path}, {"store": tmp_path})
    )
    assert first == second == third
    assert str(first) == str(second) == str(third)
    assert (first.x, first.y, first.ranking) == (second.x, second.y, second.ranking)
    assert first.audit.searched > 0


def test_what_is_reported():
    options = {"claim": dp.PureDP(0.5), "adjacency": dp.AddRemove(), "runs": 4_000, "jobs": 1}
    found = dp.find_worst_pair(noisy_length, dp.Rows(most=3), name="length", **options)
    assert found.runs <= min(sum(pair.runs for pair in found.ranking) + 2 * found.audit.searched, 4_000)
    score = [pair.bound for pair in found.ranking]
    runs = [pair.runs for pair in found.ranking]
    assert runs == sorted(runs, reverse=True)
    pairs = zip(score[1:], score[2:], runs[1:], runs[2:], strict=False)
    assert all(a >= b or a == pytest.approx(b) for a, b, m, n in pairs if m == n)
    assert found.ranking[0].summary == f"x = {found.x}, y = {found.y}"
    assert found.audit.mechanism == "length"
    assert found.ranking[0].label in str(found)


@pytest.mark.parametrize(
    ("strategy", "adjacency"),
    [
        (st.lists(st.integers(0, 3), max_size=4), dp.AddRemove()),
        (st.tuples(st.lists(st.just(0), max_size=4), st.lists(st.just(0), max_size=4)), dp.AddRemove()),
        (st.lists(st.integers(0, 3), min_size=1, max_size=4), dp.Replace()),
        (st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=4), dp.UserLevel(0)),
        (st.floats(0, 9), dp.domains.Within("l1")),
        (st.sampled_from("abc"), dp.Local()),
        (st.builds(nx.path_graph, st.integers(2, 6)), dp.domains.EdgeNeighbours()),
        (st.builds(nx.path_graph, st.integers(2, 6)), dp.domains.NodeNeighbours()),
    ],
    ids=lambda value: str(value) if isinstance(value, dp.domains.Adjacency) else "",
)
def test_strategies_draw_neighbours_that_a_seed_fixes(strategy, adjacency):
    pools = [Pool(pairs_of(strategy, adjacency, 1, 0), adjacency, 1, 0) for _ in range(2)]
    first, again = ([(pair.label, pair.summary) for pair in pool.first(10**6)[0]] for pool in pools)
    assert len(first) > 2
    assert first == again
    assert all("is at distance" in why for _, why in pools[0].strangers)
    assert bool(pools[0].strangers) == str(strategy).startswith("tuples(")


@pytest.mark.parametrize(
    ("domain", "options", "error", "message"),
    [
        ([([1], [2])], {}, AdjacencyError, "none of 1 pair are neighbours; the first: the pair is at distance 2"),
        ([], {}, AdjacencyError, "no pair of neighbours was found"),
        (lambda rng: 1 / 0, {}, DatasetError, "raised ZeroDivisionError: division by zero on pair 1"),
        ([1, 2], {}, DatasetError, "pair 1 is 1, which is not a pair; pass (x, y)"),
        (st.nothing(), {}, DatasetError, "draws no values"),
        (st.lists(st.integers()), {"adjacency": None}, DatasetError, "needs an adjacency to make pairs"),
        (dp.Rows(), {"search_runs": 100}, OptionError, "search_runs=100 is not a possible number of runs"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_errors(domain, options, error, message):
    settings = {"claim": dp.PureDP(1.0), "adjacency": dp.AddRemove(), "runs": 1_000, "jobs": 1} | options
    with pytest.raises(error) as caught:
        dp.find_worst_pair(noisy_length, domain, **settings)
    assert message in str(caught.value)


def test_pairs_of_a_search_share_their_random_numbers_and_the_audit_does_not():
    """The noise is the output: of every pair and on x and y the same, but for the search's last runs and the audit."""
    drawn = []

    def noise_alone(dataset, size, rng):
        noise = rng.random(size)
        drawn.append((float(dataset), float(noise[0])))
        return noise

    options = {"claim": dp.PureDP(1.0), "adjacency": dp.Local(), "runs": 4_000, "search_runs": 4_000}
    found = dp.find_worst_pair(noise_alone, dp.Values((0.0, 1.0, 2.0)), **options)
    firsts = [{noise for dataset, noise in drawn if dataset == value} for value in (0.0, 1.0, 2.0)]
    assert len(set.intersection(*firsts)) > 1
    assert [finding.check.value for finding in found.audit.findings] == ["no-power"]


def test_a_pair_whose_outputs_vary_comes_first():
    def constant_for_some(dataset, size, rng):
        return np.zeros(size) if dataset < 2 else rng.laplace(size=size)

    found = dp.find_worst_pair(
        constant_for_some, [(0, 1), (1, 0), (2, 3), (3, 4)], claim=dp.PureDP(1.0), runs=4_000, search_runs=4_000
    )
    assert min(found.x, found.y) >= 2


def pairs_of_lengths(rows, size, rng):
    return len(rows) + rng.laplace(scale=3.0, size=(size, 2))


def drawn_by(run):
    """Return the result of a search, and seed, phase, side, number and outputs of every block drawn."""
    drawn, real = [], Plan.draw

    def draw(plan, phase, side, number, size, shape=None, **options):
        outputs = real(plan, phase, side, number, size, shape, **options)
        drawn.append((plan.seed, phase, side, number, outputs))
        return outputs

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plan, "draw", draw)
        return run(), drawn


@pytest.mark.parametrize("mechanism", [noisy_length, one_length_or_error, pairs_of_lengths])
def test_no_run_of_the_search_is_counted(mechanism):
    options = OPTIONS | {"runs": 1_500, "search_runs": 800}
    found, drawn = drawn_by(lambda: find_worst_pair(mechanism, Rows(most=1), **options))
    audit = found.audit
    main = {side: [each for each in drawn if each[1:3] == ("main", side)] for side in "xy"}
    for side, counts in (("x", audit.counts.count_x), ("y", audit.counts.count_y)):
        assert {seed for seed, *_ in main[side]} == {5}
        assert len({number for *_, number, _ in main[side]}) == len(main[side])
        assert sum(audit.event.count(outputs) for *_, outputs in main[side]) == counts
    in_search = [each for each in drawn if each[0] != 5]
    assert {phase for _, phase, *_ in in_search} == {"pilot"}
    # All pairs share one seed, and what the audit learns from has another: it is independent of the choice.
    coupled, alone = dict.fromkeys(seed for seed, *_ in in_search)
    on_x = {}
    for seed, _, side, number, outputs in in_search:
        if (seed, side) == (alone, "x"):
            on_x[number] = max(len(outputs), on_x.get(number, 0))  # a block may be drawn again, in part
    assert audit.searched == sum(on_x.values()) > 0
    assert audit.searched == found.ranking[0].runs // 4
    if mechanism is noisy_length:  # every output is another number
        first, second, counted = (
            np.concatenate([each[-1] for each in drawn if each[0] == seed and (seed != 5 or each[1] == "main")])
            for seed in (coupled, alone, 5)
        )
        assert not np.isin(first, second).any()
        assert not np.isin(counted, np.concatenate([first, second])).any()


@pytest.mark.parametrize(("domain", "search_runs"), [(Rows(most=2), 2_000), ([([1], [])], 10_000)])
def test_the_pilot_is_shorter_by_the_runs_of_the_search(domain, search_runs):
    watched = []
    found = find_worst_pair(noisy_length, domain, search_runs=search_runs, progress=watched.append, **OPTIONS)
    audit = found.audit
    is_alone = len(found.ranking) == 1
    assert audit.searched == found.ranking[0].runs // (2 if is_alone else 4)
    assert audit.pilot_runs == max(pilot_runs(20_000) - audit.searched, 0)
    assert (audit.pilot_runs == 0) == (search_runs == 10_000)
    assert audit.counts.runs_x + audit.counts.runs_y == 2 * (20_000 - audit.pilot_runs)
    assert sum(watched) == found.runs + 2 * 20_000 + found.simplifying_runs
    assert f"  pilot   {audit.searched:,} runs of the search on each dataset" in str(found)
    assert audit.is_reproducible


def test_a_sequential_audit_bets_on_its_first_batch():
    def hardly_noisy(rows, size, rng):
        return len(rows) + rng.laplace(scale=0.1, size=size)

    options = OPTIONS | {"sequential": True}
    found, drawn = drawn_by(lambda: find_worst_pair(hardly_noisy, Rows(most=2), search_runs=4_000, **options))
    alone = check(hardly_noisy, found.x, found.y, **options)
    assert found.audit.is_refuted
    assert found.audit.runs == found.audit.counts.runs_x == found.audit.counts.runs_y == 32
    assert found.audit.interim_analyses[0].pvalue < 1.0
    assert (found.audit.pilot_runs, found.audit.searched) == (0, found.ranking[0].runs // 4)
    assert alone.interim_analyses[0].pvalue == 1.0
    assert (alone.runs > 32, alone.pilot_runs) == (True, 32)
    of_audit = {(phase, side, number): len(outputs) for seed, phase, side, number, outputs in drawn if seed == 5}
    assert sum(of_audit.values()) == 2 * 32


@pytest.mark.parametrize(
    ("noise", "check_name"),
    [
        (lambda size, rng: rng.laplace(scale=0.2) + rng.laplace(size=size), HealthCheck.NONSTATIONARY),
        (lambda size, rng: np.repeat(rng.laplace(size=size), 2)[:size], HealthCheck.SERIAL_DEPENDENCE),
        (lambda size, rng: np.random.default_rng().laplace(size=size), None),  # randomness of its own
    ],
)
def test_dependent_runs_are_found_without_a_pilot_of_its_own(noise, check_name):
    few = {} if check_name else {"runs": 400}
    search = {"search_runs": 60_000 if check_name else 800}
    found = find_worst_pair(lambda x, size, rng: len(x) + noise(size, rng), [([1], [])], **OPTIONS | few | search)
    assert found.audit.pilot_runs == 0 or not check_name
    assert found.audit.is_reproducible is (check_name is not None)
    assert check_name is None or check_name in {finding.check for finding in found.audit.findings}


def test_noise_of_a_call_wins_no_bet_of_the_first_batch():
    """A bit that each call draws once: in few blocks, a first batch of 32 runs refuted a third of such audits."""

    def response(bit, size, rng):
        return np.full(size, bit if rng.random() < np.e / (1.0 + np.e) else 1 - bit)

    first_batch = {"sequential": True, "on_interim": lambda look: True}
    for seed in range(4):
        found = find_worst_pair(
            response, [(0, 1)], claim=PureDP(1.0), runs=2_000, search_runs=4_000, seed=seed, jobs=1, **first_batch
        )
        assert not found.is_refuted or found.audit.runs > 32


def test_a_store_refuses_the_audit_of_another_search(tmp_path):
    """Otherwise several audits of the same runs could be tried."""
    options = OPTIONS | {"runs": 400, "store": tmp_path}
    found = find_worst_pair(noisy_length, [([1], [])], search_runs=800, **options)
    assert find_worst_pair(noisy_length, [([1], [])], search_runs=800, **options) == found
    with pytest.raises(StoreError):
        find_worst_pair(noisy_length, [([1], []), ([1, 2], [1])], search_runs=800, **options)
    with pytest.raises(StoreError):
        check(noisy_length, [1], [], **options)


@pytest.mark.parametrize(("share", "is_taken"), [(0.8, True), (0.5, False)])
def test_the_event_that_ranked_the_pair_is_taken_where_it_shows_more(share, is_taken):
    """Every other thousandth of an interval: more likely on x together, and none of them is seen by itself."""
    plan, rng = plan_blocks(as_sampler(noisy_length), [1], [], 5, 1), np.random.default_rng(0)
    on_x, on_y = (rng.integers(0, 500, 2_000) / 500 + rng.random(2_000) / 1_000 for _ in range(2))
    on_x, on_y = (side + (rng.random(2_000) > p) / 1_000 for side, p in ((on_x, share), (on_y, 0.5)))
    suggested = Choice(Intervals(tuple((k / 500, k / 500 + 0.001) for k in range(500))), "x", 9, 1, 10)
    earlier = EarlierDraws(plan, [on_x], [on_y], suggested)
    settings = Settings(
        claim=PureDP(0.05), claim_source="", alpha=0.05, detect=None, power=0.95, name="noisy_length", provenance=None,
        pair=Pair(x="[1]", y="[]", difference="one row", adjacency="add-remove", distance=1), seed=5,
        floating_point="ignore",
    )  # fmt: skip
    audit = FixedSizeAudit(plan, settings, 2_000, earlier=earlier)
    audit.pilot()
    assert (audit.pilot_runs, audit.searched) == (0, 2_000)
    choice = audit.portfolio.choice
    assert (choice.event == suggested.event) is is_taken
    counts = choice.event.count(on_x), choice.event.count(on_y)
    assert not is_taken or (choice.pilot_count_x, choice.pilot_count_y) == counts
