"""What audits that know the best events could show: the events against others, the bets against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpaudit import ApproxDP, PureDP
from dpaudit.experiments.benchmarks.core.page import once_beside
from dpaudit.experiments.benchmarks.inference.inference_page import KINDS, Kind
from dpaudit.experiments.benchmarks.inference.known_events import (
    KnownPair,
    best_bet,
    best_pairs,
    known_bound,
    known_share,
    runs_of_best_bet,
    runs_of_known_events,
)
from dpaudit.mechanisms import FiniteLaw, GaussianMechanism, LaplaceLaw, LaplaceMechanism, RandomisedResponse

AUDITS = 200
MOST_ALARMS = int(stats.binom.isf(1e-6, AUDITS, 0.05))


def pairs_of(mechanism, x=0.0, y=1.0):
    return best_pairs(mechanism.law(x), mechanism.law(y))


RESPONSE = pairs_of(RandomisedResponse(2.0), 0, 1)


def test_the_only_pair_of_two_outcomes():
    assert len(RESPONSE) == 1
    odds = math.exp(2.0) / (1.0 + math.exp(2.0))
    np.testing.assert_allclose([*RESPONSE[0].on_x, *RESPONSE[0].on_y], [odds, 1 - odds] * 2, rtol=1e-12)
    assert RESPONSE[0].cells.sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("mechanism", [LaplaceMechanism(1.0), GaussianMechanism(1.0, 0.05)], ids=str)
def test_no_pair_of_half_lines_has_a_larger_bound(mechanism):
    claim, (law_x, law_y), n = mechanism.claim, (mechanism.law(0.0), mechanism.law(1.0)), 20_000
    bound, best = known_bound(best_pairs(law_x, law_y), claim, n, alpha=0.05)
    assert bound < claim.strength
    for low in (-1.3, -0.2, 0.4):
        for high in (1.0 - low, 1.2 - low):
            on_x, on_y = ((float(p(at)), float(q(at))) for p, q, at in (
                (law_x.cdf, law_y.cdf, low), (law_y.sf, law_x.sf, high)
            ))  # fmt: skip
            other = known_bound([KnownPair(on_x, on_y)], claim, n, alpha=0.05)[0]
            assert other <= bound + 0.01 * (claim.strength - bound)
    assert best.right > best.wrong


def test_coins_and_less_alpha_leave_less():
    pairs, claim = pairs_of(LaplaceMechanism(1.0)), PureDP(1.0)
    whole = known_bound(pairs, claim, 10_000, alpha=0.05)[0]
    assert known_bound(pairs, claim, 10_000, alpha=0.05, is_whole=False)[0] < whole
    assert known_bound(pairs, claim, 10_000, alpha=0.04)[0] < whole


def test_laws_without_a_difference_have_no_pair():
    same = FiniteLaw(tuple(np.log([0.5, 0.5])))
    assert best_pairs(same, same) == []
    assert best_pairs(LaplaceLaw(0.0, 1.0), LaplaceLaw(0.0, 1.0)) == []


def test_the_best_bet_on_a_pure_claim_grows_by_the_divergence_of_the_guesses():
    pair, factors = best_bet(RESPONSE, PureDP(1.0))
    c, usual = pair.right, math.e / (1.0 + math.e)
    growth = float(np.log(factors) @ [pair.right, pair.wrong, 0.0])
    assert growth == pytest.approx(c * math.log(c / usual) + (1 - c) * math.log((1 - c) / (1 - usual)), rel=1e-3)


@pytest.mark.parametrize("claim", [PureDP(2.0), ApproxDP(1.0, 0.1)], ids=str)
def test_bets_on_a_claim_that_holds_do_not_grow(claim):
    c = float(claim.max_power(0.2)[0])
    pair = KnownPair((c, 0.2), (c, 0.2))
    factors = best_bet([pair], claim)[1]
    assert factors @ [c, 0.2, 0.8 - c] <= 1.0 + 1e-9
    assert (factors > 0.0).all()


@pytest.mark.parametrize("simulated", [runs_of_best_bet, runs_of_known_events])
def test_false_alarms_of_simulated_audits(simulated):
    """Each test fails by chance with probability 1e-6, for the bets and for the final test."""
    pairs = pairs_of(LaplaceMechanism(1.0))
    options = {"alpha": 0.025, "final_alpha": 0.025, "audits": AUDITS // 4, "seed": 1}
    taken = simulated(pairs, PureDP(1.0), 300, **options)
    assert np.isfinite(taken).sum() <= stats.binom.isf(1e-6, AUDITS // 4, 0.05)


def test_false_alarms_of_a_fixed_test():
    """Fails by chance with probability 1e-6."""
    pair = KnownPair((math.e * 0.2, 0.2), (math.e * 0.2, 0.2))
    share = known_share(pair, PureDP(1.0), 1_000, alpha=0.05, audits=AUDITS, seed=1)
    assert share * AUDITS <= MOST_ALARMS
    assert known_share(RESPONSE[0], PureDP(1.0), 1_000, alpha=0.05, audits=20, seed=1) == 1.0


def test_knowing_the_laws_is_worth_more_than_knowing_the_events():
    options = {"alpha": 0.05, "final_alpha": 0.0, "audits": 40, "seed": 3}
    laws, events = (
        float(np.median(simulated(RESPONSE, PureDP(1.0), 10_000, **options)))
        for simulated in (runs_of_best_bet, runs_of_known_events)
    )
    assert laws < events < 100.0  # an audit that learns takes 80 to 90


def test_a_leak_that_is_known_is_found_after_enough_hits():
    """Each hit wins ln(1 + 1/e), so ten are needed at alpha .05; the runs to the tenth are negative binomial."""
    leak = KnownPair((0.01, 1e-12), (0.01, 1e-12))
    taken = runs_of_best_bet([leak], PureDP(1.0), 10**6, alpha=0.05, final_alpha=0.0, audits=2_000, seed=1)
    hits = math.ceil(math.log(20.0) / math.log1p(1.0 / math.e))
    expected = (hits + stats.nbinom.median(hits, 0.01)) / 2.0
    # The median of 2,000 has a standard error of 1.3 × 152/√2,000 = 4; looks come a hundredth late at most.
    assert expected - 25.0 < np.median(taken) < 1.01 * expected + 25.0


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_mechanism_has_pairs_beyond_its_claim(name):
    kind = Kind(name)
    pairs = best_pairs(*kind.laws(1.5))
    assert any(pair.right > float(kind.claim.max_power(pair.wrong)[0]) for pair in pairs)


def test_a_former_row_gets_the_missing_cells_only():
    measured = []

    def cells(size):
        measured.append(size)
        return {"size": size}, []

    def task(names):
        return once_beside("a", cells, lambda size: dict.fromkeys(names, 2 * size), names, 7)

    (row,) = task(()).measure(None)
    assert row.cells == {"size": 7}
    (longer,) = task(("twice",)).measure(row)
    assert longer.cells == {"size": 7, "twice": 14}
    assert (longer.date, longer.machine, longer.seconds) == (row.date, row.machine, row.seconds)
    assert list(task(("twice",)).measure(longer)) == [longer]
    assert measured == [7]
