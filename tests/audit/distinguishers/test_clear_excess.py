"""Small excesses that the pilot shows by many standard errors, and audits that find them."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit import ApproxDP, PureDP, check
from dpaudit.audit.distinguishers.clear_excess import clearest, or_stretch, stretches_for
from dpaudit.audit.distinguishers.event_criterion import Criterion
from dpaudit.audit.distinguishers.event_value import Best, best_event
from dpaudit.audit.events.events import Intervals
from dpaudit.audit.events.scores import Number
from dpaudit.audit.families.number_families import Family, ordered_families
from dpaudit.audit.families.pilot_split import PilotSplit
from dpaudit.experiments.bench.detection.small_excesses import CrowdedNoise

RUNS = 10_000
WHERE = Intervals(((0.0, 1.0),))
NEVER = PureDP(0.0)
PARTS = ((0.0, 0.5), (0.5, 0.55), (0.55, 1.0))


def family(*hits, is_learned=False, fitted=None):
    hits_x, hits_y = np.array(hits, dtype=np.float64).T
    return Family(hits_x, hits_y, RUNS, lambda index, inside: WHERE, fitted, is_learned=is_learned)


def criterion(claim=NEVER, caution=4.0):
    return Criterion(claim, RUNS, 1.6, caution)


@pytest.mark.parametrize(
    ("hits", "reached"),
    [((1_000, 1_000), None), ((1_120, 1_000), None), ((1_150, 1_000), 3.3), ((1_300, 1_000), 6.4)],
)
def test_the_clearest_excess_reaches_its_standard_errors(hits, reached):
    found = clearest([family(hits)], criterion())
    assert (found and found.caution) == reached


def test_it_has_more_standard_errors_and_not_a_larger_ratio():
    rare, common = family((30, 8)), family((1_400, 1_000))
    assert clearest([rare], criterion()).caution == 3.6
    assert clearest([rare, common], criterion()).hits == (1_400, 1_000)


def test_a_learned_event_is_judged_like_any_other():
    rare, learned = family((16, 8)), family((1_200, 1_000), is_learned=True)
    assert clearest([rare, learned], criterion()).hits == (1_200, 1_000)


def test_an_excess_is_one_over_the_claim():
    hits = family((1_300, 1_000))
    assert clearest([hits], criterion(PureDP(0.25))) is None
    assert clearest([hits], criterion(ApproxDP(0.0, 0.02))) is None
    assert clearest([hits], criterion(PureDP(0.1))) is not None


def test_what_a_curve_expects_is_no_excess():
    counts = np.array([1_300.0]), np.array([1_000.0])
    assert clearest([family((1_300, 1_000), fitted=counts)], criterion()) is None


def best(value, direction="x"):
    return Best(value, family((1_100, 1_000)), True, direction, 0, 4.0)


def test_a_stretch_takes_the_place_of_the_leading_event_if_it_is_better():
    stretch = family((1_500, 1_000), is_learned=True)
    found = or_stretch([best(0.001), best(-0.1, "y")], [stretch], criterion())
    assert found[0].family is stretch
    assert found[1].value == -0.1
    (alone,) = or_stretch([best(0.001)], [stretch], criterion())
    assert alone.family is stretch


def test_it_does_not_if_it_is_better_only_by_its_own_errors():
    """Four standard errors below its counts it would be worth more than the leading event, five below it is not."""
    stretch = family((1_500, 1_000), is_learned=True)
    four, five = (best_event([stretch], criterion(caution=caution)).value for caution in (4.0, 5.0))
    found = [best(0.5 * (four + five)), best(-0.1, "y")]
    assert or_stretch(found, [stretch], criterion()) == found
    assert or_stretch([best(0.9 * five), best(-0.1, "y")], [stretch], criterion())[0].family is stretch
    assert or_stretch(found, [], criterion()) == found


def test_stretches_are_sought_in_both_directions_and_above_the_claim():
    """A half of the numbers is likelier on x by a tenth, which the claim allows, and a twentieth on y twice."""
    rng = np.random.default_rng(0)

    def numbers(*runs):
        parts = [low + (high - low) * rng.random(n) for n, (low, high) in zip(runs, PARTS, strict=True)]
        return rng.permutation(np.concatenate(parts))

    split = PilotSplit.in_half(numbers(5_500, 250, 4_250), numbers(5_000, 500, 4_500))
    families = list(ordered_families(Number(), split.ordered, fit=False))
    (found,) = stretches_for(families, PureDP(0.3))
    intervals = [found.build(at, True).intervals[0] for at in range(len(found.hits_x))]
    assert any(interval == pytest.approx(PARTS[0], abs=0.02) for interval in intervals)
    assert any(interval == pytest.approx(PARTS[1], abs=0.02) for interval in intervals)


@pytest.mark.parametrize(
    ("place", "epsilon", "p", "q", "seed", "pilot_runs"),
    [
        ("interval", 0.0, 0.06235, 0.05, 7, 33_333),
        ("interval", 0.0, 0.06235, 0.05, 41, 33_333),  # an eighth of the runs showed nothing
        ("interval of a coordinate", 0.0, 0.06235, 0.05, 5, 33_333),
        ("interval", 0.1, 0.0685, 0.05, 0, 33_333),
    ],
)
def test_a_small_excess_in_an_interval_is_found(place, epsilon, p, q, seed, pilot_runs):
    """By twelve standard errors of all runs, with seeds with which no half-line and no set of cells showed it."""
    found = check(CrowdedNoise(place, p, q), 1, 0, claim=PureDP(epsilon), runs=100_000, seed=seed, jobs=1, bits=False)
    assert found.is_refuted
    assert found.pilot_runs == pilot_runs
