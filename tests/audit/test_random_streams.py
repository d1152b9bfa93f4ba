"""Coins never repeat while the outputs that they meet vary."""

import math

import numpy as np
import pytest

from dpaudit import PureDP, check, check_canaries
from dpaudit.audit.procedures import audit
from dpaudit.audit.procedures.sequential import _coins
from dpaudit.audit.sampling.block_plan import Plan
from dpaudit.audit.sampling.sampler import as_sampler
from dpaudit.audit.sampling.tasks import BlockCounts, MainCounts, PairCounts
from dpaudit.noise import check_independence


def of_the_audit(side, size, rng):
    return side + rng.laplace(size=size)


def elsewhere(seed):
    own = np.random.default_rng(seed)
    return lambda side, size, rng: of_the_audit(side, size, own)


@pytest.fixture
def coins(monkeypatch):
    """The states of the generators of coins, in the order in which a test tossed them."""
    states, tossed = [], audit.guesses_by_coins

    def toss(*given):
        states.append(str(next(each for each in given if isinstance(each, np.random.Generator)).bit_generator.state))
        return tossed(*given)

    monkeypatch.setattr(audit, "guesses_by_coins", toss)
    return states


@pytest.mark.parametrize("is_sequential", [False, True])
def test_coins_are_fixed_by_the_seed_exactly_if_the_outputs_are(coins, is_sequential):
    options = {
        "claim": PureDP(1.0), "runs": 500, "seed": 4, "floating_point": "ignore", "jobs": 1,
        "sequential": is_sequential,
    }  # fmt: skip
    first, again = (check(of_the_audit, 1, 0, **options) for _ in range(2))
    assert first == again
    assert first.is_reproducible
    other, another = (check(elsewhere(7), 1, 0, **options) for _ in range(2))  # equal outputs, as it happens
    assert not other.is_reproducible
    assert other.sketch == another.sketch  # the events that were bet on depend on the coins
    assert len(coins) == 4
    assert coins[0] == coins[1]
    assert len({*coins}) == 3


def test_a_store_keeps_the_coins_of_outputs_that_do_not_come_again():
    class Kept(dict):
        def recall(self, key):
            return self.get(key)

        def keep(self, key, value):
            self[key] = value

        def save(self):
            pass

    memory = Kept()
    plan = Plan(as_sampler(of_the_audit, None), 1, 0, 4, block=32, jobs=1, memory=memory)
    assert plan.seed_of_coins(is_reproducible=True) == 4
    assert not memory
    once = plan.seed_of_coins(is_reproducible=False)
    assert once == plan.seed_of_coins(is_reproducible=False) != 4


def test_ties_and_pairs_follow_from_the_data_and_the_seed():
    own = np.random.default_rng(8)

    def bits(_, size, rng):
        return (own.random((size, 2)) < 0.01).astype(np.float64)  # nearly all values are tied

    # With ties broken alike in all audits the correlations of these would be .95 correlated.
    found = [check_independence(bits, 0, runs=2_000, seed=3, jobs=1).points[0].estimate for _ in range(4)]
    assert np.ptp(found) > 1.0 / math.sqrt(2_000)
    scores, included = own.integers(0, 3, 200).astype(float), own.permutation(200) < 100
    options = {"claim": PureDP(1.0), "inclusion": "fixed", "adjacency": "replace"}
    one, again = (check_canaries(scores, included, **options) for _ in range(2))
    assert one == again
    others = [check_canaries(scores, included, seed=seed, **options).guesses.correct for seed in range(8)]
    assert len({*others}) > 1


def test_coins_depend_on_every_count_that_tests_see():
    """Counts of plain events and of bins differ where those of the chosen event agree."""
    counts, none = np.array([3, 4]), np.zeros(2, np.uint64)
    blocks = [BlockCounts(counts, counts, none, cells=np.array(cells)) for cells in ([5, 2], [4, 3])]
    finals = [MainCounts((7, 7), counts[:, None], np.array(cells)) for cells in ([[5, 2], [1, 6]], [[5, 2], [2, 5]])]
    assert blocks[0].contents != blocks[1].contents
    assert finals[0].contents != finals[1].contents
    pairs = PairCounts.from_numbers([1] * 18)
    drawn = {_coins(4, 1, pairs, seen).integers(1 << 60) for seen in (None, (counts, counts), (counts, counts[::-1]))}
    assert len(drawn) == 3
