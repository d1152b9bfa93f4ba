"""Sequential audits: valid at every interim analysis, the same on any number of workers, within the time allowed."""

import itertools
import math
import time
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import ApproxDP, GaussianDP, PureDP, Verdict, check
from dpaudit.audit.health.findings import FALSE_ALARM
from dpaudit.audit.procedures import sequential
from dpaudit.audit.procedures.sequential import grid_of_members
from dpaudit.audit.sampling.pilot_and_batch_sizes import batch_sizes, late_batches
from dpaudit.experiments.catalogue.entries import entries

OPTIONS = {"claim": PureDP(1.0), "sequential": True, "jobs": 1, "floating_point": "ignore"}


def laplace(dataset, size, rng, *, epsilon=1.0):
    return dataset + rng.laplace(scale=1 / epsilon, size=size)


def bit(dataset, size, rng):
    """Randomised response with epsilon 1."""
    return (rng.random(size) < 1 / (1 + np.e)) ^ bool(dataset)


@pytest.mark.parametrize("runs", [40, 41, 1000, 123_456, 10**9])
def test_batches_add_up_and_are_few(runs):
    """32 runs, batches of 8 up to 152 runs, then 6% of the total; rounding down adds two batches at most."""
    sizes = batch_sizes(runs)
    assert sum(sizes) == runs
    assert min(sizes) >= 1
    assert np.all(np.array(sizes[1:]) <= np.maximum(8, 0.06 * np.cumsum(sizes)[:-1]))
    assert len(sizes) <= 1 + 15 + 2 + math.ceil(max(math.log(runs / 152) / math.log(1.06), 0.0))
    assert 0 < sum(late_batches(runs)) <= runs


@pytest.mark.parametrize(
    "claim",
    [
        PureDP(0.0), PureDP(1.0), PureDP(50.0), ApproxDP(1.0, 1e-5), ApproxDP(1.0, 0.9, bound_on="delta"),
        GaussianDP(1.0),
    ],
    ids=str,
)  # fmt: skip
def test_the_grid_increases_and_decides_just_above_the_claim(claim):
    members = grid_of_members(claim)
    assert np.all(np.diff(members) > 0)
    assert members[0] > 0
    assert members[-1] < claim.max_parameter
    above = min(member for member in members if member > claim.parameter)
    assert above - claim.parameter <= 1e-6 * max(claim.parameter, 0.1) * 1.01


@pytest.mark.evidence
def test_false_alarms_over_all_looks():
    """20 audits of a mechanism on its boundary at alpha .3, 21 looks each; this test fails with probability 1e-7."""
    alarms = sum(check(bit, 0, 1, **OPTIONS, alpha=0.3, runs=200, seed=seed).is_refuted for seed in range(20))
    assert alarms <= binom.isf(1e-7, 20, 0.3)


def test_a_broken_claim_is_refuted_early():
    """Measured over 100 seeds: median 137 runs, and 196 for nine in ten."""
    result = check(partial(laplace, epsilon=2.0), 0.0, 1.0, **OPTIONS)
    assert result.is_refuted
    assert result.stopped == "refuted"
    assert result.pvalue <= result.alpha
    assert result.bound > 1.0
    assert result.runs <= 300
    slow = check(partial(laplace, epsilon=1.3), 0.0, 1.0, **OPTIONS)
    assert slow.is_refuted
    assert all(look.pvalue > slow.alpha for look in slow.interim_analyses[:-1])


def leak(dataset, size, rng):
    """The same noise on both datasets, except for three outputs in a thousand, which tell them apart."""
    return np.where(
        rng.random(size) < 0.003, (0.2 if dataset else -0.2) + rng.random(size) * 1e-4, rng.laplace(size=size)
    )


def keep(monkeypatch, runs):
    """Has an audit keep the outputs of so many runs; it only counts the others."""
    monkeypatch.setattr(sequential, "KEPT", runs)
    monkeypatch.setattr(sequential, "_KEPT_NUMBERS", runs)


@pytest.mark.parametrize("most", [200_000, 1_000])
def test_the_event_shown_is_the_one_that_refutes(monkeypatch, most):
    keep(monkeypatch, most)
    result = check(leak, 0, 1, **OPTIONS, runs=50_000)
    assert result.is_refuted
    counts = result.directed_counts
    assert counts.count_x > 10
    assert (counts.count_y, counts.runs_x) == (0, result.runs)
    if most > result.runs:  # later, an output may be in the events of both directions
        assert result.opposite.guesses.correct > counts.count_x
        assert result.opposite.guesses.incorrect == 0


def test_workers_do_not_change_a_number():
    options = OPTIONS | {"claim": PureDP(1.9), "runs": 1_000, "seed": 3}
    one, two = (check(lambda d, rng: d + rng.laplace(scale=0.5), 0, 1, **options | {"jobs": jobs}) for jobs in (1, 2))
    assert one == two


def test_batches_beyond_what_is_kept_are_counted_alike(monkeypatch):
    """With little kept, most batches are counted in the workers, and counts still agree with the distribution."""
    keep(monkeypatch, 2_000)
    one, two = (check(laplace, 0.0, 1.0, **OPTIONS | {"jobs": jobs}, runs=100_000, seed=4) for jobs in (1, 2))
    assert one == two
    assert one.verdict is Verdict.NOT_REFUTED
    counts = one.directed_counts
    assert one.is_closed
    assert 90_000 < counts.runs_x < 98_000, "the event was chosen after a hundredth of the runs: no more are kept"
    assert 0.9 < one.estimate < 1.1
    assert 0.9 < one.bound < 1.0


def test_the_final_test_finds_what_an_audit_of_fixed_size_finds():
    """A rare event that is five times as likely on y, of which the bets need about as many runs as the audit has."""

    def leak(dataset, size, rng):
        is_rare = rng.random(size) < (0.05 if dataset else 0.01)
        return np.where(is_rare, 50.0 + rng.random(size), rng.laplace(size=size))

    result = check(leak, 0, 1, **OPTIONS, runs=4_500, seed=2)
    assert result.is_refuted
    assert result.is_closed
    assert result.pvalue <= result.alpha
    assert result.runs == 4_500
    assert "by the final test" in str(result)
    assert result.interim_analyses[-1].bound == result.bound
    assert result.interim_analyses[-2].bound < 1.0


def test_an_audit_that_is_stopped_has_no_final_test_and_does_not_reach_its_resolution():
    result = check(laplace, 0.0, 1.0, **OPTIONS, detect=0.3, on_interim=lambda look: look.runs > 2_000)
    assert (result.is_closed, result.final_alpha, result.stopped) == (False, 0.025, "request")
    assert (result.verdict, result.detect) == (Verdict.INCONCLUSIVE, 0.3)
    assert 0.3 < result.min_detectable_excess < 0.6, "so that it is not told for missing it by a factor of two"
    assert dict(result.error_budget.shares) == {"betting test": 0.025, "final test": 0.025}
    open_ended = check(laplace, 0.0, 1.0, **OPTIONS, runs=500, seconds=math.inf)
    assert (open_ended.is_closed, open_ended.final_alpha) == (False, 0.0)
    assert dict(open_ended.error_budget.shares) == {"betting test": 0.05}


def test_bets_follow_what_later_runs_show(monkeypatch):
    """Beyond the kept runs nothing is learned, but frequencies are known better whenever the counted runs double."""
    keep(monkeypatch, 1_000)
    behind, real = [], sequential.largest_bets

    def largest(lines, seen):
        behind.append(seen[0][2])
        return real(lines, seen)

    monkeypatch.setattr(sequential, "largest_bets", largest)
    check(laplace, 0.0, 1.0, **OPTIONS, runs=20_000)
    counted = [runs for runs in behind if runs > 1_000 + 60]  # the last kept batch may pass the limit
    assert len(counted) >= 4
    assert all(2.0 * first <= after for first, after in itertools.pairwise(counted))
    assert 2 * counted[-1] > 20_000 - 1_060


def test_looks_tell_the_course():
    """Each is told after its batch, the last one before the final test."""
    seen = []
    result = check(laplace, 0.0, 1.0, **OPTIONS, runs=1_000, on_interim=seen.append)
    assert len(seen) == len(result.interim_analyses)
    assert tuple(seen[:-1]) == result.interim_analyses[:-1]
    bounds = [look.bound for look in result.interim_analyses]
    assert [look.runs for look in result.interim_analyses] == np.cumsum(batch_sizes(1_000)).tolist()
    assert bounds == sorted(bounds)
    assert (result.stopped, result.runs, result.bound) == ("runs", 1_000, bounds[-1])


@pytest.mark.parametrize(("seed", "decisive"), [(0, "bets"), (2, "final test")])
def test_the_larger_bound_of_bets_and_final_test_counts(seed, decisive):
    seen = []
    result = check(laplace, 0.0, 1.0, **OPTIONS | {"claim": PureDP(1.5)}, runs=200, seed=seed, on_interim=seen.append)
    assert result.is_closed
    assert result.bound > 0.0
    assert result.pvalue <= seen[-1].pvalue
    assert (result.bound == seen[-1].bound) == (decisive == "bets")
    assert result.bound >= seen[-1].bound


def test_health_checks_share_their_error_over_the_looks(monkeypatch):
    """Half of the error goes to the last planned look, the other half to all looks at which the audit may stop."""
    shares = []

    def examined(*arguments, alpha, **names):
        shares.append(alpha / FALSE_ALARM)
        return ()

    monkeypatch.setattr("dpaudit.audit.procedures.audit.examine", examined)
    options = OPTIONS | {"runs": 200}
    n_interim_analyses = len(check(laplace, 0.0, 1.0, **options).interim_analyses)
    stops = range(2, n_interim_analyses, 8)
    for stop in stops:
        seen = []
        check(laplace, 0.0, 1.0, **options, on_interim=lambda look: seen.append(look) or len(seen) == stop)  # noqa: B023
    assert shares[0] == 0.5
    assert shares[1:] == pytest.approx([3 / (math.pi * look) ** 2 for look in stops])
    assert sum(3 / (math.pi * look) ** 2 for look in range(1, 100_000)) < 0.5


def test_a_mechanism_that_says_nothing_is_tested_on_a_common_event():
    """Bets on rare events would state an excess of 28, or none that could be found."""

    def noise(dataset, size, rng):
        return rng.laplace(size=size)

    result = check(noise, 0.0, 1.0, **OPTIONS, runs=5_000)
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.min_detectable_excess < 2.0


@pytest.fixture
def slow(monkeypatch):
    """A count that takes a tenth of a second, and the seconds that it has taken so far."""
    spent = [0.0]

    def slow_count(rows, rng):
        spent[0] += 0.1
        return len(rows) + rng.laplace(scale=1.0)

    monkeypatch.setattr(time, "clock_gettime", lambda _: spent[0])
    return slow_count, spent


@pytest.mark.parametrize(
    ("options", "verdict", "stopped", "least", "most"),
    [
        ({"seconds": 200, "detect": 0.1}, Verdict.INCONCLUSIVE, "time", 190, 203),
        ({"seconds": 10_000, "detect": 1.0}, Verdict.NOT_REFUTED, "runs", 0, 1_000),
        ({"seconds": 1_000, "claim": PureDP(0.2)}, Verdict.REFUTED, "refuted", 0, 500),
    ],
    ids=str,
)
def test_what_ends_an_audit_first(slow, options, verdict, stopped, least, most):
    mechanism, spent = slow
    result = check(mechanism, [1, 1], [1], adjacency="add-remove", **OPTIONS | options)
    assert (result.verdict, result.stopped) == (verdict, stopped)
    assert least < spent[0] < most
    if verdict is Verdict.INCONCLUSIVE:
        assert "requested: 0.1" in str(result)
        assert "time limit reached" in str(result)
    elif verdict is Verdict.NOT_REFUTED:
        assert 0.6 < result.min_detectable_excess <= 1.0


@pytest.mark.parametrize("sequential", [False, True])
def test_a_claim_near_the_largest_double_is_audited_without_a_warning(sequential):
    result = check(laplace, 0.0, 1.0, claim=PureDP(1e308), runs=400, sequential=sequential, floating_point="ignore")
    assert result.verdict is Verdict.INCONCLUSIVE


def test_rare_events_that_overlap_are_no_guesses():
    """A table with a rare label on each side: an output can lie in both events, so both counts exceed the runs."""
    fault = {each.name: each for each in entries()}["range-of-a-column-learned"]
    for seed in range(2):
        result = check(
            fault.mechanism, fault.x, fault.y, claim=fault.claim, adjacency=fault.adjacency, runs=50 * fault.runs,
            sequential=True, floating_point="ignore", alpha=1e-6, seed=seed,
        )  # fmt: skip
        assert result.is_refuted
