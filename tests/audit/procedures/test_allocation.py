"""The division of an audit's main runs between the datasets."""

import math

import numpy as np
import pytest

from dpaudit import ApproxDP, GaussianDP, PureDP, check
from dpaudit.audit.distinguishers.choice import Choice
from dpaudit.audit.events.events import Intervals
from dpaudit.audit.power.joint_test_power import power_of_test
from dpaudit.audit.procedures.pilot import divided
from dpaudit.reports import plain_text

EVENT = Intervals(((0.0, 1.0),))
MAIN = 100_000


def choice(hits_x, hits_y, likelier_on="x", runs=100_000, **options):
    return Choice(EVENT, likelier_on, hits_x, hits_y, runs, **options)


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_a_rare_event_has_runs_in_the_ratio_of_the_roots_of_its_probabilities(epsilon):
    on_x, on_y = divided(choice(300, 10), PureDP(epsilon), MAIN)
    assert on_x + on_y == 2 * MAIN
    assert on_y / on_x == pytest.approx(math.exp(epsilon / 2), rel=0.05)


@pytest.mark.parametrize("claim", [PureDP(2.0), ApproxDP(1.5, 1e-3), GaussianDP(1.0)], ids=str)
@pytest.mark.parametrize("share", [0.01, 0.2, 0.9])
def test_no_other_division_has_a_smaller_error(claim, share):
    on_x, on_y = divided(choice(round(share * MAIN), 10), claim, MAIN)
    q = np.linspace(1e-6, 1.0, 1_000_001)
    boundary = claim.max_power(q, 1.0 - q)[0]
    place = int(np.searchsorted(boundary, share))
    slope = (boundary[place] - boundary[place - 1]) / 1e-6
    of_p, of_q = share * (1 - share), slope**2 * q[place] * (1 - q[place])
    tried = np.arange(0.2, 0.8, 0.001)  # no dataset has more than four times the runs of the other
    least = (of_p / tried + of_q / (1 - tried)).min()
    assert of_p / (on_x / (2 * MAIN)) + of_q / (on_y / (2 * MAIN)) <= 1.03 * least


def test_the_direction_is_that_of_the_event():
    claim = PureDP(2.0)
    assert divided(choice(10, 300, "y"), claim, MAIN) == divided(choice(300, 10), claim, MAIN)[::-1]


def test_runs_are_equal_where_little_is_saved_and_for_a_test_of_both_directions():
    assert divided(choice(300, 10), PureDP(0.1), MAIN) == (MAIN, MAIN)
    both = choice(300, 10, opposite=choice(10, 300, "y"))
    assert divided(both, PureDP(2.0), MAIN) == (MAIN, MAIN)
    assert divided(choice(300, 300, shows_nothing=True), PureDP(2.0), MAIN) == (MAIN, MAIN)
    assert divided(choice(0, 0), ApproxDP(1.0, 0.5), MAIN) == (MAIN, MAIN)  # below delta everything is allowed


def test_the_power_is_larger():
    claim, q, excess = PureDP(2.0), 0.003, 0.3
    on_x, on_y = divided(choice(2_500, 300), claim, 20_000)
    equal = power_of_test(claim, 20_000, 20_000, q, excess, alpha=0.05)
    assert 0.7 < equal < power_of_test(claim, on_x, on_y, q, excess, alpha=0.05) - 0.05


class OneSidedLeak:
    """Reveals the larger dataset in two of a hundred runs, and never says anything of the smaller one."""

    def sample(self, dataset, size, rng):
        noise = rng.integers(0, 3, size=size)
        return np.where(rng.random(size) < 0.02 * dataset, 7, noise)


@pytest.mark.parametrize("pair", [(0, 1), (1, 0)])
def test_an_audit_divides_its_main_runs_and_says_so(pair):
    result = check(OneSidedLeak(), *pair, claim=PureDP(2.0), runs=10_000, seed=1, jobs=1, bits=False)
    counts, main = result.counts, result.runs - result.pilot_runs
    assert result.is_refuted
    assert result.opposite is None
    assert counts.runs_x + counts.runs_y == 2 * main
    more, fewer = (counts.runs_x, counts.runs_y) if pair[0] == 0 else (counts.runs_y, counts.runs_x)
    assert more > 1.5 * fewer
    assert f"then {counts.runs_x:,} on x and {counts.runs_y:,} on y" in plain_text.lines(result)
