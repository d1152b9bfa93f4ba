"""The simpler pair that a search shows beside the found one loses as much, and no audit sees it."""

import numpy as np
import pytest

from dpaudit import AddRemove, Answers, PureDP, Rows, find_worst_pair
from dpaudit.audit.sampling.sampler import as_sampler
from dpaudit.audit.search.candidates import Pool
from dpaudit.audit.search.find_worst_pair import for_simpler_pairs, simplest
from dpaudit.audit.search.pairs_for_domain import pairs_of
from dpaudit.audit.search.trial import Judge, Trial
from dpaudit.domains import Within

OPTIONS = {"claim": PureDP(1.0), "runs": 4_000, "search_runs": 24_000, "jobs": 1, "bits": False}


def noisy_sum(rows, size, rng):
    return sum(rows) + rng.laplace(size=size)


def noisy_total(answers, size, rng):
    return answers.sum() + rng.laplace(scale=3.0, size=size)


def test_rows_that_do_not_matter_are_left_out_within_the_budget():
    spent = []
    found = find_worst_pair(noisy_sum, Rows(most=6, high=2.0), adjacency=AddRemove(), progress=spent.append, **OPTIONS)
    simple = found.simple or found
    assert abs(sum(found.x) - sum(found.y)) == pytest.approx(2.0)
    assert abs(sum(simple.x) - sum(simple.y)) == pytest.approx(2.0, abs=0.07)
    assert max(len(simple.x), len(simple.y)) <= 2
    if found.simple is not None:
        assert f"  simpler {found.simple.summary}" in str(found)
        assert found.simple.bound >= 0.97 * found.simple.found_bound
    assert found.runs <= OPTIONS["search_runs"]
    assert sum(spent) == found.runs + 2 * OPTIONS["runs"]


def test_small_searches_keep_their_whole_budget():
    assert [for_simpler_pairs(budget) for budget in (400, 23_999, 24_000, 1_000_000)] == [0, 0, 2_400, 100_000]


def simplified(mechanism, claim, seed, runs):
    """The simplest pair for one of answers at 3.14159, with its trial if it loses more, and the executions."""
    adjacency = Within("linf")
    source = pairs_of(Answers(3, 0.0, 9.0), adjacency, 1, seed)
    *_, line = source.lines()
    pool = Pool(source, adjacency, 1, seed)
    judge = Judge(as_sampler(mechanism), claim, runs=60_000, alpha=0.05, seed=seed, jobs=1)
    found = Trial(line.at(3.14159), 0)
    found.extend([runs], judge, is_coupled=True)
    assert simplest(pool, judge, found, 1_000, 1) == (None, None, 0), "too few to compare any"
    return simplest(pool, judge, found, 48_000, 1)


def test_numbers_become_round_where_that_changes_nothing():
    """The noise does not depend on the level, so that a level of 0 is as good as any."""
    simple, worse, executions = simplified(noisy_total, PureDP(1.0), 3, 10_000)
    assert np.array_equal(simple.x, np.zeros(3))
    assert np.array_equal(simple.y, np.ones(3))
    assert simple.bound >= 0.97 * simple.found_bound
    assert executions == 4 * simple.runs
    assert (worse is None) == (simple.bound < 1.01 * simple.found_bound)


def test_a_simpler_pair_that_loses_clearly_more_is_audited():
    def of_three(rows, size, rng):  # a third row counts with its value
        return len(rows) + (sum(rows) if len(rows) >= 3 else 0.0) + rng.laplace(size=size)

    options = {"claim": PureDP(1.0), "adjacency": AddRemove(), "runs": 50_000, "bits": False, "jobs": 1, "seed": 3}
    found = find_worst_pair(of_three, Rows(high=1.0), **options)
    assert (found.x, found.y, found.simple) == ([1.0, 1.0], [1.0, 1.0, 1.0], None)
    assert found.ranking[0].summary == "x = [1.0, 1.0], y = [1.0, 1.0, 1.0]"
    assert found.ranking[0].bound > found.ranking[1].bound > 0.0
    assert found.audit.bound > 3.5
