"""The search's last runs on the chosen pair begin the pilot of its audit, and no test counts them."""

import numpy as np
import pytest

from dpaudit import AddRemove, PureDP, Rows, check, find_worst_pair
from dpaudit.audit.errors import StoreError
from dpaudit.audit.events.events import Intervals
from dpaudit.audit.health.findings import HealthCheck
from dpaudit.audit.portfolio.choice import Choice
from dpaudit.audit.procedures.pilot import EarlierDraws, run_pilot
from dpaudit.audit.sampling.block_plan import Plan
from dpaudit.audit.sampling.draw import plan_blocks
from dpaudit.audit.sampling.pilot_and_batch_sizes import pilot_runs
from dpaudit.audit.sampling.sampler import as_sampler

OPTIONS = {"claim": PureDP(0.5), "adjacency": AddRemove(), "runs": 20_000, "seed": 5, "jobs": 1, "bits": False}


def noisy_length(rows, size, rng):
    return len(rows) + rng.laplace(size=size)


def one_noisy_length(rows, rng):
    if rng.random() < 0.05:
        raise ValueError("at times")
    return len(rows) + rng.laplace()


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


@pytest.mark.parametrize("mechanism", [noisy_length, one_noisy_length, pairs_of_lengths])
def test_no_run_of_the_search_is_counted(mechanism):
    options = OPTIONS | {"runs": 5_000, "search_runs": 2_000}
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
        first, second = (
            np.concatenate([each[-1] for each in in_search if each[0] == seed]) for seed in (coupled, alone)
        )
        assert not np.isin(first, second).any()
        seen = np.concatenate([outputs for *_, outputs in in_search])
        assert not np.isin(np.concatenate([outputs for side in "xy" for *_, outputs in main[side]]), seen).any()


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
    assert sum(watched) == found.runs + 2 * 20_000
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


def test_randomness_of_its_own_is_noticed():
    def own(rows, size, rng):
        return len(rows) + np.random.default_rng().laplace(size=size)

    found = find_worst_pair(own, Rows(most=1), search_runs=800, **OPTIONS | {"runs": 400})
    assert not found.audit.is_reproducible


def noise_of_a_call(rows, size, rng):
    return len(rows) + rng.laplace(scale=0.2) + rng.laplace(size=size)


def noise_of_two_runs(rows, size, rng):
    return len(rows) + np.repeat(rng.laplace(size=size), 2)[:size]


@pytest.mark.parametrize(
    ("mechanism", "check_name"),
    [(noise_of_a_call, HealthCheck.NONSTATIONARY), (noise_of_two_runs, HealthCheck.SERIAL_DEPENDENCE)],
)
def test_dependent_runs_are_found_without_a_pilot_of_its_own(mechanism, check_name):
    found = find_worst_pair(mechanism, [([1], [])], search_runs=60_000, **OPTIONS)
    assert found.audit.pilot_runs == 0
    assert check_name in {finding.check for finding in found.audit.findings}


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
    pilot = run_pilot(plan, PureDP(0.05), 2_000, 0.05, earlier=earlier)
    assert (pilot.runs, pilot.searched) == (0, 2_000)
    assert (pilot.choice.event == suggested.event) is is_taken
    counts = pilot.choice.event.count(on_x), pilot.choice.event.count(on_y)
    assert not is_taken or (pilot.choice.pilot_count_x, pilot.choice.pilot_count_y) == counts
